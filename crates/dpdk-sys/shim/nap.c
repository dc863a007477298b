/* A shorter nap where EAL measures the time stamp counter for itself. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

/* On this thread EAL is being started, for ports that are no hardware. */
static _Thread_local int naps_are_short;

void dl_short_naps(int are_short)
{
	naps_are_short = are_short;
}

/* Where the processor does not tell the rate of its counter, rte_eal_init counts over a nap of 100 ms, by a clock that it
 * reads before and after, and rounds to 10 MHz. 10 ms give the same: two readings a microsecond off are 0.01 %, and it
 * rounds to 0.4 %. Whoever is taken off its core between two readings is further off, so that hardware, for which drivers
 * wait by that rate, gets the whole nap. What a run measures by is calibrated apart.
 * EAL finds this nanosleep before the C library's. */
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	static const struct timespec nap = { .tv_nsec = 10000000 };

	if (naps_are_short && wanted->tv_sec == 0 && wanted->tv_nsec == 100000000)
		wanted = &nap;
	return (int)syscall(SYS_nanosleep, wanted, left);
}
