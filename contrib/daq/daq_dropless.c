/* A DAQ module (libdaq 2) that reads the ring of a running `dropless capture --ring NAME`, so that Snort 2 and others
 * take packets where they lie.
 *
 *     snort -Q no --daq-dir DIRECTORY --daq dropless --daq-mode passive -i NAME --daq-var instance=1/4
 *
 * Variables: ring=NAME (else the name of the interface), instance=I/N (this one of N, which share a ring by flows),
 * lossy (never hold up the capture, and count what was lost instead). See docs/guide/feeding-an-ids.md.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <sfbpf.h>
#include <sfbpf_dlt.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include <daq_api.h>

#include "dropless_flow.h"
#include "dropless_ring.h"

/* From one look at an empty ring to the next, ns. */
#define LOOK_EVERY 100000

struct context {
    struct dropless_ring ring;
    char *name;
    bool is_lossless, is_ended, has_filter, has_refused;
    uint32_t instance, instances; /* this one, from 0, of so many */
    int snaplen;
    unsigned timeout_ms; /* 0 waits for ever */
    struct sfbpf_program filter;
    volatile sig_atomic_t is_broken;
    DAQ_State state;
    DAQ_Stats_t stats;
    uint64_t taken_before, lost_before; /* the ring's counts when stats were reset last */
    char error[DAQ_ERRBUF_SIZE];
};

__attribute__((format(printf, 3, 4)))
static int fail(struct context *context, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context->error, sizeof context->error, format, arguments);
    va_end(arguments);
    return code;
}

static int read_instance(struct context *context, const char *text)
{
    unsigned instance = 0, instances = 0;
    char more;
    if (!text || sscanf(text, "%u/%u%c", &instance, &instances, &more) != 2 || instance < 1 || instance > instances || instances > 1024)
        return fail(context, DAQ_ERROR_INVAL, "instance=%s: use instance=I/N, as instance=1/4 for the first of four", text ? text : "");
    context->instance = instance - 1;
    context->instances = instances;
    return DAQ_SUCCESS;
}

static int read_variable(struct context *context, const struct _daq_dict_entry *entry, const char **name)
{
    if (strcmp(entry->key, "ring") == 0 && entry->value)
        *name = entry->value;
    else if (strcmp(entry->key, "instance") == 0)
        return read_instance(context, entry->value);
    else if (strcmp(entry->key, "lossy") == 0)
        context->is_lossless = false;
    else
        return fail(context, DAQ_ERROR_INVAL, "%s: no such variable; there are ring=NAME, instance=I/N and lossy", entry->key);
    return DAQ_SUCCESS;
}

static int configure(struct context *context, const DAQ_Config_t *config)
{
    const char *name = config->name;
    for (const struct _daq_dict_entry *entry = config->values; entry; entry = entry->next) {
        int result = read_variable(context, entry, &name);
        if (result != DAQ_SUCCESS)
            return result;
    }
    if (!name || !*name)
        return fail(context, DAQ_ERROR_NODEV, "which ring? Name it as the interface, or with ring=NAME");
    context->name = strdup(name);
    return context->name ? DAQ_SUCCESS : fail(context, DAQ_ERROR_NOMEM, "no memory");
}

static void release(struct context *context)
{
    if (context->has_filter)
        sfbpf_freecode(&context->filter);
    dropless_leave(&context->ring);
    free(context->name);
    free(context);
}

static int module_initialize(const DAQ_Config_t *config, void **handle, char *error, size_t len)
{
    struct context *context = calloc(1, sizeof *context);
    if (!context) {
        snprintf(error, len, "dropless: no memory");
        return DAQ_ERROR_NOMEM;
    }
    *context = (struct context){.is_lossless = true, .instances = 1, .snaplen = config->snaplen, .timeout_ms = config->timeout};
    context->ring.socket = -1;
    int result = configure(context, config);
    if (result != DAQ_SUCCESS) {
        snprintf(error, len, "dropless: %s", context->error);
        release(context);
        return result;
    }
    context->state = DAQ_STATE_INITIALIZED;
    *handle = context;
    return DAQ_SUCCESS;
}

static int module_set_filter(void *handle, const char *filter)
{
    struct context *context = handle;
    struct sfbpf_program program;
    int snaplen = context->snaplen > 0 ? context->snaplen : 65535;
    if (sfbpf_compile(snaplen, DLT_EN10MB, &program, filter, 1, 0) < 0)
        return fail(context, DAQ_ERROR, "the filter '%s' cannot be compiled", filter);
    if (context->has_filter)
        sfbpf_freecode(&context->filter);
    context->filter = program;
    context->has_filter = true;
    return DAQ_SUCCESS;
}

/* The ring is joined here, so that nothing is kept for an engine that is still reading its rules. */
static int module_start(void *handle)
{
    struct context *context = handle;
    char who[DROPLESS_NAME];
    snprintf(who, sizeof who, "daq %u/%u", context->instance + 1, context->instances);
    dropless_leave(&context->ring);
    context->is_ended = false;
    context->taken_before = context->lost_before = 0;
    if (dropless_join(&context->ring, context->name, who, context->is_lossless) != 0)
        return fail(context, DAQ_ERROR_NODEV, "%s", context->ring.error);
    context->state = DAQ_STATE_STARTED;
    return DAQ_SUCCESS;
}

/* What an engine may not ask of a capture, it is told once. */
static void refuse(struct context *context, DAQ_Verdict verdict)
{
    const char *name = verdict == DAQ_VERDICT_REPLACE ? "replace" : verdict == DAQ_VERDICT_RETRY ? "retry" : "block";
    fail(context, DAQ_ERROR_NOTSUP, "a verdict to %s was refused: the ring is a copy of what has passed already", name);
    if (!context->has_refused)
        fprintf(stderr, "daq_dropless: %s\n", context->error);
    context->has_refused = true;
}

static void hand_out(struct context *context, const struct dropless_packet *packet, DAQ_Analysis_Func_t callback, void *user)
{
    uint32_t caplen = packet->captured;
    if (context->snaplen > 0 && caplen > (uint32_t)context->snaplen)
        caplen = (uint32_t)context->snaplen;
    DAQ_PktHdr_t header = {
        .ts = {.tv_sec = (time_t)(packet->time_ns / 1000000000), .tv_usec = (suseconds_t)(packet->time_ns % 1000000000 / 1000)},
        .caplen = caplen,
        .pktlen = packet->length,
        .ingress_index = (int32_t)packet->interface,
        .egress_index = DAQ_PKTHDR_UNKNOWN,
        .ingress_group = DAQ_PKTHDR_UNKNOWN,
        .egress_group = DAQ_PKTHDR_UNKNOWN,
        .flags = DAQ_PKT_FLAG_NOT_FORWARDING,
    };
    context->stats.packets_received++;
    DAQ_Verdict verdict = callback(user, &header, packet->data);
    if (verdict >= MAX_DAQ_VERDICT)
        verdict = DAQ_VERDICT_PASS;
    context->stats.verdicts[verdict]++;
    if (verdict == DAQ_VERDICT_BLOCK || verdict == DAQ_VERDICT_BLACKLIST || verdict == DAQ_VERDICT_REPLACE || verdict == DAQ_VERDICT_RETRY)
        refuse(context, verdict);
}

static bool is_ours(const struct context *context, const struct dropless_packet *packet)
{
    uint64_t hash = context->instances > 1 ? dropless_flow_hash(packet->data, packet->captured) : 0;
    return dropless_flow_share(hash, context->instances) == context->instance;
}

/* Takes what is there, up to `count` packets of this instance (0 is all); how many, or an error. */
static int take(struct context *context, int count, DAQ_Analysis_Func_t callback, void *user)
{
    struct dropless_packet packet;
    int handed = 0, there = 0;
    while ((count <= 0 || handed < count) && !context->is_broken && (there = dropless_next(&context->ring, &packet)) > 0) {
        if (!is_ours(context, &packet))
            continue;
        if (context->has_filter && sfbpf_filter(context->filter.bf_insns, packet.data, packet.length, packet.captured) == 0) {
            context->stats.packets_filtered++;
            continue;
        }
        hand_out(context, &packet, callback, user);
        handed++;
    }
    return there < 0 ? fail(context, DAQ_ERROR, "%s", context->ring.error) : handed;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int module_acquire(void *handle, int count, DAQ_Analysis_Func_t callback, DAQ_Meta_Func_t metaback, void *user)
{
    struct context *context = handle;
    uint64_t begun = now_ms();
    int handed = 0;
    (void)metaback;
    while (!context->is_broken && (count <= 0 || handed < count)) {
        bool is_ended = dropless_is_ended(&context->ring);
        int now = take(context, count > 0 ? count - handed : 0, callback, user);
        if (now < 0)
            return now;
        handed += now;
        if (now > 0) {
            begun = now_ms();
            continue;
        }
        if (context->is_broken)
            break;
        /* The capture is over, and all that it left was handed out. */
        if (is_ended && dropless_has_died(&context->ring))
            return fail(context, DAQ_READFILE_EOF, "the capture died without an end; what it had committed was read");
        if (is_ended)
            return DAQ_READFILE_EOF;
        if (context->timeout_ms > 0 && now_ms() - begun >= context->timeout_ms)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY}, NULL);
    }
    context->is_broken = 0;
    return DAQ_SUCCESS;
}

static int module_inject(void *handle, const DAQ_PktHdr_t *header, const uint8_t *data, uint32_t len, int reverse)
{
    (void)header, (void)data, (void)len, (void)reverse;
    return fail(handle, DAQ_ERROR_NOTSUP, "a ring is read only: nothing can be sent into it");
}

static int module_breakloop(void *handle)
{
    struct context *context = handle;
    context->is_broken = 1;
    return DAQ_SUCCESS;
}

/* The counts of the ring: of all flows, since they were reset. */
static void count_ring(struct context *context)
{
    uint64_t taken, lost;
    if (!context->ring.page)
        return;
    dropless_counts(&context->ring, &taken, &lost);
    context->stats.hw_packets_received = taken - context->taken_before;
    context->stats.hw_packets_dropped = lost - context->lost_before;
}

static int module_stop(void *handle)
{
    struct context *context = handle;
    count_ring(context);
    dropless_leave(&context->ring);
    context->state = DAQ_STATE_STOPPED;
    return DAQ_SUCCESS;
}

static void module_shutdown(void *handle)
{
    release(handle);
}

static DAQ_State module_check_status(void *handle)
{
    return ((struct context *)handle)->state;
}

static int module_get_stats(void *handle, DAQ_Stats_t *stats)
{
    struct context *context = handle;
    count_ring(context);
    *stats = context->stats;
    return DAQ_SUCCESS;
}

static void module_reset_stats(void *handle)
{
    struct context *context = handle;
    memset(&context->stats, 0, sizeof context->stats);
    if (context->ring.page)
        dropless_counts(&context->ring, &context->taken_before, &context->lost_before);
}

static int module_get_snaplen(void *handle)
{
    return ((struct context *)handle)->snaplen;
}

static uint32_t module_get_capabilities(void *handle)
{
    (void)handle;
    return DAQ_CAPA_BREAKLOOP | DAQ_CAPA_BPF | DAQ_CAPA_UNPRIV_START;
}

static int module_get_datalink_type(void *handle)
{
    (void)handle;
    return DLT_EN10MB;
}

static const char *module_get_errbuf(void *handle)
{
    return ((struct context *)handle)->error;
}

static void module_set_errbuf(void *handle, const char *text)
{
    fail(handle, DAQ_SUCCESS, "%s", text ? text : "");
}

static int module_get_device_index(void *handle, const char *device)
{
    (void)device;
    return fail(handle, DAQ_ERROR_NOTSUP, "a ring has the interfaces of its capture, which are told by number");
}

DAQ_SO_PUBLIC const DAQ_Module_t DAQ_MODULE_DATA = {
    .api_version = DAQ_API_VERSION,
    .module_version = DROPLESS_RING_VERSION,
    .name = "dropless",
    .type = DAQ_TYPE_INTF_CAPABLE | DAQ_TYPE_MULTI_INSTANCE,
    .initialize = module_initialize,
    .set_filter = module_set_filter,
    .start = module_start,
    .acquire = module_acquire,
    .inject = module_inject,
    .breakloop = module_breakloop,
    .stop = module_stop,
    .shutdown = module_shutdown,
    .check_status = module_check_status,
    .get_stats = module_get_stats,
    .reset_stats = module_reset_stats,
    .get_snaplen = module_get_snaplen,
    .get_capabilities = module_get_capabilities,
    .get_datalink_type = module_get_datalink_type,
    .get_errbuf = module_get_errbuf,
    .set_errbuf = module_set_errbuf,
    .get_device_index = module_get_device_index,
};
