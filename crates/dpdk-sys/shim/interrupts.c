/* What must not happen while a driver's own thread is at it. */
#include <semaphore.h>

#include <rte_alarm.h>

#include "shim.h"

struct errand {
	void (*run)(void *);
	void *argument;
	sem_t done;
};

static void go(void *argument)
{
	struct errand *errand = argument;

	errand->run(errand->argument);
	sem_post(&errand->done);
}

/* By an alarm, which EAL serves there. */
void dl_on_interrupt_thread(void (*run)(void *), void *argument)
{
	struct errand errand = { .run = run, .argument = argument };

	sem_init(&errand.done, 0, 0);
	if (rte_eal_alarm_set(1, go, &errand) == 0)
		while (sem_wait(&errand.done) != 0)
			;
	else
		run(argument);
	sem_destroy(&errand.done);
}
