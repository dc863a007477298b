/* What waits, or is left undone, before memory is taken away that another thread may still be reading. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_eal.h>

#include "shim.h"

static void (*_Atomic before_unmap)(void);
static _Thread_local bool is_ending;

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

	if (is_ending)
		return 0;
	if (wait != NULL && on_interrupt_thread())
		wait();
	return (int)syscall(SYS_munmap, address, length);
}

/* EAL's cleanup ends neither its interrupt thread nor what a driver registered there, and unmaps the memory in which their handles
 * lie (seen with 22.11: SIGSEGV of a reflector that ended as its peer did). Nothing comes after it but the end of the process,
 * which takes the memory back. */
int dl_eal_cleanup(void)
{
	int result;

	is_ending = true;
	result = rte_eal_cleanup();
	is_ending = false;
	return result;
}
