/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of metrics: one row a family (name, type, labels, help), and the
 * values: relaxed atomics, which any thread may add to or set. A reader sees
 * each value whole but not all of one moment; nothing else is ordered by them.
 */
#ifndef CORE_METRICS_H
#define CORE_METRICS_H

#include <stddef.h>
#include <stdint.h>

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_HISTOGRAM,
};

/* A label with its fixed values; DIM_FILTER's are the configured names. */
enum metric_dim {
	DIM_NONE,
	DIM_FILTER,    /* filter: names from the configuration */
	DIM_COMMAND,   /* command: a fixed list, "other" last */
	DIM_SOURCE,    /* source: filter upstream local */
	DIM_RESULT,    /* result: absent maybe bypass error */
	DIM_ADD,       /* source: command learn admin rebuild */
	DIM_REBUILD,   /* result: ok refused failed aborted */
	DIM_REJECT,    /* reason: max_clients memory protected */
	DIM_ERROR,     /* code: of an upstream's error or loss */
	DIM_STATE,     /* state: plain forward_only opaque */
	DIM_SCRIPT,    /* script: a .lua file's stem */
	DIM_DIRECTION, /* direction: in out */
	DIM_BYPASS,    /* reason a covered read was not decided */
};

/*      id, name after bloomgate_, type, dim, dim, help */
#define METRICS(X)                                                             \
	X(BUILD_INFO, "build_info", GAUGE, NONE, NONE,                         \
	    "Always 1; the version is a label.")                               \
	X(UPSTREAM_UP, "upstream_up", GAUGE, NONE, NONE,                       \
	    "1 while the control connection to the upstream is usable.")       \
	X(CLIENT_CONNECTIONS, "client_connections", GAUGE, STATE, NONE,        \
	    "Open client sessions by what bloomgate may answer in them.")      \
	X(CLIENT_CONNECTIONS_TOTAL, "client_connections_total", COUNTER, NONE, \
	    NONE, "Client connections accepted.")                              \
	X(CLIENT_REJECTED_TOTAL, "client_connections_rejected_total", COUNTER, \
	    REJECT, NONE, "Client connections refused at once.")               \
	X(CLIENT_PROTOCOL_ERRORS_TOTAL, "client_protocol_errors_total",        \
	    COUNTER, NONE, NONE,                                               \
	    "Sessions closed for bytes that are not RESP.")                    \
	X(COMMANDS_TOTAL, "commands_total", COUNTER, COMMAND, SOURCE,          \
	    "Requests by command and by who answered.")                        \
	X(COMMAND_DURATION, "command_duration_seconds", HISTOGRAM, SOURCE,     \
	    NONE, "Time from a request's last byte to its reply.")             \
	X(UPSTREAM_IN_FLIGHT, "upstream_requests_in_flight", GAUGE, NONE,      \
	    NONE, "Requests forwarded and not yet answered.")                  \
	X(UPSTREAM_CONNECTS_TOTAL, "upstream_connects_total", COUNTER, NONE,   \
	    NONE, "Upstream connections opened for sessions.")                 \
	X(UPSTREAM_ERRORS_TOTAL, "upstream_errors_total", COUNTER, ERROR,      \
	    NONE, "Error replies and losses of upstream connections.")         \
	X(BUFFER_BYTES, "buffer_bytes", GAUGE, DIRECTION, NONE,                \
	    "Bytes held in session buffers: in from clients, out to them.")    \
	X(FILTER_LOOKUPS_TOTAL, "filter_lookups_total", COUNTER, FILTER,       \
	    RESULT, "Covered keys read, by verdict.")                          \
	X(FILTER_BYPASS_TOTAL, "filter_bypass_total", COUNTER, FILTER, BYPASS, \
	    "Covered keys read that were not decided, by reason.")             \
	X(FILTER_FALSE_POSITIVES_TOTAL, "filter_false_positives_total",        \
	    COUNTER, FILTER, NONE, "Verdict maybe, then nil from upstream.")   \
	X(FILTER_VERIFIED_FALSE_NEGATIVES_TOTAL,                               \
	    "filter_verified_false_negatives_total", COUNTER, FILTER, NONE,    \
	    "Verdict absent, yet upstream had a value.")                       \
	X(FILTER_ADDS_TOTAL, "filter_adds_total", COUNTER, FILTER, ADD,        \
	    "Elements added, by where they came from.")                        \
	X(FILTER_ADD_FAILURES_TOTAL, "filter_add_failures_total", COUNTER,     \
	    FILTER, NONE, "Adds that failed; their writes were not executed.") \
	X(FILTER_READY, "filter_ready", GAUGE, FILTER, NONE,                   \
	    "1 while the filter may say absent.")                              \
	X(FILTER_SUSPECT, "filter_suspect", GAUGE, FILTER, NONE,               \
	    "1 while Redis is another run than the filter was built on.")      \
	X(FILTER_SIZE_BYTES, "filter_size_bytes", GAUGE, FILTER, NONE,         \
	    "Bytes of the active generation's shards.")                        \
	X(FILTER_POSITIONS_SET, "filter_positions_set", GAUGE, FILTER, NONE,   \
	    "Bits set when the active generation was built.")                  \
	X(FILTER_FILL_RATIO, "filter_fill_ratio", GAUGE, FILTER, NONE,         \
	    "Share of bits set when the active generation was built.")         \
	X(FILTER_ELEMENTS, "filter_elements", GAUGE, FILTER, NONE,             \
	    "Elements of the source of the active generation.")                \
	X(FILTER_CAPACITY, "filter_capacity_items", GAUGE, FILTER, NONE,       \
	    "Elements the active generation was sized for.")                   \
	X(FILTER_TARGET_FPR, "filter_target_false_positive_ratio", GAUGE,      \
	    FILTER, NONE, "The configured error rate.")                        \
	X(FILTER_CARRIED, "filter_carried", GAUGE, FILTER, NONE,               \
	    "1 when bits of the generation before were carried over.")         \
	X(MIRROR_BYTES, "mirror_bytes", GAUGE, FILTER, NONE,                   \
	    "Bytes of the mirror's bits; 0 without one.")                      \
	X(MIRROR_STALENESS, "mirror_staleness_seconds", GAUGE, FILTER, NONE,   \
	    "Time since the mirror was last in step with Redis; NaN never.")   \
	X(FILTER_PEERS, "filter_peers", GAUGE, FILTER, NONE,                   \
	    "Live bloomgates that use the filter, this one included.")         \
	X(FILTER_REBUILDS_TOTAL, "filter_rebuilds_total", COUNTER, FILTER,     \
	    REBUILD, "Rebuilds by result.")                                    \
	X(FILTER_REBUILD_IN_PROGRESS, "filter_rebuild_in_progress", GAUGE,     \
	    FILTER, NONE, "1 while this bloomgate rebuilds the filter.")       \
	X(FILTER_REBUILD_PROGRESS, "filter_rebuild_progress_ratio", GAUGE,     \
	    FILTER, NONE, "Progress of the running rebuild, 0 to 1.")          \
	X(FILTER_REBUILD_RATE, "filter_rebuild_elements_per_second", GAUGE,    \
	    FILTER, NONE,                                                      \
	    "Source elements the running rebuild reads a second.")             \
	X(FILTER_REBUILD_SECONDS_LEFT, "filter_rebuild_remaining_seconds",     \
	    GAUGE, FILTER, NONE,                                               \
	    "Time left of the running rebuild; NaN unknown.")                  \
	X(FILTER_REBUILD_ELEMENTS_TOTAL, "filter_rebuild_elements_total",      \
	    COUNTER, FILTER, NONE, "Source elements read by rebuilds.")        \
	X(FILTER_REBUILD_DURATION, "filter_rebuild_duration_seconds", GAUGE,   \
	    FILTER, NONE, "How long the last finished rebuild took.")          \
	X(FILTER_LAST_SUCCESS, "filter_last_success_timestamp_seconds", GAUGE, \
	    FILTER, NONE, "When the last successful rebuild ended.")           \
	X(SCRIPT_DURATION, "script_duration_seconds", HISTOGRAM, SCRIPT, NONE, \
	    "Round trip of the filter scripts.")                               \
	X(CONFIG_RELOAD_SUCCESS, "config_last_reload_success", GAUGE, NONE,    \
	    NONE, "1 when the last load of the configuration succeeded.")      \
	X(CONFIG_RELOAD_TIME, "config_last_reload_timestamp_seconds", GAUGE,   \
	    NONE, NONE, "When the configuration was last loaded.")

enum metric_id {
#define METRIC_ENUM(id, name, type, d1, d2, help) METRIC_##id,
	METRICS(METRIC_ENUM)
#undef METRIC_ENUM
	METRIC_COUNT,
};

/* Values of the fixed labels, in the order of their texts in metrics.c. */
enum metric_source {
	SOURCE_FILTER,
	SOURCE_UPSTREAM,
	SOURCE_LOCAL
};
enum metric_result {
	RESULT_ABSENT,
	RESULT_MAYBE,
	RESULT_BYPASS,
	RESULT_ERROR,
};
enum metric_add {
	ADD_COMMAND,
	ADD_LEARN,
	ADD_ADMIN,
	ADD_REBUILD
};
enum metric_rebuild {
	REBUILD_OK,
	REBUILD_REFUSED,
	REBUILD_FAILED,
	REBUILD_ABORTED,
};
enum metric_reject {
	REJECT_MAX_CLIENTS,
	REJECT_MEMORY,
	REJECT_PROTECTED
};
enum metric_error {
	ERROR_READONLY,
	ERROR_LOADING,
	ERROR_BUSY,
	ERROR_OOM,
	ERROR_NOAUTH,
	ERROR_MOVED,
	ERROR_TIMEOUT,
	ERROR_EOF,
	ERROR_OTHER,
};
enum metric_state {
	STATE_PLAIN,
	STATE_FORWARD_ONLY,
	STATE_OPAQUE
};
enum metric_direction {
	DIRECTION_IN,
	DIRECTION_OUT
};
enum metric_bypass {
	BYPASS_STATE,     /* session state (MULTI, WATCH, ...) */
	BYPASS_MODE,      /* off, or observe */
	BYPASS_NOT_READY, /* no sealed generation, suspect, lost, no lease */
	BYPASS_STORE,     /* link down, or no answer in time */
};

struct metrics;

/*
 * names: the filters' names in configuration order, copied. version: for
 * build_info, copied. Returned; freed with metrics_free.
 */
struct metrics *metrics_new(
    const char *const *names, size_t count, const char *version);
void metrics_free(struct metrics *m);

/*
 * a and b index the values of the family's first and second label, 0 where it
 * has none; an index past the end counts as the last value ("other").
 */
void metric_add(
    struct metrics *m, enum metric_id id, size_t a, size_t b, uint64_t delta);
void metric_sub(struct metrics *m, enum metric_id id, size_t a, size_t b,
    uint64_t delta); /* gauges */
void metric_set(struct metrics *m, enum metric_id id, size_t a, size_t b,
    double value); /* gauges */
double metric_get(
    const struct metrics *m, enum metric_id id, size_t a, size_t b);
/* count observations of a histogram, alike. */
void metric_observe(struct metrics *m, enum metric_id id, size_t a,
    uint64_t duration_ns, uint64_t count);
/* Index of a command's name for DIM_COMMAND, any case; "other" if unlisted. */
size_t metric_command_index(const char *name, size_t len);
/* Index of a script's stem for DIM_SCRIPT. */
size_t metric_script_index(const char *stem);

/*
 * The whole exposition (Prometheus text 0.0.4), NUL-terminated. Returned; freed
 * with free(). *len_out: its bytes without the NUL.
 */
char *metrics_text(const struct metrics *m, size_t *len_out);

#endif
