// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The smallest filters: one that drops what a hash has the source address of, and one that drops everything.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __type(key, __u32);
    __type(value, __u64);
    __uint(max_entries, 1024);
} denied SEC(".maps");

SEC("xdp")
int hash(struct xdp_md *ctx)
{
    const __u8 *frame = (void *)(long)ctx->data;
    if (frame + 34 > (__u8 *)(long)ctx->data_end || *(__u16 *)(frame + 12) != bpf_htons(0x0800))
        return XDP_PASS;
    __u32 source = *(__u32 *)(frame + 26);
    __u64 *packets = bpf_map_lookup_elem(&denied, &source);
    if (!packets)
        return XDP_PASS;
    (*packets)++;
    return XDP_DROP;
}

SEC("xdp")
int everything(struct xdp_md *ctx)
{
    (void)ctx;
    return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
