// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What the program is told: constants, and tables in maps. `image.rs` writes both.

#ifndef DROPLESS_MAPS_H
#define DROPLESS_MAPS_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define NONE 0xFFFFFFFFu
#define WAYS 4

enum malformed {
    ETHERNET,
    IP_HEADER,
    IP_LENGTH,
    EXTENSIONS,
    IP_CHECKSUM,
    LAND,
    TINY_FRAGMENT,
    TCP_HEADER,
    TCP_FLAGS,
    UDP_LENGTH,
    ICMP_LENGTH,
    REASONS,
};

enum { OTHER, V4, V6 };
enum { ALLOW, DENY, LIMIT };

// Where a table begins in `words`: the class of each value, four to a word; the class of what has no value; the rows.
struct index_table {
    __u32 classes;
    __u32 none;
    __u32 rows;
};

#define SPANS 4

// Addresses from `first` on, and `rest` more.
struct span {
    __u32 first;
    __u32 rest;
};

// Where a trie begins: its root, leaves and single rows in `slots`, its nodes in `nodes`. Without a root all addresses have the
// first of `rows`, but those of a few spans, which have the next ones; without leaves there are two rows, and bits of the nodes
// say which.
struct trie {
    __u32 root;
    __u32 root_bits;
    __u32 leaves;
    __u32 nodes;
    __u32 rows;
    __u32 spans;
    struct span span[SPANS]; // of IPv4
};

struct address_table {
    struct trie v4;
    struct trie v6;
    __u32 none; // the row of what has no address
    __u32 rows;
};

// NONE where a table is not there.
struct layout {
    __u32 rules;
    __u32 row_words; // bits of a row
    __u32 stride;    // and their summary
    __u32 verdict;   // by default
    __u32 reasons;   // that rules name
    __u32 buckets;   // a power of two
    __u32 tells;     // each decision in `told`, and takes the time from there
    __u32 limits;    // rules that limit a rate
    __u32 denied_budget; // denied packets that are told, a period and processor; 0 for none
    __u32 every;         // of all packets one of so many is told; 0 for none
    __u32 generation;    // as samples say it
    __u32 words;     // in the array of this name
    __u32 nodes;
    __u32 slots;
    __u64 seed;
    __u64 denies;    // by rule, where none limits a rate and they have room there
    struct index_table malformed, kind, ether_type, vlan, detail, source_port, destination_port;
    struct address_table source, destination;
};

// In a section of its own: what the compiler puts into .rodata by itself, such as tables of a switch, is another matter.
const volatile struct layout layout SEC(".rodata.layout");

struct node {
    __u64 children;
    __u64 leaves;
    __u32 first_child;
    __u32 first_leaf;
};

// What a rule does, and the rate if it is one.
struct rule {
    __u32 action;
    __u32 rate;
    __u64 every_ns;
    __u64 early_ns;
    __u64 v4_mask;
    __u64 v6_mask[2];
    __u32 of_destination;
    __u32 unused;
};

struct group {
    __u64 key;
    __u64 due_ns;
};

struct bucket {
    struct group groups[WAYS];
};

struct count {
    __u64 packets;
    __u64 bytes;
};

struct told {
    __u64 now_ns;
    __u32 rule;
    __u32 malformed;
    __u32 is_full;
    __u32 unused;
};

// Tables, as long as a rule set needs them: the program has their addresses, and needs no look-up in a map.
const volatile __u64 words[1] SEC(".rodata.words");
const volatile struct node nodes[1] SEC(".rodata.nodes");
// Of data, not of constants: what comes from there is unknown to the kernel as it checks the program, which would follow each
// row that it knows by itself, and give up.
volatile __u32 slots[2] SEC(".data.slots");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct rule);
    __uint(max_entries, 1);
} rules SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, struct bucket);
    __uint(max_entries, 1);
} groups SEC(".maps");

// By rule; then the default, every reason, and packets of groups that found no entry.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, __u32);
    __type(value, struct count);
    __uint(max_entries, 1);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, struct told);
    __uint(max_entries, 1);
} told SEC(".maps");

#endif
