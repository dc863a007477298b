/* Packet buffer pools: creation, and the slow views of their content. */
#include <rte_errno.h>
#include <rte_lcore.h>

#include "shim.h"

struct rte_mempool *dl_pool_create(const char *name, unsigned count, unsigned cache, uint16_t data_room,
				   int socket, int *error)
{
	/* No private area: the room of every mbuf then starts at one constant distance from its header. */
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, count, cache, 0, data_room, socket);
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
