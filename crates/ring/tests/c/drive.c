/* Drives a DAQ module through libdaq's own loader: drive DIRECTORY RING [KEY=VALUE ...]
 *
 * Keys for this program: filter=EXPRESSION, verdict=NUMBER, count=NUMBER (breaks the loop after so many), timeout=MS,
 * mode=inline (which libdaq refuses by itself for such a module). All others are variables of the module. Prints a line for each packet (its time in ns, captured and whole
 * length, sum of its bytes, whether it lies in a ring), and at the end statistics and the last error. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <daq.h>

static const DAQ_Module_t *module;
static void *handle;
static int verdict, wanted;
static uintptr_t ring_from, ring_to;

/* Where this process has the ring mapped: what lies there was not copied. */
static void find_ring(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "dropless-ring"))
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &ring_from, &ring_to);
    if (maps)
        fclose(maps);
}

static DAQ_Verdict see(void *user, const DAQ_PktHdr_t *header, const uint8_t *data)
{
    uint64_t sum = 0xcbf29ce484222325;
    int *seen = user;
    for (uint32_t at = 0; at < header->caplen; at++)
        sum = (sum ^ data[at]) * 0x100000001b3;
    bool is_there = (uintptr_t)data >= ring_from && (uintptr_t)data + header->caplen <= ring_to;
    printf("packet %ld.%06ld %u %u %016" PRIx64 " %d\n", (long)header->ts.tv_sec, (long)header->ts.tv_usec, header->caplen,
           header->pktlen, sum, is_there);
    if (++*seen == wanted)
        daq_breakloop(module, handle);
    return (DAQ_Verdict)verdict;
}

static void end(const char *what, int code)
{
    DAQ_Stats_t stats;
    daq_get_stats(module, handle, &stats);
    printf("%s %d\n", what, code);
    printf("stats %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stats.hw_packets_received,
           stats.hw_packets_dropped, stats.packets_received, stats.packets_filtered, stats.verdicts[DAQ_VERDICT_PASS],
           stats.verdicts[DAQ_VERDICT_BLOCK]);
    printf("error %s\n", daq_get_error(module, handle));
}

static void run(const char *filter)
{
    int seen = 0, code;
    if (filter && (code = daq_set_filter(module, handle, filter)) != DAQ_SUCCESS) {
        end("filter", code);
    } else if ((code = daq_start(module, handle)) != DAQ_SUCCESS) {
        end("start", code);
    } else {
        find_ring();
        code = daq_acquire(module, handle, 0, see, &seen);
        daq_stop(module, handle);
        end("acquired", code);
    }
    daq_shutdown(module, handle);
}

int main(int argc, char **argv)
{
    const char *directories[] = {argv[1], NULL}, *filter = NULL;
    DAQ_Config_t config = {.name = argv[2], .snaplen = 65535, .timeout = 0, .mode = DAQ_MODE_PASSIVE};
    char error[256] = "";
    int code;
    for (int at = 3; at < argc; at++) {
        char *value = strchr(argv[at], '=');
        if (value)
            *value++ = 0;
        if (strcmp(argv[at], "filter") == 0)
            filter = value;
        else if (strcmp(argv[at], "verdict") == 0)
            verdict = atoi(value);
        else if (strcmp(argv[at], "count") == 0)
            wanted = atoi(value);
        else if (strcmp(argv[at], "timeout") == 0)
            config.timeout = (unsigned)atoi(value);
        else if (strcmp(argv[at], "mode") == 0)
            config.mode = DAQ_MODE_INLINE;
        else
            daq_config_set_value(&config, argv[at], value);
    }
    if ((code = daq_load_modules(directories)) != DAQ_SUCCESS || !(module = daq_find_module("dropless")))
        printf("load %d\n", code);
    else if ((code = daq_initialize(module, &config, &handle, error, sizeof error)) != DAQ_SUCCESS)
        printf("initialize %d\nerror %s\n", code, error);
    else
        run(filter);
    daq_config_clear_values(&config);
    /* libsfbpf's scanner keeps some memory for ever, which is lost once the library is gone. */
    if (!filter)
        daq_unload_modules();
}
