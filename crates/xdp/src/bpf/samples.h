// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Packets that are told one by one, with what became of them; `samples.rs` reads them. Without samples the kernel leaves all of this out.

#ifndef DROPLESS_SAMPLES_H
#define DROPLESS_SAMPLES_H

#include "facts.h"
#include "maps.h"

#define SAMPLE_DATA 256

// Why a packet is told.
enum { OF_DENIED = 1, OF_ALL = 2 };

struct sample {
    __u64 time_ns;    // monotonic
    __u32 len;
    __u32 rule;       // the number of rules for the default
    __u32 generation; // that the rule is of
    __u16 captured;
    __u8 verdict;
    __u8 malformed;   // reason + 1
    __u8 why;
    __u8 is_full;
    __u8 unused[6];
    __u8 data[SAMPLE_DATA];
};

// Of one processor.
struct sampling {
    __u64 period;
    __u32 denied_left; // may still be told in this period
    __u32 until_next;  // of one of N; 0 before the first packet
    __u64 denied, denied_missed;
    __u64 all, all_missed;
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} samples SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, __u32);
    __type(value, struct sampling);
    __uint(max_entries, 1);
} sampling SEC(".maps");

// Rises when new samples are granted: as long as somebody reads them.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, __u64);
    __uint(max_entries, 1);
} period SEC(".maps");

// Packets to the next that is told: 1 to 2N - 1, N in the mean, so that each told stands for N. By chance: with every Nth a
// flood that keeps time would be told always or never.
static __always_inline __u32 skip(void)
{
    return 1 + bpf_get_prandom_u32() % (2 * layout.every - 1);
}

// Why this packet is told, if it is. Above the budget it costs a look at the period.
static __always_inline __u32 wanted(struct sampling *cpu, __u32 verdict)
{
    __u32 why = 0, zero = 0;
    if (layout.denied_budget && verdict != ALLOW) {
        __u64 *now = bpf_map_lookup_elem(&period, &zero);
        if (now && *now != cpu->period) {
            cpu->period = *now;
            cpu->denied_left = layout.denied_budget;
        }
        if (cpu->denied_left) {
            cpu->denied_left--;
            why |= OF_DENIED;
        } else {
            cpu->denied_missed++;
        }
    }
    if (layout.every) {
        if (!cpu->until_next)
            cpu->until_next = skip();
        if (!--cpu->until_next) {
            cpu->until_next = skip();
            why |= OF_ALL;
        }
    }
    return why;
}

struct verdict {
    __u32 rule;
    __u32 verdict;
    __u32 malformed;
    __u32 is_full;
};

static __noinline int tell(struct xdp_md *ctx, const struct verdict *said)
{
    __u32 zero = 0;
    if (!said)
        return 0;
    struct sampling *cpu = bpf_map_lookup_elem(&sampling, &zero);
    if (!cpu)
        return 0;
    __u32 why = wanted(cpu, said->verdict);
    if (!why)
        return 0;
    struct sample *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
    if (!sample) {
        if (why & OF_DENIED)
            cpu->denied_missed++;
        if (why & OF_ALL)
            cpu->all_missed++;
        return 0;
    }
    __u32 len = bpf_xdp_get_buff_len(ctx), have = bounded(len, SAMPLE_DATA);
    if (bpf_xdp_load_bytes(ctx, 0, sample->data, have))
        have = 0;
    sample->time_ns = bpf_ktime_get_ns();
    sample->len = len;
    sample->rule = said->rule;
    sample->generation = layout.generation;
    sample->captured = have;
    sample->verdict = said->verdict;
    sample->malformed = said->malformed;
    sample->why = why;
    sample->is_full = said->is_full;
    // Whoever reads comes by and by: waking them would slow a flood down.
    bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
    if (why & OF_DENIED)
        cpu->denied++;
    if (why & OF_ALL)
        cpu->all++;
    return 0;
}

#endif
