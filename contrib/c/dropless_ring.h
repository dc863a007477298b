/* Reads the ring of a running `dropless capture --ring NAME`: packets in shared memory, in order, without a copy.
 *
 * Header only; C11, Linux, nothing else. The layout is in docs/ring.md. One thread uses a ring at a time.
 *
 *     struct dropless_ring ring;
 *     struct dropless_packet packet;
 *     if (dropless_join(&ring, "uplink", "my reader", true) != 0)
 *         errx(2, "%s", ring.error);
 *     bool is_ended;
 *     do {
 *         is_ended = dropless_is_ended(&ring);
 *         while (dropless_next(&ring, &packet) > 0)
 *             look_at(packet.data, packet.captured);
 *     } while (!is_ended && !ring.error[0]);
 *     dropless_leave(&ring);
 *
 * Nothing that lies in the ring is trusted: what contradicts itself is an error, and nothing outside of the mapped
 * memory is read.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef DROPLESS_RING_H
#define DROPLESS_RING_H

#ifndef _GNU_SOURCE
#error "dropless_ring.h: compile with -D_GNU_SOURCE, for memfd seals and MSG_CMSG_CLOEXEC"
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* The version of the layout that this header reads. */
#define DROPLESS_RING_VERSION 1u

/* A packet where it lies. */
struct dropless_packet {
    const uint8_t *data;  /* valid until the next call that takes the ring */
    uint32_t captured;    /* bytes of it at `data` */
    uint32_t length;      /* its bytes before it was cut */
    uint32_t interface;   /* which of the capture's interfaces, from 0 */
    uint64_t time_ns;     /* when, ns since the epoch of Unix */
};

/* A ring that was joined. Only `error` is for others to read. */
struct dropless_ring {
    char error[256]; /* why the last call failed; stays empty as long as none has */
    int socket;
    bool is_lossless;
    bool is_damaged;
    uint8_t *memory; /* mapped to be read */
    uint64_t memory_len;
    uint8_t *page; /* this consumer's own, mapped to be written */
    uint32_t segments, segment_len, preamble_len;
    uint64_t number; /* the segment that is read */
    uint32_t done;   /* packets of it that were taken, or are in the batch */
    uint64_t next;   /* the number of the packet after the batch, among all of the ring */
    /* The batch: packets that were committed and are not handed out yet. */
    const uint8_t *blocks;
    uint32_t blocks_len;
    const uint8_t *entries; /* the last one first */
    uint32_t left;
    /* Of a lossy consumer: what was copied out of the segment. */
    uint8_t *copied, *copied_entries;
};

enum {
    DROPLESS_ENTRY = 8,
    DROPLESS_PACKET_HEAD = 28,
    DROPLESS_PAGE = 4096,
    DROPLESS_NAME = 64,
    /* fields of the header */
    DROPLESS_BEGUN = 64,
    DROPLESS_ENDED = 128,
    DROPLESS_SLOTS = 4096,
    /* fields of a slot */
    DROPLESS_SLOT_NUMBER = 0,
    DROPLESS_SLOT_COMMITTED = 8,
    DROPLESS_SLOT_CLOSED = 16,
    DROPLESS_SLOT_FIRST = 24,
    DROPLESS_SLOT_LEN = 64,
    /* fields of the consumer's page */
    DROPLESS_RELEASED = 64,
    DROPLESS_TAKEN = 72,
    DROPLESS_LOST = 80,
    DROPLESS_FIRST = 88
};

static inline int dropless_fail(struct dropless_ring *ring, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline int dropless_fail(struct dropless_ring *ring, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ring->error, sizeof ring->error, format, arguments);
    va_end(arguments);
    return -1;
}

static inline int dropless_damaged(struct dropless_ring *ring, const char *what)
{
    ring->is_damaged = true;
    dropless_fail(ring, "the ring is damaged: %s", what);
    return -1;
}

/* The number at `at`, a multiple of 8, of memory that others may write at any time. */
static inline uint64_t dropless_load(const uint8_t *memory, uint64_t at, memory_order order)
{
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)(memory + at), order);
}

static inline void dropless_store(uint8_t *memory, uint64_t at, uint64_t value, memory_order order)
{
    atomic_store_explicit((_Atomic uint64_t *)(void *)(memory + at), value, order);
}

static inline uint32_t dropless_word(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t dropless_preamble_at(const struct dropless_ring *ring)
{
    uint64_t end = DROPLESS_SLOTS + (uint64_t)ring->segments * DROPLESS_SLOT_LEN;
    return (end + DROPLESS_PAGE - 1) / DROPLESS_PAGE * DROPLESS_PAGE;
}

static inline uint64_t dropless_segment_at(const struct dropless_ring *ring, uint64_t number)
{
    return dropless_preamble_at(ring) + ring->preamble_len + number % ring->segments * ring->segment_len;
}

static inline uint64_t dropless_field(const struct dropless_ring *ring, uint64_t number, uint64_t field)
{
    uint64_t slot = DROPLESS_SLOTS + number % ring->segments * DROPLESS_SLOT_LEN;
    return dropless_load(ring->memory, slot + field, memory_order_acquire);
}

/* Leaves the ring: whatever was kept for this consumer is kept no longer. */
static inline void dropless_leave(struct dropless_ring *ring)
{
    if (ring->memory)
        munmap(ring->memory, ring->memory_len);
    if (ring->page)
        munmap(ring->page, DROPLESS_PAGE);
    if (ring->socket >= 0)
        close(ring->socket);
    free(ring->copied);
    free(ring->copied_entries);
    ring->memory = ring->page = ring->copied = ring->copied_entries = NULL;
    ring->left = 0;
    ring->socket = -1;
}

/* Maps a file that cannot shrink under us; says its length. */
static inline uint8_t *dropless_map(int file, int protection, uint64_t wanted, uint64_t *len)
{
    struct stat about;
    int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(file, &about) != 0 || about.st_size < DROPLESS_PAGE)
        return NULL;
    *len = wanted ? wanted : (uint64_t)about.st_size;
    void *memory = mmap(NULL, *len, protection, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Maps the ring and the consumer's page; both files stay the caller's. */
static inline int dropless_open(struct dropless_ring *ring, int memory, int page)
{
    uint64_t page_len;
    *ring = (struct dropless_ring){.socket = -1};
    ring->memory = dropless_map(memory, PROT_READ, 0, &ring->memory_len);
    ring->page = dropless_map(page, PROT_READ | PROT_WRITE, DROPLESS_PAGE, &page_len);
    if (!ring->memory || !ring->page)
        return dropless_fail(ring, "this is no ring of dropless: its memory is too short, not sealed, or cannot be mapped");
    if (memcmp(ring->memory, "DRPLRING", 8) != 0 || memcmp(ring->page, "DRPLCONS", 8) != 0)
        return dropless_fail(ring, "this is no ring of dropless: it does not begin as one");
    uint32_t version = dropless_word(ring->memory + 8);
    if (version != DROPLESS_RING_VERSION)
        return dropless_fail(ring, "the ring has version %u, this program reads version %u: build it with the dropless_ring.h of the dropless that captures", version, DROPLESS_RING_VERSION);
    ring->segments = dropless_word(ring->memory + 12);
    ring->segment_len = dropless_word(ring->memory + 16);
    ring->preamble_len = dropless_word(ring->memory + 20);
    bool is_sound = ring->segments >= 2 && ring->segments <= 1u << 20 && ring->segment_len >= 1u << 17 &&
                    ring->segment_len <= 1u << 28 && ring->segment_len % DROPLESS_PAGE == 0 &&
                    ring->preamble_len <= 1u << 28 && ring->preamble_len % DROPLESS_PAGE == 0;
    if (!is_sound || dropless_segment_at(ring, ring->segments - 1) + ring->segment_len > ring->memory_len)
        return dropless_fail(ring, "this is no ring of dropless: %u segments of %u bytes are not there", ring->segments, ring->segment_len);
    ring->is_lossless = dropless_word(ring->page + 12) == 1;
    ring->number = dropless_load(ring->page, DROPLESS_RELEASED, memory_order_acquire);
    ring->next = dropless_load(ring->page, DROPLESS_FIRST, memory_order_acquire);
    if (!ring->is_lossless) {
        ring->copied = calloc(1, ring->segment_len);
        ring->copied_entries = calloc(1, ring->segment_len);
        if (!ring->copied || !ring->copied_entries)
            return dropless_fail(ring, "no memory for a copy of a segment of %u bytes", ring->segment_len);
    }
    return 0;
}

/* Where the door of a ring is: a name alone is one of this machine's. */
static inline int dropless_door(struct sockaddr_un *door, const char *name)
{
    const char *format = strchr(name, '/') ? "%s" : "/run/dropless/%s.ring";
    int len = snprintf(door->sun_path, sizeof door->sun_path, format, name);
    door->sun_family = AF_UNIX;
    return len > 0 && (size_t)len < sizeof door->sun_path ? 0 : -1;
}

/* Receives the answer to a joiner, and the two files that come with it (-1 where none came). */
static inline ssize_t dropless_answer(int socket, uint8_t answer[16], int files[2])
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec bytes = {.iov_base = answer, .iov_len = 16};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t len;
    /* A wait with an end is interrupted also by being stopped and continued (signal(7)). */
    do
        len = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return len;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t size = head->cmsg_len - CMSG_LEN(0);
        memcpy(files, CMSG_DATA(head), size < 2 * sizeof(int) ? size : 2 * sizeof(int));
    }
    return len;
}

/* The sentence with which the producer refused. */
static inline int dropless_refused(struct dropless_ring *ring)
{
    char why[200] = "";
    size_t at = 0;
    for (ssize_t len; at < sizeof why - 1; at += (size_t)len) {
        len = read(ring->socket, why + at, sizeof why - 1 - at);
        if (len < 0 && errno == EINTR)
            len = 0;
        else if (len <= 0)
            break;
    }
    /* It may be any process's: no control character gets to a terminal. */
    for (char *each = why; *each; each++)
        if ((unsigned char)*each < 0x20 || *each == 0x7f)
            *each = '?';
    return dropless_fail(ring, "the ring refused: %s", at ? why : "no reason was given");
}

/* Why there was no answer, where `errno` says so: 0 is an end. */
static inline int dropless_no_answer(struct dropless_ring *ring, int why)
{
    if (why == EAGAIN || why == EWOULDBLOCK)
        return dropless_fail(ring, "whoever listens there gives no answer; is that capture stopped?");
    if (why == 0 || why == EPIPE || why == ECONNRESET)
        return dropless_fail(ring, "whoever listens there hung up without an answer; did that capture end?");
    return dropless_fail(ring, "asking for a seat in the ring: %s", strerror(why));
}

/* Asks for a seat; `files` become those of the ring and of the consumer's page. */
static inline int dropless_ask(struct dropless_ring *ring, const char *who, bool is_lossless, int files[2])
{
    uint8_t message[16 + DROPLESS_NAME] = "DRPLJOIN", answer[16];
    uint32_t words[2] = {DROPLESS_RING_VERSION, is_lossless};
    memcpy(message + 8, words, sizeof words);
    memcpy(message + 16, who, strnlen(who, DROPLESS_NAME));
    if (send(ring->socket, message, sizeof message, MSG_NOSIGNAL) != (ssize_t)sizeof message)
        return dropless_no_answer(ring, errno);
    ssize_t len = dropless_answer(ring->socket, answer, files);
    if (len < 0)
        return dropless_no_answer(ring, errno);
    if (len < (ssize_t)sizeof answer)
        return dropless_no_answer(ring, 0);
    if (memcmp(answer, "DRPLSEAT", 8) != 0)
        return dropless_fail(ring, "whoever listens there is no dropless");
    if (dropless_word(answer + 12) != 0 || files[0] < 0 || files[1] < 0)
        return dropless_refused(ring);
    return 0;
}

/* Joins the ring NAME, or the one whose door is at a path (with a slash), as `who`. A lossless consumer is waited for:
 * what it has not taken is not overwritten, and the capture counts what did not fit; a lossy one loses instead, and
 * counts that. 0, or -1 and ring->error; the ring is then left. */
static inline int dropless_join(struct dropless_ring *ring, const char *name, const char *who, bool is_lossless)
{
    struct sockaddr_un door = {0};
    struct timeval patience = {.tv_sec = 5};
    int files[2] = {-1, -1}, result = -1;
    *ring = (struct dropless_ring){0};
    ring->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (ring->socket < 0)
        return dropless_fail(ring, "a socket: %s", strerror(errno));
    int socket = ring->socket;
    if (dropless_door(&door, name) != 0)
        dropless_fail(ring, "%.100s...: the name is too long for a socket, whose path may have %zu bytes", name,
                      sizeof door.sun_path - 1);
    else if (connect(socket, (struct sockaddr *)&door, sizeof door) != 0)
        dropless_fail(ring,
                      errno == EACCES ? "the ring at %s is another user's (%s); have its capture let your group in "
                                        "with --ring-group"
                                      : "no ring at %s: %s; is a capture with --ring running?",
                      door.sun_path, strerror(errno));
    else if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        dropless_fail(ring, "a socket: %s", strerror(errno));
    else if (dropless_ask(ring, who, is_lossless, files) == 0) {
        result = dropless_open(ring, files[0], files[1]);
        ring->socket = socket;
    }
    for (int at = 0; at < 2; at++)
        if (files[at] >= 0)
            close(files[at]);
    if (result != 0)
        dropless_leave(ring);
    return result;
}

static inline void dropless_go_to(struct dropless_ring *ring, uint64_t number)
{
    ring->number = number;
    ring->done = 0;
    dropless_store(ring->page, DROPLESS_RELEASED, number, memory_order_release);
}

/* Adds to a count of the page, which nobody else writes. */
static inline void dropless_add(struct dropless_ring *ring, uint64_t at, uint64_t count)
{
    uint64_t before = dropless_load(ring->page, at, memory_order_relaxed);
    dropless_store(ring->page, at, before + count, memory_order_relaxed);
}

/* Goes to a segment that will not be overwritten at once; what lies between is lost. */
static inline int dropless_skip(struct dropless_ring *ring, uint64_t begun)
{
    /* After the end all that is there stays. */
    bool is_over = dropless_load(ring->memory, DROPLESS_ENDED, memory_order_acquire) == 1;
    uint64_t margin = is_over ? ring->segments : ring->segments / 2;
    uint64_t number = begun > margin ? begun - margin : 0;
    if (number <= ring->number)
        number = ring->number + 1;
    for (; number < begun; number++) {
        uint64_t first = dropless_field(ring, number, DROPLESS_SLOT_FIRST);
        atomic_thread_fence(memory_order_acquire);
        if (dropless_field(ring, number, DROPLESS_SLOT_NUMBER) != number + 1)
            continue;
        dropless_add(ring, DROPLESS_LOST, first > ring->next ? first - ring->next : 0);
        ring->next = first;
        dropless_go_to(ring, number);
        return 0;
    }
    /* The newest one is always there, unless it is the newest no more. */
    if (dropless_load(ring->memory, DROPLESS_BEGUN, memory_order_acquire) > begun)
        return 0;
    return dropless_damaged(ring, "its newest segment is not there");
}

static inline void dropless_copy(const struct dropless_ring *ring, uint64_t at, uint8_t *to, uint64_t len)
{
    for (uint64_t word, from = 0; from < len; from += sizeof word) {
        word = dropless_load(ring->memory, at + from, memory_order_relaxed);
        memcpy(to + from, &word, len - from < sizeof word ? len - from : sizeof word);
    }
}

/* Copies what is new of a segment; 1, 0 if it was overwritten meanwhile, or -1. */
static inline int dropless_copy_new(struct dropless_ring *ring, uint32_t packets, uint32_t bytes)
{
    uint64_t segment = dropless_segment_at(ring, ring->number);
    uint32_t count = packets - ring->done, from = 0;
    uint64_t entries = segment + ring->segment_len - 4 - (uint64_t)packets * DROPLESS_ENTRY;
    /* Words are read whole: the entries end 4 bytes before a word does. */
    uint64_t begin = entries - entries % 8;
    dropless_copy(ring, begin, ring->copied_entries, (entries - begin) + (uint64_t)count * DROPLESS_ENTRY);
    ring->entries = ring->copied_entries + (entries - begin);
    if (ring->done > 0) {
        uint32_t at = dropless_word(ring->entries + (uint64_t)(count - 1) * DROPLESS_ENTRY);
        from = at > DROPLESS_PACKET_HEAD ? at - DROPLESS_PACKET_HEAD : 0;
        if (from > bytes)
            from = bytes; /* that packet is found to lie outside when it is taken */
        from -= from % 8;
    }
    dropless_copy(ring, segment + from, ring->copied + from, bytes - from);
    atomic_thread_fence(memory_order_acquire);
    ring->blocks = ring->copied;
    return dropless_field(ring, ring->number, DROPLESS_SLOT_NUMBER) == ring->number + 1;
}

/* Has what is new as the batch; 1, 0 if nothing is, or -1. */
static inline int dropless_look(struct dropless_ring *ring)
{
    for (;;) {
        uint64_t begun = dropless_load(ring->memory, DROPLESS_BEGUN, memory_order_acquire);
        if (ring->number >= begun)
            return 0;
        /* What is committed is read after: it is complete if the segment is closed by then. */
        bool is_closed = dropless_field(ring, ring->number, DROPLESS_SLOT_CLOSED) > 0;
        uint64_t committed = dropless_field(ring, ring->number, DROPLESS_SLOT_COMMITTED);
        atomic_thread_fence(memory_order_acquire);
        if (dropless_field(ring, ring->number, DROPLESS_SLOT_NUMBER) != ring->number + 1) {
            if (ring->is_lossless)
                return dropless_damaged(ring, "a segment was overwritten that was not released");
            if (dropless_skip(ring, begun) != 0)
                return -1;
            continue;
        }
        uint32_t packets = (uint32_t)(committed >> 32), bytes = (uint32_t)committed;
        if ((uint64_t)packets * DROPLESS_ENTRY + bytes + 4 > ring->segment_len)
            return dropless_damaged(ring, "a segment has more than it can hold");
        if (packets < ring->done)
            return dropless_damaged(ring, "a segment has fewer packets than before");
        if (packets == ring->done) {
            if (!is_closed)
                return 0;
            dropless_go_to(ring, ring->number + 1);
            continue;
        }
        if (ring->is_lossless) {
            uint64_t segment = dropless_segment_at(ring, ring->number);
            ring->blocks = ring->memory + segment;
            ring->entries = ring->blocks + ring->segment_len - 4 - (uint64_t)packets * DROPLESS_ENTRY;
        } else {
            int copied = dropless_copy_new(ring, packets, bytes);
            if (copied == 0)
                continue;
        }
        ring->blocks_len = bytes;
        ring->left = packets - ring->done;
        ring->next += ring->left;
        ring->done = packets;
        return 1;
    }
}

/* The next packet: 1 and the packet, 0 if there is none now, or -1 and ring->error. A lossless consumer gives back
 * with this call what it got with those before. */
static inline int dropless_next(struct dropless_ring *ring, struct dropless_packet *packet)
{
    if (ring->is_damaged)
        return -1;
    if (ring->left == 0) {
        int there = dropless_look(ring);
        if (there <= 0)
            return there;
    }
    const uint8_t *entry = ring->entries + (uint64_t)(ring->left - 1) * DROPLESS_ENTRY;
    uint64_t at = dropless_word(entry), len = dropless_word(entry + 4);
    if (at < DROPLESS_PACKET_HEAD || at + len > ring->blocks_len)
        return dropless_damaged(ring, "a packet lies outside of its segment");
    const uint8_t *head = ring->blocks + at - DROPLESS_PACKET_HEAD;
    packet->data = ring->blocks + at;
    packet->captured = (uint32_t)len;
    packet->interface = dropless_word(head + 8);
    packet->time_ns = (uint64_t)dropless_word(head + 12) << 32 | dropless_word(head + 16);
    packet->length = dropless_word(head + 24);
    ring->left--;
    dropless_add(ring, DROPLESS_TAKEN, 1);
    return 1;
}

/* Packets taken, and such as were overwritten before they could be. */
static inline void dropless_counts(const struct dropless_ring *ring, uint64_t *taken, uint64_t *lost)
{
    *taken = dropless_load(ring->page, DROPLESS_TAKEN, memory_order_relaxed);
    *lost = dropless_load(ring->page, DROPLESS_LOST, memory_order_relaxed);
}

/* Whether the producer's process is gone. */
static inline bool dropless_is_alone(const struct dropless_ring *ring)
{
    uint8_t byte;
    if (ring->socket < 0)
        return false;
    ssize_t len = recv(ring->socket, &byte, 1, MSG_DONTWAIT);
    return len >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Whether the producer's process is gone, and never ended its ring: it was killed. What it committed is still there. */
static inline bool dropless_has_died(const struct dropless_ring *ring)
{
    /* One that ended did so before it went. */
    return dropless_is_alone(ring) && dropless_load(ring->memory, DROPLESS_ENDED, memory_order_acquire) != 1;
}

/* Whether the producer has ended, or its process is gone: what dropless_next has not given by then, once it says 0,
 * never comes. Ask before you take, so that nothing comes between. */
static inline bool dropless_is_ended(const struct dropless_ring *ring)
{
    return dropless_load(ring->memory, DROPLESS_ENDED, memory_order_acquire) == 1 || dropless_is_alone(ring);
}

#endif
