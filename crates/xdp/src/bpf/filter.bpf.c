// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Decides about packets by the tables of a rule set, as the crate `rules` does: `src/facts.rs` says what a packet is,
// `src/tables/classify.rs` which rule it meets. What no rule asks is a constant here, and the kernel leaves the code out.

#include "facts.h"
#include "maps.h"
#include "rate.h"
#include "samples.h"
#include "tables.h"

// A packet looks at most at each word of a row, and may pass all rates.
#define LOOKS_MAX 320

static __always_inline void count(__u32 place, __u64 bytes)
{
    struct count *count = bpf_map_lookup_elem(&counts, &place);
    if (count) {
        count->packets++;
        count->bytes += bytes;
    }
}

// The tables that a packet has a row in.
enum { KIND, SOURCE, DESTINATION, DESTINATION_PORT, SOURCE_PORT, DETAIL, VLAN, ETHER_TYPE, TABLES };

// A packet's rows, of rules that take more than one word. Not on the stack: there the kernel would follow each value of each
// of them, and need seconds to check the program.
struct rows {
    __u32 of[TABLES];
    __u32 malformed;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, __u32);
    __type(value, struct rows);
    __uint(max_entries, 1);
} rows SEC(".maps");

// Where the search for a packet's rule is.
struct search {
    struct facts facts;
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

static __always_inline int has(__u32 table)
{
    switch (table) {
    case KIND:
        return layout.kind.rows != NONE;
    case SOURCE:
        return layout.source.rows != NONE;
    case DESTINATION:
        return layout.destination.rows != NONE;
    case DESTINATION_PORT:
        return layout.destination_port.rows != NONE;
    case SOURCE_PORT:
        return layout.source_port.rows != NONE;
    case DETAIL:
        return layout.detail.rows != NONE;
    case VLAN:
        return layout.vlan.rows != NONE;
    default:
        return layout.ether_type.rows != NONE;
    }
}

static __always_inline __u32 row_in(__u32 table, const struct facts *facts)
{
    switch (table) {
    case KIND:
        return row(&layout.kind, facts->kind);
    case SOURCE:
        return address_row(&layout.source, facts->layer, facts->source);
    case DESTINATION:
        return address_row(&layout.destination, facts->layer, facts->destination);
    case DESTINATION_PORT:
        return row(&layout.destination_port, facts->destination_port);
    case SOURCE_PORT:
        return row(&layout.source_port, facts->source_port);
    case DETAIL:
        return row(&layout.detail, facts->detail);
    case VLAN:
        return row(&layout.vlan, facts->vlan);
    default:
        return row(&layout.ether_type, facts->ether_type);
    }
}

// What all rows of a packet have in common, in the word at `at`.
static __always_inline __u64 every(__u32 failed, __u32 at)
{
    __u32 zero = 0;
    struct rows *found = bpf_map_lookup_elem(&rows, &zero);
    if (!found)
        return 0;
    if (failed)
        return word(found->malformed + at);
    __u64 all = ~0ULL;
#pragma unroll
    for (__u32 table = 0; table < TABLES; table++)
        if (has(table))
            all &= word(found->of[table] + at);
    return all;
}

// The same of rules that take one word, row by row as they are found.
static __always_inline __u64 every_of_one(__u32 failed, const struct facts *facts)
{
    if (failed)
        return word(row(&layout.malformed, failed - 1));
    __u64 all = ~0ULL;
#pragma unroll
    for (__u32 table = 0; table < TABLES; table++)
        if (has(table))
            all &= word(row_in(table, facts));
    return all;
}

static __always_inline void find_rows(__u32 failed, const struct facts *facts)
{
    __u32 zero = 0;
    struct rows *found = bpf_map_lookup_elem(&rows, &zero);
    if (!found)
        return;
    if (failed) {
        found->malformed = row(&layout.malformed, failed - 1);
        return;
    }
#pragma unroll
    for (__u32 table = 0; table < TABLES; table++)
        if (has(table))
            found->of[table] = row_in(table, facts);
}

// The place of the lowest bit, of a word that is not 0.
static __always_inline __u32 lowest(__u64 bits)
{
    __u64 below = (bits & -bits) - 1;

    // Else newer compilers see what this is and take it from a table in memory, of whose bytes the verifier knows nothing.
    asm volatile("" : "+r"(below));
    return ones(below);
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
            search->bits = every(search->failed, search->at);
        return 0;
    }
    if (search->part * 64 >= layout.row_words)
        return 1;
    search->candidates = every(search->failed, layout.row_words + search->part);
    search->part++;
    return 0;
}

// What became of a packet.
struct decision {
    __u32 decided; // the rule, or the number of rules for the default
    __u32 verdict;
    __u32 failed;
    __u32 is_full;
};

// A function that the kernel checks by itself: what it may have written is unknown to its caller from here on. Else the kernel
// would follow every kind of packet through the whole search, and give up where rules are many and limit rates.
__noinline int begin(struct search *search)
{
    if (!search)
        return 0;
    search->verdict = layout.verdict;
    search->decided = layout.rules;
    return 0;
}

// Rules of one word, none of which limits a rate: the first that holds decides, and what it takes stays in registers.
static __always_inline struct decision first_of_one(__u32 failed, const struct facts *facts)
{
    struct decision decision = {.decided = layout.rules, .verdict = layout.verdict, .failed = failed};
    __u64 bits = every_of_one(failed, facts);
    __u32 place = layout.rules == 1 ? 0 : lowest(bits);
    if (bits && place < layout.rules) {
        decision.decided = place;
        decision.verdict = layout.denies >> place & 1 ? DENY : ALLOW;
    }
    return decision;
}

static __always_inline int conclude(struct xdp_md *ctx, const struct decision *decision, __u32 len)
{
    count(decision->decided, len);
    if (decision->failed)
        count(layout.rules + decision->failed, len);
    if (decision->is_full)
        count(layout.rules + 1 + REASONS, len);
    if (layout.tells) {
        __u32 zero = 0;
        struct told *given = bpf_map_lookup_elem(&told, &zero);
        if (given) {
            given->rule = decision->decided;
            given->malformed = decision->failed;
            given->is_full = decision->is_full;
        }
    }
    if (layout.denied_budget || layout.every) {
        struct verdict said = {
            .rule = decision->decided,
            .verdict = decision->verdict,
            .malformed = decision->failed,
            .is_full = decision->is_full,
        };
        tell(ctx, &said);
    }
    return decision->verdict == ALLOW ? XDP_PASS : XDP_DROP;
}

SEC("xdp.frags")
int dropless_filter(struct xdp_md *ctx)
{
    struct decision decision;
    if (layout.row_words == 1 && !layout.limits) {
        struct facts usual = {};
        struct way way = {};
        if (plain(ctx, &way, &usual)) {
            decision = first_of_one(0, &usual);
            return conclude(ctx, &decision, way.len);
        }
    }
    struct search search = {};
    struct way way = {};
    search.failed = look(ctx, &way, &search.facts);
    if (layout.row_words == 1 && !layout.limits) {
        decision = first_of_one(search.failed, &search.facts);
        return conclude(ctx, &decision, way.len);
    }
    begin(&search);
    if (layout.row_words == 1)
        search.bits = every_of_one(search.failed, &search.facts);
    else
        find_rows(search.failed, &search.facts);
    bpf_loop(LOOKS_MAX, step, &search, 0);
    decision = (struct decision){
        .decided = search.decided,
        .verdict = search.verdict,
        .failed = search.failed,
        .is_full = search.is_full,
    };
    return conclude(ctx, &decision, way.len);
}

char _license[] SEC("license") = "Dual MIT/GPL";
