/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a good configuration gives: every default, every form of value, texts
 * that YAML would take for something else, restarts, references.
 */
#include "config.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "config/value.h"
#include "config_util.h"
#include "core/mem.h"

#define SECOND 1000u
#define KIB    UINT64_C(1024)
#define MIB    (KIB * 1024)
#define GIB    (MIB * 1024)

#define ck_real_eq(a, b) ck_assert_double_eq_tol(a, b, 1e-15)

START_TEST(test_defaults)
{
	struct settings *s = util_good("");

	ck_assert_uint_eq(s->listen_count, 1);
	ck_assert_int_eq(s->listen[0].kind, ADDRESS_TCP);
	ck_assert_str_eq(s->listen[0].host, "127.0.0.1");
	ck_assert_uint_eq(s->listen[0].port, 6380);
	ck_assert_uint_eq(s->workers, 1);
	ck_assert_uint_eq(s->max_clients, 10000);
	ck_assert_str_eq(s->timezone, "UTC");
	ck_assert_str_eq(s->upstream.address.text, "127.0.0.1:6379");
	ck_assert_str_eq(s->upstream.username, "");
	ck_assert_str_eq(s->upstream.password_file, "");
	ck_assert_uint_eq(s->connect_timeout_ms, 1 * SECOND);
	ck_assert_uint_eq(s->response_timeout_ms, 0);
	ck_assert(s->sharing);
	ck_assert_uint_eq(s->lanes, 1);
	ck_assert_int_eq(s->store.address.kind, ADDRESS_NONE);
	ck_assert_str_eq(s->store.username, "");
	ck_assert_str_eq(s->store.password_file, "");
	ck_assert_ptr_eq(settings_store(s), &s->upstream);
	ck_assert_uint_eq(s->limit_bulk_bytes, 512 * MIB);
	ck_assert_uint_eq(s->limit_request_bytes, GIB);
	ck_assert_uint_eq(s->limit_pipeline, 10000);
	ck_assert_uint_eq(s->limit_client_output_bytes, 64 * MIB);
	ck_assert_uint_eq(s->limit_memory_bytes, GIB);
	ck_assert_uint_eq(s->tcp_keepalive_ms, 300 * SECOND);
	ck_assert_uint_eq(s->client_idle_timeout_ms, 0);
	ck_assert(s->protected);
	ck_assert_int_eq(s->permission, SETTING_PERMISSION_CHECK);
	ck_assert_uint_eq(s->permission_ttl_ms, 60 * SECOND);
	ck_assert_uint_eq(s->lease_ms, 15 * SECOND);
	ck_assert_uint_eq(s->drain_timeout_ms, 10 * SECOND);
	ck_assert_str_eq(s->stats_listen.text, "127.0.0.1:9380");
	ck_assert_int_eq(s->admin_listen.kind, ADDRESS_UNIX);
	ck_assert_str_eq(s->admin_listen.path, "/run/bloomgate/admin.sock");
	ck_assert_int_eq(s->log_level, LOG_LEVEL_INFO);
	ck_assert_int_eq(s->log_format, LOG_FORMAT_LOGFMT);
	ck_assert_str_eq(s->log_file, "");
	ck_assert_uint_eq(s->filter_count, 0);
	settings_unref(s);
}
END_TEST

START_TEST(test_filter_defaults)
{
	struct settings *s = util_good(FILTER);
	const struct filter_settings *f = &s->filters[0];

	ck_assert_uint_eq(s->filter_count, 1);
	ck_assert_str_eq(f->name, "user");
	ck_assert_uint_eq(f->keys.count, 1);
	ck_assert_str_eq(f->keys.items[0], "user:{id}");
	ck_assert_str_eq(f->element, "{id}");
	ck_assert_uint_eq(f->db, 0);
	ck_assert_str_eq(f->redis_key, "bloom:{user}");
	ck_assert_str_eq(f->suffix, "%Y%m");
	ck_assert_int_eq(f->layout, SETTING_SHARDED);
	ck_assert_uint_eq(f->capacity, 1000);
	ck_real_eq(f->error_rate, 0.01);
	ck_assert_int_eq(f->scheme, SETTING_GUAVA);
	ck_assert_str_eq(f->key_file, "");
	ck_assert_int_eq(f->mode, SETTING_ENFORCE);
	ck_assert_int_eq(f->check, SETTING_MIRROR);
	ck_assert_int_eq(f->absent, SETTING_ABSENT_NIL);
	ck_assert_uint_eq(f->null_value_count, 0);
	ck_assert(f->learn);
	ck_assert_uint_eq(f->max_staleness_ms, 2 * SECOND);
	ck_real_eq(f->verify_sample, 0.001);
	ck_assert_int_eq(f->after_restart, SETTING_REBUILD);
	ck_assert_uint_eq(f->replay_window_ms, 60 * SECOND);
	ck_assert(!f->has_feed);
	ck_assert(f->rebuild.here);
	ck_assert_int_eq(f->rebuild.source, SOURCE_NONE);
	ck_assert_uint_eq(f->rebuild.command.count, 0);
	ck_assert_str_eq(f->rebuild.file, "");
	ck_assert(!f->rebuild.trust);
	ck_assert_str_eq(f->rebuild.set, "");
	ck_assert_uint_eq(f->rebuild.timeout_ms, 3600 * SECOND);
	ck_assert_int_eq(f->rebuild.schedule.kind, SCHEDULE_MONTHLY);
	ck_assert_int_eq(f->rebuild.schedule.hour, 3);
	ck_assert_int_eq(f->rebuild.schedule.minute, 0);
	ck_assert(f->rebuild.grow);
	ck_assert_uint_eq(f->rebuild.min_elements, 1);
	ck_real_eq(f->rebuild.max_shrink, 0.5);
	ck_real_eq(f->rebuild.redis_share, 0.25);
	ck_assert_uint_eq(f->rebuild.chunk_bytes, 32 * KIB);
	ck_assert_uint_eq(f->rebuild.keep, 1);
	settings_unref(s);
}
END_TEST

START_TEST(test_full_sample)
{
	struct settings *s = util_good(
	    "listen: [127.0.0.1:7000, \"[::1]:7000\", unix:/tmp/s]\n"
	    "workers: \"4\"\n"
	    "protected: no\n"
	    "permission: trust\n"
	    "timezone: Europe/Berlin\n"
	    "store: {address: unix:/r, username: u, password-file: /p}\n"
	    "filters:\n"
	    "- name: a\n"
	    "  keys:\n"
	    "  - on:{who}\n"
	    "  - 'off:{who*}'\n"
	    "  element: '{filter}:{who}'\n"
	    "  capacity: 10000000000\n"
	    "  scheme: keyed\n"
	    "  key-file: /k\n"
	    "  absent-reply: {value: ~}\n"
	    "  feed: {stream: s}\n"
	    "  rebuild: {source: {file: /f, trust: yes}}\n"
	    "- {name: b, keys: ['b{id}'], capacity: 1, absent-reply:\n"
	    "   {error: ERR no}, rebuild: {source: {command: [a, 'b c']}}}\n"
	    "- {name: c, keys: ['c{id}'], capacity: 1, scheme: poly,\n"
	    "   layout: single, absent-reply: {value: x}, null-values: [],\n"
	    "   rebuild: {source: {set: ids}}}\n");
	const struct filter_settings *f = s->filters;

	ck_assert_uint_eq(s->listen_count, 3);
	ck_assert_str_eq(s->listen[1].host, "::1");
	ck_assert_str_eq(s->listen[2].path, "/tmp/s");
	ck_assert_uint_eq(s->workers, 4);
	ck_assert(!s->protected);
	ck_assert_int_eq(s->permission, SETTING_PERMISSION_TRUST);
	ck_assert_ptr_eq(settings_store(s), &s->store);
	ck_assert_uint_eq(s->filter_count, 3);
	ck_assert_str_eq(f[0].keys.items[0], "on:{who}");
	ck_assert_str_eq(f[0].element, "{filter}:{who}");
	ck_assert_uint_eq(f[0].capacity, UINT64_C(10000000000));
	ck_assert_int_eq(f[0].scheme, SETTING_KEYED);
	ck_assert_int_eq(f[0].absent, SETTING_ABSENT_VALUE);
	ck_assert_uint_eq(f[0].absent_text.len, 1);
	ck_assert_mem_eq(f[0].absent_text.data, "~", 1);
	ck_assert_uint_eq(f[0].null_value_count, 1);
	ck_assert_uint_eq(f[0].null_values[0].len, 1);
	ck_assert_mem_eq(f[0].null_values[0].data, "~", 1);
	ck_assert(f[0].has_feed);
	ck_assert_str_eq(f[0].feed_group, "bloomgate");
	ck_assert_str_eq(f[0].feed_field, "id");
	ck_assert_int_eq(f[0].rebuild.source, SOURCE_FILE);
	ck_assert(f[0].rebuild.trust);
	ck_assert_int_eq(f[1].absent, SETTING_ABSENT_ERROR);
	ck_assert_mem_eq(f[1].absent_text.data, "ERR no", 6);
	ck_assert_uint_eq(f[1].null_value_count, 0);
	ck_assert_int_eq(f[1].rebuild.source, SOURCE_COMMAND);
	ck_assert_uint_eq(f[1].rebuild.command.count, 2);
	ck_assert_str_eq(f[1].rebuild.command.items[1], "b c");
	ck_assert_int_eq(f[2].rebuild.source, SOURCE_SET);
	ck_assert(!f[2].rebuild.grow); /* poly's default */
	ck_assert_uint_eq(f[2].null_value_count, 0);
	settings_unref(s);
}
END_TEST

/* Plain scalars that YAML 1.1 would read as booleans, numbers or null. */
START_TEST(test_texts_stay_texts)
{
	static const char *const words[] = {"on", "off", "yes", "no", "true",
	    "null", "~", "0123", "1e3", "0x1f", "12:30:45", "2001-12-14",
	    ".inf", "1_000"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *text = mem_printf("upstream:\n  username: %s\n"
					"filters:\n"
					"- name: %s\n"
					"  keys:\n"
					"  - %s:{id}\n"
					"  capacity: 1\n",
		    words[i], words[i], words[i]);
		char *report = NULL;
		struct settings *s;

		s = util_load(text, strlen(text), &report);
		ck_assert_msg(s != NULL, "%s%s", text, report);
		ck_assert_str_eq(s->upstream.username, words[i]);
		ck_assert_str_eq(s->filters[0].name, words[i]);
		free(text);
		text = mem_printf("%s:{id}", words[i]);
		ck_assert_str_eq(s->filters[0].keys.items[0], text);
		free(text);
		free(report);
		settings_unref(s);
	}
}
END_TEST

START_TEST(test_empty_sections)
{
	struct settings *s = util_good("upstream:\nlimits: {}\nfilters:\n");

	ck_assert_uint_eq(s->filter_count, 0);
	settings_unref(s);
	s = util_good("---\n# nothing\n...\n");
	settings_unref(s);
	s = util_good("%YAML 1.1\n---\nfilters: []\n");
	settings_unref(s);
	s = util_good(FILTER "    feed:\n    rebuild:\n      source:\n");
	ck_assert(!s->filters[0].has_feed);
	ck_assert_int_eq(s->filters[0].rebuild.source, SOURCE_NONE);
	settings_unref(s);
}
END_TEST

START_TEST(test_booleans)
{
	static const struct {
		const char *text;
		int value; /* -1: refused */
	} cases[] = {
	    {"true", 1},
	    {"True", 1},
	    {"YES", 1},
	    {"on", 1},
	    {"false", 0},
	    {"No", 0},
	    {"off", 0},
	    {"1", -1},
	    {"0", -1},
	    {"y", -1},
	    {"", -1},
	    {"true ", -1},
	};
	struct err err;
	size_t i;
	bool v;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = value_parse_bool(cases[i].text, &v, &err);

		ck_assert_msg(
		    r == (cases[i].value < 0 ? -1 : 0), "%s", cases[i].text);
		if (r == 0)
			ck_assert_int_eq(v, cases[i].value);
	}
}
END_TEST

START_TEST(test_sizes_and_durations)
{
	struct err err;
	uint64_t v;

	ck_assert_int_eq(value_parse_size("0", &v, &err), 0);
	ck_assert_int_eq(value_parse_size("1234", &v, &err), 0);
	ck_assert_uint_eq(v, 1234);
	ck_assert_int_eq(value_parse_size("3KiB", &v, &err), 0);
	ck_assert_uint_eq(v, 3 * KIB);
	ck_assert_int_eq(value_parse_size("17179869183GiB", &v, &err), 0);
	ck_assert_uint_eq(v, UINT64_C(17179869183) * GIB);
	ck_assert_int_eq(value_parse_size("17179869184GiB", &v, &err), -1);
	ck_assert_int_eq(value_parse_size("1KB", &v, &err), -1);
	ck_assert_int_eq(value_parse_size("1 KiB", &v, &err), -1);
	ck_assert_int_eq(value_parse_size("1kib", &v, &err), -1);
	ck_assert_int_eq(value_parse_size("KiB", &v, &err), -1);
	ck_assert_int_eq(value_parse_size("1.5KiB", &v, &err), -1);
	ck_assert_int_eq(value_parse_duration("0", &v, &err), 0);
	ck_assert_int_eq(value_parse_duration("7ms", &v, &err), 0);
	ck_assert_uint_eq(v, 7);
	ck_assert_int_eq(value_parse_duration("7s", &v, &err), 0);
	ck_assert_uint_eq(v, 7000);
	ck_assert_int_eq(value_parse_duration("7m", &v, &err), 0);
	ck_assert_uint_eq(v, 420000);
	ck_assert_int_eq(value_parse_duration("7h", &v, &err), 0);
	ck_assert_uint_eq(v, 25200000);
	ck_assert_int_eq(value_parse_duration("7d", &v, &err), 0);
	ck_assert_uint_eq(v, 604800000);
	ck_assert_int_eq(value_parse_duration("7", &v, &err), -1);
	ck_assert_int_eq(value_parse_duration("7M", &v, &err), -1);
	ck_assert_int_eq(value_parse_duration("-7s", &v, &err), -1);
	ck_assert_int_eq(value_parse_duration("7ss", &v, &err), -1);
}
END_TEST

static void
schedule(const char *text, int kind, int weekday, int hour, int minute,
    uint64_t every_ms)
{
	struct schedule s;
	struct err err;
	struct buf out;
	char *printed;

	ck_assert_msg(value_parse_schedule(text, &s, &err) == 0, "%s", text);
	ck_assert_int_eq(s.kind, kind);
	ck_assert_int_eq(s.weekday, weekday);
	ck_assert_int_eq(s.hour, hour);
	ck_assert_int_eq(s.minute, minute);
	ck_assert_uint_eq(s.every_ms, every_ms);
	value_text_start(&out);
	value_print_schedule(&out, &s);
	printed = value_text_end(&out);
	ck_assert_str_eq(printed, text);
	free(printed);
}

START_TEST(test_schedules)
{
	static const char *const bad[] = {"", "Never", "monthly", "monthly ",
	    "monthly 24:00", "monthly 23:60", "monthly 3:00", "monthly 03:00 ",
	    "monthly  03:00", "weekly 03:00", "weekly mon", "weekly mo 03:00",
	    "weekly Mon 03:00", "weekly monday 03:00", "daily", "daily 0300",
	    "every", "every 0", "every 59s", "every 6", "every 6h ",
	    "every 367d", "hourly"};
	struct schedule s;
	struct err err;
	size_t i;

	schedule("never", SCHEDULE_NEVER, 0, 0, 0, 0);
	schedule("monthly 03:00", SCHEDULE_MONTHLY, 0, 3, 0, 0);
	schedule("monthly 23:59", SCHEDULE_MONTHLY, 0, 23, 59, 0);
	schedule("weekly sun 00:00", SCHEDULE_WEEKLY, 0, 0, 0, 0);
	schedule("weekly mon 03:10", SCHEDULE_WEEKLY, 1, 3, 10, 0);
	schedule("weekly sat 03:10", SCHEDULE_WEEKLY, 6, 3, 10, 0);
	schedule("daily 12:30", SCHEDULE_DAILY, 0, 12, 30, 0);
	schedule("every 6h", SCHEDULE_EVERY, 0, 0, 0, 21600000);
	schedule("every 1m", SCHEDULE_EVERY, 0, 0, 0, 60000);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(value_parse_schedule(bad[i], &s, &err) == -1,
		    "'%s' was taken", bad[i]);
}
END_TEST

START_TEST(test_listen_nowhere)
{
	struct settings *s = util_good(
	    "stats: {listen: \"\"}\nadmin: {listen: }\n");

	ck_assert_int_eq(s->stats_listen.kind, ADDRESS_NONE);
	ck_assert_int_eq(s->admin_listen.kind, ADDRESS_NONE);
	settings_unref(s);
}
END_TEST

/* What a change from one file to the other needs a restart for. */
static void
restart(const char *before, const char *after, const char *expected)
{
	struct settings *a = util_good(before), *b = util_good(after);
	char *got = settings_restart(a, b);

	if (expected == NULL)
		ck_assert_ptr_null(got);
	else
		ck_assert_str_eq(got, expected);
	free(got);
	settings_unref(a);
	settings_unref(b);
}

START_TEST(test_restart)
{
	restart(FILTER, FILTER, NULL);
	restart("lease: 15s\nlog: {level: debug}\n", "lease: 20s\n", NULL);
	/* Written otherwise, the same all the same. */
	restart("listen: 127.0.0.1:6380\n", "listen: [127.0.0.1:6380]\n", NULL);
	restart("",
	    "listen: a:1\nworkers: 2\nstats: {listen: b:1}\n"
	    "admin: {listen: unix:/c}\nupstream: {address: d:1}\n"
	    "store: {address: e:1}\n",
	    "listen, workers, upstream.address, store.address, stats.listen, "
	    "admin.listen");
	restart(FILTER,
	    FILTER "    db: 1\n    redis-key: \"a{b}\"\n"
		   "    layout: single\n    error-rate: 0.1\n",
	    "filter user: db, filter user: redis-key, filter user: layout");
	/* By name, wherever they stand; a new one is no change. */
	restart("filters:\n"
		"- {name: a, keys: ['a{id}'], capacity: 1}\n"
		"- {name: b, keys: ['b{id}'], capacity: 1}\n",
	    "filters:\n"
	    "- {name: c, keys: ['c{id}'], capacity: 1, db: 5}\n"
	    "- {name: b, keys: ['b{id}'], capacity: 1, db: 3}\n"
	    "- {name: a, keys: ['a{id}'], capacity: 1}\n",
	    "filter b: db");
}
END_TEST

static void *
take_and_drop(void *arg)
{
	int i;

	for (i = 0; i < 20000; i++)
		settings_unref(settings_ref(arg));
	settings_unref(arg);
	return NULL;
}

START_TEST(test_references)
{
	struct settings *s = util_good(FILTER);
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
				     take_and_drop, settings_ref(s)),
		    0);
	settings_unref(s); /* the last thread frees it */
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	settings_unref(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("values");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	tcase_add_test(t, test_defaults);
	tcase_add_test(t, test_filter_defaults);
	tcase_add_test(t, test_full_sample);
	tcase_add_test(t, test_texts_stay_texts);
	tcase_add_test(t, test_empty_sections);
	tcase_add_test(t, test_booleans);
	tcase_add_test(t, test_sizes_and_durations);
	tcase_add_test(t, test_schedules);
	tcase_add_test(t, test_listen_nowhere);
	tcase_add_test(t, test_restart);
	tcase_add_test(t, test_references);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
