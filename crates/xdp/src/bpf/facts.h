// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What a packet is, as `facts.rs` of the crate `rules` says it.

#ifndef DROPLESS_FACTS_H
#define DROPLESS_FACTS_H

#include <bpf/bpf_endian.h>

#include "maps.h"

enum { WHOLE, FIRST, LATER };

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

// Loads of a whole word from wherever it stands: copied by memcpy they would be loads of single bytes.
static __always_inline __u16 be16(const void *at)
{
    return bpf_ntohs(*(const __u16 *)at);
}

static __always_inline __u32 be32(const void *at)
{
    return bpf_ntohl(*(const __u32 *)at);
}

// Addresses stand at multiples of four, at most.
static __always_inline __u64 be64(const void *at)
{
    return (__u64)be32(at) << 32 | be32(at + 4);
}

// A length that is not 0, cut to `most`, for helpers of the kernel. Its verifier must see that it is not 0: Linux 6.1 neither
// learns that from a comparison with 0 nor tells a copy of a register what it learned, so it is one more than something.
static __always_inline __u32 bounded(__u32 len, __u32 most)
{
    __u32 more = len - 1;
    asm volatile("" : "+r"(more));
    if (more > most - 1)
        more = most - 1;
    asm volatile("" : "+r"(more));
    return more + 1;
}

static __always_inline int asks(__u32 reason)
{
    return layout.reasons >> reason & 1;
}

// A packet's way: where things are, and how far they go.
struct way {
    __u32 len;       // of the frame, or of what of it lies in one piece, where its IP packet ends there
    __u32 at;        // of the IP header
    __u32 transport; // behind all IP headers
    __u32 end;       // of the IP packet
    __u32 protocol;
    __u32 part;
    __u32 offset;    // of a fragment, in units of eight bytes
};

// Each returns 0, or the reason + 1.
static __always_inline int tcp(const struct way *way, const __u32 *head, __u32 have, struct facts *facts)
{
    __u32 cut = way->part == FIRST ? TINY_FRAGMENT + 1 : TCP_HEADER + 1;
    if (have < 20)
        return cut;
    __u32 word = bpf_ntohl(head[3]), len = (word >> 28) * 4;
    if (len < 20)
        return TCP_HEADER + 1;
    if (len > way->end - way->transport)
        return cut;
    __u32 flags = word >> 16 & 0xFF;
    __u32 fin = flags & 1, syn = flags & 2, rst = flags & 4, ack = flags & 16;
    if (asks(TCP_FLAGS) && (!(flags & 0x3F) || (syn && (fin || rst)) || (fin && !ack)))
        return TCP_FLAGS + 1;
    facts->detail = 1 << 8 | flags;
    return 0;
}

static __always_inline int udp(const struct way *way, const __u32 *head, __u32 have)
{
    if (have < 8)
        return way->part == FIRST ? TINY_FRAGMENT + 1 : UDP_LENGTH + 1;
    __u32 len = bpf_ntohl(head[1]) >> 16, rest = way->end - way->transport;
    if (len < 8 || (way->part == FIRST ? len < rest : len != rest))
        return UDP_LENGTH + 1;
    return 0;
}

static __always_inline int has_header(__u32 protocol)
{
    return protocol == 6 || protocol == 17 || protocol == 1 || protocol == 58 || protocol == 132;
}

// What the header says that begins there; `have` bytes are the packet's, and `head` has up to 20 of them.
static __always_inline int header(const struct way *way, const __u32 *head, __u32 have, struct facts *facts)
{
    __u32 protocol = way->protocol;
    if (protocol == 1 || protocol == 58) {
        if (have < 8)
            return way->part == FIRST ? TINY_FRAGMENT + 1 : ICMP_LENGTH + 1;
        facts->detail = 2 << 8 | bpf_ntohl(head[0]) >> 24;
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
        __u32 ports = bpf_ntohl(head[0]);
        facts->source_port = ports >> 16;
        facts->destination_port = ports & 0xFFFF;
    }
    return 0;
}

static __always_inline int transport(struct xdp_md *ctx, const struct way *way, struct facts *facts)
{
    if (way->part == LATER)
        return way->protocol == 6 && way->offset == 1 ? TINY_FRAGMENT + 1 : 0;
    if (!has_header(way->protocol))
        return 0;
    // What a frame has behind its packet may be read along, and is not looked at.
    __u32 head[5];
    __u32 have = way->end - way->transport;
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    __u32 at = way->transport;
    const __u32 *words = (void *)(data + at);
    if (at <= 128 && (void *)(words + 5) <= (void *)data_end) {
#pragma unroll
        for (int word = 0; word < 5; word++)
            head[word] = words[word];
    } else {
        __builtin_memset(head, 0, sizeof head);
        if (have && bpf_xdp_load_bytes(ctx, at, head, bounded(have, 20)))
            return IP_LENGTH + 1;
    }
    return header(way, head, have, facts);
}

// Makes `len` that of the whole frame if its IP packet goes on behind the first piece: asking for it always would cost as
// much as the rest of the parsing.
static __always_inline void whole(struct xdp_md *ctx, struct way *way)
{
    if (way->end > way->len)
        way->len = bpf_xdp_get_buff_len(ctx);
}

static __always_inline int ipv4(struct xdp_md *ctx, struct way *way, struct facts *facts)
{
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    const __u8 *header = data + way->at;
    if (header + 20 > data_end)
        return IP_HEADER + 1;
    __u32 len = (header[0] & 15) * 4, total = be16(header + 2), fragment = be16(header + 6) & 0x3FFF;
    way->end = way->at + total;
    whole(ctx, way);
    if (header[0] >> 4 != 4 || len < 20 || total < len || way->len < way->at + len)
        return IP_HEADER + 1;
    if (way->end > way->len)
        return IP_LENGTH + 1;
    way->transport = way->at + len;
    way->protocol = header[9];
    way->offset = fragment & 0x1FFF;
    way->part = !fragment ? WHOLE : way->offset ? LATER : FIRST;
    facts->source.high = (__u64)be32(header + 12) << 32;
    facts->destination.high = (__u64)be32(header + 16) << 32;
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

// Of IPv6, what extension headers change.
struct walk {
    __u32 len; // of the frame
    __u32 transport;
    __u32 protocol;
    __u32 part;
    __u32 offset;
};

// Bytes in which the header's length is told beyond its first eight; none of what is no extension header.
static __always_inline int unit_of(__u32 protocol)
{
    if (protocol == 0 || protocol == 43 || protocol == 60)
        return 8;
    if (protocol == 44)
        return 0;
    return protocol == 51 ? 4 : -1;
}

// On its own, so that the kernel's verifier walks it once, and not all that follows once for each of its ends.
__noinline int extensions(struct xdp_md *ctx, struct walk *walk)
{
    if (!walk)
        return EXTENSIONS + 1;
    for (int extension = 0; extension < 8; extension++) {
        int unit = unit_of(walk->protocol);
        if (unit < 0)
            return 0;
        // A whole word of the stack: what else stood there the verifier would forget when a helper writes.
        __u8 head[8] __attribute__((aligned(8)));
        __u32 protocol = walk->protocol;
        // The first two bytes suffice to go on; a fragment has all of its eight, or is cut.
        if (walk->transport + 2 > walk->len || bpf_xdp_load_bytes(ctx, walk->transport, head, 2))
            return EXTENSIONS + 1;
        if (protocol == 44) {
            if (walk->transport + 4 > walk->len || bpf_xdp_load_bytes(ctx, walk->transport, head, 4))
                return EXTENSIONS + 1;
            walk->offset = be16(head + 2) >> 3;
            walk->part = walk->offset ? LATER : FIRST;
        }
        walk->protocol = head[0];
        walk->transport += 8 + unit * head[1];
        if (walk->transport > walk->len)
            return EXTENSIONS + 1;
        // In the first part the headers go on.
        if (walk->part == LATER)
            return 0;
    }
    return EXTENSIONS + 1;
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
    whole(ctx, way);
    way->transport = way->at + 40;
    way->protocol = header[6];
    way->part = WHOLE;
    facts->source.high = be64(header + 8);
    facts->source.low = be64(header + 16);
    facts->destination.high = be64(header + 24);
    facts->destination.low = be64(header + 32);
    if (unit_of(way->protocol) >= 0) {
        struct walk walk = {way->len, way->transport, way->protocol, WHOLE, 0};
        int failed = extensions(ctx, &walk);
        if (failed)
            return failed;
        way->transport = walk.transport;
        way->protocol = walk.protocol;
        way->part = walk.part;
        way->offset = walk.offset;
    }
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
    way->len = data_end - data;
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
        way->len = bpf_xdp_get_buff_len(ctx);
        return 0;
    }
    if (failed)
        return failed;
    facts->ether_type = NONE;
    failed = transport(ctx, way, facts);
    facts->kind = facts->layer << 10 | way->part << 8 | (way->protocol & 0xFF);
    return failed;
}

// Most packets: IPv4 without a tag, options or fragments, whole and in one piece. What it finds is what `look` would find, in
// a small part of the time; any other packet, and all that is malformed, it leaves to that, and returns 0.
static __always_inline int plain(struct xdp_md *ctx, struct way *way, struct facts *facts)
{
    const __u8 *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
    if (asks(IP_CHECKSUM) || data + 54 > data_end)
        return 0;
    if (*(const __u16 *)(data + 12) != bpf_htons(0x0800) || data[14] != 0x45)
        return 0;
    __u32 total = be16(data + 16);
    way->len = data_end - data;
    if (total < 28 || 14 + total > way->len || (*(const __u16 *)(data + 20) & bpf_htons(0x3FFF)))
        return 0;
    if (asks(LAND) && *(const __u32 *)(data + 26) == *(const __u32 *)(data + 30))
        return 0;
    way->transport = 34;
    way->end = 14 + total;
    way->part = WHOLE;
    way->protocol = data[23];
    facts->layer = V4;
    facts->ether_type = facts->vlan = facts->source_port = facts->destination_port = NONE;
    // What no rule asks is not looked at.
    if (layout.source.rows != NONE)
        facts->source.high = (__u64)be32(data + 26) << 32;
    if (layout.destination.rows != NONE)
        facts->destination.high = (__u64)be32(data + 30) << 32;
    facts->kind = V4 << 10 | WHOLE << 8 | way->protocol;
    return !has_header(way->protocol) || !header(way, (const void *)(data + 34), total - 20, facts);
}

#endif
