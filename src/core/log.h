/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: one line an event, key=value (logfmt) or JSON, to stderr or a file.
 * Event names are stable. At most LOG_BURST lines a second of one event name
 * below error leave; what was dropped is counted in the next one. Any thread.
 *
 *	log_info("listening", LOG_STR("address", a), LOG_INT("workers", n));
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/slice.h"

#define LOG_BURST 20

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR,
};

enum log_format {
	LOG_FORMAT_LOGFMT,
	LOG_FORMAT_JSON,
};

enum log_type {
	LOG_TYPE_END,
	LOG_TYPE_STR,
	LOG_TYPE_SLICE,
	LOG_TYPE_INT,
	LOG_TYPE_DOUBLE,
};

struct log_field {
	enum log_type type;
	const char *key; /* borrowed for the call, like the value */
	union {
		const char *str;    /* NULL prints as an empty string */
		struct slice slice; /* escaped, cut at 128 bytes */
		int64_t integer;
		double real;
	} value;
};

#define LOG_STR(k, v)                                                          \
	((struct log_field){.type = LOG_TYPE_STR, .key = (k), .value.str = (v)})
#define LOG_SLICE(k, v)                                                        \
	((struct log_field){                                                   \
	    .type = LOG_TYPE_SLICE, .key = (k), .value.slice = (v)})
#define LOG_INT(k, v)                                                          \
	((struct log_field){                                                   \
	    .type = LOG_TYPE_INT, .key = (k), .value.integer = (int64_t)(v)})
#define LOG_DOUBLE(k, v)                                                       \
	((struct log_field){                                                   \
	    .type = LOG_TYPE_DOUBLE, .key = (k), .value.real = (v)})

/* fields ends with a field of type LOG_TYPE_END. */
void log_write(
    enum log_level level, const char *event, const struct log_field *fields);

#define log_at(level, event, ...)                                              \
	log_write((level), (event),                                            \
	    (const struct log_field[]){__VA_ARGS__, {.type = LOG_TYPE_END}})
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                         \
	do {                                                                   \
		if (log_enabled(LOG_LEVEL_DEBUG))                              \
			log_at(LOG_LEVEL_DEBUG, __VA_ARGS__);                  \
	} while (0)

bool log_enabled(enum log_level level);

/*
 * Level, format and file ("" or NULL: stderr; borrowed for the call). Returns 0,
 * or -1 with errno where the file does not open: the log then stays as it was.
 */
int log_setup(enum log_level level, enum log_format format, const char *file)
    __attribute__((warn_unused_result));
/* Opens the file again (after rotation); on failure the old one stays. */
int log_reopen(void) __attribute__((warn_unused_result));
/* Sends libevent's warnings and fatal errors here. Call once, at start. */
void log_capture_libevent(void);

#endif
