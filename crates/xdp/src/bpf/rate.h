// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Rates by group of addresses, as `limit.rs` of the crate `rules` accounts for them.

#ifndef DROPLESS_RATE_H
#define DROPLESS_RATE_H

#include "facts.h"
#include "maps.h"

// Processors that account for one group at one time.
#define TRIES_MAX 16

static __always_inline __u64 mix(__u64 value)
{
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ value >> 27) * 0x94D049BB133111EBULL;
    return value ^ value >> 31;
}

enum { WITHIN, OVER, FULL };

// `limit.rs` says what this does.
__noinline int account(__u64 *due_ns, __u64 every_ns, __u64 early_ns, __u64 now_ns)
{
    if (!due_ns)
        return OVER;
    for (int try = 0; try < TRIES_MAX; try++) {
        __u64 before = *(volatile __u64 *)due_ns;
        __u64 due = before > now_ns ? before : now_ns;
        if (due - now_ns > early_ns)
            return OVER;
        if (__sync_val_compare_and_swap(due_ns, before, due + every_ns) == before)
            return WITHIN;
    }
    return OVER;
}

static __always_inline int pass(const struct rule *rule, const struct facts *facts, __u64 now_ns)
{
    struct address of = rule->of_destination ? facts->destination : facts->source;
    if (facts->layer == V4) {
        of.high &= rule->v4_mask;
        of.low = 0;
    } else if (facts->layer == V6) {
        of.high &= rule->v6_mask[0];
        of.low &= rule->v6_mask[1];
    } else {
        return WITHIN;
    }
    __u64 key = mix(mix(mix(layout.seed ^ (rule->rate * 2 + (facts->layer == V6))) ^ of.high) ^ of.low);
    if (!key)
        key = 1;
    __u32 place = key & (layout.buckets - 1);
    struct bucket *bucket = bpf_map_lookup_elem(&groups, &place);
    if (!bucket)
        return FULL;
    struct group *free = 0;
#pragma unroll
    for (int way = 0; way < WAYS; way++) {
        struct group *group = &bucket->groups[way];
        if (group->key == key)
            return account(&group->due_ns, rule->every_ns, rule->early_ns, now_ns);
        if (!free && group->due_ns <= now_ns)
            free = group;
    }
    if (!free)
        return FULL;
    *(volatile __u64 *)&free->key = key;
    return account(&free->due_ns, rule->every_ns, rule->early_ns, now_ns);
}

#endif
