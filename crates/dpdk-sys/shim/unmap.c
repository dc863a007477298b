/* A pause before a driver's interrupt takes memory away that a burst may still be reading. */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

static void (*_Atomic before_unmap)(void);

void dl_before_unmap(void (*wait)(void))
{
	atomic_store(&before_unmap, wait);
}

/* EAL's interrupt thread: its name until 23.07, and since. */
static int on_interrupt_thread(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return strcmp(name, "eal-intr-thread") == 0 || strcmp(name, "dpdk-intr") == 0;
}

/* When its peer goes away, the memif driver clears a flag and unmaps the shared rings at once, on the interrupt thread.
 * A burst that passed the flag before then reads unmapped memory (seen with 22.11: SIGSEGV when the peer ends).
 * The driver finds this munmap before the C library's, and waits for such a burst here. */
int munmap(void *address, size_t length)
{
	void (*wait)(void) = atomic_load(&before_unmap);

	if (wait != NULL && on_interrupt_thread())
		wait();
	return (int)syscall(SYS_munmap, address, length);
}
