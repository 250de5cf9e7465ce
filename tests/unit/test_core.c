/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of src/core. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <event2/event.h>

#include "core/buf.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/log.h"
#include "core/mailbox.h"
#include "core/mem.h"
#include "core/metrics.h"
#include "core/random.h"
#include "core/slice.h"

START_TEST(slice_numbers)
{
	static const struct {
		const char *text;
		int result;
		int64_t value;
	} cases[] = {
	    {"0", 0, 0},
	    {"-1", 0, -1},
	    {"42", 0, 42},
	    {"9223372036854775807", 0, INT64_MAX},
	    {"-9223372036854775808", 0, INT64_MIN},
	    {"9223372036854775808", -1, 0},
	    {"-9223372036854775809", -1, 0},
	    {"99999999999999999999", -1, 0},
	    {"", -1, 0},
	    {"-", -1, 0},
	    {"-0", -1, 0},
	    {"01", -1, 0},
	    {"+1", -1, 0},
	    {" 1", -1, 0},
	    {"1x", -1, 0},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t v = 0;

		ck_assert_msg(slice_to_int64(slice_str(cases[i].text), &v) ==
			cases[i].result,
		    "%s", cases[i].text);
		ck_assert_int_eq(v, cases[i].value);
	}
}
END_TEST

/* Against a plain array, by random operations. */
START_TEST(buf_is_a_queue)
{
	unsigned seed = (unsigned)random_u64();
	struct buf b;
	char *model = mem_zalloc(1, 100000);
	size_t held = 0, step;

	printf("seed %u\n", seed);
	srandom(seed);
	buf_init(&b, 5000);
	for (step = 0; step < 20000; step++) {
		size_t len = (size_t)random() % 700;
		char data[700];

		if (random() % 2 != 0) {
			memset(data, (int)(step % 251), len);
			if (held + len > 5000) {
				ck_assert_int_eq(buf_append(&b, data, len), -1);
			} else {
				ck_assert_int_eq(buf_append(&b, data, len), 0);
				memcpy(model + held, data, len);
				held += len;
			}
		} else {
			if (len > held)
				len = held;
			buf_consume(&b, len);
			memmove(model, model + len, held - len);
			held -= len;
		}
		if (step % 97 == 0)
			buf_trim(&b);
		ck_assert_uint_eq(buf_len(&b), held);
		if (held != 0)
			ck_assert_mem_eq(buf_head(&b), model, held);
	}
	buf_fini(&b);
	free(model);
}
END_TEST

START_TEST(buf_prints)
{
	struct buf b;

	buf_init(&b, 12);
	ck_assert_int_eq(buf_printf(&b, "%d-%s", 12, "abc"), 0);
	ck_assert_uint_eq(buf_len(&b), 6);
	ck_assert_int_eq(buf_printf(&b, "%s", "too long for it"), -1);
	ck_assert_uint_eq(buf_len(&b), 6);
	buf_fini(&b);
}
END_TEST

START_TEST(err_is_one_line)
{
	struct err err;

	ck_assert_int_eq(err_set(&err, "a\nb %d", 7), -1);
	ck_assert_str_eq(err.text, "a b 7");
}
END_TEST

START_TEST(clock_shifts)
{
	uint64_t before = clock_boot_ns();
	int64_t wall = clock_wall_us();

	clock_test_shift(5000000000, -3600000000);
	ck_assert_uint_ge(clock_boot_ns(), before + 5000000000);
	ck_assert_int_lt(clock_wall_us(), wall - 3500000000);
}
END_TEST

START_TEST(random_below_stays_below)
{
	int i, seen[5] = {0};

	for (i = 0; i < 1000; i++)
		seen[random_below(5)]++;
	for (i = 0; i < 5; i++)
		ck_assert_int_gt(seen[i], 100);
	ck_assert_uint_eq(random_below(1), 0);
}
END_TEST

struct posted {
	struct event_base *base;
	struct mailbox *mailbox;
	int count, last;
};
struct letter_arg {
	struct posted *posted;
	int number;
};

static void
on_letter(void *arg)
{
	struct letter_arg *a = arg;

	ck_assert_int_eq(a->number, a->posted->last + 1);
	a->posted->last = a->number;
	if (++a->posted->count == 10000)
		event_base_loopbreak(a->posted->base);
	free(a);
}

static void *
poster(void *arg)
{
	struct posted *p = arg;
	int i;

	for (i = 1; i <= 10000; i++) {
		struct letter_arg *a = mem_alloc(sizeof(*a));

		*a = (struct letter_arg){.posted = p, .number = i};
		mailbox_post(p->mailbox, on_letter, a);
	}
	return NULL;
}

START_TEST(mailbox_keeps_order)
{
	struct posted p = {.base = event_base_new()};
	pthread_t thread;

	p.mailbox = mailbox_new(p.base);
	ck_assert_int_eq(pthread_create(&thread, NULL, poster, &p), 0);
	event_base_dispatch(p.base);
	pthread_join(thread, NULL);
	ck_assert_int_eq(p.count, 10000);
	mailbox_free(p.mailbox);
	event_base_free(p.base);
}
END_TEST

START_TEST(mailbox_free_runs_the_rest)
{
	struct posted p = {.base = event_base_new()};

	p.mailbox = mailbox_new(p.base);
	poster(&p);
	mailbox_free(p.mailbox);
	ck_assert_int_eq(p.count, 10000);
	event_base_free(p.base);
}
END_TEST

/* What two lines look like in a file, in both formats. */
static void
log_two(enum log_format format, char *text, size_t size)
{
	char path[] = "/tmp/bloomgate-log-XXXXXX";
	int fd = mkstemp(path);
	FILE *f;
	size_t n;

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(log_setup(LOG_LEVEL_INFO, format, path), 0);
	log_info("plain", LOG_STR("a", "x y"), LOG_INT("n", -3),
	    LOG_DOUBLE("d", 0.5), LOG_STR("none", NULL));
	log_debug("hidden", LOG_INT("n", 1));
	log_warn("key", LOG_SLICE("k", slice_of("a\"\n\xff", 4)));
	ck_assert_int_eq(log_reopen(), 0);
	ck_assert_int_eq(log_setup(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, ""), 0);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
	unlink(path);
}

START_TEST(log_formats)
{
	char text[2000];

	log_two(LOG_FORMAT_LOGFMT, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(
	    text, " level=info event=plain a=\"x y\" n=-3 d=0.5 none=\"\"\n"));
	ck_assert_ptr_null(strstr(text, "hidden"));
	ck_assert_ptr_nonnull(
	    strstr(text, " level=warn event=key k=\"a\\\"\\u000a\\u00ff\"\n"));
	log_two(LOG_FORMAT_JSON, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text,
	    "\"level\":\"info\",\"event\":\"plain\",\"a\":\"x y\",\"n\":-3,"
	    "\"d\":0.5,\"none\":\"\"}\n"));
}
END_TEST

START_TEST(log_refuses_a_bad_file)
{
	ck_assert_int_eq(log_setup(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT,
			     "/nonexistent/dir/file"),
	    -1);
}
END_TEST

START_TEST(metrics_text_is_exposition)
{
	const char *names[] = {"user", "odd\"\\\nname"};
	struct metrics *m = metrics_new(names, 2, "1.2");
	size_t len;
	char *text;

	metric_add(m, METRIC_FILTER_LOOKUPS_TOTAL, 1, RESULT_MAYBE, 3);
	metric_add(m, METRIC_COMMANDS_TOTAL, metric_command_index("GET", 3),
	    SOURCE_FILTER, 2);
	metric_set(m, METRIC_FILTER_FILL_RATIO, 0, 0, 0.25);
	metric_add(m, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 5);
	metric_sub(m, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 6);
	metric_observe(m, METRIC_COMMAND_DURATION, SOURCE_LOCAL, 60000, 1);
	metric_observe(m, METRIC_COMMAND_DURATION, SOURCE_UPSTREAM, 2000000, 3);
	ck_assert_double_eq(
	    metric_get(m, METRIC_FILTER_FILL_RATIO, 0, 0), 0.25);
	text = metrics_text(m, &len);
	ck_assert_uint_eq(strlen(text), len);
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_filter_lookups_total{filter=\"odd\\\"\\\\\\nname\","
	    "result=\"maybe\"} 3\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_commands_total{command=\"get\",source=\"filter\"} 2\n"));
	ck_assert_ptr_nonnull(strstr(
	    text, "bloomgate_filter_fill_ratio{filter=\"user\"} 0.25\n"));
	ck_assert_ptr_nonnull(
	    strstr(text, "bloomgate_upstream_requests_in_flight -1\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_command_duration_seconds_bucket{source=\"local\","
	    "le=\"0.0001\"} 1\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_command_duration_seconds_count{source=\"local\"} 1\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_command_duration_seconds_bucket{source=\"upstream\","
	    "le=\"0.001\"} 0\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_command_duration_seconds_bucket{source=\"upstream\","
	    "le=\"0.0025\"} 3\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    "bloomgate_command_duration_seconds_sum{source=\"upstream\"} "
	    "0.006"));
	ck_assert_ptr_nonnull(
	    strstr(text, "bloomgate_build_info{version=\"1.2\"} 1\n"));
	ck_assert_int_eq(text[len - 1], '\n');
	free(text);
	metrics_free(m);
}
END_TEST

START_TEST(metrics_without_filters)
{
	struct metrics *m = metrics_new(NULL, 0, "1");
	size_t len;
	char *text;

	metric_add(m, METRIC_FILTER_ADDS_TOTAL, 0, ADD_COMMAND, 1);
	text = metrics_text(m, &len);
	ck_assert_ptr_null(strstr(text, "filter_adds"));
	free(text);
	metrics_free(m);
}
END_TEST

START_TEST(metric_names_are_found)
{
	ck_assert_uint_eq(
	    metric_command_index("nope", 4), metric_command_index("other", 5));
	ck_assert_uint_ne(metric_command_index("Bf.Add", 6),
	    metric_command_index("other", 5));
	ck_assert_uint_ne(
	    metric_script_index("merge"), metric_script_index("other"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("core");
	TCase *t = tcase_create("core");
	SRunner *r;
	int failed;

	tcase_add_test(t, slice_numbers);
	tcase_add_test(t, buf_is_a_queue);
	tcase_add_test(t, buf_prints);
	tcase_add_test(t, err_is_one_line);
	tcase_add_test(t, clock_shifts);
	tcase_add_test(t, random_below_stays_below);
	tcase_add_test(t, mailbox_keeps_order);
	tcase_add_test(t, mailbox_free_runs_the_rest);
	tcase_add_test(t, log_formats);
	tcase_add_test(t, log_refuses_a_bad_file);
	tcase_add_test(t, metrics_text_is_exposition);
	tcase_add_test(t, metrics_without_filters);
	tcase_add_test(t, metric_names_are_found);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
