// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Looks into tables, as `tables/classify.rs` of the crate `rules` does; tries of addresses are made by `trie.rs`.

#ifndef DROPLESS_TABLES_H
#define DROPLESS_TABLES_H

#include "facts.h"
#include "maps.h"

#define LEAF 0x80000000u
// Bits behind the root, by sixes: of 32 or 128.
#define STEPS_MAX_V4 3
#define STEPS_MAX_V6 19

// Whether a table of so many has it. The verifier of Linux 6.1 does not see that nothing is below a length of 0 that it knows, but
// knows which way a comparison of that with 0 goes; and it learns of a register, not of what was copied or laid aside: what is
// compared here and what is used then must be one.
static __always_inline int is_within(__u32 *at, const volatile __u32 *len)
{
    __u32 most = *len;
    if (!most)
        return 0;
    asm volatile("" : "+r"(*at));
    return *at < most;
}

static __always_inline __u64 word(__u32 at)
{
    const volatile __u64 *all = words;
    // The compiler is not to know how short it is before it is loaded.
    asm volatile("" : "+r"(all));
    return is_within(&at, &layout.words) ? all[at] : 0;
}

static __always_inline __u32 slot(__u32 at)
{
    volatile __u32 *all = slots;
    asm volatile("" : "+r"(all));
    return is_within(&at, &layout.slots) ? all[at] : 0;
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

// The row of an address.
static __always_inline __u32 descend(const volatile struct trie *trie, __u64 high, __u64 low, int steps)
{
    __u32 at = slot(trie->root + (high >> (64 - trie->root_bits)));
    high = high << trie->root_bits | low >> (64 - trie->root_bits);
    low <<= trie->root_bits;
    for (int step = 0; step < steps && !(at & LEAF); step++) {
        __u32 place = trie->nodes + at;
        const volatile struct node *node = nodes;
        asm volatile("" : "+r"(node));
        if (!is_within(&place, &layout.nodes))
            return 0;
        node += place;
        __u32 bit = high >> 58;
        __u64 children = node->children, leaves = node->leaves;
        if (!(children >> bit & 1)) {
            if (trie->leaves == NONE)
                return slot(trie->rows + (leaves >> bit & 1));
            return slot(trie->leaves + node->first_leaf + ones(leaves & ~0ULL >> (63 - bit)) - 1);
        }
        at = node->first_child + ones(children & ~0ULL >> (63 - bit)) - 1;
        high = high << 6 | low >> 58;
        low <<= 6;
    }
    return at & ~LEAF;
}

// Functions of their own, which the kernel checks once; a call costs as much as a few steps, which is little of so many.
__noinline __u32 source_row_of_v6(__u64 high, __u64 low)
{
    return descend(&layout.source.v6, high, low, STEPS_MAX_V6);
}

__noinline __u32 destination_row_of_v6(__u64 high, __u64 low)
{
    return descend(&layout.destination.v6, high, low, STEPS_MAX_V6);
}

static __always_inline __u32 row_of_v4(const volatile struct trie *trie, __u64 high)
{
    if (trie->root != NONE)
        return descend(trie, high, 0, STEPS_MAX_V4);
    __u32 address = high >> 32;
#pragma unroll
    for (int number = 0; number < SPANS; number++)
        if (number < trie->spans && address - trie->span[number].first <= trie->span[number].rest)
            return slot(trie->rows + 1 + number);
    return slot(trie->rows);
}

static __always_inline __u32 address_row(const volatile struct address_table *table, __u32 layer, struct address address)
{
    if (layer == V4)
        return row_of_v4(&table->v4, address.high);
    if (layer != V6)
        return table->none;
    if (table->v6.root == NONE)
        return slot(table->v6.rows);
    return table == &layout.source ? source_row_of_v6(address.high, address.low)
                                   : destination_row_of_v6(address.high, address.low);
}

#endif
