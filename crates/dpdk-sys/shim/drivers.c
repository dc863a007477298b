/* Which drivers EAL loads from its directory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stddef.h>
#include <string.h>

#include "shim.h"

/* Those that EAL, started on this thread, is to see; NULL: all of them. */
static _Thread_local const char *const *seen;

void dl_only_drivers(const char *const *names)
{
	seen = names;
}

/* librte_net_tap.so, librte_net_tap.so.23, ... of "net_tap". */
static int is_of(const char *file, const char *name)
{
	size_t length = strlen(name);

	return strncmp(file, name, length) == 0 && strncmp(file + length, ".so", 3) == 0;
}

static int is_hidden(const char *file)
{
	static const char start[] = "librte_";
	const char *const *name;

	if (strncmp(file, start, sizeof(start) - 1) != 0)
		return 0;
	for (name = seen; *name != NULL; name++)
		if (is_of(file + sizeof(start) - 1, *name))
			return 0;
	return 1;
}

/* The C library's, by the name that no macro turns into the one below. */
struct dirent64 *whole_directory(DIR *directory) __asm__("readdir");
_Static_assert(sizeof(long) == 8, "readdir and readdir64 are the same");

/* EAL loads whatever lies in the directory of its drivers: Debian's has 128, each looked up, mapped and linked, for 60 to 100 ms of
 * every start. It finds this readdir64 before the C library's. What it makes of a file that it sees is its own affair as ever. */
struct dirent64 *readdir64(DIR *directory)
{
	struct dirent64 *entry;

	do {
		entry = whole_directory(directory);
	} while (entry != NULL && seen != NULL && is_hidden(entry->d_name));
	return entry;
}
