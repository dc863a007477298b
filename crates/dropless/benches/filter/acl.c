// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// DPDK's librte_acl over the rules and frames of a file: what it decides about each frame, and what a frame takes.
//
//   acl FILE VERDICTS ROUNDS [EAL ARGUMENT...]
//
// FILE: rules and frames as numbers, both counts first. VERDICTS: the number of the rule that each frame meets, from 1.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#define BURST 32
#define FRAME 60

// As in the file, in this machine's order.
struct rule {
    uint32_t source, source_len, destination, destination_len;
    uint16_t source_port[2], destination_port[2];
};

enum { PROTOCOL, SOURCE, DESTINATION, SOURCE_PORT, DESTINATION_PORT, FIELDS };

// From the protocol of an IPv4 header without options on, as l3fwd-acl has them.
static const struct rte_acl_field_def fields[FIELDS] = {
    {RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTOCOL, 0, 0},
    {RTE_ACL_FIELD_TYPE_MASK, 4, SOURCE, 1, 3},
    {RTE_ACL_FIELD_TYPE_MASK, 4, DESTINATION, 2, 7},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, SOURCE_PORT, 3, 11},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, DESTINATION_PORT, 3, 13},
};

RTE_ACL_RULE_DEF(acl_rule, FIELDS);

static void fail(const char *what)
{
    fprintf(stderr, "acl: %s\n", what);
    exit(1);
}

// Where the tuple of a frame is, or nothing if it has none: as little as one may look at and believe it.
static inline const uint8_t *tuple(const uint8_t *frame)
{
    uint16_t type, total, fragment, udp_len;
    memcpy(&type, frame + 12, 2);
    memcpy(&total, frame + 16, 2);
    memcpy(&fragment, frame + 20, 2);
    memcpy(&udp_len, frame + 38, 2);
    total = rte_be_to_cpu_16(total);
    if (type != rte_cpu_to_be_16(0x0800) || frame[14] != 0x45 || total < 28 || total > FRAME - 14 ||
        (fragment & rte_cpu_to_be_16(0x3FFF)) || frame[23] != 17 || rte_be_to_cpu_16(udp_len) != total - 20)
        return NULL;
    return frame + 23;
}

static double measure(struct rte_acl_ctx *acl, const uint8_t *frames, const uint8_t **parsed, uint32_t count, int rounds,
                      uint32_t *verdicts)
{
    static const uint8_t none[16];
    const uint8_t *burst[BURST];
    uint64_t begun = rte_rdtsc_precise();
    for (int round = 0; round < rounds; round++) {
        for (uint32_t at = 0; at < count; at += BURST) {
            const uint8_t **data = parsed ? parsed + at : burst;
            if (!parsed) {
                for (uint32_t in = 0; in < BURST; in++) {
                    const uint8_t *found = tuple(frames + (at + in) * FRAME);
                    burst[in] = found ? found : none;
                }
            }
            if (rte_acl_classify(acl, data, verdicts + at, BURST, 1))
                fail("rte_acl_classify");
        }
    }
    return (rte_rdtsc_precise() - begun) * 1e9 / rte_get_tsc_hz() / count / rounds;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail("FILE VERDICTS ROUNDS [EAL ARGUMENT...]");
    const char *path = argv[1], *out = argv[2];
    int rounds = atoi(argv[3]);
    argv[3] = argv[0];
    if (rte_eal_init(argc - 3, argv + 3) < 0)
        fail("rte_eal_init");
    FILE *file = fopen(path, "rb");
    uint32_t counts[2];
    if (!file || fread(counts, 4, 2, file) != 2)
        fail(path);
    uint32_t rules = counts[0], count = counts[1];
    struct rte_acl_param param = {
        .name = "bench", .socket_id = SOCKET_ID_ANY, .rule_size = RTE_ACL_RULE_SZ(FIELDS), .max_rule_num = rules};
    struct rte_acl_ctx *acl = rte_acl_create(&param);
    if (!acl)
        fail("rte_acl_create");
    for (uint32_t at = 0; at < rules; at++) {
        struct rule rule;
        if (fread(&rule, sizeof rule, 1, file) != 1)
            fail("the file ends in its rules");
        struct acl_rule add = {
            // The first rule counts.
            .data = {.category_mask = 1, .priority = RTE_ACL_MAX_PRIORITY - at, .userdata = at + 1},
            .field =
                {
                    [PROTOCOL] = {.value.u8 = 17, .mask_range.u8 = 0xFF},
                    [SOURCE] = {.value.u32 = rule.source, .mask_range.u32 = rule.source_len},
                    [DESTINATION] = {.value.u32 = rule.destination, .mask_range.u32 = rule.destination_len},
                    [SOURCE_PORT] = {.value.u16 = rule.source_port[0], .mask_range.u16 = rule.source_port[1]},
                    [DESTINATION_PORT] = {.value.u16 = rule.destination_port[0],
                                          .mask_range.u16 = rule.destination_port[1]},
                },
        };
        if (rte_acl_add_rules(acl, (struct rte_acl_rule *)&add, 1))
            fail("rte_acl_add_rules");
    }
    uint8_t *frames = malloc((size_t)count * FRAME);
    const uint8_t **parsed = malloc(count * sizeof *parsed);
    uint8_t *tuples = malloc((size_t)count * 16);
    uint32_t *verdicts = calloc(count, 4);
    if (!frames || !parsed || !tuples || !verdicts || count % BURST || fread(frames, FRAME, count, file) != count)
        fail("the file ends in its frames");
    for (uint32_t at = 0; at < count; at++) {
        const uint8_t *found = tuple(frames + (size_t)at * FRAME);
        if (!found)
            fail("a frame without a tuple");
        memcpy(tuples + (size_t)at * 16, found, 16);
        parsed[at] = tuples + (size_t)at * 16;
    }
    struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
    memcpy(config.defs, fields, sizeof fields);
    uint64_t begun = rte_rdtsc_precise();
    if (rte_acl_build(acl, &config))
        fail("rte_acl_build");
    double build_s = (double)(rte_rdtsc_precise() - begun) / rte_get_tsc_hz();
    // The best of its ways that this processor has.
    static const struct {
        enum rte_acl_classify_alg alg;
        const char *name;
    } ways[] = {
        {RTE_ACL_CLASSIFY_SCALAR, "scalar"},
        {RTE_ACL_CLASSIFY_SSE, "SSE"},
        {RTE_ACL_CLASSIFY_AVX2, "AVX2"},
        {RTE_ACL_CLASSIFY_AVX512X16, "AVX-512, 16 at once"},
        {RTE_ACL_CLASSIFY_AVX512X32, "AVX-512, 32 at once"},
    };
    const char *best = "";
    double best_ns = 0, best_with = 0;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        if (rte_acl_set_ctx_classify(acl, ways[way].alg))
            continue;
        measure(acl, frames, parsed, count, 1, verdicts);
        double ns = measure(acl, frames, parsed, count, rounds, verdicts);
        double with = measure(acl, frames, NULL, count, rounds, verdicts);
        if (!*best || ns < best_ns) {
            best = ways[way].name;
            best_ns = ns;
            best_with = with;
        }
    }
    FILE *to = fopen(out, "wb");
    if (!to || fwrite(verdicts, 4, count, to) != count || fclose(to))
        fail(out);
    printf("{\"way\": \"%s\", \"build_s\": %.3f, \"ns\": %.3f, \"ns_with_parse\": %.3f}\n", best, build_s, best_ns, best_with);
    return 0;
}
