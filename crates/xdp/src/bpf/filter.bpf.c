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
    if (layout.denied_budget || layout.every) {
        struct verdict said = {
            .len = way.len,
            .rule = search.decided,
            .verdict = search.verdict,
            .malformed = search.failed,
            .is_full = search.is_full,
        };
        tell(ctx, &said);
    }
    return search.verdict == ALLOW ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
