/* Fragments stay fragments on packet: ports. */
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

/* The af_packet driver has the kernel put IP fragments together before it spreads packets over sockets, and asks for it with one
 * socket, too (rte_eth_af_packet.c, PACKET_FANOUT_FLAG_DEFRAG). What comes out is no frame that was on the wire: longer than the
 * MTU, so that nobody can send it on, and one where three came. Without it, fragments are spread by their addresses.
 * The driver finds this setsockopt before the C library's. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	int fanout;

	if (level == SOL_PACKET && name == PACKET_FANOUT && value != NULL && length == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
		value = &fanout;
	}
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}
