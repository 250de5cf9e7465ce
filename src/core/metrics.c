/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values behind the list of metrics.h, and their text. A family is a row of
 * cells (its first label's values times its second's); a cell is one atomic: a
 * counter's or gauge's integer, or a double's bits where metric_set was used.
 * A histogram's cell is a run of buckets, then the sum in ns.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/buf.h"
#include "core/check.h"
#include "core/mem.h"
#include "core/metrics.h"

/* Bucket bounds of every histogram, ns: 50 us to 1 s, then +Inf. */
static const uint64_t bounds_ns[] = {50000, 100000, 250000, 500000, 1000000,
    2500000, 5000000, 10000000, 25000000, 100000000, 1000000000};
#define BOUNDS   (sizeof(bounds_ns) / sizeof(bounds_ns[0]))
#define HIST_LEN (BOUNDS + 2) /* buckets with +Inf, sum */

#define LABEL_LIST(...)                                                        \
	(const char *const[]){__VA_ARGS__},                                    \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

struct dim {
	const char *label;
	const char *const *values; /* NULL for DIM_FILTER: the names */
	size_t count;
};

static const char *const commands[] = {"get", "mget", "exists", "set", "setex",
    "mset", "del", "unlink", "expire", "ttl", "incr", "hget", "hset", "hgetall",
    "hmget", "lpush", "rpush", "lrange", "lpop", "rpop", "sadd", "smembers",
    "sismember", "zadd", "zrange", "zscore", "xadd", "xread", "xreadgroup",
    "publish", "subscribe", "multi", "exec", "eval", "evalsha", "ping", "hello",
    "auth", "select", "client", "info", "scan", "bf.add", "bf.madd",
    "bf.exists", "bf.mexists", "bf.insert", "bf.info", "bf.card", "bf.reserve",
    "other"};
static const char *const scripts[] = {"add", "begin", "make", "open", "merge",
    "seal", "commit", "retire", "rollback", "heartbeat", "release", "distrust",
    "other"};
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const struct dim dims[] = {
    [DIM_NONE] = {NULL, NULL, 1},
    [DIM_FILTER] = {"filter", NULL, 0},
    [DIM_COMMAND] = {"command", commands, COUNT_OF(commands)},
    [DIM_SOURCE] = {"source", LABEL_LIST("filter", "upstream", "local")},
    [DIM_RESULT] = {"result", LABEL_LIST("absent", "maybe", "bypass", "error")},
    [DIM_ADD] = {"source", LABEL_LIST("command", "learn", "admin", "rebuild")},
    [DIM_REBUILD] = {"result",
	LABEL_LIST("ok", "refused", "failed", "aborted")},
    [DIM_REJECT] = {"reason", LABEL_LIST("max_clients", "memory", "protected")},
    [DIM_ERROR] = {"code",
	LABEL_LIST("READONLY", "LOADING", "BUSY", "OOM", "NOAUTH", "MOVED",
	    "timeout", "eof", "other")},
    [DIM_STATE] = {"state", LABEL_LIST("plain", "forward_only", "opaque")},
    [DIM_SCRIPT] = {"script", scripts, COUNT_OF(scripts)},
    [DIM_DIRECTION] = {"direction", LABEL_LIST("in", "out")},
    [DIM_BYPASS] = {"reason",
	LABEL_LIST("state", "mode", "not_ready", "store")},
};

struct family {
	const char *name;
	const char *help;
	enum metric_type type;
	enum metric_dim a, b;
};

static const struct family families[] = {
#define METRIC_ROW(id, name, type, d1, d2, help)                               \
	[METRIC_##id] = {                                                      \
	    "bloomgate_" name, help, METRIC_##type, DIM_##d1, DIM_##d2},
    METRICS(METRIC_ROW)
#undef METRIC_ROW
};

struct metrics {
	char **names; /* filters */
	size_t name_count;
	char *version;
	/* Partner: any other call here. Relaxed: values order nothing. */
	_Atomic uint64_t *cells[METRIC_COUNT];
	_Atomic bool is_double[METRIC_COUNT]; /* set by metric_set */
};

static size_t
dim_count(const struct metrics *m, enum metric_dim d)
{
	return d == DIM_FILTER ? m->name_count : dims[d].count;
}

static size_t
cell_len(enum metric_id id)
{
	return families[id].type == METRIC_HISTOGRAM ? HIST_LEN : 1;
}

/* The first atomic of a cell; NULL where the family has no values (a label of
 * filters without a filter). */
static _Atomic uint64_t *
cell(const struct metrics *m, enum metric_id id, size_t a, size_t b)
{
	size_t na = dim_count(m, families[id].a);
	size_t nb = dim_count(m, families[id].b);

	if (na == 0 || nb == 0)
		return NULL;
	if (a >= na)
		a = na - 1;
	if (b >= nb)
		b = nb - 1;
	return m->cells[id] + (a * nb + b) * cell_len(id);
}

struct metrics *
metrics_new(const char *const *names, size_t count, const char *version)
{
	struct metrics *m = mem_zalloc(1, sizeof(*m));
	size_t i;

	m->names = mem_zalloc(count + 1, sizeof(*m->names));
	for (i = 0; i < count; i++)
		m->names[i] = mem_strdup(names[i]);
	m->name_count = count;
	m->version = mem_strdup(version);
	for (i = 0; i < METRIC_COUNT; i++) {
		size_t cells = dim_count(m, families[i].a) *
		    dim_count(m, families[i].b) * cell_len(i);

		m->cells[i] = mem_zalloc(cells + 1, sizeof(*m->cells[i]));
	}
	metric_add(m, METRIC_BUILD_INFO, 0, 0, 1);
	return m;
}

void
metrics_free(struct metrics *m)
{
	size_t i;

	if (m == NULL)
		return;
	for (i = 0; i < METRIC_COUNT; i++)
		free(m->cells[i]);
	for (i = 0; i < m->name_count; i++)
		free(m->names[i]);
	free(m->names);
	free(m->version);
	free(m);
}

void
metric_add(
    struct metrics *m, enum metric_id id, size_t a, size_t b, uint64_t delta)
{
	_Atomic uint64_t *c = cell(m, id, a, b);

	if (c != NULL)
		atomic_fetch_add_explicit(c, delta, memory_order_relaxed);
}

void
metric_sub(
    struct metrics *m, enum metric_id id, size_t a, size_t b, uint64_t delta)
{
	metric_add(m, id, a, b, 0 - delta);
}

static double
as_double(uint64_t raw)
{
	double v;

	memcpy(&v, &raw, sizeof(v));
	return v;
}

void
metric_set(
    struct metrics *m, enum metric_id id, size_t a, size_t b, double value)
{
	_Atomic uint64_t *c = cell(m, id, a, b);
	uint64_t raw;

	if (c == NULL)
		return;
	memcpy(&raw, &value, sizeof(raw));
	atomic_store_explicit(&m->is_double[id], true, memory_order_relaxed);
	atomic_store_explicit(c, raw, memory_order_relaxed);
}

/* A gauge's integer may have gone below zero for a moment: read as signed. */
static double
cell_value(
    const struct metrics *m, enum metric_id id, const _Atomic uint64_t *c)
{
	uint64_t raw = atomic_load_explicit(c, memory_order_relaxed);

	if (atomic_load_explicit(&m->is_double[id], memory_order_relaxed))
		return as_double(raw);
	return families[id].type == METRIC_GAUGE ? (double)(int64_t)raw
						 : (double)raw;
}

double
metric_get(const struct metrics *m, enum metric_id id, size_t a, size_t b)
{
	const _Atomic uint64_t *c = cell(m, id, a, b);

	return c != NULL ? cell_value(m, id, c) : 0;
}

void
metric_observe(struct metrics *m, enum metric_id id, size_t a,
    uint64_t duration_ns, uint64_t count)
{
	_Atomic uint64_t *c = cell(m, id, a, 0);
	size_t i = 0;

	check(families[id].type == METRIC_HISTOGRAM);
	if (c == NULL)
		return;
	while (i < BOUNDS && duration_ns > bounds_ns[i])
		i++;
	atomic_fetch_add_explicit(c + i, count, memory_order_relaxed);
	atomic_fetch_add_explicit(
	    c + BOUNDS + 1, duration_ns * count, memory_order_relaxed);
}

/* One request in the hot path is one look-up: names hash by length and by their
 * first and last letters, in either case. */
#define SLOTS 256
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;
static uint8_t slots[SLOTS]; /* index in commands + 1; 0: free */

static size_t
slot_of(const char *name, size_t len)
{
	unsigned first = (unsigned char)name[0] & 0x1fU;
	unsigned last = (unsigned char)name[len - 1] & 0x1fU;

	return (len * 37 + first * 11 + last * 5) % SLOTS;
}

static void
fill_slots(void)
{
	size_t i, at;

	for (i = 0; i + 1 < COUNT_OF(commands); i++) {
		at = slot_of(commands[i], strlen(commands[i]));
		while (slots[at] != 0)
			at = (at + 1) % SLOTS;
		slots[at] = (uint8_t)(i + 1);
	}
}

size_t
metric_command_index(const char *name, size_t len)
{
	size_t at, i;

	pthread_once(&slots_once, fill_slots);
	if (len == 0)
		return COUNT_OF(commands) - 1;
	for (at = slot_of(name, len); slots[at] != 0; at = (at + 1) % SLOTS) {
		i = slots[at] - 1U;
		if (strncasecmp(commands[i], name, len) == 0 &&
		    commands[i][len] == '\0')
			return i;
	}
	return COUNT_OF(commands) - 1;
}

size_t
metric_script_index(const char *stem)
{
	size_t i;

	for (i = 0; i + 1 < COUNT_OF(scripts); i++)
		if (strcmp(scripts[i], stem) == 0)
			break;
	return i;
}

/* The text has no cap that a configuration could reach, so appends succeed. */
static void
put(struct buf *out, const char *text)
{
	check(buf_append(out, text, strlen(text)) == 0);
}

static void
put_escaped(struct buf *out, const char *text, bool quotes)
{
	char c[3] = {'\\', 0, 0};

	for (; *text != '\0'; text++) {
		c[1] = *text == '\n' ? 'n' : *text;
		if (*text == '\\' || *text == '\n' || (quotes && *text == '"'))
			put(out, c);
		else
			put(out, c + 1);
	}
}

static void
put_number(struct buf *out, double v)
{
	if (isnan(v))
		put(out, "NaN");
	else if (isinf(v))
		put(out, v > 0 ? "+Inf" : "-Inf");
	else
		check(buf_printf(out, "%.17g", v) == 0);
}

static void
put_label(struct buf *out, const char *label, const char *value, bool *any)
{
	put(out, *any ? "," : "{");
	put(out, label);
	put(out, "=\"");
	put_escaped(out, value, true);
	put(out, "\"");
	*any = true;
}

static const char *
dim_value(const struct metrics *m, enum metric_dim d, size_t i)
{
	return d == DIM_FILTER ? m->names[i] : dims[d].values[i];
}

/* Name, suffix and labels of one sample; le is NULL but for buckets. */
static void
put_sample(struct buf *out, const struct metrics *m, enum metric_id id,
    size_t a, size_t b, const char *suffix, const char *le)
{
	const struct family *f = &families[id];
	bool any = false;

	put(out, f->name);
	put(out, suffix);
	if (id == METRIC_BUILD_INFO)
		put_label(out, "version", m->version, &any);
	if (f->a != DIM_NONE)
		put_label(out, dims[f->a].label, dim_value(m, f->a, a), &any);
	if (f->b != DIM_NONE)
		put_label(out, dims[f->b].label, dim_value(m, f->b, b), &any);
	if (le != NULL)
		put_label(out, "le", le, &any);
	put(out, any ? "} " : " ");
}

static void
put_histogram(struct buf *out, const struct metrics *m, enum metric_id id,
    size_t a, const _Atomic uint64_t *c)
{
	uint64_t total = 0;
	char le[32];
	size_t i;

	for (i = 0; i <= BOUNDS; i++) {
		total += atomic_load_explicit(c + i, memory_order_relaxed);
		if (i < BOUNDS)
			snprintf(
			    le, sizeof(le), "%g", (double)bounds_ns[i] / 1e9);
		put_sample(
		    out, m, id, a, 0, "_bucket", i < BOUNDS ? le : "+Inf");
		check(buf_printf(out, "%" PRIu64 "\n", total) == 0);
	}
	put_sample(out, m, id, a, 0, "_sum", NULL);
	put_number(out,
	    (double)atomic_load_explicit(c + BOUNDS + 1, memory_order_relaxed) /
		1e9);
	put(out, "\n");
	put_sample(out, m, id, a, 0, "_count", NULL);
	check(buf_printf(out, "%" PRIu64 "\n", total) == 0);
}

static void
put_family(struct buf *out, const struct metrics *m, enum metric_id id)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	const struct family *f = &families[id];
	size_t na = dim_count(m, f->a), nb = dim_count(m, f->b), a, b;

	if (na == 0 || nb == 0)
		return;
	put(out, "# HELP ");
	put(out, f->name);
	put(out, " ");
	put_escaped(out, f->help, false);
	check(
	    buf_printf(out, "\n# TYPE %s %s\n", f->name, types[f->type]) == 0);
	for (a = 0; a < na; a++) {
		for (b = 0; b < nb; b++) {
			const _Atomic uint64_t *c = cell(m, id, a, b);

			if (f->type == METRIC_HISTOGRAM) {
				put_histogram(out, m, id, a, c);
				continue;
			}
			/* Commands never seen would be most of the text. */
			if (f->a == DIM_COMMAND && cell_value(m, id, c) == 0)
				continue;
			put_sample(out, m, id, a, b, "", NULL);
			put_number(out, cell_value(m, id, c));
			put(out, "\n");
		}
	}
}

char *
metrics_text(const struct metrics *m, size_t *len_out)
{
	struct buf out;
	size_t i;

	buf_init(&out, SIZE_MAX / 4);
	for (i = 0; i < METRIC_COUNT; i++)
		put_family(&out, m, i);
	*len_out = buf_len(&out);
	check(buf_append(&out, "", 1) == 0);
	return (char *)out.data;
}
