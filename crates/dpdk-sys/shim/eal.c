/* Start and end of EAL, threads, and the devices made at run time. */
#include <errno.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_lcore.h>
#include <rte_pdump.h>
#include <rte_ring.h>
#include <rte_version.h>

#include "shim.h"

/* The functions below fail with -1 and rte_errno, or with -errno, by version. */
static int error_of(int result)
{
	if (result >= 0)
		return result;
	if (result == -1 && rte_errno > 0)
		return -rte_errno;
	return result;
}

int dl_eal_init(int argc, char **argv)
{
	rte_errno = 0;
	return error_of(rte_eal_init(argc, argv));
}

int dl_pdump_init(void)
{
	rte_errno = 0;
	return error_of(rte_pdump_init());
}

const char *dl_runtime_dir(void)
{
	return rte_eal_get_runtime_dir();
}

const char *dl_version(void)
{
	return rte_version();
}

int dl_thread_register(void)
{
	rte_errno = 0;
	return error_of(rte_thread_register());
}

void dl_thread_unregister(void)
{
	rte_thread_unregister();
}

int dl_vdev_add(const char *name, const char *arguments)
{
	rte_errno = 0;
	return error_of(rte_eal_hotplug_add("vdev", name, arguments));
}

int dl_vdev_remove(const char *name)
{
	rte_errno = 0;
	return error_of(rte_eal_hotplug_remove("vdev", name));
}

struct dl_ring *dl_ring_create(const char *name, unsigned size, int socket, int *error)
{
	/* One worker owns each end. EXACT_SZ: DPDK's rings otherwise hold one less than the power of two. */
	struct rte_ring *ring = rte_ring_create(name, size, socket, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (ring == NULL)
		*error = -rte_errno;
	return (struct dl_ring *)ring;
}

void dl_ring_free(struct dl_ring *ring)
{
	rte_ring_free((struct rte_ring *)ring);
}

int dl_port_from_rings(const char *name, struct dl_ring **rx, struct dl_ring **tx, unsigned queues, int socket)
{
	rte_errno = 0;
	int port = rte_eth_from_rings(name, (struct rte_ring **)rx, queues, (struct rte_ring **)tx, queues,
				      socket < 0 ? 0 : (unsigned)socket);
	if (port < 0 && rte_errno == 0)
		return -EINVAL;
	return error_of(port);
}

unsigned dl_ring_drain(struct dl_ring *ring)
{
	void *mbuf;
	unsigned count = 0;

	while (rte_ring_dequeue((struct rte_ring *)ring, &mbuf) == 0) {
		rte_pktmbuf_free(mbuf);
		count++;
	}
	return count;
}
