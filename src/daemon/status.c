/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads views, progress and metrics; decides nothing. Each value is read whole,
 * but not all of one moment.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "core/buf.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/mem.h"
#include "daemon/json.h"
#include "filter/progress.h"
#include "daemon/run.h"
#include "daemon/status.h"
#include "proxy/proxy.h"
#include "stats/stats.h"

/* The last rebuild's end, copied out from under the filter's mutex. */
struct last {
	char result[sizeof(((struct filter *)0)->last_result)];
	char error[sizeof(((struct filter *)0)->last_error)];
	int64_t ended_us;
};

static enum filter_mode
mode_of(const struct filter *f)
{
	return (enum filter_mode)atomic_load_explicit(
	    &f->mode, memory_order_relaxed);
}

/* NULL also for one that another version of this program made: its figures
 * mean nothing here. */
static const struct generation *
generation_at(const struct view *v, int at)
{
	if (v->state == FILTER_UNKNOWN || at < 0 ||
	    !v->meta.generations[at].usable)
		return NULL;
	return &v->meta.generations[at];
}

static bool
ready_now(const struct filter *f, const struct view *v)
{
	return filter_ready(f, v, filter_version(f), clock_boot_ns());
}

/* Share of bits set when the generation was built; 0 while not known. */
static double
fill_of(const struct generation *g)
{
	uint64_t bits = geometry_total_bits(&g->geometry);

	return bits > 0 ? (double)g->bits_set / (double)bits : 0;
}

/* The word of /readyz (INTERFACE.md). */
static const char *
readiness_word(const struct run *r, struct filter *f, const struct view *v)
{
	enum filter_mode mode = mode_of(f);

	if (mode == FILTER_OFF || mode == FILTER_OBSERVE)
		return filter_mode_name(mode);
	switch (v->state) {
	case FILTER_SERVING:
		return "serving";
	case FILTER_SUSPECT:
		return "suspect";
	case FILTER_LOST:
	case FILTER_FOREIGN:
		return "lost";
	case FILTER_MISSING:
		return r->settings->filters[f->index].rebuild.here ||
			v->meta.building >= 0
		    ? "building"
		    : "loading";
	case FILTER_UNKNOWN:
		break;
	}
	return "loading";
}

char *
status_readiness(const struct run *r, bool *ready)
{
	struct buf b;
	struct view *v;
	char *text;
	size_t i;

	/* Names are bounded by the configuration: 1 MiB a filter is ample. */
	buf_init(&b, (r->settings->filter_count + 1) << 20);
	for (i = 0; i < r->settings->filter_count; i++) {
		v = filter_view(r->filters[i]);
		check(buf_printf(&b, "%s %s\n", r->filters[i]->name,
			  readiness_word(r, r->filters[i], v)) == 0);
		view_unref(v);
	}
	if (r->draining)
		check(buf_append(&b, "draining\n", 9) == 0);
	check(buf_append(&b, "", 1) == 0);
	text = mem_dup(buf_head(&b), buf_len(&b));
	buf_fini(&b);
	*ready = r->listening && !r->draining;
	return text;
}

static void
write_generation(struct json *j, const char *key, const struct view *v, int at)
{
	const struct generation *g = generation_at(v, at);

	if (g == NULL) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_str(j, "name", g->name);
	json_str(j, "scheme", scheme_name(g->geometry.scheme));
	json_uint(j, "shards", g->geometry.shards);
	json_uint(j, "bits_per_shard", g->geometry.bits);
	json_uint(j, "bits", geometry_total_bits(&g->geometry));
	json_uint(j, "bytes", geometry_total_bytes(&g->geometry));
	json_uint(j, "hashes", g->geometry.hashes);
	json_uint(j, "capacity", g->capacity);
	json_real(j, "error_rate", g->error_rate);
	json_uint(j, "elements", g->elements);
	json_uint(j, "bits_set", g->bits_set);
	json_bool(j, "carried", g->carried);
	json_int(j, "began_us", g->began_us);
	json_int(j, "ended_us", g->ended_us);
	json_close(j, '}');
}

static void
write_counts(struct json *j, const struct run *r, size_t i)
{
	const struct metrics *m = r->metrics;
	static const char *const results[] = {
	    "absent", "maybe", "bypass", "error"};
	static const char *const adds[] = {
	    "command", "learn", "admin", "rebuild"};
	double absent, maybe, total = 0, fp, n;
	size_t k;

	json_open(j, "lookups", '{');
	for (k = 0; k < 4; k++) {
		n = metric_get(m, METRIC_FILTER_LOOKUPS_TOTAL, i, k);
		total += n;
		json_uint(j, results[k], (uint64_t)n);
	}
	json_close(j, '}');
	absent = metric_get(m, METRIC_FILTER_LOOKUPS_TOTAL, i, RESULT_ABSENT);
	maybe = metric_get(m, METRIC_FILTER_LOOKUPS_TOTAL, i, RESULT_MAYBE);
	fp = metric_get(m, METRIC_FILTER_FALSE_POSITIVES_TOTAL, i, 0);
	json_uint(j, "false_positives", (uint64_t)fp);
	json_uint(j, "verified_false_negatives",
	    (uint64_t)metric_get(
		m, METRIC_FILTER_VERIFIED_FALSE_NEGATIVES_TOTAL, i, 0));
	if (fp + absent > 0)
		json_real(j, "measured_error_rate", fp / (fp + absent));
	else
		json_null(j, "measured_error_rate");
	/* In observe nothing is answered here, whatever the verdict. */
	if (absent + maybe > 0)
		json_real(j, "absent_share", absent / (absent + maybe));
	else
		json_null(j, "absent_share");
	json_real(j, "lookups_total", total);

	json_open(j, "adds", '{');
	for (k = 0; k < 4; k++)
		json_uint(j, adds[k],
		    (uint64_t)metric_get(m, METRIC_FILTER_ADDS_TOTAL, i, k));
	json_close(j, '}');
	json_uint(j, "add_failures",
	    (uint64_t)metric_get(m, METRIC_FILTER_ADD_FAILURES_TOTAL, i, 0));
}

static void
write_rebuild(struct json *j, const struct run *r, struct filter *f)
{
	struct progress p;
	struct last last;

	pthread_mutex_lock(&f->mutex);
	memcpy(last.result, f->last_result, sizeof(last.result));
	memcpy(last.error, f->last_error, sizeof(last.error));
	last.ended_us = f->last_ended_us;
	pthread_mutex_unlock(&f->mutex);

	progress_read(&p, &f->progress, clock_boot_ns());
	json_open(j, "rebuild", '{');
	json_str(j, "phase", rebuild_phase_name(p.phase));
	json_bool(j, "running", p.phase != PHASE_IDLE);
	json_uint(j, "elements", p.elements);
	json_real(j, "rate", p.rate);
	if (p.share >= 0)
		json_real(j, "percent", p.share * 100);
	else
		json_null(j, "percent");
	if (p.seconds_left >= 0)
		json_real(j, "seconds_left", p.seconds_left);
	else
		json_null(j, "seconds_left");
	json_str(j, "last_result", last.result);
	json_str(j, "last_error", last.error);
	json_int(j, "last_ended_us", last.ended_us);
	json_uint(j, "failures", r->failures[f->index]);
	json_close(j, '}');
}

static void
write_filter(struct json *j, const struct run *r, struct filter *f)
{
	const struct filter_settings *s = &r->settings->filters[f->index];
	struct view *v = filter_view(f);
	const struct generation *g = generation_at(v, v->meta.active);

	json_open(j, NULL, '{');
	json_str(j, "name", f->name);
	json_str(j, "state", filter_state_name(v->state));
	json_str(j, "readiness", readiness_word(r, f, v));
	json_bool(j, "ready", ready_now(f, v));
	json_str(j, "mode", filter_mode_name(mode_of(f)));
	json_uint(j, "db", f->db);
	json_str(j, "redis_key", f->redis_key);
	json_bool(j, "store_up", control_store_up(r->control, f->index));
	json_str(j, "epoch", v->meta.epoch);
	json_uint(j, "seq", v->meta.seq);
	json_str(j, "generation", g != NULL ? g->name : "");
	/* What serves rules; before anything does, what the file asks for. */
	json_str(j, "scheme",
	    scheme_name(
		g != NULL ? g->geometry.scheme : (enum scheme)s->scheme));
	json_uint(j, "elements", g != NULL ? g->elements : 0);
	json_uint(j, "capacity", g != NULL ? g->capacity : s->capacity);
	json_uint(j, "bits", g != NULL ? geometry_total_bits(&g->geometry) : 0);
	json_uint(j, "shards", g != NULL ? g->geometry.shards : 0);
	json_uint(j, "hashes", g != NULL ? g->geometry.hashes : 0);
	json_real(j, "fill", g != NULL ? fill_of(g) : 0);
	json_real(j, "error_rate", g != NULL ? g->error_rate : s->error_rate);
	write_counts(j, r, f->index);
	json_uint(j, "peers",
	    (uint64_t)metric_get(r->metrics, METRIC_FILTER_PEERS, f->index, 0));
	json_str(j, "mirror", control_mirror_word(r->control, f->index));
	json_uint(
	    j, "mirror_bytes", v->mirror != NULL ? mirror_bytes(v->mirror) : 0);
	write_generation(j, "active", v, v->meta.active);
	write_generation(j, "previous", v, v->meta.previous);
	write_generation(j, "building", v, v->meta.building);
	write_rebuild(j, r, f);
	json_close(j, '}');
	view_unref(v);
}

/* Requests by who answered, over all commands. */
static void
write_traffic(struct json *j, const struct run *r)
{
	static const char *const sources[] = {"filter", "upstream", "local"};
	size_t i, k, other = metric_command_index("", 0);
	double n;

	json_open(j, "commands", '{');
	for (k = 0; k < 3; k++) {
		n = 0;
		for (i = 0; i <= other; i++)
			n += metric_get(
			    r->metrics, METRIC_COMMANDS_TOTAL, i, k);
		json_uint(j, sources[k], (uint64_t)n);
	}
	json_close(j, '}');
	json_open(j, "clients", '{');
	json_uint(
	    j, "sessions", r->proxy != NULL ? proxy_sessions(r->proxy) : 0);
	json_uint(j, "accepted",
	    (uint64_t)metric_get(
		r->metrics, METRIC_CLIENT_CONNECTIONS_TOTAL, 0, 0));
	json_uint(j, "max", r->settings->max_clients);
	json_close(j, '}');
}

static void
write_addresses(struct json *j, const struct run *r)
{
	const char *address;
	size_t i;

	json_open(j, "listen", '[');
	for (i = 0; r->proxy != NULL; i++) {
		address = proxy_address(r->proxy, i);
		if (address == NULL)
			break;
		json_str(j, NULL, address);
	}
	json_close(j, ']');
	json_str(j, "stats", r->stats != NULL ? stats_address(r->stats) : "");
	json_str(j, "upstream", r->settings->upstream.address.text);
	json_str(j, "store", settings_store(r->settings)->address.text);
}

/* What an operator should do something about. */
static void
write_problems(struct json *j, const struct run *r)
{
	enum proxy_lack lack;

	json_open(j, "problems", '[');
	for (lack = 0; r->proxy != NULL && lack < LACKS; lack++) {
		if (!proxy_lacks(r->proxy, lack))
			continue;
		json_open(j, NULL, '{');
		json_str(j, "lacks", proxy_lack_rule(lack));
		json_str(j, "text", proxy_lack_text(lack));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static bool
store_up(const struct run *r)
{
	size_t i;

	for (i = 0; i < r->settings->filter_count; i++)
		if (!control_store_up(r->control, i))
			return false;
	return r->settings->filter_count > 0;
}

char *
status_json(const struct run *r, long index)
{
	struct json j;
	size_t i;

	json_init(&j);
	json_open(&j, NULL, '{');
	json_str(&j, "program", PACKAGE_NAME);
	json_str(&j, "version", PACKAGE_VERSION);
	json_int(&j, "now_us", clock_wall_us());
	json_real(&j, "uptime_seconds",
	    (double)(clock_boot_ms() - r->began_ms) / 1000);
	json_str(&j, "state",
	    r->draining        ? "draining"
		: r->listening ? "running"
			       : "starting");
	json_uint(&j, "workers", r->settings->workers);
	write_addresses(&j, r);
	json_bool(&j, "upstream_up",
	    metric_get(r->metrics, METRIC_UPSTREAM_UP, 0, 0) > 0);
	json_bool(&j, "store_up", store_up(r));
	write_problems(&j, r);
	write_traffic(&j, r);
	json_open(&j, "filters", '[');
	for (i = 0; i < r->settings->filter_count; i++)
		if (index < 0 || (size_t)index == i)
			write_filter(&j, r, r->filters[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	return json_finish(&j);
}

/* What control set when it published the view holds; these two move on between
 * two publications. */
static void
refresh_filter(const struct run *r, struct filter *f)
{
	struct view *v = filter_view(f);
	struct progress p;

	metric_set(
	    r->metrics, METRIC_FILTER_READY, f->index, 0, ready_now(f, v));
	view_unref(v);
	progress_read(&p, &f->progress, clock_boot_ns());
	metric_set(r->metrics, METRIC_FILTER_REBUILD_PROGRESS, f->index, 0,
	    p.share > 0 ? p.share : 0);
}

void
status_refresh(const struct run *r)
{
	size_t i;

	for (i = 0; i < r->settings->filter_count; i++)
		refresh_filter(r, r->filters[i]);
}
