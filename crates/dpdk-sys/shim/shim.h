/* Plain functions around DPDK's inline functions and version-dependent structures, so that Rust sees neither. */
#ifndef DROPLESS_SHIM_H
#define DROPLESS_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Positions of the mbuf fields the hot path touches (24.07 moved them into anonymous unions). */
enum dl_layout {
	DL_MBUF_SIZE = sizeof(struct rte_mbuf),
	DL_HEADROOM = RTE_PKTMBUF_HEADROOM,
	DL_OFF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	/* data_off, refcnt, nb_segs and port as one 8-byte word; asserted in burst.c. */
	DL_OFF_REARM = offsetof(struct rte_mbuf, data_off),
	DL_OFF_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	DL_OFF_REFCNT = offsetof(struct rte_mbuf, refcnt),
	DL_OFF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	DL_OFF_PORT = offsetof(struct rte_mbuf, port),
	DL_OFF_OL_FLAGS = offsetof(struct rte_mbuf, ol_flags),
	/* pkt_len, data_len and vlan_tci as one 8-byte word; asserted in burst.c. */
	DL_OFF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	DL_OFF_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	DL_OFF_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
	DL_OFF_POOL = offsetof(struct rte_mbuf, pool),
	DL_OFF_TX_OFFLOAD = offsetof(struct rte_mbuf, tx_offload),
	DL_OFF_NEXT = offsetof(struct rte_mbuf, next),
};

/* bindgen passes over RTE_BIT64 macros. */
static const uint64_t DL_MBUF_NOT_DIRECT = RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
static const uint64_t DL_TX_UDP_CHECKSUM_V4 = RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4;
static const uint64_t DL_TX_UDP_CHECKSUM_V6 = RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV6;

/* ---- burst.c: one call per burst ---- */

uint16_t dl_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count);
uint16_t dl_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count);
/* Takes `count` raw mbufs (refcnt 1, one segment, other fields stale) or none: 0 or -errno. Their header
 * line and the first line of their room (a computed address) are prefetched for writing. */
int dl_alloc_raw(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint16_t count);
void dl_free_bulk(struct rte_mbuf **mbufs, uint16_t count);
/* Frees the segments after the first and makes `mbuf` direct again: for an mbuf about to be written anew. */
void dl_make_plain(struct rte_mbuf *mbuf);
uint64_t dl_tsc(void);
/* Where drivers put the time of reception, and the flag in ol_flags that says so, once one of them has asked for the
 * place: 0 or -errno. */
int dl_rx_timestamp_field(unsigned *offset, uint64_t *flag);

/* ---- unmap.c ---- */

/* `wait` is called on EAL's interrupt thread before a driver unmaps memory there. */
void dl_before_unmap(void (*wait)(void));

/* ---- interrupts.c ---- */

/* Calls `run` on EAL's interrupt thread, between what it does for drivers, and waits until it is done. A thread that a driver
 * holds up for 2 s is not waited for: then it is called here. */
void dl_on_interrupt_thread(void (*run)(void *), void *argument);

/* ---- nap.c ---- */

/* Whether EAL, started on this thread, may measure the time stamp counter for itself in a shorter time. */
void dl_short_naps(int are_short);

/* ---- drivers.c ---- */

/* EAL, started on this thread, loads no drivers but these of its directory ("net_tap" of librte_net_tap.so; the last is NULL); NULL:
 * all that are there. */
void dl_only_drivers(const char *const *names);

/* ---- eal.c: 0 or a count, or -errno ---- */

int dl_eal_init(int argc, char **argv);
/* Serves dpdk-dumpcap and dpdk-pdump, where other processes can attach. */
int dl_pdump_init(void);
int dl_eal_cleanup(void);
const char *dl_runtime_dir(void);
const char *dl_version(void);
int dl_thread_register(void);
void dl_thread_unregister(void);
/* Creates a virtual device; its ethdev name is `name`. */
int dl_vdev_add(const char *name, const char *arguments);
int dl_vdev_remove(const char *name);

struct dl_ring;
struct dl_ring *dl_ring_create(const char *name, unsigned size, int socket, int *error);
void dl_ring_free(struct dl_ring *ring);
/* An ethdev over `queues` rings each way: its port id or -errno. */
int dl_port_from_rings(const char *name, struct dl_ring **rx, struct dl_ring **tx, unsigned queues, int socket);
/* Frees what waits in the ring: how many mbufs. Only while nobody uses it. */
unsigned dl_ring_drain(struct dl_ring *ring);

/* ---- log.c ---- */

/* Sends DPDK's log into a bounded buffer (the newest 64 KiB); with `echo` also to standard error. */
int dl_log_capture(int echo);
void dl_log_append(const char *text, size_t length);
/* Copies the newest bytes of the log out, oldest first: how many. */
size_t dl_log_read(char *room, size_t size);

/* ---- pool.c ---- */

/* `dense`: one buffer begins where the last one ends, also across pages, and physical addresses mean nothing. */
struct rte_mempool *dl_pool_create(const char *name, unsigned count, unsigned cache, uint16_t data_room,
				   int socket, int dense, int *error);
unsigned dl_pool_available(const struct rte_mempool *pool);
unsigned dl_pool_size(const struct rte_mempool *pool);
/* Bulk get and put past the per-core caches. */
int dl_pool_take_uncached(struct rte_mempool *pool, struct rte_mbuf **mbuf);
void dl_pool_put_uncached(struct rte_mempool *pool, struct rte_mbuf **mbufs, unsigned count);
/* Copies the free objects resting in all cores' caches: how many. No thread may use the pool meanwhile. */
unsigned dl_pool_cached(struct rte_mempool *pool, struct rte_mbuf **room, unsigned size);
/* Every object of the pool, free or not, in creation order: how many were copied. */
unsigned dl_pool_objects(struct rte_mempool *pool, struct rte_mbuf **room, unsigned size);

/* ---- port.c: 0 or a count, or -errno ---- */

#define DL_NO_PORT 0xffff

struct dl_port_info {
	const char *driver;
	int32_t socket;
	uint16_t max_rx_queues, max_tx_queues;
	uint16_t min_mtu, max_mtu;
	uint16_t default_rx_descriptors, default_tx_descriptors;
	uint64_t rss_types;
	/* Booleans. */
	uint8_t tx_udp_checksum, tx_ipv4_checksum, rx_scatter, tx_segments, rx_timestamp;
};

struct dl_port_setup {
	uint16_t rx_queues, tx_queues;
	/* 0: the driver's default. */
	uint16_t mtu;
	uint64_t rss_types;
	uint8_t tx_checksum, segments, rx_timestamp;
};

struct dl_port_stats {
	uint64_t ipackets, opackets, ibytes, obytes, imissed, ierrors, oerrors, rx_nombuf;
};

/* The first port at or after `from`, or DL_NO_PORT. */
uint16_t dl_port_next(uint16_t from);
int dl_port_name(uint16_t port, char *room, size_t size);
int dl_port_by_name(const char *name);
int dl_port_info(uint16_t port, struct dl_port_info *info);
int dl_port_configure(uint16_t port, const struct dl_port_setup *setup);
int dl_port_mtu(uint16_t port);
int dl_port_adjust_descriptors(uint16_t port, uint16_t *rx, uint16_t *tx);
int dl_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, int socket, struct rte_mempool *pool);
int dl_tx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, int socket);
int dl_port_promiscuous(uint16_t port, int on);
int dl_port_start(uint16_t port);
int dl_port_stop(uint16_t port);
int dl_port_close(uint16_t port);
int dl_port_mac(uint16_t port, uint8_t mac[6]);
int dl_port_set_mac(uint16_t port, const uint8_t mac[6]);
int dl_port_link(uint16_t port, int *up, uint32_t *speed_mbps);
/* Whether the guest of a vhost port posted receive buffers; 1 too where that cannot be told. */
int dl_port_guest_posted(uint16_t port);
int dl_port_stats(uint16_t port, struct dl_port_stats *stats);

#endif
