/* The hot functions: called once per burst. */
#include <assert.h>
#include <errno.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "shim.h"

/* Rust stores these neighbours as one 8-byte word. */
static_assert(offsetof(struct rte_mbuf, data_off) % 8 == 0, "rearm word");
static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2, "rearm word");
static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4, "rearm word");
static_assert(offsetof(struct rte_mbuf, port) == offsetof(struct rte_mbuf, data_off) + 6, "rearm word");
static_assert(offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4, "length word");
static_assert(offsetof(struct rte_mbuf, vlan_tci) == offsetof(struct rte_mbuf, pkt_len) + 6, "length word");

/* data_off is the low half-word on little-endian machines only. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian");

uint16_t dl_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_rx_burst(port, queue, mbufs, count);
}

uint16_t dl_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, mbufs, count);
}

static inline void prefetch_write(const void *address)
{
#if defined(__x86_64__)
	/* The baseline -march has no PRFCHW, so __builtin_prefetch would fetch for reading; every x86-64
	 * executes the instruction, the oldest as a no-operation. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
	__builtin_prefetch(address, 1, 3);
#endif
}

int dl_alloc_raw(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint16_t count)
{
	int result = rte_mempool_get_bulk(pool, (void **)mbufs, count);
	if (unlikely(result != 0))
		return result;
	for (uint16_t i = 0; i < count; i++) {
		prefetch_write(mbufs[i]);
		prefetch_write((const char *)mbufs[i] + sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM);
	}
	return 0;
}

/* One segment, one owner, and this pool's own buffer: may go back to the pool as it is. A single-segment
 * mbuf has next == NULL by rte_mbuf_check(), so its second cache line need not be read. */
static inline int is_plain(const struct rte_mbuf *mbuf, const struct rte_mempool *pool)
{
	uint64_t rearm;

	memcpy(&rearm, &mbuf->data_off, sizeof(rearm));
	return (rearm & 0x0000ffffffff0000) == 0x0000000100010000 && RTE_MBUF_DIRECT(mbuf) && mbuf->pool == pool;
}

void dl_free_bulk(struct rte_mbuf **mbufs, uint16_t count)
{
	if (count == 0)
		return;

	struct rte_mempool *pool = mbufs[0]->pool;
	int plain = 1;
	for (uint16_t i = 0; i < count; i++)
		plain &= is_plain(mbufs[i], pool);
	if (likely(plain))
		rte_mempool_put_bulk(pool, (void **)mbufs, count);
	else
		rte_pktmbuf_free_bulk(mbufs, count);
}

void dl_make_plain(struct rte_mbuf *mbuf)
{
	rte_pktmbuf_free(mbuf->next);
	mbuf->next = NULL;
	mbuf->nb_segs = 1;
	if (!RTE_MBUF_DIRECT(mbuf) && !RTE_MBUF_HAS_PINNED_EXTBUF(mbuf))
		rte_pktmbuf_detach(mbuf);
}

int dl_rx_timestamp_field(unsigned *offset, uint64_t *flag)
{
	int field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
	int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);

	if (field < 0 || bit < 0)
		return -ENOENT;
	*offset = (unsigned)field;
	*flag = RTE_BIT64(bit);
	return 0;
}

uint64_t dl_tsc(void)
{
	return rte_rdtsc();
}
