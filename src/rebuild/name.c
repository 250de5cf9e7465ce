/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of a generation: its suffix (strftime) at the moment the build begins,
 * in the process's time zone (main has set TZ from the configuration). Pure but
 * for the time zone.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "rebuild/build.h"

/* Room for ".2", ".3", ... that begin appends where a name is taken. */
#define NAME_ROOM 8

int
name_of_time(char out[GENERATION_NAME_MAX], const char *suffix, int64_t wall_us,
    struct err *err)
{
	time_t t = (time_t)(wall_us / 1000000);
	struct tm tm;
	size_t n;

	if (localtime_r(&t, &tm) == NULL)
		return err_set(err, "the time cannot be told");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	n = strftime(out, GENERATION_NAME_MAX - NAME_ROOM, suffix, &tm);
#pragma GCC diagnostic pop
	if (n == 0)
		return err_set(err,
		    "suffix \"%s\" makes an empty or too long name", suffix);
	/* meta separates names by spaces, and fields and shards by : and / */
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)out[i] <= ' ' || out[i] == 0x7f ||
		    strchr(":/{}", out[i]) != NULL)
			return err_set(err,
			    "suffix \"%s\" makes the name \"%s\", in which "
			    "spaces and : / { } cannot be",
			    suffix, out);
	}
	return 0;
}
