/* Reads rings that may hold anything. Each argument is two files, MEMORY,PAGE, whose bytes become a sealed memfd each; of
 * each a line is printed: packets taken, and whether an error ended it. It must come to an end, and read nothing outside. */
#include <inttypes.h>

#include "dropless_ring.h"

static int sealed(const char *path)
{
    char bytes[65536];
    int from = open(path, O_RDONLY), to = memfd_create("walk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ssize_t len;
    if (from < 0 || to < 0)
        exit(2);
    while ((len = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)len) != len)
            exit(2);
    close(from);
    if (fcntl(to, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        exit(2);
    return to;
}

static void walk(char *paths)
{
    struct dropless_ring ring;
    struct dropless_packet packet;
    uint64_t packets = 0, bytes = 0;
    char *page = strchr(paths, ',');
    *page++ = 0;
    int files[2] = {sealed(paths), sealed(page)};
    if (dropless_open(&ring, files[0], files[1]) == 0) {
        while (dropless_next(&ring, &packet) > 0) {
            packets++;
            for (uint32_t at = 0; at < packet.captured; at++)
                bytes += packet.data[at];
        }
    }
    printf("%" PRIu64 " %" PRIu64 " %s\n", packets, bytes, ring.error[0] ? ring.error : "-");
    dropless_leave(&ring);
    close(files[0]);
    close(files[1]);
}

int main(int argc, char **argv)
{
    for (int at = 1; at < argc; at++)
        walk(argv[at]);
}
