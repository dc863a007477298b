/* Prints the hash of each frame of a file, and which of four readers it is for. A frame is a byte that is its length, and
 * so many bytes, each in memory of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dropless_flow.h"

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    int len;
    while (file && (len = getc(file)) != EOF) {
        uint8_t *frame = malloc((size_t)len);
        if (fread(frame, 1, (size_t)len, file) != (size_t)len)
            return 1;
        uint64_t hash = dropless_flow_hash(frame, (uint64_t)len);
        printf("%016" PRIx64 " %" PRIu32 "\n", hash, dropless_flow_share(hash, 4));
        free(frame);
    }
    return file ? fclose(file) : 1;
}
