/* Joins a ring and counts what comes, until the capture ends: packets, bytes, and a sum over all of them (FNV-1a).
 *
 *     cc -std=c11 -D_GNU_SOURCE -O2 -o count count.c && ./count NAME [lossy]
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <inttypes.h>
#include <time.h>

#include "dropless_ring.h"

int main(int argc, char **argv)
{
    struct dropless_ring ring;
    struct dropless_packet packet = {0};
    uint64_t packets = 0, bytes = 0, sum = 0xcbf29ce484222325, taken, lost;
    bool is_ended;

    if (argc < 2) {
        fprintf(stderr, "usage: count NAME [lossy]\n");
        return 2;
    }
    if (dropless_join(&ring, argv[1], "count", argc < 3 || strcmp(argv[2], "lossy") != 0) != 0) {
        fprintf(stderr, "count: %s\n", ring.error);
        return 2;
    }
    do {
        is_ended = dropless_is_ended(&ring);
        while (dropless_next(&ring, &packet) > 0) {
            packets++;
            bytes += packet.captured;
            for (uint32_t at = 0; at < packet.captured; at++)
                sum = (sum ^ packet.data[at]) * 0x100000001b3;
        }
        if (!is_ended)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    } while (!is_ended && !ring.error[0]);
    dropless_counts(&ring, &taken, &lost);
    printf("packets %" PRIu64 " bytes %" PRIu64 " sum %016" PRIx64 " taken %" PRIu64 " lost %" PRIu64 "\n", packets,
           bytes, sum, taken, lost);
    if (ring.error[0])
        fprintf(stderr, "count: %s\n", ring.error);
    else if (dropless_has_died(&ring))
        fprintf(stderr, "count: the capture died without an end; what it had committed was read\n");
    dropless_leave(&ring);
    return ring.error[0] ? 1 : 0;
}
