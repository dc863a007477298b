// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Ends probes of ours where the packet sockets have read them, so that the kernel does not also route each of them. What it
// has for somebody else passes: frames to other MAC addresses (a bridge's, a container's) and those with a VLAN tag.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define OWN_MAX 8

struct address {
    __u32 words[4];
};

// The addresses that probes come to, those of IPv4 as ::ffff:10.0.0.1, which no packet has.
// Of a run, its lanes are counted up from `first_lane`, round 2^16; without lanes any probe is meant.
struct own {
    __u32 run;
    __u32 first_lane;
    __u32 lanes;
    __u32 count;
    struct address of[OWN_MAX];
};
const volatile struct own own SEC(".rodata.own") = {};

// What a probe begins with (crates/wire/src/probe.rs): `MAGIC`, run, lag, lane.
#define PROBE_HEAD 6

static __always_inline int is_probe(const __u8 *at)
{
    __u16 lane = at[4] << 8 | at[5];

    if (at[0] != 0xD7 || at[1] != 0x01)
        return 0;
    return own.lanes == 0 || (at[2] == own.run && (__u16)(lane - own.first_lane) < own.lanes);
}

static __always_inline int is_own(const struct address *address)
{
    for (__u32 i = 0; i < OWN_MAX && i < own.count; i++)
        if (own.of[i].words[0] == address->words[0] && own.of[i].words[1] == address->words[1] &&
            own.of[i].words[2] == address->words[2] && own.of[i].words[3] == address->words[3])
            return 1;
    return 0;
}

SEC("tc")
int dropless_probes(struct __sk_buff *packet)
{
    // Ethernet, IP, UDP, and the first bytes of the probe.
    __u8 head[ETH_HLEN + 40 + 8 + PROBE_HEAD];
    struct address to = {};

    if (packet->pkt_type != PACKET_HOST || packet->vlan_present)
        return TC_ACT_UNSPEC;
    if (packet->protocol == bpf_htons(ETH_P_IP)) {
        if (bpf_skb_load_bytes(packet, 0, head, ETH_HLEN + 20 + 8 + PROBE_HEAD) != 0)
            return TC_ACT_UNSPEC;
        // No options, no fragment, UDP.
        if (head[14] != 0x45 || (head[20] & 0x3F) != 0 || head[21] != 0 || head[23] != 17 || !is_probe(head + 42))
            return TC_ACT_UNSPEC;
        to.words[2] = bpf_htonl(0xFFFF);
        __builtin_memcpy(&to.words[3], head + 30, 4);
    } else if (packet->protocol == bpf_htons(ETH_P_IPV6)) {
        if (bpf_skb_load_bytes(packet, 0, head, sizeof(head)) != 0)
            return TC_ACT_UNSPEC;
        if (head[14] >> 4 != 6 || head[20] != 17 || !is_probe(head + 62))
            return TC_ACT_UNSPEC;
        __builtin_memcpy(&to, head + 38, 16);
    } else {
        return TC_ACT_UNSPEC;
    }
    return is_own(&to) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
