// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Looks into tables, as `tables/classify.rs` and `tables/poptrie.rs` of the crate `rules` do.

#ifndef DROPLESS_TABLES_H
#define DROPLESS_TABLES_H

#include "facts.h"
#include "maps.h"

#define LEAF 0x80000000u
// Poptrie: 16 bits, then 6 a step, of 128.
#define STEPS_MAX 19

static __always_inline __u64 word(__u32 at)
{
    __u64 *found = bpf_map_lookup_elem(&words, &at);
    return found ? *found : 0;
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

// A function of its own, which the kernel checks once.
__noinline __u32 class_of(__u32 root, __u32 leaves, __u32 first_node, __u64 high, __u64 low)
{
    __u32 at = half(root, high >> 48);
    high = high << 16 | low >> 48;
    low <<= 16;
    for (int step = 0; step < STEPS_MAX && !(at & LEAF); step++) {
        __u32 place = first_node + at;
        struct node *node = bpf_map_lookup_elem(&nodes, &place);
        if (!node)
            return 0;
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

static __always_inline __u32 trie_class(const volatile struct trie *trie, struct address address)
{
    return class_of(trie->root, trie->leaves, trie->nodes, address.high, address.low);
}

static __always_inline __u32 address_row(const volatile struct address_table *table, __u32 layer, struct address address)
{
    __u32 class = table->none;
    if (layer == V4)
        class = trie_class(&table->v4, address);
    else if (layer == V6)
        class = trie_class(&table->v6, address);
    return table->rows + class * layout.stride;
}

#endif
