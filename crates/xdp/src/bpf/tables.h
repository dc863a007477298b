// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Looks into tables, as `tables/classify.rs` and `tables/poptrie.rs` of the crate `rules` do.

#ifndef DROPLESS_TABLES_H
#define DROPLESS_TABLES_H

#include "facts.h"
#include "maps.h"

#define LEAF 0x80000000u
// Poptrie: 16 bits, then 6 a step, of 128 or 32.
#define STEPS_MAX 19
#define STEPS_MAX_V4 3

// A map's only value: what is within its bounds needs no further look-up.
static __always_inline __u64 word(__u32 at)
{
    __u32 zero = 0;
    __u64 *all = bpf_map_lookup_elem(&words, &zero);
    return all && at < layout.words ? all[at] : 0;
}

// Two to a word.
static __always_inline __u32 half(__u32 base, __u32 at)
{
    __u64 both = word(base + (at >> 1));
    return at & 1 ? both >> 32 : (__u32)both;
}

// The row of a value.
static __always_inline __u32 row(const volatile struct index_table *table, __u32 value)
{
    __u32 class = table->none;
    if (value != NONE)
        class = word(table->classes + (value >> 2)) >> ((value & 3) * 16) & 0xFFFF;
    return table->rows + class * layout.stride;
}

static __always_inline __u32 ones(__u64 bits)
{
    return __builtin_popcountll(bits);
}

static __always_inline __u32 descend(__u32 root, __u32 leaves, __u32 first_node, __u64 high, __u64 low, int steps)
{
    __u32 at = half(root, high >> 48);
    high = high << 16 | low >> 48;
    low <<= 16;
    for (int step = 0; step < steps && !(at & LEAF); step++) {
        __u32 place = first_node + at, zero = 0;
        struct node *node = bpf_map_lookup_elem(&nodes, &zero);
        if (!node || place >= layout.nodes)
            return 0;
        node += place;
        __u32 slot = high >> 58;
        __u64 up_to = ~0ULL >> (63 - slot);
        if (!(node->children >> slot & 1)) {
            __u32 leaf = node->first_leaf + ones(node->leaves & up_to) - 1;
            return half(leaves, leaf);
        }
        at = node->first_child + ones(node->children & up_to) - 1;
        high = high << 6 | low >> 58;
        low <<= 6;
    }
    return at & ~LEAF;
}

// A function of its own, which the kernel checks once; a call costs as much as a few steps, which is little of so many.
__noinline __u32 class_of_v6(__u32 root, __u32 leaves, __u32 first_node, __u64 high, __u64 low)
{
    return descend(root, leaves, first_node, high, low, STEPS_MAX);
}

static __always_inline __u32 address_row(const volatile struct address_table *table, __u32 layer, struct address address)
{
    __u32 class = table->none;
    if (layer == V4)
        class = descend(table->v4.root, table->v4.leaves, table->v4.nodes, address.high, 0, STEPS_MAX_V4);
    else if (layer == V6)
        class = class_of_v6(table->v6.root, table->v6.leaves, table->v6.nodes, address.high, address.low);
    return table->rows + class * layout.stride;
}

#endif
