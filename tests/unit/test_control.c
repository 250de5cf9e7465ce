/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control against a real Redis: states, leases, peers, wishes; and control with
 * rebuild, wired as the daemon wires them.
 */
#include "config.h"

#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"
#include "core/clock.h"
#include "core/mem.h"
#include "rebuild/rebuild.h"
#include "tests/unit/rebuild_fixture.h"

#define META  "bloom:{user}:meta"
#define PEERS "bloom:{user}:peers"

static struct fixture fx;
static struct control *control;
static struct rebuild *builder; /* NULL: wishes are only counted */
static _Atomic int wishes, retire_wishes;
static char last_wish[16];

static const char COMMAND[] =
    "    capacity: 10000\n"
    "    rebuild:\n"
    "      redis-share: 1\n"
    "      schedule: never\n"
    "      source: {command: [seq, \"1\", \"500\"]}\n";

static void
on_wish(size_t index, const char *reason, void *arg)
{
	(void)arg;
	ck_assert_uint_eq(index, 0);
	snprintf(last_wish, sizeof(last_wish), "%s", reason);
	atomic_fetch_add(&wishes, 1);
	if (builder != NULL)
		(void)rebuild_request(builder, index, false, reason);
}

static void
on_retire_wish(size_t index, void *arg)
{
	(void)arg;
	atomic_fetch_add(&retire_wishes, 1);
	if (builder != NULL)
		rebuild_retire(builder, index);
}

static void
on_changed(size_t index, void *arg)
{
	(void)arg;
	control_refresh(control, index, -1);
}

static void
on_ended(size_t index, enum metric_rebuild result, void *arg)
{
	(void)index;
	(void)arg;
	atomic_fetch_add(&fx.results[result], 1);
	atomic_fetch_add(&fx.ends, 1);
}

static void
start(const char *options, bool with_builder)
{
	fixture_init(&fx, options);
	control = control_new(&(struct control_options){.base = fx.base,
	    .settings = fx.settings,
	    .filters = &fx.filter,
	    .metrics = fx.metrics,
	    .mirrors = true,
	    .want_rebuild = on_wish,
	    .want_retire = on_retire_wish});
	if (with_builder) {
		builder = rebuild_new(
		    &(struct rebuild_options){.settings = fx.settings,
			.filters = &fx.filter,
			.metrics = fx.metrics,
			.changed = on_changed,
			.ended = on_ended});
		rebuild_start(builder);
	}
	control_start(control);
}

static void
finish(void)
{
	if (builder != NULL)
		rebuild_stop(builder, 2000);
	control_stop(control, 1000);
	rebuild_free(builder);
	control_free(control);
	fixture_fini(&fx);
}

static enum filter_state
state_now(void)
{
	struct view *v = filter_view(fx.filter);
	enum filter_state s = v->state;

	view_unref(v);
	return s;
}

static bool
ready(struct fixture *f)
{
	struct view *v = filter_view(f->filter);
	bool is = filter_ready(
	    f->filter, v, filter_version(f->filter), clock_boot_ns());

	view_unref(v);
	return is;
}

static bool
not_ready(struct fixture *f)
{
	return !ready(f);
}

static enum filter_state wanted;

static bool
in_state(struct fixture *f)
{
	(void)f;
	return state_now() == wanted;
}

static void
await_state(enum filter_state s)
{
	wanted = s;
	if (!fixture_until(&fx, in_state))
		ck_abort_msg("state is %s, not %s",
		    filter_state_name(state_now()), filter_state_name(s));
}

static int wishes_wanted;

static bool
wished(struct fixture *f)
{
	(void)f;
	return atomic_load(&wishes) >= wishes_wanted;
}

static bool
is_up(struct fixture *f)
{
	(void)f;
	return control_store_up(control, 0);
}

static bool
is_down(struct fixture *f)
{
	return !is_up(f);
}

/* A sealed, serving generation "g1" of one shard, written by hand. */
static void
plant(const char *run_id)
{
	struct geometry g;
	struct err err;
	char bits[24], k[24], offset[24];

	ck_assert_int_eq(
	    geometry_plan(&g, 1000, 0.01, SCHEME_GUAVA, false, &err), 0);
	snprintf(bits, sizeof(bits), "%" PRIu64, g.bits);
	snprintf(k, sizeof(k), "%u", g.hashes);
	snprintf(offset, sizeof(offset), "%" PRIu64, geometry_tag_offset(&g));
	link_reply_free(fixture_call(
	    &fx, "SETRANGE", "bloom:{user}:g1/0", offset, "12345678", NULL));
	/* With an epoch from the first, or a heartbeat would give it one. */
	link_reply_free(fixture_call(&fx, "HSET", META, "layout", "1", "seq",
	    "0", "run-id", run_id, "epoch", "999", NULL));
	link_reply_free(fixture_call(&fx, "HSET", META, "g:g1:state", "sealed",
	    "g:g1:shards", "1", "g:g1:bits", bits, "g:g1:k", k, "g:g1:scheme",
	    "guava", "g:g1:single", "0", NULL));
	link_reply_free(fixture_call(&fx, "HSET", META, "g:g1:key", "",
	    "g:g1:tag", "12345678", "g:g1:capacity", "1000", "g:g1:error-rate",
	    "0.01", "g:g1:elements", "17", NULL));
	link_reply_free(
	    fixture_call(&fx, "HSET", META, "g:g1:set", "100", "g:g1:began",
		"1", "g:g1:ended", "2", "active", "g1", "epoch", "1000", NULL));
}

static double
gauge(enum metric_id id)
{
	return metric_get(fx.metrics, id, 0, 0);
}

START_TEST(test_missing)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	wishes_wanted = 2;
	ck_assert(fixture_until(&fx, wished));
	ck_assert_str_eq(last_wish, "missing");
	ck_assert(!ready(&fx));
	ck_assert(gauge(METRIC_FILTER_READY) == 0);
	ck_assert(gauge(METRIC_UPSTREAM_UP) == 1);
	finish();
}
END_TEST

START_TEST(test_no_wish_without_source)
{
	start("    capacity: 1000\n", false);
	await_state(FILTER_MISSING);
	wishes_wanted = 1;
	/* two heartbeats later there is still none */
	while (fixture_integer(&fx, "EXISTS", PEERS, NULL) == 0)
		ck_assert(fixture_until(&fx, is_up));
	ck_assert_int_eq(atomic_load(&wishes), 0);
	finish();
}
END_TEST

START_TEST(test_serving)
{
	struct redisReply *r;
	int64_t until, now;

	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	control_refresh(control, 0, -1);
	await_state(FILTER_SERVING);
	ck_assert(fixture_until(&fx, ready));
	/* the peer field goes by that epoch and outlives the lease */
	r = fixture_call(&fx, "HVALS", PEERS, NULL);
	ck_assert_uint_eq(link_reply_count(r), 1);
	until = strtoll(
	    (const char *)link_reply_text(link_reply_at(r, 0)).data, NULL, 10);
	ck_assert_ptr_nonnull(strstr(
	    (const char *)link_reply_text(link_reply_at(r, 0)).data, " 1000 "));
	link_reply_free(r);
	r = fixture_call(&fx, "TIME", NULL);
	now = strtoll(
	    (const char *)link_reply_text(link_reply_at(r, 0)).data, NULL, 10);
	link_reply_free(r);
	ck_assert_int_gt(until, (now + 3) * 1000000);
	ck_assert(gauge(METRIC_FILTER_ELEMENTS) == 17);
	ck_assert(gauge(METRIC_FILTER_CAPACITY) == 1000);
	finish();
	builder = NULL;
}
END_TEST

START_TEST(test_clean_stop_removes_peer)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	control_refresh(control, 0, -1);
	ck_assert(fixture_until(&fx, ready));
	control_stop(control, 1000);
	ck_assert(!ready(&fx));
	ck_assert_int_eq(fixture_integer(&fx, "EXISTS", PEERS, NULL), 0);
	finish();
}
END_TEST

START_TEST(test_wrong_tag)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	control_refresh(control, 0, -1);
	ck_assert(fixture_until(&fx, ready));
	/* replaced under our feet: told by a worker */
	link_reply_free(
	    fixture_call(&fx, "SET", "bloom:{user}:g1/0", "x", NULL));
	control_refresh(control, 0, 0);
	await_state(FILTER_LOST);
	ck_assert(!ready(&fx));
	wishes_wanted = atomic_load(&wishes) + 1;
	ck_assert(fixture_until(&fx, wished));
	ck_assert_str_eq(last_wish, "lost");
	finish();
}
END_TEST

/* Nobody tells: the heartbeat's own look finds a lost shard. */
START_TEST(test_lost_shard_found)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert(fixture_until(&fx, ready));
	ck_assert_int_eq(
	    fixture_integer(&fx, "DEL", "bloom:{user}:g1/0", NULL), 1);
	await_state(FILTER_LOST);
	finish();
}
END_TEST

START_TEST(test_ttl_removed)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert(fixture_until(&fx, ready));
	ck_assert_int_eq(fixture_integer(&fx, "EXPIRE", META, "1000", NULL), 1);
	ck_assert_int_eq(
	    fixture_integer(&fx, "EXPIRE", "bloom:{user}:g1/0", "1000", NULL),
	    1);
	while (fixture_integer(&fx, "TTL", META, NULL) != -1)
		ck_assert(fixture_until(&fx, is_up));
	ck_assert_int_eq(
	    fixture_integer(&fx, "TTL", "bloom:{user}:g1/0", NULL), -1);
	finish();
}
END_TEST

START_TEST(test_other_run_is_suspect)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant("0123456789012345678901234567890123456789");
	control_refresh(control, 0, -1);
	await_state(FILTER_SUSPECT);
	ck_assert(!ready(&fx));
	ck_assert(gauge(METRIC_FILTER_SUSPECT) == 1);
	wishes_wanted = atomic_load(&wishes) + 1;
	ck_assert(fixture_until(&fx, wished));
	ck_assert_str_eq(last_wish, "suspect");
	finish();
}
END_TEST

/* Model rule 2: while every look finds another epoch there is no lease. */
START_TEST(test_epoch_grants_no_lease)
{
	struct view *v;

	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert(fixture_until(&fx, ready));
	v = filter_view(fx.filter);
	ck_assert_int_eq(
	    fixture_integer(&fx, "HSET", META, "epoch", "2000", NULL), 0);
	control_refresh(control, 0, -1);
	for (;;) {
		struct view *now = filter_view(fx.filter);
		bool same = now == v;

		view_unref(now);
		if (!same)
			break;
		event_base_loop(fx.base, EVLOOP_ONCE);
	}
	/* the old view lost its lease with the new one's coming */
	ck_assert(!filter_ready(
	    fx.filter, v, filter_version(fx.filter), clock_boot_ns()));
	ck_assert_uint_eq(atomic_load(&v->lease_until_ns), 0);
	view_unref(v);
	ck_assert(fixture_until(&fx, ready));
	finish();
}
END_TEST

START_TEST(test_meta_unreadable)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert(fixture_until(&fx, ready));
	link_reply_free(fixture_call(&fx, "SET", META, "text", NULL));
	/* no heartbeat succeeds any more: the lease (3 s) ends by itself */
	ck_assert(fixture_until(&fx, not_ready));
	finish();
}
END_TEST

/* A lost link gives no lease; the same run that comes back serves again, another
 * one is not trusted. */
START_TEST(test_link_lost)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert(fixture_until(&fx, ready));
	fixture_redis_stop(&fx);
	ck_assert(fixture_until(&fx, is_down));
	ck_assert(fixture_until(&fx, not_ready));
	ck_assert(gauge(METRIC_UPSTREAM_UP) == 0);
	fixture_redis_start(&fx);
	ck_assert(fixture_until(&fx, is_up));
	await_state(FILTER_MISSING);
	finish();
}
END_TEST

static void *
flood(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200000; i++)
		control_refresh(control, 0, i % 3);
	return NULL;
}

static bool flooded_done;

static void *
flood_all(void *arg)
{
	pthread_t t[3];

	(void)arg;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, flood, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&flooded_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool
flooded(struct fixture *f)
{
	(void)f;
	return __atomic_load_n(&flooded_done, __ATOMIC_ACQUIRE);
}

static int64_t
calls_so_far(void)
{
	char *text = fixture_text(&fx, "INFO", "commandstats", NULL);
	char *at = strstr(text, "cmdstat_evalsha:calls=");
	int64_t n = at != NULL
	    ? strtoll(at + strlen("cmdstat_evalsha:calls="), NULL, 10)
	    : 0;

	free(text);
	return n;
}

START_TEST(test_flood)
{
	uint64_t began;
	pthread_t t;
	int64_t before;

	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert(fixture_until(&fx, ready));
	before = calls_so_far();
	began = clock_boot_ms();
	ck_assert_int_eq(pthread_create(&t, NULL, flood_all, NULL), 0);
	ck_assert(fixture_until(&fx, flooded));
	pthread_join(t, NULL);
	/* 600,000 times asked: at most one look each 5 ms, and a few more */
	ck_assert_int_le(calls_so_far() - before,
	    (int64_t)(clock_boot_ms() - began) / 5 + 10);
	finish();
}
END_TEST

static bool
retire_wished(struct fixture *f)
{
	(void)f;
	return atomic_load(&retire_wishes) > 0;
}

START_TEST(test_retire_wish)
{
	start(COMMAND, false);
	await_state(FILTER_MISSING);
	plant(link_run_id(fx.link));
	ck_assert_int_eq(fixture_integer(&fx, "HDEL", META, "active", NULL), 1);
	ck_assert_int_eq(fixture_integer(&fx, "HSET", META, "retiring", "g1",
			     "epoch", "3000", NULL),
	    1);
	ck_assert(fixture_until(&fx, retire_wished));
	finish();
}
END_TEST

/* --- with a builder --------------------------------------------------------*/

START_TEST(test_fills_itself)
{
	start(COMMAND, true);
	ck_assert(fixture_until(&fx, ready));
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 500), 500);
	ck_assert(gauge(METRIC_FILTER_ELEMENTS) == 500);
	ck_assert(gauge(METRIC_FILTER_FILL_RATIO) > 0);
	finish();
}
END_TEST

START_TEST(test_flushall_heals)
{
	struct meta *m = mem_zalloc(1, sizeof(*m));

	start(COMMAND, true);
	ck_assert(fixture_until(&fx, ready));
	link_reply_free(fixture_call(&fx, "FLUSHALL", NULL));
	ck_assert(fixture_until(&fx, not_ready));
	ck_assert(fixture_until(&fx, ready));
	fixture_meta(&fx, m);
	ck_assert_int_eq(m->generations[m->active].state, GENERATION_SEALED);
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 500), 500);
	finish();
	free(m);
}
END_TEST

static char old_run[RUN_ID_LEN + 1];

static bool
ready_on_new_run(struct fixture *f)
{
	struct view *v = filter_view(f->filter);
	bool is = strcmp(v->meta.run_id, old_run) != 0 &&
	    v->meta.run_id[0] != '\0';

	view_unref(v);
	return is && ready(f);
}

/* A Redis that comes back with what it had saved is not trusted until the filter
 * has been rebuilt on its new run. */
START_TEST(test_restart_heals)
{
	start(COMMAND, true);
	ck_assert(fixture_until(&fx, ready));
	snprintf(old_run, sizeof(old_run), "%s", link_run_id(fx.link));
	link_reply_free(fixture_call(&fx, "SAVE", NULL));
	fixture_redis_stop(&fx);
	fixture_redis_start(&fx);
	ck_assert(fixture_until(&fx, ready_on_new_run));
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 500), 500);
	ck_assert_int_ge(atomic_load(&fx.results[REBUILD_OK]), 2);
	finish();
}
END_TEST

static double
cpu_of_redis(void)
{
	char *text = fixture_text(&fx, "INFO", "cpu", NULL);
	double sys = 0, user = 0;
	char *at;

	at = strstr(text, "used_cpu_sys:");
	if (at != NULL)
		sys = strtod(at + strlen("used_cpu_sys:"), NULL);
	at = strstr(text, "used_cpu_user:");
	if (at != NULL)
		user = strtod(at + strlen("used_cpu_user:"), NULL);
	free(text);
	return sys + user;
}

/* Figures for whoever asks (BLOOMGATE_BENCH): a million ids from a file. */
START_TEST(test_million)
{
	char *path = mem_printf("/tmp/bloomgate-million-%ld", (long)getpid());
	char *options = mem_printf("    capacity: 1000000\n"
				   "    rebuild:\n"
				   "      redis-share: 1\n"
				   "      schedule: never\n"
				   "      source: {file: %s}\n",
	    path);
	unsigned n = getenv("BLOOMGATE_BENCH") != NULL ? 1000000 : 100000;
	uint64_t began;
	double cpu;
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "user-%09u\n", i);
	fclose(file);
	fixture_init(&fx, options);
	cpu = cpu_of_redis();
	fixture_fini(&fx);
	began = clock_boot_ms();
	start(options, true);
	ck_assert(fixture_until(&fx, ready));
	if (getenv("BLOOMGATE_BENCH") != NULL)
		fprintf(stderr, "%u ids: %.3f s, redis %.3f s of CPU\n", n,
		    (double)(clock_boot_ms() - began) / 1e3,
		    cpu_of_redis() - cpu);
	finish();
	unlink(path);
	free(path);
	free(options);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("control");
	TCase *t = tcase_create("control");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_missing);
	tcase_add_test(t, test_no_wish_without_source);
	tcase_add_test(t, test_serving);
	tcase_add_test(t, test_clean_stop_removes_peer);
	tcase_add_test(t, test_wrong_tag);
	tcase_add_test(t, test_lost_shard_found);
	tcase_add_test(t, test_ttl_removed);
	tcase_add_test(t, test_other_run_is_suspect);
	tcase_add_test(t, test_epoch_grants_no_lease);
	tcase_add_test(t, test_meta_unreadable);
	tcase_add_test(t, test_link_lost);
	tcase_add_test(t, test_flood);
	tcase_add_test(t, test_retire_wish);
	suite_add_tcase(s, t);
	t = tcase_create("with a builder");
	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_fills_itself);
	tcase_add_test(t, test_flushall_heals);
	tcase_add_test(t, test_restart_heals);
	tcase_add_test(t, test_million);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
