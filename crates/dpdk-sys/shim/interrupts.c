/* What must not happen while a driver's own thread is at it. */
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include <rte_alarm.h>

#include "shim.h"

/* Longer than any driver is at it, but one that waits for its peer. */
#define PATIENCE_S 2

struct errand {
	void (*run)(void *);
	void *argument;
	_Atomic bool is_done;
	sem_t done;
};

static void go(void *argument)
{
	struct errand *errand = argument;

	errand->run(errand->argument);
	atomic_store(&errand->is_done, true);
	sem_post(&errand->done);
}

/* By an alarm, which EAL serves there. Where that thread does not come to it, or there is no alarm, it is done here: a run
 * must end. */
void dl_on_interrupt_thread(void (*run)(void *), void *argument)
{
	struct errand errand = { .run = run, .argument = argument };
	struct timespec until;

	sem_init(&errand.done, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	if (rte_eal_alarm_set(1, go, &errand) != 0 || sem_clockwait(&errand.done, CLOCK_MONOTONIC, &until) != 0)
		/* Waits for one that has begun. */
		rte_eal_alarm_cancel(go, &errand);
	if (!atomic_load(&errand.is_done))
		run(argument);
	sem_destroy(&errand.done);
}
