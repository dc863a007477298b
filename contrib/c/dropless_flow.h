/* Which of several readers of one ring a packet is for: both directions of a flow go to the same one.
 *
 * docs/ring.md defines the hash; in Rust it is wire::flow_hash.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef DROPLESS_FLOW_H
#define DROPLESS_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* What of a frame tells its flow. */
struct dropless_flow {
    uint64_t high[2]; /* of an address of IPv6; else 0 */
    uint64_t low[2];  /* the rest of an address */
    uint16_t ports[2];
    uint8_t protocol;
    uint8_t version; /* of IP; 0: the addresses are MAC addresses */
};

static inline uint64_t dropless_be(const uint8_t *at, int len)
{
    uint64_t value = 0;
    for (int byte = 0; byte < len; byte++)
        value = value << 8 | at[byte];
    return value;
}

/* The finalizer of SplitMix64. */
static inline uint64_t dropless_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

/* Ports of TCP, UDP and SCTP at `at`, if they are there. */
static inline void dropless_ports(struct dropless_flow *flow, const uint8_t *frame, uint64_t len, uint64_t at)
{
    if ((flow->protocol != 6 && flow->protocol != 17 && flow->protocol != 132) || at + 4 > len)
        return;
    flow->ports[0] = (uint16_t)dropless_be(frame + at, 2);
    flow->ports[1] = (uint16_t)dropless_be(frame + at + 2, 2);
}

static inline bool dropless_flow_v4(struct dropless_flow *flow, const uint8_t *frame, uint64_t len, uint64_t at)
{
    if (at + 20 > len)
        return false;
    uint64_t header = (frame[at] & 15u) * 4, total = dropless_be(frame + at + 2, 2);
    if (frame[at] >> 4 != 4 || header < 20 || total < header || at + header > len)
        return false;
    flow->protocol = frame[at + 9];
    flow->version = 4;
    flow->low[0] = dropless_be(frame + at + 12, 4);
    flow->low[1] = dropless_be(frame + at + 16, 4);
    /* Of several fragments only the first has ports: all go without. */
    if ((dropless_be(frame + at + 6, 2) & 0x3fff) == 0)
        dropless_ports(flow, frame, len, at + header);
    return true;
}

static inline bool dropless_flow_v6(struct dropless_flow *flow, const uint8_t *frame, uint64_t len, uint64_t at)
{
    if (at + 40 > len || frame[at] >> 4 != 6)
        return false;
    for (int end = 0; end < 2; end++) {
        const uint8_t *address = frame + at + 8 + end * 16;
        flow->high[end] = dropless_be(address, 8);
        flow->low[end] = dropless_be(address + 8, 8);
    }
    flow->version = 6;
    uint8_t kind = frame[at + 6];
    bool is_fragment = false;
    at += 40;
    /* Hop-by-hop, routing, destination options; fragment; authentication. */
    for (int headers = 0; headers < 8; headers++) {
        if (!is_fragment)
            flow->protocol = kind;
        if (kind != 0 && kind != 43 && kind != 60 && kind != 44 && kind != 51) {
            if (!is_fragment)
                dropless_ports(flow, frame, len, at);
            return true;
        }
        if (at + 2 > len)
            return false;
        const uint8_t *header = frame + at;
        at += 8 + header[1] * (kind == 44 ? 0u : kind == 51 ? 4u : 8u);
        if (at > len)
            return false;
        if (kind == 44) {
            /* What follows is the same in all fragments; headers behind it has only the first. */
            is_fragment = true;
            flow->protocol = header[0];
            if (dropless_be(header + 2, 2) >> 3 != 0)
                return true;
        }
        kind = header[0];
    }
    return false;
}

/* One end of a flow: its address and port. */
static inline uint64_t dropless_flow_end(const struct dropless_flow *flow, int end)
{
    if (flow->version == 6)
        return dropless_mix(dropless_mix(flow->high[end] ^ flow->ports[end]) ^ flow->low[end]);
    if (flow->version == 4)
        return dropless_mix(flow->low[end] << 16 | flow->ports[end]);
    return dropless_mix(flow->low[end]);
}

/* The hash of the flow of an Ethernet frame, of which `len` bytes are there. */
static inline uint64_t dropless_flow_hash(const uint8_t *frame, uint64_t len)
{
    struct dropless_flow flow = {0};
    uint64_t at = 12, kind = len >= 14 ? dropless_be(frame + at, 2) : 0;
    /* VLAN tags are no part of a flow. */
    for (int tags = 0; tags < 2 && (kind == 0x8100 || kind == 0x88a8); tags++) {
        at += 4;
        kind = at + 2 <= len ? dropless_be(frame + at, 2) : 0;
    }
    bool is_ip = (kind == 0x0800 && dropless_flow_v4(&flow, frame, len, at + 2)) ||
                 (kind == 0x86dd && dropless_flow_v6(&flow, frame, len, at + 2));
    if (!is_ip) {
        /* What is not IP is told by its MAC addresses. */
        flow = (struct dropless_flow){
            .low = {len >= 6 ? dropless_be(frame, 6) : 0, len >= 12 ? dropless_be(frame + 6, 6) : 0}};
    }
    /* A sum has no first and no second end. */
    return dropless_mix((dropless_flow_end(&flow, 0) + dropless_flow_end(&flow, 1)) ^ flow.protocol);
}

/* Which of `count` readers a flow is for, from 0. The lower half of the hash says so: the upper one has chosen the
 * flows of a capture with --sample. */
static inline uint32_t dropless_flow_share(uint64_t hash, uint32_t count)
{
    return (uint32_t)((hash & 0xffffffff) * count >> 32);
}

#endif
