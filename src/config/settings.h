/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole configuration as one immutable object. It is made by
 * settings_load, shared by every thread by reference, and never changed after.
 * What each option means, its default and its range: options.c, one row each.
 */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/log.h"

enum address_kind {
	ADDRESS_NONE, /* not given */
	ADDRESS_TCP,
	ADDRESS_UNIX,
};

struct address {
	enum address_kind kind;
	char *text;    /* as written, for logs */
	char *host;    /* TCP: name or numeric, without brackets */
	uint16_t port; /* TCP: 0 picks a free one (listeners only) */
	char *path;    /* Unix */
};

struct string_list {
	char **items; /* each NUL-terminated */
	size_t count;
};

struct bytes {
	uint8_t *data;
	size_t len;
};

enum setting_scheme {
	SETTING_GUAVA,
	SETTING_GUAVA_SEEDED,
	SETTING_GUAVA_HASHCODE,
	SETTING_REDISSON,
	SETTING_POLY,
	SETTING_KEYED,
};
enum setting_layout {
	SETTING_SHARDED,
	SETTING_SINGLE
};
enum setting_mode {
	SETTING_ENFORCE,
	SETTING_OBSERVE,
	SETTING_OFF
};
enum setting_check {
	SETTING_MIRROR,
	SETTING_REMOTE
};
enum setting_absent {
	SETTING_ABSENT_NIL,
	SETTING_ABSENT_VALUE,
	SETTING_ABSENT_ERROR
};
enum setting_after_restart {
	SETTING_REBUILD,
	SETTING_REPLAY
};
enum setting_permission {
	SETTING_PERMISSION_CHECK,
	SETTING_PERMISSION_TRUST
};
enum source_kind {
	SOURCE_NONE,
	SOURCE_COMMAND,
	SOURCE_FILE,
	SOURCE_SET
};
enum schedule_kind {
	SCHEDULE_NEVER,
	SCHEDULE_MONTHLY,
	SCHEDULE_WEEKLY,
	SCHEDULE_DAILY,
	SCHEDULE_EVERY,
};

struct schedule {
	enum schedule_kind kind;
	int weekday; /* weekly: 0 Sunday to 6 */
	int hour;
	int minute;
	uint64_t every_ms; /* every */
};

/* One Redis that bloomgate itself connects to. */
struct endpoint {
	struct address address; /* store: kind ADDRESS_NONE is "the upstream" */
	char *username;         /* "" without */
	char *password_file;    /* "" without; a secret a line */
};

struct filter_rebuild_settings {
	bool here;
	enum source_kind source;
	struct string_list command; /* source command: argv */
	char *file;                 /* source file */
	bool trust;                 /* source file */
	char *set;                  /* source set: the key */
	uint64_t timeout_ms;
	struct schedule schedule;
	bool grow;
	uint64_t min_elements;
	double max_shrink;
	double redis_share;
	uint64_t chunk_bytes;
	unsigned keep; /* 0 or 1 */
};

struct filter_settings {
	char *name;
	struct string_list keys; /* patterns */
	char *element;           /* template; default: the placeholder alone */
	unsigned db;
	char *redis_key; /* holds one hash tag */
	char *suffix;    /* strftime */
	enum setting_layout layout;
	uint64_t capacity;
	double error_rate;
	enum setting_scheme scheme;
	char *key_file; /* "" without */
	enum setting_mode mode;
	enum setting_check check;
	enum setting_absent absent;
	struct bytes absent_text;  /* the value or the error text */
	struct bytes *null_values; /* null_value_count of them */
	size_t null_value_count;
	bool learn;
	uint64_t max_staleness_ms;
	double verify_sample;
	enum setting_after_restart after_restart;
	uint64_t replay_window_ms;
	bool has_feed;
	char *feed_stream, *feed_group, *feed_field;
	struct filter_rebuild_settings rebuild;
};

struct settings {
	_Atomic unsigned references; /* partner: settings_ref/unref */
	char *path;                  /* the file it was read from */
	struct address *listen;
	size_t listen_count;
	unsigned workers;
	uint64_t max_clients;
	char *timezone;
	struct endpoint upstream;
	uint64_t connect_timeout_ms;
	uint64_t response_timeout_ms; /* 0: none */
	bool sharing;
	unsigned lanes;
	struct endpoint store;
	uint64_t limit_bulk_bytes;
	uint64_t limit_request_bytes;
	uint64_t limit_pipeline;
	uint64_t limit_client_output_bytes;
	uint64_t limit_memory_bytes;
	uint64_t tcp_keepalive_ms;
	uint64_t client_idle_timeout_ms;
	bool protected;
	enum setting_permission permission;
	uint64_t permission_ttl_ms;
	uint64_t lease_ms;
	uint64_t drain_timeout_ms;
	struct address stats_listen; /* ADDRESS_NONE: nowhere */
	struct address admin_listen; /* ADDRESS_NONE: nowhere */
	enum log_level log_level;
	enum log_format log_format;
	char *log_file; /* "" is stderr */
	struct filter_settings *filters;
	size_t filter_count;
};

/* What settings_load found wrong or worth saying, in the order of the file. */
struct settings_issue {
	bool fatal;      /* false: a remark that -t prints */
	unsigned line;   /* from 1; 0: of the file as a whole */
	unsigned column; /* from 1 */
	char *text;
};
struct settings_report {
	struct settings_issue *items;
	size_t count;
};

/*
 * Reads and checks path. Returned with one reference, freed by
 * settings_unref; NULL when the report holds a fatal issue. The report is
 * filled either way and freed with settings_report_fini. Not for hot paths.
 */
struct settings *settings_load(
    const char *path, struct settings_report *report);
void settings_report_fini(struct settings_report *report);

struct settings *settings_ref(struct settings *s);
void settings_unref(struct settings *s);

/*
 * The effective configuration as YAML that settings_load takes, with every
 * option. Returned; freed with free().
 */
char *settings_dump(const struct settings *s);

/*
 * Which options that a reload cannot apply differ between the two, as
 * "listen, filter user: db"; NULL when there are none. Filters are compared by
 * name. Returned; freed with free().
 */
char *settings_restart(
    const struct settings *running, const struct settings *next);

/* The Redis that holds the filters: store, or the upstream when it is empty. */
const struct endpoint *settings_store(const struct settings *s);

/*
 * Parses "host:port", "[v6]:port" or "unix:/path". 0, or -1 with the reason.
 * *out is owned by the caller: address_fini.
 */
int address_parse(struct address *out, const char *text, struct err *err)
    __attribute__((warn_unused_result));
void address_fini(struct address *a);

/*
 * The secrets of a password file, one a line, in order; an empty path gives
 * none. The caller wipes and frees them with secrets_fini. 0, or -1 with why.
 */
struct secrets {
	char **items;
	size_t count;
};
int secrets_load(struct secrets *out, const char *path, struct err *err)
    __attribute__((warn_unused_result));
void secrets_fini(struct secrets *s);

#endif
