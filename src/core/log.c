/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log. One line is built in a local buffer and leaves in one write, so
 * lines of several threads never mix. State is behind one mutex.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "core/buf.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define LINE_MAX_BYTES 8192
#define SLICE_MAX      128 /* bytes shown of a slice */
#define EVENTS_MAX     64  /* event names whose rate is watched at a time */

/* Rate of one event name. */
struct rate {
	char name[48];
	int64_t second;   /* wall second of the count */
	unsigned count;   /* lines in that second */
	uint64_t dropped; /* lines not written since the last one that was */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int min_level = LOG_LEVEL_INFO; /* relaxed */
static enum log_format log_format = LOG_FORMAT_LOGFMT;
static int log_fd = STDERR_FILENO;
static char *log_path; /* NULL: stderr */
static struct rate rates[EVENTS_MAX];

static const char *const level_names[] = {"debug", "info", "warn", "error"};

bool
log_enabled(enum log_level level)
{
	return (int)level >=
	    atomic_load_explicit(&min_level, memory_order_relaxed);
}

/* Cut lines are better than lost ones: a full line takes no more. */
static void
put(struct buf *line, const char *data, size_t len)
{
	size_t room = line->max - buf_len(line);

	if (buf_append(line, data, len < room ? len : room) != 0)
		return;
}

static void
put_str(struct buf *line, const char *s)
{
	put(line, s, strlen(s));
}

/* A quoted string; both formats take JSON's escapes, bytes as \u00XX. */
static void
put_quoted(struct buf *line, const uint8_t *data, size_t len, bool utf8)
{
	char escaped[8];
	size_t i;

	put(line, "\"", 1);
	for (i = 0; i < len; i++) {
		uint8_t c = data[i];

		if (c == '"' || c == '\\') {
			put(line, "\\", 1);
			put(line, (const char *)&c, 1);
		} else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8)) {
			snprintf(escaped, sizeof(escaped), "\\u%04x", c);
			put_str(line, escaped);
		} else {
			put(line, (const char *)&c, 1);
		}
	}
	put(line, "\"", 1);
}

/* logfmt needs quotes only where a reader would split the value. */
static bool
is_bare(const char *s)
{
	const char *p;

	if (*s == '\0')
		return false;
	for (p = s; *p != '\0'; p++)
		if ((uint8_t)*p <= ' ' || (uint8_t)*p >= 0x7f || *p == '"' ||
		    *p == '=' || *p == '\\')
			return false;
	return true;
}

static void
put_value(struct buf *line, const struct log_field *f)
{
	char number[32];
	const char *s;

	switch (f->type) {
	case LOG_TYPE_STR:
		s = f->value.str != NULL ? f->value.str : "";
		if (log_format == LOG_FORMAT_LOGFMT && is_bare(s))
			put_str(line, s);
		else
			put_quoted(line, (const uint8_t *)s, strlen(s), true);
		break;
	case LOG_TYPE_SLICE:
		put_quoted(line, f->value.slice.data,
		    f->value.slice.len < SLICE_MAX ? f->value.slice.len
						   : SLICE_MAX,
		    false);
		break;
	case LOG_TYPE_INT:
		snprintf(number, sizeof(number), "%" PRId64, f->value.integer);
		put_str(line, number);
		break;
	case LOG_TYPE_DOUBLE:
		snprintf(number, sizeof(number), "%.6g", f->value.real);
		put_str(line, number);
		break;
	case LOG_TYPE_END:
		break;
	}
}

static void
put_field(struct buf *line, const struct log_field *f)
{
	if (log_format == LOG_FORMAT_JSON) {
		put_str(line, ",\"");
		put_str(line, f->key);
		put_str(line, "\":");
	} else {
		put(line, " ", 1);
		put_str(line, f->key);
		put(line, "=", 1);
	}
	put_value(line, f);
}

/*
 * Counts a line of the event; false when it is one too many this second.
 * *dropped: lines not written before this one.
 */
static bool
within_rate(const char *event, int64_t second, uint64_t *dropped)
{
	struct rate *r = NULL, *oldest = &rates[0];
	size_t i;

	for (i = 0; i < EVENTS_MAX; i++) {
		if (strcmp(rates[i].name, event) == 0) {
			r = &rates[i];
			break;
		}
		if (rates[i].second < oldest->second)
			oldest = &rates[i];
	}
	if (r == NULL) {
		r = oldest;
		*r = (struct rate){.second = second};
		snprintf(r->name, sizeof(r->name), "%s", event);
	}
	if (r->second != second) {
		r->second = second;
		r->count = 0;
	}
	if (r->count >= LOG_BURST) {
		r->dropped++;
		return false;
	}
	r->count++;
	*dropped = r->dropped;
	r->dropped = 0;
	return true;
}

static void
put_prefix(
    struct buf *line, enum log_level level, const char *event, int64_t now_us)
{
	char text[64];
	struct tm tm;
	time_t seconds = (time_t)(now_us / 1000000);
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(
	    text + n, sizeof(text) - n, ".%03dZ", (int)(now_us / 1000 % 1000));
	if (log_format == LOG_FORMAT_JSON) {
		put_str(line, "{\"time\":\"");
		put_str(line, text);
		put_str(line, "\",\"level\":\"");
		put_str(line, level_names[level]);
		put_str(line, "\",\"event\":\"");
		put_str(line, event);
		put(line, "\"", 1);
		return;
	}
	put_str(line, "time=");
	put_str(line, text);
	put_str(line, " level=");
	put_str(line, level_names[level]);
	put_str(line, " event=");
	put_str(line, event);
}

void
log_write(
    enum log_level level, const char *event, const struct log_field *fields)
{
	int64_t now_us = clock_wall_us();
	uint64_t dropped = 0;
	struct buf line;

	if (!log_enabled(level))
		return;
	buf_init(&line, LINE_MAX_BYTES);
	pthread_mutex_lock(&mutex);
	if (!within_rate(event, now_us / 1000000, &dropped) &&
	    level < LOG_LEVEL_ERROR)
		goto out;
	put_prefix(&line, level, event, now_us);
	for (; fields->type != LOG_TYPE_END; fields++)
		put_field(&line, fields);
	if (dropped != 0)
		put_field(&line, &LOG_INT("dropped", dropped));
	/* The end of a line that was cut is put over its last bytes. */
	if (buf_len(&line) > LINE_MAX_BYTES - 4)
		line.end -= 4;
	if (log_format == LOG_FORMAT_JSON)
		put(&line, "}", 1);
	put(&line, "\n", 1);
	while (write(log_fd, buf_head(&line), buf_len(&line)) < 0 &&
	    errno == EINTR)
		;
out:
	pthread_mutex_unlock(&mutex);
	buf_fini(&line);
}

static int
open_file(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

static void
use_fd(int fd)
{
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	log_fd = fd;
}

int
log_setup(enum log_level level, enum log_format format, const char *file)
{
	int fd = STDERR_FILENO;

	if (file != NULL && *file != '\0') {
		fd = open_file(file);
		if (fd < 0)
			return -1;
	} else {
		file = NULL;
	}
	pthread_mutex_lock(&mutex);
	use_fd(fd);
	free(log_path);
	log_path = file != NULL ? mem_strdup(file) : NULL;
	log_format = format;
	atomic_store_explicit(&min_level, (int)level, memory_order_relaxed);
	pthread_mutex_unlock(&mutex);
	return 0;
}

int
log_reopen(void)
{
	int result = 0;

	pthread_mutex_lock(&mutex);
	if (log_path != NULL) {
		int fd = open_file(log_path);

		if (fd >= 0)
			use_fd(fd);
		else
			result = -1;
	}
	pthread_mutex_unlock(&mutex);
	return result;
}

static void
on_event_log(int severity, const char *text)
{
	enum log_level level = LOG_LEVEL_DEBUG;

	if (severity == EVENT_LOG_WARN)
		level = LOG_LEVEL_WARN;
	else if (severity == EVENT_LOG_ERR)
		level = LOG_LEVEL_ERROR;
	if (log_enabled(level))
		log_at(level, "libevent", LOG_STR("text", text));
}

static void
on_event_fatal(int code)
{
	log_error("libevent_fatal", LOG_INT("code", code));
	abort();
}

void
log_capture_libevent(void)
{
	event_set_log_callback(on_event_log);
	event_set_fatal_callback(on_event_fatal);
}
