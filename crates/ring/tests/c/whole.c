/* Joins a ring as a lossy reader, and holds each packet against itself: its last 8 bytes are a sum over all others. Prints
 * packets taken and lost, how many were torn, and how many came twice or out of order. */
#include <inttypes.h>

#include "dropless_ring.h"

int main(int argc, char **argv)
{
    struct dropless_ring ring;
    struct dropless_packet packet;
    uint64_t torn = 0, disordered = 0, next = 0, taken, lost;
    bool is_ended;

    if (argc < 2 || dropless_join(&ring, argv[1], "whole", false) != 0)
        return 2;
    do {
        is_ended = dropless_is_ended(&ring);
        while (dropless_next(&ring, &packet) > 0) {
            uint64_t sum = 0xcbf29ce484222325, said, number;
            for (uint32_t at = 0; at + 8 < packet.captured; at++)
                sum = (sum ^ packet.data[at]) * 0x100000001b3;
            memcpy(&said, packet.data + packet.captured - 8, sizeof said);
            memcpy(&number, packet.data, sizeof number);
            torn += said != sum;
            disordered += number < next;
            next = number + 1;
        }
    } while (!is_ended && !ring.error[0]);
    dropless_counts(&ring, &taken, &lost);
    printf("taken %" PRIu64 " lost %" PRIu64 " torn %" PRIu64 " disordered %" PRIu64 " %s\n", taken, lost, torn, disordered,
           ring.error);
    dropless_leave(&ring);
}
