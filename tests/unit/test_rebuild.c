/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds against a real Redis: sources, guards, what is carried, what is left
 * behind by a build that does not succeed.
 */
#include "config.h"

#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "rebuild/rebuild.h"
#include "tests/unit/rebuild_fixture.h"

static struct fixture fx;
static struct rebuild *builder;

static void
on_changed(size_t index, void *arg)
{
	struct fixture *f = arg;

	ck_assert_uint_eq(index, 0);
	atomic_fetch_add(&f->changes, 1);
}

static void
on_ended(size_t index, enum metric_rebuild result, void *arg)
{
	struct fixture *f = arg;

	ck_assert_uint_eq(index, 0);
	atomic_fetch_add(&f->results[result], 1);
	atomic_fetch_add(&f->ends, 1);
}

static struct rebuild *
builder_new(struct fixture *f)
{
	struct rebuild *r = rebuild_new(
	    &(struct rebuild_options){.settings = f->settings,
		.filters = &f->filter,
		.metrics = f->metrics,
		.changed = on_changed,
		.ended = on_ended,
		.arg = f});

	rebuild_start(r);
	return r;
}

static void
start(const char *options)
{
	fixture_init(&fx, options);
	builder = builder_new(&fx);
}

static void
finish(void)
{
	rebuild_stop(builder, 2000);
	rebuild_free(builder);
	fixture_fini(&fx);
}

static int ends_wanted;

static bool
has_ended(struct fixture *f)
{
	return atomic_load(&f->ends) >= ends_wanted;
}

/* Runs one build and says how it ended. */
static enum metric_rebuild
build(bool force)
{
	int before[4];

	for (int i = 0; i < 4; i++)
		before[i] = atomic_load(&fx.results[i]);
	ends_wanted = atomic_load(&fx.ends) + 1;
	ck_assert_int_eq(rebuild_request(builder, 0, force, "test"), 0);
	ck_assert(fixture_until(&fx, has_ended));
	for (int i = 0; i < 4; i++) {
		if (atomic_load(&fx.results[i]) != before[i])
			return (enum metric_rebuild)i;
	}
	ck_abort_msg("a build ended without a result");
}

static void
ck_error_has(const char *text)
{
	pthread_mutex_lock(&fx.filter->mutex);
	if (strstr(fx.filter->last_error, text) == NULL)
		ck_abort_msg("error is \"%s\", not \"...%s...\"",
		    fx.filter->last_error, text);
	pthread_mutex_unlock(&fx.filter->mutex);
}

/* Nothing is left of a build that did not succeed. */
static void
ck_clean(void)
{
	struct meta *m = mem_zalloc(1, sizeof(*m));

	fixture_meta(&fx, m);
	ck_assert_int_eq(m->building, -1);
	ck_assert_str_eq(m->lock, "");
	ck_assert_uint_eq(m->generation_count, m->active >= 0 ? 1 : 0);
	free(m);
}

/* Options with a file source at dir/list.txt, and more of rebuild's. The folder
 * is known only later: the path is made relative to it by chdir. */
static char *
file_options(const char *filter, const char *more)
{
	return mem_printf("    capacity: 10000\n%s"
			  "    rebuild:\n"
			  "      redis-share: 1\n"
			  "      schedule: never\n"
			  "      source: {file: /tmp/bloomgate-list-%ld.txt%s",
	    filter, (long)getpid(), more);
}

static char *
list_path(void)
{
	return mem_printf("/tmp/bloomgate-list-%ld.txt", (long)getpid());
}

/* age_s: how old the file pretends to be (negative: from the future). */
static void
write_list(const char *prefix, unsigned first, unsigned n, int age_s)
{
	char *path = list_path();
	FILE *file = fopen(path, "we");
	struct timeval tv[2];

	ck_assert_ptr_nonnull(file);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%s%u\n", prefix, first + i);
	fclose(file);
	gettimeofday(&tv[0], NULL);
	tv[0].tv_sec -= age_s;
	tv[1] = tv[0];
	ck_assert_int_eq(utimes(path, tv), 0);
	free(path);
}

static void
write_raw(const char *data, size_t len)
{
	char *path = list_path();
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(data, 1, len, file), len);
	fclose(file);
	free(path);
}

static void
drop_list(void)
{
	char *path = list_path();

	unlink(path);
	free(path);
}

START_TEST(test_first_fill)
{
	char *o = file_options("", "}\n");
	struct meta *m = mem_zalloc(1, sizeof(*m));
	unsigned others;

	start(o);
	write_list("id-", 0, 10000, 100);
	ck_assert_int_eq(build(false), REBUILD_OK);
	fixture_meta(&fx, m);
	ck_assert_int_ge(m->active, 0);
	ck_assert_int_eq(m->generations[m->active].state, GENERATION_SEALED);
	ck_assert_uint_eq(m->generations[m->active].elements, 10000);
	ck_assert_str_eq(m->lock, "");
	ck_assert_uint_eq(fixture_present(&fx, "id-", 0, 2000), 2000);
	others = fixture_present(&fx, "other-", 0, 2000);
	ck_assert_uint_le(others, 2000 * 0.01 + 4 * 4.5 + 5);
	ck_assert_int_eq(fixture_integer(&fx, "EXISTS", "bloom:{user}:t0",
			     "bloom:{user}:t1", NULL),
	    0);
	ck_assert_int_ge(atomic_load(&fx.changes), 2);
	ck_assert(metric_get(fx.metrics, METRIC_FILTER_REBUILDS_TOTAL, 0,
		      REBUILD_OK) == 1);
	finish();
	drop_list();
	free(m);
	free(o);
}
END_TEST

START_TEST(test_line_ends)
{
	static const char list[] = "a1\r\n\n\r\na2\nb\0c\na3";
	char *o = file_options("", ", trust: true}\n");
	struct meta *m = mem_zalloc(1, sizeof(*m));

	start(o);
	write_raw(list, sizeof(list) - 1);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "a", 1, 3), 3);
	fixture_meta(&fx, m);
	ck_assert_uint_eq(m->generations[m->active].elements, 4);
	finish();
	drop_list();
	free(m);
	free(o);
}
END_TEST

START_TEST(test_long_line)
{
	char *o = file_options("", ", trust: true}\n");
	char *text = mem_alloc(3 + 4098);

	start(o);
	memset(text, 'x', 3 + 4098);
	memcpy(text, "a\n", 2);
	text[2 + 4096] = '\r'; /* 4096 and CRLF: just fits */
	text[3 + 4096] = '\n';
	write_raw(text, 4 + 4096);
	ck_assert_int_eq(build(false), REBUILD_OK);
	text[2 + 4096] = 'x'; /* one more, with and without its end */
	write_raw(text, 4 + 4096);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("line 2 of the source is longer than 4096");
	write_raw(text, 3 + 4096);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("line 2 ");
	ck_clean();
	finish();
	drop_list();
	free(text);
	free(o);
}
END_TEST

START_TEST(test_template_and_utf8)
{
	char *o = file_options("    element: \"{filter}:{id}\"\n"
			       "    scheme: guava-hashcode\n",
	    ", trust: true}\n");

	start(o);
	write_list("", 0, 50, 0);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "user:", 0, 50), 50);
	ck_assert_uint_lt(fixture_present(&fx, "", 0, 50), 10);
	write_raw("ok\n\xff\xfe\n", 6);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("line 2 of the source is not UTF-8");
	ck_clean();
	finish();
	drop_list();
	free(o);
}
END_TEST

START_TEST(test_guards)
{
	char *o = file_options("",
	    ", trust: true}\n"
	    "      min-elements: 100\n"
	    "      max-shrink: 0.5\n");
	struct meta *m = mem_zalloc(1, sizeof(*m));

	start(o);
	write_list("a", 0, 99, 0);
	ck_assert_int_eq(build(false), REBUILD_REFUSED);
	ck_error_has("min-elements");
	ck_clean();
	write_list("a", 0, 1000, 0);
	ck_assert_int_eq(build(false), REBUILD_OK);
	write_list("a", 0, 499, 0);
	ck_assert_int_eq(build(false), REBUILD_REFUSED);
	ck_error_has("max-shrink");
	ck_clean();
	ck_assert_uint_eq(fixture_present(&fx, "a", 0, 1000), 1000);
	write_list("a", 0, 500, 0);
	ck_assert_int_eq(build(false), REBUILD_OK);
	write_list("a", 0, 100, 0);
	ck_assert_int_eq(build(true), REBUILD_OK);
	fixture_meta(&fx, m);
	ck_assert_uint_eq(m->generations[m->active].elements, 100);
	ck_assert_int_ge(m->previous, 0);
	/* active and previous; the older ones are gone, shards and all */
	ck_assert_uint_eq(m->generation_count, 2);
	ck_assert_int_eq(fixture_integer(&fx, "DBSIZE", NULL), 3);
	finish();
	drop_list();
	free(m);
	free(o);
}
END_TEST

/* A file older than the rebuild never takes away. */
START_TEST(test_stale_file_carries)
{
	char *o = file_options("", "}\n");
	struct meta *m = mem_zalloc(1, sizeof(*m));

	start(o);
	write_list("a", 0, 1000, 100);
	ck_assert_int_eq(build(false), REBUILD_OK);
	write_list("b", 0, 1000, 100);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "a", 0, 1000), 1000);
	ck_assert_uint_eq(fixture_present(&fx, "b", 0, 1000), 1000);
	fixture_meta(&fx, m);
	ck_assert(m->generations[m->active].carried);
	/* From the future is after step 2: nothing is carried. */
	write_list("c", 0, 1000, -1000);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "c", 0, 1000), 1000);
	ck_assert_uint_lt(fixture_present(&fx, "a", 0, 1000), 200);
	fixture_meta(&fx, m);
	ck_assert(!m->generations[m->active].carried);
	finish();
	drop_list();
	free(m);
	free(o);
}
END_TEST

START_TEST(test_stale_file_refused)
{
	char *o = file_options("", "}\n");

	start(o);
	write_list("a", 0, 1000, 100);
	ck_assert_int_eq(build(false), REBUILD_OK);
	/* Lost: its bits prove nothing any more. */
	link_reply_free(fixture_call(&fx, "FLUSHALL", NULL));
	ck_assert_int_eq(build(false), REBUILD_REFUSED);
	ck_error_has("trust: true");
	ck_error_has("--force");
	ck_assert_int_eq(fixture_integer(&fx, "DBSIZE", NULL), 0);
	ck_assert_int_eq(build(true), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "a", 0, 1000), 1000);
	finish();
	drop_list();
	free(o);
}
END_TEST

START_TEST(test_grow)
{
	char *o = file_options("", ", trust: true}\n");
	struct meta *m = mem_zalloc(1, sizeof(*m));

	start(o);
	write_list("a", 0, 35000, 0);
	ck_assert_int_eq(build(false), REBUILD_OK);
	fixture_meta(&fx, m);
	ck_assert_uint_eq(m->generations[m->active].capacity, 80000);
	ck_assert_uint_eq(m->generations[m->active].elements, 35000);
	ck_assert_uint_eq(m->generation_count, 1);
	ck_assert_uint_eq(fixture_present(&fx, "a", 33000, 2000), 2000);
	/* The capacity stays when the source shrinks again. */
	write_list("a", 0, 20000, 0);
	ck_assert_int_eq(build(false), REBUILD_OK);
	fixture_meta(&fx, m);
	ck_assert_uint_eq(m->generations[m->active].capacity, 80000);
	finish();
	drop_list();
	free(m);
	free(o);
}
END_TEST

START_TEST(test_no_grow)
{
	char *o = file_options("", ", trust: true}\n      grow: false\n");
	struct meta *m = mem_zalloc(1, sizeof(*m));

	start(o);
	write_list("a", 0, 30000, 0);
	ck_assert_int_eq(build(false), REBUILD_OK);
	fixture_meta(&fx, m);
	ck_assert_uint_eq(m->generations[m->active].capacity, 10000);
	ck_assert_uint_eq(fixture_present(&fx, "a", 29000, 1000), 1000);
	finish();
	drop_list();
	free(m);
	free(o);
}
END_TEST

static char *
command_options(const char *script, const char *more)
{
	return mem_printf("    capacity: 10000\n"
			  "    rebuild:\n"
			  "      redis-share: 1\n"
			  "      schedule: never\n"
			  "      source: {command: [sh, -c, \"%s\"]}\n%s",
	    script, more);
}

START_TEST(test_command)
{
	char *o = command_options("seq 1 5000; echo noise >&2", "");

	start(o);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 5000), 5000);
	finish();
	free(o);
}
END_TEST

START_TEST(test_command_half)
{
	char *o = command_options(
	    "if [ -e /tmp/bg-half-$PPID ]; then seq 1 50; echo went wrong >&2; "
	    "exit 3; fi; touch /tmp/bg-half-$PPID; seq 1 100",
	    "      max-shrink: 1\n");
	char *flag = mem_printf("/tmp/bg-half-%ld", (long)getpid());

	start(o);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("status 3: went wrong");
	ck_clean();
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 100), 100);
	finish();
	unlink(flag);
	free(flag);
	free(o);
}
END_TEST

START_TEST(test_command_killed)
{
	char *o = command_options("seq 1 100; kill -9 $$", "");

	start(o);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("signal 9");
	ck_clean();
	finish();
	free(o);
}
END_TEST

START_TEST(test_command_unknown)
{
	static const char options[] =
	    "    capacity: 10000\n"
	    "    rebuild:\n"
	    "      source: {command: [/nonexistent/program]}\n";

	start(options);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("/nonexistent/program");
	ck_clean();
	finish();
}
END_TEST

/* Its children are ended with it. */
START_TEST(test_command_hangs)
{
	char *o = command_options(
	    "echo 1; sleep 1000 & echo $! > /tmp/bg-child-$PPID; wait",
	    "      timeout: 1s\n");
	char *path = mem_printf("/tmp/bg-child-%ld", (long)getpid());
	uint64_t began = clock_boot_ms();
	long child = 0;
	FILE *file;

	start(o);
	ck_assert_int_eq(build(false), REBUILD_FAILED);
	ck_error_has("within 1 s");
	ck_clean();
	ck_assert_uint_lt(clock_boot_ms() - began, 10000);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%ld", &child), 1);
	fclose(file);
	/* Gone, or a zombie that init has yet to take. */
	if (kill((pid_t)child, 0) == 0) {
		char *stat = mem_printf("/proc/%ld/stat", child);
		char state = '?';

		file = fopen(stat, "re");
		if (file != NULL) {
			ck_assert_int_eq(fscanf(file, "%*d %*s %c", &state), 1);
			fclose(file);
			ck_assert_int_eq(state, 'Z');
		}
		free(stat);
	}
	finish();
	unlink(path);
	free(path);
	free(o);
}
END_TEST

static bool
is_reading(struct fixture *f)
{
	return atomic_load(&f->filter->progress.phase) == PHASE_READ &&
	    atomic_load(&f->filter->progress.elements) > 0;
}

START_TEST(test_abort)
{
	char *o = command_options(
	    "if [ -e /tmp/bg-abort-$PPID ]; then seq 1 50; sleep 1000; fi; "
	    "touch /tmp/bg-abort-$PPID; seq 1 100",
	    "");
	char *flag = mem_printf("/tmp/bg-abort-%ld", (long)getpid());
	uint64_t began;

	start(o);
	ck_assert_int_eq(rebuild_abort(builder, 0), -1);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ends_wanted = atomic_load(&fx.ends) + 1;
	ck_assert_int_eq(rebuild_request(builder, 0, false, "test"), 0);
	ck_assert_int_eq(rebuild_request(builder, 0, false, "test"), -1);
	ck_assert(fixture_until(&fx, is_reading));
	began = clock_boot_ms();
	ck_assert_int_eq(rebuild_abort(builder, 0), 0);
	ck_assert(fixture_until(&fx, has_ended));
	ck_assert_uint_lt(clock_boot_ms() - began, 2000);
	ck_assert_int_eq(atomic_load(&fx.results[REBUILD_ABORTED]), 1);
	ck_clean();
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 100), 100);
	finish();
	unlink(flag);
	free(flag);
	free(o);
}
END_TEST

/* rebuild_stop in mid-build takes back what was begun. */
START_TEST(test_stop)
{
	char *o = command_options("seq 1 50; exec sleep 1000", "");
	uint64_t began;

	start(o);
	ck_assert_int_eq(rebuild_request(builder, 0, false, "test"), 0);
	ck_assert(fixture_until(&fx, is_reading));
	began = clock_boot_ms();
	rebuild_stop(builder, 3000);
	ck_assert_uint_lt(clock_boot_ms() - began, 3000);
	ck_clean();
	finish();
	free(o);
}
END_TEST

/* Another builder holds the lock: neither refused nor failed, and its build goes
 * on. */
START_TEST(test_two_builders)
{
	char *o = command_options("seq 1 50; exec sleep 1000", "");
	struct rebuild *other;

	start(o);
	ck_assert_int_eq(rebuild_request(builder, 0, false, "test"), 0);
	ck_assert(fixture_until(&fx, is_reading));
	other = builder_new(&fx);
	ends_wanted = 1;
	ck_assert_int_eq(rebuild_request(other, 0, false, "test"), 0);
	ck_assert(fixture_until(&fx, has_ended));
	ck_error_has("another bloomgate builds it");
	ck_assert(metric_get(fx.metrics, METRIC_FILTER_REBUILDS_TOTAL, 0,
		      REBUILD_REFUSED) == 0);
	free(fixture_text(&fx, "PING", NULL));
	ck_assert_int_eq(fixture_integer(&fx, "HEXISTS", "bloom:{user}:meta",
			     "building", NULL),
	    1);
	rebuild_stop(other, 1000);
	rebuild_free(other);
	finish();
	free(o);
}
END_TEST

/* The lock of a builder that reads for longer than it holds is renewed. */
START_TEST(test_lock_renewed)
{
	char *o = command_options("seq 1 50; sleep 7; seq 51 100", "");

	start(o); /* the lease is 3 s */
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_uint_eq(fixture_present(&fx, "", 1, 100), 100);
	finish();
	free(o);
}
END_TEST

/* What a dead builder left is taken over once its lock has run out. */
START_TEST(test_dead_builder)
{
	char *o = command_options("seq 1 50", "");
	struct redisReply *r;

	start(o);
	ck_assert_int_eq(build(false), REBUILD_OK);
	r = fixture_call(&fx, "HSET", "bloom:{user}:meta", "lock", "dead",
	    "lock-until", "1", "building", "old", "g:old:state", "building",
	    "g:old:shards", "1", NULL);
	link_reply_free(r);
	r = fixture_call(&fx, "HSET", "bloom:{user}:meta", "g:old:bits", "640",
	    "g:old:k", "7", "g:old:scheme", "guava", "g:old:tag", "12345678",
	    NULL);
	link_reply_free(r);
	r = fixture_call(&fx, "HSET", "bloom:{user}:meta", "g:old:single", "0",
	    "g:old:capacity", "60", "g:old:error-rate", "0.01", NULL);
	link_reply_free(r);
	link_reply_free(fixture_call(
	    &fx, "SETRANGE", "bloom:{user}:old/0", "87", "x", NULL));
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_int_eq(
	    fixture_integer(&fx, "EXISTS", "bloom:{user}:old/0", NULL), 0);
	ck_assert_int_eq(fixture_integer(&fx, "HEXISTS", "bloom:{user}:meta",
			     "g:old:state", NULL),
	    0);
	finish();
	free(o);
}
END_TEST

/* A Redis that restarts in mid-build: the build fails, nothing is trusted. */
START_TEST(test_redis_restarts)
{
	char *o = command_options("seq 1 50; exec sleep 1000", "");

	start(o);
	ends_wanted = 1;
	ck_assert_int_eq(rebuild_request(builder, 0, false, "test"), 0);
	ck_assert(fixture_until(&fx, is_reading));
	fixture_redis_stop(&fx);
	fixture_redis_start(&fx);
	ck_assert(fixture_until(&fx, has_ended));
	ck_assert_int_eq(atomic_load(&fx.results[REBUILD_FAILED]), 1);
	ck_error_has("restarted");
	finish();
	free(o);
}
END_TEST

static bool
is_idle(struct fixture *f)
{
	return fixture_integer(
		   f, "HEXISTS", "bloom:{user}:meta", "retiring", NULL) == 0;
}

START_TEST(test_retire)
{
	char *o = command_options("seq 1 50", "");
	struct meta *m = mem_zalloc(1, sizeof(*m));
	char *previous;

	start(o);
	ck_assert_int_eq(build(false), REBUILD_OK);
	ck_assert_int_eq(build(false), REBUILD_OK);
	fixture_meta(&fx, m);
	ck_assert_int_ge(m->previous, 0);
	/* as if its builder had died right after the pointer went */
	previous = mem_strdup(m->generations[m->previous].name);
	ck_assert_int_eq(
	    fixture_integer(&fx, "HDEL", "bloom:{user}:meta", "previous", NULL),
	    1);
	ck_assert_int_eq(fixture_integer(&fx, "HSET", "bloom:{user}:meta",
			     "retiring", previous, NULL),
	    1);
	rebuild_retire(builder, 0);
	ck_assert(fixture_until(&fx, is_idle));
	fixture_meta(&fx, m);
	ck_assert_uint_eq(m->generation_count, 1);
	ck_assert_int_eq(fixture_integer(&fx, "DBSIZE", NULL), 2);
	finish();
	free(previous);
	free(m);
	free(o);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rebuild");
	TCase *t = tcase_create("builds");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_first_fill);
	tcase_add_test(t, test_line_ends);
	tcase_add_test(t, test_long_line);
	tcase_add_test(t, test_template_and_utf8);
	tcase_add_test(t, test_guards);
	tcase_add_test(t, test_stale_file_carries);
	tcase_add_test(t, test_stale_file_refused);
	tcase_add_test(t, test_grow);
	tcase_add_test(t, test_no_grow);
	tcase_add_test(t, test_command);
	tcase_add_test(t, test_command_half);
	tcase_add_test(t, test_command_killed);
	tcase_add_test(t, test_command_unknown);
	tcase_add_test(t, test_command_hangs);
	tcase_add_test(t, test_abort);
	tcase_add_test(t, test_stop);
	tcase_add_test(t, test_two_builders);
	tcase_add_test(t, test_lock_renewed);
	tcase_add_test(t, test_dead_builder);
	tcase_add_test(t, test_redis_restarts);
	tcase_add_test(t, test_retire);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
