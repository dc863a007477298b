/* DPDK's log in a bounded buffer, so that an error can show DPDK's own words and the terminal stays the user's. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

#include "shim.h"

#define CAPACITY 65536

static char buffer[CAPACITY];
/* Bytes ever written; the newest CAPACITY of them are kept. */
static size_t written;
static int echoed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void dl_log_append(const char *text, size_t length)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < length; i++)
		buffer[written++ % CAPACITY] = text[i];
	pthread_mutex_unlock(&lock);
}

static ssize_t log_write(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	dl_log_append(text, length);
	if (echoed && write(STDERR_FILENO, text, length) < 0) {
		/* A closed terminal must not stop the run; the buffer has the text. */
	}
	return (ssize_t)length;
}

int dl_log_capture(int echo)
{
	static FILE *stream;

	echoed = echo;
	if (stream == NULL) {
		cookie_io_functions_t functions = { .write = log_write };
		stream = fopencookie(NULL, "w", functions);
		if (stream == NULL)
			return -ENOMEM;
		setvbuf(stream, NULL, _IOLBF, 0);
	}
	return rte_openlog_stream(stream);
}

size_t dl_log_read(char *room, size_t size)
{
	pthread_mutex_lock(&lock);
	size_t count = written < CAPACITY ? written : CAPACITY;
	if (count > size)
		count = size;
	for (size_t i = 0; i < count; i++)
		room[i] = buffer[(written - count + i) % CAPACITY];
	pthread_mutex_unlock(&lock);
	return count;
}
