/* What drivers ask of their sockets, and what of it is good for packets: groups of them, and no sleep. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The last socket that asked as the first of its port. */
static struct {
	int socket, interface;
	uint64_t cookie;
} first;

static int set(int socket, int level, int name, const void *value, socklen_t length)
{
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}

/* The interface that a packet socket is bound to; 0 where it is none. */
static int interface_of(int socket)
{
	struct sockaddr_ll address = { 0 };
	socklen_t length = sizeof(address);

	if (getsockname(socket, (struct sockaddr *)&address, &length) != 0 || address.sll_family != AF_PACKET)
		return 0;
	return address.sll_ifindex;
}

/* What no other socket ever has, whatever the number of its descriptor. */
static uint64_t cookie_of(int socket)
{
	uint64_t cookie = 0;
	socklen_t length = sizeof(cookie);

	return getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

/* The group that a socket is in, as another one joins it; 0 where it is in none: what the driver asks for has a flag. */
static int group_of(int socket)
{
	int group = 0;
	socklen_t length = sizeof(group);

	return getsockopt(socket, SOL_PACKET, PACKET_FANOUT, &group, &length) == 0 ? group : 0;
}

/* A group of its own for the first socket of a port, of the kind that the driver asks for: which one that is, or 0 with errno.
 * The driver makes the number of its process id, which processes of two PID namespaces may share: they would then share the
 * packets of an interface, too, and neither would miss the other's. The kernel knows which number is free (Linux 4.12). */
static int new_group(int socket, int fanout)
{
	int unique = (int)(((unsigned)fanout & ~0xffffU) | PACKET_FANOUT_FLAG_UNIQUEID << 16), group;

	if (set(socket, SOL_PACKET, PACKET_FANOUT, &unique, sizeof(unique)) != 0)
		return 0;
	group = group_of(socket);
	/* It takes the flag away when it has understood it. */
	if (group == 0 || ((unsigned)group & PACKET_FANOUT_FLAG_UNIQUEID << 16) != 0) {
		errno = EOPNOTSUPP;
		return 0;
	}
	return group;
}

/* The driver makes the sockets of a port one after the other, and asks for a group with one socket, too. There the kernel
 * would hash every packet and look for room to choose one of one: a group begins with the second socket.
 * It also asks the kernel to put IP fragments together before it spreads packets (PACKET_FANOUT_FLAG_DEFRAG in
 * rte_eth_af_packet.c). What comes out is no frame that was on the wire: longer than the MTU, so that nobody can send it on,
 * and one where three came. Without it, fragments are spread by their addresses. */
static int join(int socket, int fanout)
{
	int interface = interface_of(socket), group, result = 0;

	fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
	pthread_mutex_lock(&lock);
	if (interface != first.interface || cookie_of(first.socket) != first.cookie) {
		first.socket = socket;
		first.interface = interface;
		first.cookie = cookie_of(socket);
	} else {
		/* With its third socket the first is in the group. */
		group = group_of(first.socket);
		if (group == 0)
			group = new_group(first.socket, fanout);
		result = group == 0 ? -1 : set(socket, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group));
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* The driver finds this setsockopt before the C library's. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	int fanout;

	if (level != SOL_PACKET || name != PACKET_FANOUT || value == NULL || length != sizeof(fanout))
		return set(socket, level, name, value, length);
	memcpy(&fanout, value, sizeof(fanout));
	return join(socket, fanout);
}

/* Under its own name <poll.h> says that nobody reads what is asked for (glibc 2.36). */
int wait_for(struct pollfd *sockets, nfds_t count, int timeout) __asm__("poll");

/* Where a packet or XDP socket has no room (POLLOUT, of the af_packet driver), or wants to be woken for buffers (POLLIN, of the
 * af_xdp driver), the driver sleeps within a burst, without end or for a second. Its worker would neither send nor receive
 * elsewhere meanwhile, and who did not poll is charged with what is lost. It asks, and is told at once.
 * The driver finds this poll before the C library's. */
int wait_for(struct pollfd *sockets, nfds_t count, int timeout)
{
	struct timespec wait = { .tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L };
	socklen_t length = sizeof(int);
	int domain = 0;

	if (timeout != 0 && count == 1 &&
	    getsockopt(sockets->fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
	    (domain == AF_PACKET || domain == AF_XDP))
		wait.tv_sec = wait.tv_nsec = timeout = 0;
	return ppoll(sockets, count, timeout < 0 ? NULL : &wait, NULL);
}
