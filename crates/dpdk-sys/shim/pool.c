/* Packet buffer pools: creation, and the slow views of their content. */
#include <stdio.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memzone.h>

#include "shim.h"

/* Fills an empty pool from one piece of memory: 0 or -errno. */
static int populate_densely(struct rte_mempool *pool)
{
	char name[RTE_MEMZONE_NAMESIZE];
	size_t least, align;
	ssize_t length = rte_mempool_op_calc_mem_size_default(pool, pool->size, 0, &least, &align);
	const struct rte_memzone *zone;
	int count;

	if (length < 0)
		return (int)length;
	snprintf(name, sizeof(name), RTE_MEMPOOL_MZ_FORMAT "_0", pool->name);
	zone = rte_memzone_reserve_aligned(name, (size_t)length, pool->socket_id, 0, (unsigned)align);
	if (zone == NULL)
		return -rte_errno;
	count = rte_mempool_populate_iova(pool, zone->addr, zone->iova, zone->len, NULL, NULL);
	if (count == (int)pool->size)
		return 0;
	rte_memzone_free(zone);
	return count < 0 ? count : -ENOMEM;
}

/* What rte_pktmbuf_pool_create does, but for the places of the buffers. On ordinary pages it lets none lie across two, so that each
 * begins one: all headers then share a few sets of the caches, and pages that are half empty are touched. */
static struct rte_mempool *create_densely(const char *name, unsigned count, unsigned cache, uint16_t data_room, int socket)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = data_room };
	struct rte_mempool *pool = rte_mempool_create_empty(name, count, sizeof(struct rte_mbuf) + data_room, cache,
							    sizeof(private), socket, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	int error;

	if (pool == NULL)
		return NULL;
	error = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (error == 0) {
		rte_pktmbuf_pool_init(pool, &private);
		error = populate_densely(pool);
	}
	if (error != 0) {
		rte_mempool_free(pool);
		rte_errno = -error;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

struct rte_mempool *dl_pool_create(const char *name, unsigned count, unsigned cache, uint16_t data_room,
				   int socket, int dense, int *error)
{
	/* No private area: the room of every mbuf then starts at one constant distance from its header. */
	struct rte_mempool *pool = dense ? create_densely(name, count, cache, data_room, socket)
					 : rte_pktmbuf_pool_create(name, count, cache, 0, data_room, socket);
	if (pool == NULL)
		*error = -rte_errno;
	return pool;
}

unsigned dl_pool_available(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool);
}

unsigned dl_pool_size(const struct rte_mempool *pool)
{
	return pool->size;
}

int dl_pool_take_uncached(struct rte_mempool *pool, struct rte_mbuf **mbuf)
{
	return rte_mempool_generic_get(pool, (void **)mbuf, 1, NULL);
}

void dl_pool_put_uncached(struct rte_mempool *pool, struct rte_mbuf **mbufs, unsigned count)
{
	rte_mempool_generic_put(pool, (void **)mbufs, count, NULL);
}

unsigned dl_pool_cached(struct rte_mempool *pool, struct rte_mbuf **room, unsigned size)
{
	unsigned count = 0;

	for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; lcore++) {
		const struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, lcore);
		for (unsigned i = 0; cache != NULL && i < cache->len && count < size; i++)
			room[count++] = cache->objs[i];
	}
	return count;
}

struct collection {
	struct rte_mbuf **room;
	unsigned size, count;
};

static void collect(struct rte_mempool *pool, void *opaque, void *object, unsigned index)
{
	struct collection *collection = opaque;

	(void)pool;
	(void)index;
	if (collection->count < collection->size)
		collection->room[collection->count++] = object;
}

unsigned dl_pool_objects(struct rte_mempool *pool, struct rte_mbuf **room, unsigned size)
{
	struct collection collection = { .room = room, .size = size, .count = 0 };

	rte_mempool_obj_iter(pool, collect, &collection);
	return collection.count;
}
