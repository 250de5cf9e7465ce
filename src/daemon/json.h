/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON: commas and escapes are kept right here, the caller says what
 * comes. Bytes that are not UTF-8 become U+FFFD, so that readers never choke on
 * an error text that some program printed. One owner, one thread.
 */
#ifndef DAEMON_JSON_H
#define DAEMON_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

#define JSON_DEPTH_MAX 16

struct json {
	struct buf out;
	unsigned depth;
	bool filled[JSON_DEPTH_MAX]; /* a value stands at this depth already */
};

void json_init(struct json *j);
/* The text, NUL-terminated; returned, freed with free(). Ends j. */
char *json_finish(struct json *j);

/* key: NULL inside an array (or at the top). */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_str(struct json *j, const char *key, const char *value);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
/* Not finite: null. */
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
