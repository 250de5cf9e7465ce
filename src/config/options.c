/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table itself: one row an option. Order is the order of the dump, of the
 * sample file and of the manual. What a row cannot say (checks between options)
 * is in checks.c; how a type is read is in loader.c and value.c.
 */
#include "config.h"

#include "config/options.h"

#define DAYS  86400000.0 /* in milliseconds */
#define HOURS 3600000.0
#define KIB   1024.0
#define GIB   (KIB * KIB * KIB)

#define S(member) SCOPE_SETTINGS, offsetof(struct settings, member)
#define F(member) SCOPE_FILTER, offsetof(struct filter_settings, member)
#define R(member) SCOPE_FILTER, offsetof(struct filter_settings, rebuild.member)

#define ROW(p, ty, place, dflt, ...) ROW_(p, ty, place, dflt, __VA_ARGS__)
#define ROW_(p, ty, sc, off, dflt, ...)                                        \
	{                                                                      \
		.path = (p), .type = OPTION_##ty, .scope = (sc),               \
		.offset = (off), .fallback = (dflt), __VA_ARGS__               \
	}
#define SECTION(p, sc, ...)                                                    \
	{                                                                      \
		.path = (p), .type = OPTION_SECTION, .scope = (sc),            \
		.fallback = "", __VA_ARGS__                                    \
	}
#define RANGE(low, high) .min = (low), .max = (high)
#define HELP(text)       .help = text
#define FLAGS(f)         .flags = (f)
#define WORDS(list)      .words = list

/* clang-format off */
const struct option option_table[] = {
ROW("listen", ADDRESSES, S(listen), "127.0.0.1:6380",
    FLAGS(OPTION_RESTART | OPTION_LISTENS), HELP(
    "Where clients connect: host:port, [v6]:port or unix:/path, or a list of "
    "these. Port 0 picks a free one.")),
ROW("workers", UNSIGNED, S(workers), "1", RANGE(1, 256),
    FLAGS(OPTION_RESTART), HELP(
    "Event-loop threads for client traffic.")),
ROW("max-clients", WHOLE, S(max_clients), "10000", RANGE(1, 1000000), HELP(
    "Client connections at a time; one more is answered with an error.")),
ROW("timezone", STRING, S(timezone), "UTC", FLAGS(OPTION_FILLED), HELP(
    "The time zone of schedules and suffixes: UTC or a name of the system's "
    "zone database, such as Europe/Berlin.")),

SECTION("upstream", SCOPE_SETTINGS, HELP("The Redis behind.")),
ROW("upstream.address", ADDRESS, S(upstream.address), "127.0.0.1:6379",
    FLAGS(OPTION_FILLED | OPTION_RESTART), HELP(
    "The Redis that requests are forwarded to: host:port, [v6]:port or "
    "unix:/path.")),
ROW("upstream.username", STRING, S(upstream.username), "", HELP(
    "bloomgate's own user there, for its own connections; sessions log in "
    "themselves. Empty: the default user.")),
ROW("upstream.password-file", PATH, S(upstream.password_file), "", HELP(
    "A file with the secrets of that user, one a line, tried in order; read "
    "again at each reload. Empty: none.")),
ROW("upstream.connect-timeout", DURATION, S(connect_timeout_ms), "1s",
    RANGE(1, HOURS), HELP(
    "How long a connection may take to come about.")),
ROW("upstream.response-timeout", DURATION, S(response_timeout_ms), "0",
    RANGE(1, DAYS), FLAGS(OPTION_OR_ZERO), HELP(
    "How long Redis may take for an answer; 0 is for ever. Never applied to "
    "blocking commands, or to those that Redis does not list.")),
ROW("upstream.sharing", BOOL, S(sharing), "true",
    FLAGS(OPTION_LATER), .idle = "false", HELP(
    "Plain sessions share upstream connections.")),
ROW("upstream.lanes", UNSIGNED, S(lanes), "1", RANGE(1, 64),
    FLAGS(OPTION_LATER), .idle = "1", HELP(
    "Shared upstream connections per worker.")),

SECTION("store", SCOPE_SETTINGS, HELP(
    "Another Redis for the filters; empty: the upstream.")),
ROW("store.address", ADDRESS, S(store.address), "",
    FLAGS(OPTION_RESTART), HELP(
    "The Redis that holds the filters. Empty: the upstream.")),
ROW("store.username", STRING, S(store.username), "",
    FLAGS(OPTION_RESTART), HELP(
    "bloomgate's user there. Empty: the default user.")),
ROW("store.password-file", PATH, S(store.password_file), "",
    FLAGS(OPTION_RESTART), HELP(
    "A file with the secrets of that user, one a line. Empty: none.")),

SECTION("limits", SCOPE_SETTINGS, HELP("What bounds memory.")),
ROW("limits.bulk-bytes", SIZE, S(limit_bulk_bytes), "512MiB",
    RANGE(KIB, 64 * GIB), HELP(
    "The largest argument of a request, as Redis's proto-max-bulk-len.")),
ROW("limits.request-bytes", SIZE, S(limit_request_bytes), "1GiB",
    RANGE(KIB, 256 * GIB), HELP(
    "The largest request as a whole; not below bulk-bytes.")),
ROW("limits.pipeline", WHOLE, S(limit_pipeline), "10000", RANGE(1, 1000000),
    HELP(
    "Requests in flight per client: above it, reading from the client "
    "pauses.")),
ROW("limits.client-output-bytes", SIZE, S(limit_client_output_bytes), "64MiB",
    RANGE(64 * KIB, 64 * GIB), HELP(
    "Unsent replies per client: above 1 MiB reading from the upstream pauses, "
    "above this the client is closed.")),
ROW("limits.memory", SIZE, S(limit_memory_bytes), "1GiB",
    RANGE(KIB * KIB, 1024 * GIB), HELP(
    "All buffers together: above it, the largest offenders are closed "
    "first.")),

ROW("tcp-keepalive", DURATION, S(tcp_keepalive_ms), "300s",
    RANGE(1000, DAYS), FLAGS(OPTION_OR_ZERO), HELP(
    "Idle time after which TCP probes a silent peer, on both sides; 0 is "
    "never.")),
ROW("client-idle-timeout", DURATION, S(client_idle_timeout_ms), "0",
    RANGE(1000, 365 * DAYS), FLAGS(OPTION_OR_ZERO), HELP(
    "A client silent for this long is closed; 0 is never.")),
ROW("protected", BOOL, S(protected), "true", HELP(
    "Refuse to listen beyond loopback while Redis admits sessions without a "
    "password: its own protected mode sees only bloomgate.")),
ROW("permission", WORD, S(permission), "check", WORDS("check trust"), HELP(
    "check asks Redis what a session's user may read before anything is "
    "answered locally; trust lets every session read covered keys.")),
ROW("permission-ttl", DURATION, S(permission_ttl_ms), "60s",
    RANGE(100, DAYS), HELP(
    "How long such an answer of Redis is believed.")),
ROW("lease", DURATION, S(lease_ms), "15s", RANGE(1000, HOURS), HELP(
    "How long after its last heartbeat a bloomgate may still say that a key "
    "is absent.")),
ROW("drain-timeout", DURATION, S(drain_timeout_ms), "10s",
    RANGE(1, HOURS), FLAGS(OPTION_OR_ZERO), HELP(
    "At a stop: how long requests in flight may take to finish.")),

SECTION("stats", SCOPE_SETTINGS, HELP("The HTTP port for metrics.")),
ROW("stats.listen", ADDRESS, S(stats_listen), "127.0.0.1:9380",
    FLAGS(OPTION_RESTART | OPTION_LISTENS), HELP(
    "Where /metrics, /status.json, /healthz, /readyz and the page at / are "
    "served. Empty: nowhere.")),
SECTION("admin", SCOPE_SETTINGS, HELP("The operator's socket.")),
ROW("admin.listen", ADDRESS, S(admin_listen), "unix:/run/bloomgate/admin.sock",
    FLAGS(OPTION_RESTART | OPTION_LISTENS), HELP(
    "Where bloomgatectl connects. Whoever reaches it may operate bloomgate. "
    "Empty: nowhere.")),

SECTION("log", SCOPE_SETTINGS, HELP("The log.")),
ROW("log.level", WORD, S(log_level), "info",
    WORDS("debug info warn error"), HELP(
    "The least severe level that is written.")),
ROW("log.format", WORD, S(log_format), "logfmt", WORDS("logfmt json"), HELP(
    "One line an event: key=value pairs, or a JSON object.")),
ROW("log.file", PATH, S(log_file), "", HELP(
    "The file it goes to, opened again on SIGHUP and SIGUSR1. Empty: "
    "standard error.")),

{.path = "filters", .type = OPTION_FILTERS, .scope = SCOPE_SETTINGS,
    .fallback = "[]", HELP("A list with one entry a filter.")},

ROW("name", STRING, F(name), "", FLAGS(OPTION_REQUIRED | OPTION_FILLED), HELP(
    "The filter's name in commands, metrics and the log.")),
ROW("keys", STRINGS, F(keys), "", FLAGS(OPTION_REQUIRED | OPTION_FILLED), HELP(
    "Patterns of the keys it covers, each with one placeholder: user:{id}. "
    "The placeholder stops at the byte before it (user:{id} does not cover "
    "user:42:orders); {id*} lifts this. {{ and }} are literal braces.")),
ROW("element", STRING, F(element), "",
    FLAGS(OPTION_COMPUTED | OPTION_FILLED), HELP(
    "What is put into the filter: holds the placeholder once and may hold "
    "{filter}, the filter's name. Default: the placeholder alone.")),
ROW("db", UNSIGNED, F(db), "0", RANGE(0, 65535), FLAGS(OPTION_RESTART), HELP(
    "The database whose keys are covered; the filter's keys lie in the "
    "database of the same number.")),
ROW("redis-key", STRING, F(redis_key), "",
    FLAGS(OPTION_COMPUTED | OPTION_FILLED | OPTION_RESTART), HELP(
    "What the filter's own keys in Redis begin with: holds one hash tag. "
    "Default: bloom:{NAME}.")),
ROW("suffix", STRING, F(suffix), "%Y%m", FLAGS(OPTION_FILLED), HELP(
    "The name of a new generation, as for strftime, in the time zone: %Y%m "
    "gives bloom:{user}:202512.")),
ROW("layout", WORD, F(layout), "sharded", WORDS("sharded single"),
    FLAGS(OPTION_RESTART), HELP(
    "sharded keeps the bits in strings of at most 131,000 bytes, so Redis "
    "never stalls; single keeps one string of at most 2^32 - 64 bits, as "
    "other libraries do.")),
ROW("capacity", WHOLE, F(capacity), "", RANGE(1, 1e10),
    FLAGS(OPTION_REQUIRED), HELP(
    "How many elements the filter is sized for.")),
ROW("error-rate", REAL, F(error_rate), "0.01", RANGE(1e-9, 0.25), HELP(
    "The share of keys that do not exist and yet are forwarded, once the "
    "filter holds capacity elements.")),
ROW("scheme", WORD, F(scheme), "guava",
    WORDS("guava guava-seeded guava-hashcode redisson poly keyed"), HELP(
    "How an element's bits are chosen. keyed needs key-file and withstands "
    "attackers who choose the ids; poly needs layout single.")),
ROW("key-file", PATH, F(key_file), "", HELP(
    "For scheme keyed: a file with 32 secret bytes.")),
ROW("mode", WORD, F(mode), "enforce", WORDS("enforce observe off"), HELP(
    "enforce answers for keys that cannot exist; observe forwards everything "
    "and counts; off only learns.")),
ROW("check", WORD, F(check), "mirror", WORDS("mirror remote"), HELP(
    "Where verdicts come from: bloomgate's own copy of the bits, or Redis at "
    "each read.")),
ROW("absent-reply", ABSENT, F(absent), "nil", HELP(
    "What a read of an absent key answers: nil protects Redis only; {value: "
    "V} and {error: TEXT} also protect the database behind the "
    "application.")),
ROW("null-values", VALUES, F(null_values), "",
    FLAGS(OPTION_COMPUTED), HELP(
    "Only with absent-reply {value: V}: writes of these values do not add. "
    "Default: [V].")),
ROW("learn", BOOL, F(learn), "true", HELP(
    "A write to a covered key adds its element first.")),
ROW("max-staleness", DURATION, F(max_staleness_ms), "2s",
    RANGE(100, HOURS), HELP(
    "How far behind Redis the mirror may be and still say absent.")),
ROW("verify-sample", REAL, F(verify_sample), "0.001", RANGE(0, 1),
    FLAGS(OPTION_LATER), .idle = "0", HELP(
    "The share of absent verdicts that are checked against Redis.")),
ROW("after-restart", WORD, F(after_restart), "rebuild",
    WORDS("rebuild replay"), FLAGS(OPTION_LATER), .idle = "rebuild", HELP(
    "What makes a filter trusted again after Redis restarted or failed over: "
    "a rebuild, or the adds of the last replay-window sent again.")),
ROW("replay-window", DURATION, F(replay_window_ms), "60s",
    RANGE(1000, DAYS), HELP(
    "For after-restart replay: how far back adds are kept.")),

SECTION("feed", SCOPE_FILTER, HELP(
    "A Redis stream that brings new ids; none without stream.")),
ROW("feed.stream", STRING, F(feed_stream), "",
    FLAGS(OPTION_LATER), .idle = "\"\"", HELP(
    "The key of the stream. Empty: no feed.")),
ROW("feed.group", STRING, F(feed_group), "bloomgate", FLAGS(OPTION_FILLED),
    HELP("The consumer group.")),
ROW("feed.field", STRING, F(feed_field), "id", FLAGS(OPTION_FILLED), HELP(
    "The field of an entry that holds the id.")),

SECTION("rebuild", SCOPE_FILTER, HELP("How the filter is filled.")),
ROW("rebuild.here", BOOL, R(here), "true", HELP(
    "false: this bloomgate uses the filter and never builds it.")),
SECTION("rebuild.source", SCOPE_FILTER, HELP(
    "Where all ids come from: one of command, file and set. Without one "
    "everything is forwarded: sealing by hand comes later.")),
ROW("rebuild.source.command", STRINGS, R(command), "[]", HELP(
    "A program and its arguments, run without a shell, that prints one id a "
    "line.")),
ROW("rebuild.source.file", PATH, R(file), "", HELP(
    "A file with one id a line.")),
ROW("rebuild.source.trust", BOOL, R(trust), "false", HELP(
    "The file is complete even where it is older than the rebuild: ids "
    "that were added since and are not in it become absent.")),
ROW("rebuild.source.set", STRING, R(set), "",
    FLAGS(OPTION_LATER), .idle = "\"\"", HELP(
    "The key of a Redis set with all ids.")),
ROW("rebuild.timeout", DURATION, R(timeout_ms), "1h",
    RANGE(100, 30 * DAYS), HELP(
    "How long the source may take.")),
ROW("rebuild.schedule", SCHEDULE, R(schedule), "monthly 03:00",
    FLAGS(OPTION_LATER), .idle = "never", HELP(
    "When it is rebuilt, in the time zone: monthly HH:MM, weekly mon HH:MM, "
    "daily HH:MM, every 6h, or never.")),
ROW("rebuild.grow", BOOL, R(grow), "true", HELP(
    "Rebuild with twice the capacity when the count passes it. With scheme "
    "poly the default is false and true is an error.")),
ROW("rebuild.min-elements", WHOLE, R(min_elements), "1", RANGE(0, 1e10), HELP(
    "A rebuild that read fewer elements is refused.")),
ROW("rebuild.max-shrink", REAL, R(max_shrink), "0.5", RANGE(0, 1), HELP(
    "A rebuild with fewer than (1 - this) times the elements of the "
    "generation that serves is refused.")),
ROW("rebuild.redis-share", REAL, R(redis_share), "0.25", RANGE(0, 1),
    FLAGS(OPTION_ABOVE_MIN), HELP(
    "The part of Redis's time that rebuilds, mirror loads and bulk loads may "
    "use together; of the filters at work the smallest counts.")),
ROW("rebuild.chunk-bytes", SIZE, R(chunk_bytes), "32KiB",
    RANGE(KIB, 32 * KIB), HELP(
    "How many bytes of the filter one merge carries.")),
ROW("rebuild.keep", UNSIGNED, R(keep), "1", RANGE(0, 1), HELP(
    "1: the generation before stays for rollback; 0: it is removed.")),
};
/* clang-format on */

const size_t option_count = sizeof(option_table) / sizeof(option_table[0]);
