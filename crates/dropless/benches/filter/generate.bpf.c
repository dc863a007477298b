// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What the filters are given: a frame after the other from a list, onto a wire, or handed to a program that is attached somewhere.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define FRAMES 65536

struct head {
    __u32 source;
    __u32 destination;
    __u32 ports;
    __u16 checksum;
    __u16 unused;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, struct head);
    __uint(max_entries, FRAMES);
} heads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __type(key, __u32);
    __type(value, __u32);
    __uint(max_entries, 1);
} wire SEC(".maps");

// A program that knows frames of several pieces is called only by such.
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __type(key, __u32);
    __type(value, __u32);
    __uint(max_entries, 1);
} asked SEC(".maps"), asked_frags SEC(".maps");

// Nanoseconds from one frame to the next; 0 for as fast as can be.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, __u64);
    __uint(max_entries, 1);
} pace SEC(".maps");

__u32 next;
__u64 due_ns;

// Waits for a frame's time, by so many looks at the clock at most.
#define LOOKS_MAX (1 << 16)

static long is_due(__u32 number, void *nothing)
{
    (void)number;
    (void)nothing;
    return bpf_ktime_get_ns() >= due_ns;
}

static __always_inline void wait(void)
{
    __u32 zero = 0;
    __u64 *every_ns = bpf_map_lookup_elem(&pace, &zero), now;
    if (!every_ns || !*every_ns)
        return;
    bpf_loop(LOOKS_MAX, is_due, 0, 0);
    now = bpf_ktime_get_ns();
    due_ns += *every_ns;
    // What it was late is not made up for by a crowd.
    if (due_ns < now)
        due_ns = now;
}

static __always_inline int write(struct xdp_md *ctx)
{
    __u32 place = next++ & (FRAMES - 1);
    struct head *head = bpf_map_lookup_elem(&heads, &place);
    __u8 *frame = (void *)(long)ctx->data;
    if (!head || frame + 38 > (__u8 *)(long)ctx->data_end)
        return 0;
    *(__u16 *)(frame + 24) = head->checksum;
    *(__u32 *)(frame + 26) = head->source;
    *(__u32 *)(frame + 30) = head->destination;
    *(__u32 *)(frame + 34) = head->ports;
    return 1;
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
    wait();
    return write(ctx) ? bpf_redirect_map(&wire, 0, 0) : XDP_ABORTED;
}

SEC("xdp")
int ask(struct xdp_md *ctx)
{
    if (write(ctx))
        bpf_tail_call(ctx, &asked, 0);
    return XDP_ABORTED;
}

SEC("xdp.frags")
int ask_frags(struct xdp_md *ctx)
{
    if (write(ctx))
        bpf_tail_call(ctx, &asked_frags, 0);
    return XDP_ABORTED;
}

SEC("xdp")
int drop(struct xdp_md *ctx)
{
    (void)ctx;
    return XDP_DROP;
}

SEC("xdp.frags")
int drop_frags(struct xdp_md *ctx)
{
    (void)ctx;
    return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
