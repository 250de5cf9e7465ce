/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A build's commands and scripts: see calls.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/mem.h"
#include "rebuild/calls.h"
#include "redis/script.h"

#define CALLS_TIMEOUT_MS 5000
#define CALLS_RETRY_MS   10000 /* how long one call is made again */
#define CALLS_ARGS_MAX   96

/* Arguments of one call; texts made for it live in the arena. */
struct args {
	struct slice v[CALLS_ARGS_MAX];
	size_t n;
	char arena[64 * NAME_MAX_BYTES + 1024];
	size_t used;
};

static void
push(struct args *a, struct slice s)
{
	check(a->n < CALLS_ARGS_MAX);
	a->v[a->n++] = s;
}

static void
push_str(struct args *a, const char *s)
{
	push(a, slice_str(s));
}

static char *
room(struct args *a, size_t size)
{
	char *p = a->arena + a->used;

	check(a->used + size <= sizeof(a->arena));
	a->used += size;
	return p;
}

static void
push_number(struct args *a, uint64_t v)
{
	char *p = room(a, 24);

	snprintf(p, 24, "%" PRIu64, v);
	push_str(a, p);
}

static void
push_shard(struct args *a, const struct build *b, const char *generation,
    uint32_t shard)
{
	char *p = room(a, NAME_MAX_BYTES);
	size_t n = name_shard(
	    p, NAME_MAX_BYTES, b->filter->redis_key, generation, shard);

	push(a, slice_of(p, n));
}

static struct args *
args_new(const struct build *b)
{
	struct args *a = mem_alloc(sizeof(*a));

	a->n = 0;
	a->used = 0;
	push_str(a, b->meta_key);
	return a;
}

static void
push_lease(struct args *a, const struct build *b)
{
	push_number(a, b->options->settings->lease_ms);
}

/* How much longer a call may be tried, in ms; 0 no more. */
static uint64_t
time_left(const struct build *b, uint64_t until_ms)
{
	uint64_t now = clock_boot_ms();

	if (b->retry_until_ms != 0 && b->retry_until_ms < until_ms)
		until_ms = b->retry_until_ms;
	return now < until_ms ? until_ms - now : 0;
}

static int
same_run(struct build *b)
{
	const char *run_id = link_run_id(b->link);

	if (b->run_id[0] == '\0')
		snprintf(b->run_id, sizeof(b->run_id), "%s", run_id);
	if (strcmp(b->run_id, run_id) == 0)
		return 0;
	return build_fail(b, "Redis restarted or failed over during the build");
}

static int
ready_until(struct build *b, uint64_t until_ms)
{
	struct slice ping = slice_str("PING");

	while (!link_is_up(b->link)) {
		uint64_t left = time_left(b, until_ms);

		if (build_cancelled(b))
			return build_fail(b, "cancelled");
		if (left == 0)
			return build_fail(b, "Redis cannot be reached");
		link_reply_free(link_call(b->link, left, &ping, 1, b->cancel));
	}
	return same_run(b);
}

int
calls_ready(struct build *b)
{
	return ready_until(b, clock_boot_ms() + CALLS_RETRY_MS);
}

/* Script s, or a plain command where s is SCRIPT_COUNT. */
static struct redisReply *
call(struct build *b, enum script s, size_t nkeys, const struct slice *argv,
    size_t argc, uint64_t *round_trip_ns)
{
	uint64_t until_ms = clock_boot_ms() + CALLS_RETRY_MS;

	for (;;) {
		struct redisReply *r;
		uint64_t left, began;

		if (ready_until(b, until_ms) != 0)
			return NULL;
		left = time_left(b, until_ms);
		if (left > CALLS_TIMEOUT_MS)
			left = CALLS_TIMEOUT_MS;
		if (left == 0) {
			build_fail(b, "Redis does not answer");
			return NULL;
		}
		began = clock_boot_ns();
		if (s == SCRIPT_COUNT)
			r = link_call(b->link, left, argv, argc, b->cancel);
		else
			r = script_call(
			    b->link, s, left, nkeys, argv, argc, b->cancel);
		*round_trip_ns = clock_boot_ns() - began;
		if (r != NULL)
			return r;
		if (build_cancelled(b)) {
			build_fail(b, "cancelled");
			return NULL;
		}
	}
}

struct redisReply *
calls_command(struct build *b, const struct slice *argv, size_t argc)
{
	uint64_t ignored;

	return call(b, SCRIPT_COUNT, 0, argv, argc, &ignored);
}

static struct slice
word_of(const struct redisReply *r)
{
	if (link_reply_type(r) == LINK_ARRAY)
		return link_reply_text(link_reply_at(r, 1));
	return link_reply_text(r);
}

static bool
is_done(const struct redisReply *r)
{
	return link_reply_type(r) == LINK_ARRAY && link_reply_count(r) > 0 &&
	    link_reply_integer(link_reply_at(r, 0)) == 1;
}

/* Runs s with a (freed); NULL where there is no answer or, if strict, another
 * one than "done". */
static struct redisReply *
run(struct build *b, enum script s, size_t nkeys, struct args *a, bool strict,
    uint64_t *round_trip_ns)
{
	struct redisReply *r = call(b, s, nkeys, a->v, a->n, round_trip_ns);
	struct slice why;

	free(a);
	if (r == NULL)
		return NULL;
	metric_observe(b->options->metrics, METRIC_SCRIPT_DURATION,
	    metric_script_index(script_name(s)), *round_trip_ns, 1);
	if (is_done(r) || (!strict && link_reply_type(r) == LINK_ARRAY))
		return r;
	why = word_of(r);
	build_fail(b, "%s: %.*s", script_name(s), (int)why.len,
	    (const char *)why.data);
	link_reply_free(r);
	return NULL;
}

static int
run_done(struct build *b, enum script s, size_t nkeys, struct args *a)
{
	uint64_t ignored;
	struct redisReply *r = run(b, s, nkeys, a, true, &ignored);

	if (r == NULL)
		return -1;
	link_reply_free(r);
	return 0;
}

static void
copy_text(char *out, size_t size, struct slice s)
{
	snprintf(out, size, "%.*s", (int)s.len, (const char *)s.data);
}

int
calls_meta(struct build *b, struct meta *m)
{
	struct slice argv[] = {slice_str("HGETALL"), slice_str(b->meta_key)};
	struct redisReply *r = calls_command(b, argv, 2);
	struct slice *fields;
	struct err err;
	size_t n;
	int rc;

	if (r == NULL)
		return -1;
	if (link_reply_type(r) != LINK_ARRAY) {
		struct slice why = link_reply_text(r);

		build_fail(b, "the meta cannot be read: %.*s", (int)why.len,
		    (const char *)why.data);
		link_reply_free(r);
		return -1;
	}
	n = link_reply_count(r);
	fields = mem_zalloc(n + 1, sizeof(*fields));
	for (size_t i = 0; i < n; i++)
		fields[i] = link_reply_text(link_reply_at(r, i));
	rc = meta_parse(m, fields, n, &err);
	free(fields);
	link_reply_free(r);
	if (rc != 0)
		return build_fail(
		    b, "the meta cannot be understood: %s", err.text);
	return 0;
}

enum calls_begun
calls_begin(struct build *b, const char *base, const char *fingerprints,
    char name[GENERATION_NAME_MAX])
{
	const struct geometry *g = &b->geometry;
	struct args *a = args_new(b);
	enum calls_begun rc = CALLS_FAILED;
	struct redisReply *r;
	uint64_t ignored;
	char rate[32];

	push_str(a, b->channel);
	push_str(a, b->token);
	push_lease(a, b);
	push_str(a, b->run_id);
	push_str(a, base);
	push_number(a, g->shards);
	push_number(a, g->bits);
	push_number(a, g->hashes);
	push_str(a, scheme_name(g->scheme));
	push_str(a, g->single ? "1" : "0");
	push_str(a, fingerprints);
	push(a, slice_of(b->tag, TAG_BYTES));
	push_number(a, b->capacity);
	snprintf(rate, sizeof(rate), "%.17g", b->settings->error_rate);
	push_str(a, rate);
	r = run(b, SCRIPT_BEGIN, 1, a, false, &ignored);
	if (r == NULL)
		return CALLS_FAILED;
	if (is_done(r)) {
		copy_text(name, GENERATION_NAME_MAX, word_of(r));
		b->created = link_reply_integer(link_reply_at(r, 2)) == 1;
		b->renewed_ns = clock_boot_ns();
		rc = CALLS_BEGUN;
	} else if (slice_is(word_of(r), "locked")) {
		rc = CALLS_LOCKED;
	} else if (slice_is(word_of(r), "stale")) {
		copy_text(name, GENERATION_NAME_MAX,
		    link_reply_text(link_reply_at(r, 2)));
		rc = CALLS_STALE;
	} else if (slice_is(word_of(r), "full")) {
		rc = CALLS_FULL;
	} else {
		struct slice why = word_of(r);

		build_fail(
		    b, "begin: %.*s", (int)why.len, (const char *)why.data);
	}
	link_reply_free(r);
	return rc;
}

int
calls_make(struct build *b, uint32_t shard)
{
	struct args *a = args_new(b);
	struct redisReply *r;
	uint64_t round_trip;

	push_shard(a, b, b->name, shard);
	push_str(a, b->token);
	push_lease(a, b);
	push_str(a, b->name);
	push_number(a, geometry_shard_bytes(&b->geometry));
	r = run(b, SCRIPT_MAKE, 2, a, true, &round_trip);
	if (r == NULL)
		return -1;
	link_reply_free(r);
	b->renewed_ns = clock_boot_ns();
	return build_sleep(b, pace_after(&b->pace, round_trip));
}

int
calls_open(struct build *b)
{
	struct args *a = args_new(b);
	struct redisReply *r;
	uint64_t ignored;

	push_str(a, b->channel);
	push_str(a, b->token);
	push_lease(a, b);
	push_str(a, b->name);
	r = run(b, SCRIPT_OPEN, 1, a, true, &ignored);
	if (r == NULL)
		return -1;
	copy_text(b->epoch, sizeof(b->epoch), word_of(r));
	link_reply_free(r);
	b->renewed_ns = clock_boot_ns();
	return 0;
}

int
calls_renew(struct build *b)
{
	char epoch[EPOCH_TEXT_MAX];

	/* The epoch that peers are to acknowledge is that of the first open. */
	memcpy(epoch, b->epoch, sizeof(epoch));
	if (calls_open(b) != 0)
		return -1;
	memcpy(b->epoch, epoch, sizeof(epoch));
	return 0;
}

int
calls_merge(struct build *b, uint32_t shard, uint64_t offset, size_t len,
    uint64_t *set_out, uint64_t *round_trip_ns)
{
	struct args *a = args_new(b);
	struct redisReply *r;

	push_shard(a, b, b->name, shard);
	push_str(a, b->t0_key);
	push_str(a, b->t1_key);
	push_str(a, b->token);
	push_lease(a, b);
	push_str(a, b->name);
	push_number(a, shard);
	push_number(a, offset);
	push(a, slice_of(bits_shard(&b->bits, shard) + offset, len));
	push_number(a, geometry_shard_bytes(&b->geometry));
	r = run(b, SCRIPT_MERGE, 4, a, true, round_trip_ns);
	if (r == NULL)
		return -1;
	*set_out = (uint64_t)link_reply_integer(link_reply_at(r, 1));
	link_reply_free(r);
	b->renewed_ns = clock_boot_ns();
	return 0;
}

int
calls_seal(struct build *b, uint32_t first, uint32_t count)
{
	struct args *a = args_new(b);

	for (uint32_t i = 0; i < count; i++)
		push_shard(a, b, b->name, first + i);
	push_str(a, b->token);
	push_lease(a, b);
	push_str(a, b->name);
	push(a, slice_of(b->tag, TAG_BYTES));
	push_number(a, geometry_tag_offset(&b->geometry));
	push_number(a, first);
	push_str(a, b->run_id);
	push_number(a, b->elements);
	push_number(a, b->bits_set);
	push_str(a, b->carried ? "1" : "0");
	b->renewed_ns = clock_boot_ns();
	return run_done(b, SCRIPT_SEAL, 1 + count, a);
}

int
calls_commit(struct build *b)
{
	struct args *a = args_new(b);

	push_str(a, b->channel);
	push_str(a, b->token);
	push_str(a, b->name);
	push_str(a, b->run_id);
	push_number(a, b->settings->rebuild.keep);
	return run_done(b, SCRIPT_COMMIT, 1, a);
}

int
calls_retire(struct build *b, const char *name, const char *token,
    uint32_t first, uint32_t count, uint32_t shards, bool *gone)
{
	struct args *a = args_new(b);
	struct redisReply *r;
	uint64_t round_trip;

	for (uint32_t i = 0; i < count; i++)
		push_shard(a, b, name, first + i);
	push_str(a, b->channel);
	push_str(a, token);
	push_str(a, name);
	push_number(a, first);
	push_number(a, shards);
	r = run(b, SCRIPT_RETIRE, 1 + count, a, true, &round_trip);
	if (r == NULL)
		return -1;
	*gone = link_reply_integer(link_reply_at(r, 2)) == 1;
	link_reply_free(r);
	return build_sleep(b, pace_after(&b->pace, round_trip));
}

int
calls_release(struct build *b)
{
	struct args *a = args_new(b);

	push_str(a, b->token);
	return run_done(b, SCRIPT_RELEASE, 1, a);
}

int
calls_read(struct build *b, const char *generation, uint32_t shard,
    uint64_t offset, size_t len, struct redisReply **reply, struct slice *out,
    uint64_t *round_trip_ns)
{
	char key[NAME_MAX_BYTES], from[24], to[24];
	size_t n = name_shard(
	    key, sizeof(key), b->filter->redis_key, generation, shard);
	struct slice argv[] = {
	    slice_str("GETRANGE"), slice_of(key, n), {0}, {0}};
	struct redisReply *r;

	snprintf(from, sizeof(from), "%" PRIu64, offset);
	snprintf(to, sizeof(to), "%" PRIu64, offset + len - 1);
	argv[2] = slice_str(from);
	argv[3] = slice_str(to);
	r = call(b, SCRIPT_COUNT, 0, argv, 4, round_trip_ns);
	if (r == NULL)
		return -1;
	if (link_reply_type(r) != LINK_STRING ||
	    link_reply_text(r).len != len) {
		link_reply_free(r);
		return build_fail(b, "shard %s cannot be read whole", key);
	}
	*reply = r;
	*out = link_reply_text(r);
	return 0;
}
