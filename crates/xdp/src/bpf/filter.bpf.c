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
            search->bits = every(search->failed, search->at);
        return 0;
    }
    if (search->part * 64 >= layout.row_words)
        return 1;
    search->candidates = every(search->failed, layout.row_words + search->part);
    search->part++;
    return 0;
}

SEC("xdp.frags")
int dropless_filter(struct xdp_md *ctx)
{
    struct facts facts = {};
    struct way way = {};
    __u32 failed = look(ctx, &way, &facts);
    __u32 decided = layout.rules, verdict = layout.verdict, is_full = 0;
    if (layout.row_words == 1 && !layout.limits) {
        // The first that holds decides: what it takes stays in registers.
        __u64 bits = every_of_one(failed, &facts);
        __u32 place = layout.rules == 1 ? 0 : lowest(bits);
        struct rule *rule = bits && place < layout.rules ? bpf_map_lookup_elem(&rules, &place) : 0;
        if (rule) {
            verdict = rule->action;
            decided = place;
        }
    } else {
        struct search search = {
            .facts = facts,
            .failed = failed,
            .verdict = verdict,
            .decided = decided,
        };
        if (layout.row_words == 1)
            search.bits = every_of_one(failed, &facts);
        else
            find_rows(failed, &facts);
        bpf_loop(LOOKS_MAX, step, &search, 0);
        decided = search.decided;
        verdict = search.verdict;
        is_full = search.is_full;
    }
    count(decided, way.len);
    if (failed)
        count(layout.rules + failed, way.len);
    if (is_full)
        count(layout.rules + 1 + REASONS, way.len);
    if (layout.tells) {
        __u32 zero = 0;
        struct told *given = bpf_map_lookup_elem(&told, &zero);
        if (given) {
            given->rule = decided;
            given->malformed = failed;
            given->is_full = is_full;
        }
    }
    if (layout.denied_budget || layout.every) {
        struct verdict said = {
            .rule = decided,
            .verdict = verdict,
            .malformed = failed,
            .is_full = is_full,
        };
        tell(ctx, &said);
    }
    return verdict == ALLOW ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
