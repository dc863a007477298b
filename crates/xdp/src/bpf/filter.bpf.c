// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Decides about packets by the tables of a rule set, as the crate `rules` does: `src/facts.rs` says what a packet is,
// `src/tables/classify.rs` which rule it meets. What no rule asks is a constant here, and the kernel leaves the code out.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define NONE 0xFFFFFFFFu
#define LEAF 0x80000000u
#define WAYS 4
// A packet looks at most at each word of a row, and may pass all rates.
#define LOOKS_MAX 320
// Processors that account for one group at one time.
#define TRIES_MAX 16
// Poptrie: 16 bits, then 6 a step, of 128.
#define STEPS_MAX 19

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
enum { WHOLE, FIRST, LATER };
enum { ALLOW, DENY, LIMIT };

// Where a table begins in `words`: the class of each value, four to a word; the class of what has no value; the rows.
struct index_table {
    __u32 classes;
    __u32 none;
    __u32 rows;
};

// Where a trie begins: its root and leaves in `words`, two to a word; its nodes in `nodes`.
struct trie {
    __u32 root;
    __u32 leaves;
    __u32 nodes;
};

struct address_table {
    struct trie v4;
    struct trie v6;
    __u32 none;
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
    __u64 seed;
    struct index_table malformed, kind, ether_type, vlan, detail, source_port, destination_port;
    struct address_table source, destination;
};

const volatile struct layout layout;

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

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
    __uint(max_entries, 1);
} words SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct node);
    __uint(max_entries, 1);
} nodes SEC(".maps");

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

struct address {
    __u64 high;
    __u64 low;
};

struct facts {
    struct address source;
    struct address destination;
    __u32 layer;
    __u32 kind;        // layer, part, protocol
    __u32 detail;      // flags or type
    __u32 vlan;        // NONE without
    __u32 ether_type;
    __u32 source_port; // NONE without
    __u32 destination_port;
};

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

static __always_inline __u16 be16(const void *at)
{
    const __u8 *bytes = at;
    return bytes[0] << 8 | bytes[1];
}

static __always_inline __u64 be64(const void *at)
{
    __u64 value;
    __builtin_memcpy(&value, at, 8);
    return bpf_be64_to_cpu(value);
}

static __always_inline int asks(__u32 reason)
{
    return layout.reasons >> reason & 1;
}

// A packet's way: where things are, and how far they go.
struct way {
    __u32 len;       // of the frame
    __u32 at;        // of the IP header
    __u32 transport; // behind all IP headers
    __u32 end;       // of the IP packet
    __u32 protocol;
    __u32 part;
    __u32 offset;    // of a fragment, in units of eight bytes
};

// Each returns 0, or the reason + 1.
static __always_inline int tcp(const struct way *way, const __u8 *head, __u32 have, struct facts *facts)
{
    __u32 cut = way->part == FIRST ? TINY_FRAGMENT + 1 : TCP_HEADER + 1;
    if (have < 20)
        return cut;
    __u32 len = (head[12] >> 4) * 4;
    if (len < 20)
        return TCP_HEADER + 1;
    if (len > way->end - way->transport)
        return cut;
    __u32 flags = head[13];
    __u32 fin = flags & 1, syn = flags & 2, rst = flags & 4, ack = flags & 16;
    if (asks(TCP_FLAGS) && (!(flags & 0x3F) || (syn && (fin || rst)) || (fin && !ack)))
        return TCP_FLAGS + 1;
    facts->detail = 1 << 8 | flags;
    return 0;
}

static __always_inline int udp(const struct way *way, const __u8 *head, __u32 have)
{
    if (have < 8)
        return way->part == FIRST ? TINY_FRAGMENT + 1 : UDP_LENGTH + 1;
    __u32 len = be16(head + 4), rest = way->end - way->transport;
    if (len < 8 || (way->part == FIRST ? len < rest : len != rest))
        return UDP_LENGTH + 1;
    return 0;
}

static __always_inline int transport(struct xdp_md *ctx, const struct way *way, struct facts *facts)
{
    if (way->part == LATER)
        return way->protocol == 6 && way->offset == 1 ? TINY_FRAGMENT + 1 : 0;
    __u32 protocol = way->protocol;
    if (protocol != 6 && protocol != 17 && protocol != 1 && protocol != 58 && protocol != 132)
        return 0;
    __u8 head[20] = {};
    __u32 have = way->end - way->transport;
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    __u32 at = way->transport;
    if (have >= 20) {
        have = 20;
        if (at <= 128 && data + at + 20 <= data_end)
            __builtin_memcpy(head, data + at, 20);
        else if (bpf_xdp_load_bytes(ctx, at, head, 20))
            return IP_LENGTH + 1;
    } else if (have >= 1) {
        // A variable length that the verifier can see the bounds of.
        have &= 31;
        if (have > 0 && have < 20 && bpf_xdp_load_bytes(ctx, at, head, have))
            return IP_LENGTH + 1;
    }
    if (protocol == 1 || protocol == 58) {
        if (have < 8)
            return way->part == FIRST ? TINY_FRAGMENT + 1 : ICMP_LENGTH + 1;
        facts->detail = 2 << 8 | head[0];
        return 0;
    }
    int failed = 0;
    if (protocol == 6)
        failed = tcp(way, head, have, facts);
    else if (protocol == 17)
        failed = udp(way, head, have);
    if (failed)
        return failed;
    if (have >= 4) {
        facts->source_port = be16(head);
        facts->destination_port = be16(head + 2);
    }
    return 0;
}

static __always_inline int ipv4(struct xdp_md *ctx, struct way *way, struct facts *facts)
{
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    const __u8 *header = data + way->at;
    if (header + 20 > data_end)
        return IP_HEADER + 1;
    __u32 len = (header[0] & 15) * 4, total = be16(header + 2), fragment = be16(header + 6) & 0x3FFF;
    if (header[0] >> 4 != 4 || len < 20 || total < len || way->len < way->at + len)
        return IP_HEADER + 1;
    way->end = way->at + total;
    if (way->end > way->len)
        return IP_LENGTH + 1;
    way->transport = way->at + len;
    way->protocol = header[9];
    way->offset = fragment & 0x1FFF;
    way->part = !fragment ? WHOLE : way->offset ? LATER : FIRST;
    __u64 both = be64(header + 12);
    facts->source.high = both >> 32 << 32;
    facts->destination.high = both << 32;
    if (asks(IP_CHECKSUM)) {
        __u32 sum = 0;
#pragma unroll
        for (__u32 at = 0; at < 60; at += 2) {
            if (at < len) {
                if (header + at + 2 > data_end)
                    return IP_HEADER + 1;
                sum += be16(header + at);
            }
        }
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = (sum & 0xFFFF) + (sum >> 16);
        if (sum != 0xFFFF)
            return IP_CHECKSUM + 1;
    }
    if (asks(LAND) && facts->source.high == facts->destination.high)
        return LAND + 1;
    return 0;
}

static __always_inline int ipv6(struct xdp_md *ctx, struct way *way, struct facts *facts)
{
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    const __u8 *header = data + way->at;
    if (header + 40 > data_end)
        return IP_HEADER + 1;
    if (header[0] >> 4 != 6)
        return IP_HEADER + 1;
    way->end = way->at + 40 + be16(header + 4);
    way->transport = way->at + 40;
    way->protocol = header[6];
    way->part = WHOLE;
    facts->source.high = be64(header + 8);
    facts->source.low = be64(header + 16);
    facts->destination.high = be64(header + 24);
    facts->destination.low = be64(header + 32);
    int is_done = 0;
    for (int extension = 0; extension < 8; extension++) {
        __u32 protocol = way->protocol, unit;
        if (protocol == 0 || protocol == 43 || protocol == 60)
            unit = 8;
        else if (protocol == 44)
            unit = 0;
        else if (protocol == 51)
            unit = 4;
        else {
            is_done = 1;
            break;
        }
        __u8 head[4];
        // The first two bytes suffice to go on; a fragment has all of its eight, or is cut.
        if (way->transport + 2 > way->len || bpf_xdp_load_bytes(ctx, way->transport, head, 2))
            return EXTENSIONS + 1;
        if (protocol == 44) {
            if (way->transport + 4 > way->len || bpf_xdp_load_bytes(ctx, way->transport, head, 4))
                return EXTENSIONS + 1;
            way->offset = be16(head + 2) >> 3;
            way->part = way->offset ? LATER : FIRST;
        }
        way->protocol = head[0];
        way->transport += 8 + unit * head[1];
        if (way->transport > way->len)
            return EXTENSIONS + 1;
        if (way->part != WHOLE) {
            is_done = 1;
            break;
        }
    }
    if (!is_done)
        return EXTENSIONS + 1;
    if (way->end > way->len)
        return IP_LENGTH + 1;
    if (way->transport > way->end)
        return EXTENSIONS + 1;
    if (asks(LAND) && facts->source.high == facts->destination.high && facts->source.low == facts->destination.low)
        return LAND + 1;
    return 0;
}

static __always_inline int look(struct xdp_md *ctx, struct way *way, struct facts *facts)
{
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    if (data + 14 > data_end)
        return ETHERNET + 1;
    __u32 at = 12, type = be16(data + 12);
    facts->vlan = NONE;
#pragma unroll
    for (int tag = 0; tag < 2; tag++) {
        if (type != 0x8100 && type != 0x88A8)
            break;
        if (data + at + 6 > data_end)
            return ETHERNET + 1;
        if (!tag)
            facts->vlan = be16(data + at + 2) & 0x0FFF;
        at += 4;
        type = be16(data + at);
    }
    way->at = at + 2;
    facts->source_port = facts->destination_port = NONE;
    int failed = 0;
    if (type == 0x0800) {
        facts->layer = V4;
        failed = ipv4(ctx, way, facts);
    } else if (type == 0x86DD) {
        facts->layer = V6;
        failed = ipv6(ctx, way, facts);
    } else {
        facts->ether_type = type;
        return 0;
    }
    if (failed)
        return failed;
    facts->ether_type = NONE;
    failed = transport(ctx, way, facts);
    facts->kind = facts->layer << 10 | way->part << 8 | (way->protocol & 0xFF);
    return failed;
}

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

static __always_inline void count(__u32 place, __u64 bytes)
{
    struct count *count = bpf_map_lookup_elem(&counts, &place);
    if (count) {
        count->packets++;
        count->bytes += bytes;
    }
}

struct rows {
    __u32 malformed, kind, ether_type, vlan, detail, source_port, destination_port, source, destination;
};

// Where the search for a packet's rule is.
struct search {
    struct facts facts;
    struct rows rows;
    __u64 now_ns;
    __u64 bits;       // rules of the word at `at` that hold
    __u64 candidates; // words of the part before `part` that may hold some
    __u32 at;
    __u32 part;
    __u32 failed;
    __u32 verdict;
    __u32 decided;
    __u32 is_full;
};

static __always_inline __u64 every(const struct search *search, __u32 at)
{
    const struct rows *rows = &search->rows;
    if (search->failed)
        return word(rows->malformed + at);
    __u64 all = ~0ULL;
    if (layout.kind.rows != NONE)
        all &= word(rows->kind + at);
    if (layout.source.rows != NONE)
        all &= word(rows->source + at);
    if (layout.destination.rows != NONE)
        all &= word(rows->destination + at);
    if (layout.destination_port.rows != NONE)
        all &= word(rows->destination_port + at);
    if (layout.source_port.rows != NONE)
        all &= word(rows->source_port + at);
    if (layout.detail.rows != NONE)
        all &= word(rows->detail + at);
    if (layout.vlan.rows != NONE)
        all &= word(rows->vlan + at);
    if (layout.ether_type.rows != NONE)
        all &= word(rows->ether_type + at);
    return all;
}

// The place of the lowest bit, of a word that is not 0.
static __always_inline __u32 lowest(__u64 bits)
{
    return ones((bits & -bits) - 1);
}

// Asks the next rule that holds. Returns 1 once one has decided.
static __always_inline int ask(struct search *search)
{
    __u32 place = search->at * 64 + lowest(search->bits), zero = 0;
    search->bits &= search->bits - 1;
    struct rule *rule = place < layout.rules ? bpf_map_lookup_elem(&rules, &place) : 0;
    if (!rule)
        return 0;
    if (rule->action != LIMIT) {
        search->verdict = rule->action;
        search->decided = place;
        return 1;
    }
    if (!layout.limits || search->failed)
        return 0;
    if (!search->now_ns) {
        struct told *given = layout.tells ? bpf_map_lookup_elem(&told, &zero) : 0;
        search->now_ns = given ? given->now_ns : bpf_ktime_get_ns();
    }
    int how = pass(rule, &search->facts, search->now_ns);
    if (how == WITHIN)
        return 0;
    search->verdict = DENY;
    search->decided = place;
    search->is_full = how == FULL;
    return 1;
}

static long step(__u32 number, struct search *search)
{
    (void)number;
    if (search->bits)
        return ask(search);
    if (layout.row_words == 1)
        return 1;
    if (search->candidates) {
        search->at = (search->part - 1) * 64 + lowest(search->candidates);
        search->candidates &= search->candidates - 1;
        if (search->at < layout.row_words)
            search->bits = every(search, search->at);
        return 0;
    }
    if (search->part * 64 >= layout.row_words)
        return 1;
    search->candidates = every(search, layout.row_words + search->part);
    search->part++;
    return 0;
}

SEC("xdp.frags")
int dropless_filter(struct xdp_md *ctx)
{
    struct search search = {};
    struct facts *facts = &search.facts;
    struct rows *rows = &search.rows;
    struct way way = {};
    way.len = bpf_xdp_get_buff_len(ctx);
    search.failed = look(ctx, &way, facts);
    search.verdict = layout.verdict;
    search.decided = layout.rules;
    if (search.failed) {
        rows->malformed = row(&layout.malformed, search.failed - 1);
    } else {
        if (layout.kind.rows != NONE)
            rows->kind = row(&layout.kind, facts->kind);
        if (layout.source.rows != NONE)
            rows->source = address_row(&layout.source, facts->layer, facts->source);
        if (layout.destination.rows != NONE)
            rows->destination = address_row(&layout.destination, facts->layer, facts->destination);
        if (layout.destination_port.rows != NONE)
            rows->destination_port = row(&layout.destination_port, facts->destination_port);
        if (layout.source_port.rows != NONE)
            rows->source_port = row(&layout.source_port, facts->source_port);
        if (layout.detail.rows != NONE)
            rows->detail = row(&layout.detail, facts->detail);
        if (layout.vlan.rows != NONE)
            rows->vlan = row(&layout.vlan, facts->vlan);
        if (layout.ether_type.rows != NONE)
            rows->ether_type = row(&layout.ether_type, facts->ether_type);
    }
    if (layout.row_words == 1)
        search.bits = every(&search, 0);
    if (layout.row_words == 1 && !layout.limits) {
        // The first that holds decides.
        if (search.bits)
            ask(&search);
    } else {
        bpf_loop(LOOKS_MAX, step, &search, 0);
    }
    count(search.decided, way.len);
    if (search.failed)
        count(layout.rules + search.failed, way.len);
    if (search.is_full)
        count(layout.rules + 1 + REASONS, way.len);
    if (layout.tells) {
        __u32 zero = 0;
        struct told *given = bpf_map_lookup_elem(&told, &zero);
        if (given) {
            given->rule = search.decided;
            given->malformed = search.failed;
            given->is_full = search.is_full;
        }
    }
    return search.verdict == ALLOW ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
