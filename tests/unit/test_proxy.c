/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the proxy as one object, in this process, on a Unix socket before
 * a redis-server of the test's own: its life (start, drain, stop, at rest and
 * with work out), the operator's checks and adds, and the list of clients. What
 * passes through it is for tests/integration.
 */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "core/clock.h"
#include "core/mem.h"
#include "proxy_fixture.h"

/* --- the operator's checks and adds ---------------------------------------- */

/* Filled on a worker's thread. */
struct outcome {
	pthread_mutex_t mutex; /* guards the rest */
	pthread_cond_t done;
	unsigned calls;
	size_t count;
	int values[16];
	bool failed;
	char error[128];
};

static void
on_done(const int *values, size_t count, const char *error, void *arg)
{
	struct outcome *o = arg;

	pthread_mutex_lock(&o->mutex);
	o->calls++;
	o->count = count;
	o->failed = values == NULL;
	for (size_t i = 0; i < count && values != NULL; i++)
		o->values[i] = values[i];
	if (values == NULL)
		snprintf(o->error, sizeof(o->error), "%s", error);
	pthread_cond_signal(&o->done);
	pthread_mutex_unlock(&o->mutex);
}

#define OUTCOME                                                                \
	{                                                                      \
		.mutex = PTHREAD_MUTEX_INITIALIZER,                            \
		.done = PTHREAD_COND_INITIALIZER                               \
	}

static void
await(struct outcome *o)
{
	struct timespec until;

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &until), 0);
	until.tv_sec += WAIT_MS / 1000;
	pthread_mutex_lock(&o->mutex);
	while (o->calls == 0)
		ck_assert_int_eq(
		    pthread_cond_timedwait(&o->done, &o->mutex, &until), 0);
	pthread_mutex_unlock(&o->mutex);
}

/* Items are words; want is the values as text ("0 1"), or the error. */
static char *
operate(bool add, const char *words)
{
	struct outcome o = OUTCOME;
	struct slice items[16];
	char *copy = mem_strdup(words), *text = mem_strdup(""), *longer, *rest;
	size_t n = 0;

	rest = copy;
	for (char *w = strsep(&rest, " "); w != NULL && *w != '\0';
	     w = strsep(&rest, " "))
		items[n++] = slice_str(w);
	(add ? proxy_add : proxy_check)(proxy, 0, items, n, on_done, &o);
	/* They were copied. */
	memset(copy, 'X', strlen(words));
	await(&o);
	ck_assert_uint_eq(o.calls, 1);
	ck_assert_uint_eq(o.count, n);
	for (size_t i = 0; i < n && !o.failed; i++) {
		longer = mem_printf("%s%s%d", text, i ? " " : "", o.values[i]);
		free(text);
		text = longer;
	}
	if (o.failed) {
		free(text);
		text = mem_strdup(o.error);
	}
	free(copy);
	return text;
}

static void
want_operation(bool add, const char *words, const char *want)
{
	char *text = operate(add, words);

	ck_assert_msg(strcmp(text, want) == 0, "%s %s: %s, not %s",
	    add ? "add" : "check", words, text, want);
	free(text);
}

/* Until the workers' links are up a check is a maybe. */
static void
until_ready(void)
{
	uint64_t until_ms = clock_boot_ms() + WAIT_MS;
	char *text;
	bool ready;

	do {
		text = operate(false, "nobody");
		ready = strcmp(text, "0") == 0;
		free(text);
		ck_assert_uint_lt(clock_boot_ms(), until_ms);
	} while (!ready && poll(NULL, 0, 2) == 0);
}

START_TEST(test_operations)
{
	char long_item[5001];

	fixture_init(1);
	fixture_open();
	proxy_start(proxy);
	/* Nothing serves: everything is maybe; an add is taken. */
	want_operation(false, "1 2", "1 1");
	want_operation(false, "", "");
	want_operation(true, "", "");
	want_operation(true, "1", "1");
	redis_server_want(&server, "DEL " META, ":1");
	fixture_serve();
	until_ready();
	want_operation(false, "1 2 3", "0 0 0");
	want_operation(true, "1 2", "1 1");
	want_operation(true, "2 3", "0 1");
	want_operation(false, "1 2 3 4", "1 1 1 0");
	/* One of the call that cannot be added fails it; the rest are in. */
	memset(long_item, 'i', sizeof(long_item) - 1);
	long_item[sizeof(long_item) - 1] = '\0';
	want_operation(false, long_item, "1");
	want_operation(true, long_item, "an element is longer than 4096 bytes");
	/* A tag that is not the view's is never an absent. */
	redis_server_want(
	    &server, "SETRANGE bloom:{user}:a/0 8000 OTHERTAG", ":8008");
	want_operation(false, "4", "1");
	fixture_fini();
}
END_TEST

/* An epoch that control has not read yet: the add is made all the same. */
START_TEST(test_add_newer_epoch)
{
	fixture_init(1);
	fixture_open();
	proxy_start(proxy);
	fixture_serve();
	until_ready();
	redis_server_want(&server, "HSET " META " epoch 10", ":0");
	want_operation(true, "1 2 3", "1 1 1");
	want_operation(true, "3 4", "0 1");
	want_operation(false, "1 2 3 4 5", "1 1 1 1 0");
	fixture_fini();
}
END_TEST

/* --- life ------------------------------------------------------------------ */

START_TEST(test_serve_clients)
{
	char *text, *want;
	int a, b;

	fixture_init((unsigned)_i);
	fixture_open();
	want = mem_printf("unix:%s", path);
	ck_assert_str_eq(proxy_address(proxy, 0), want);
	ck_assert_ptr_null(proxy_address(proxy, 1));
	free(want);
	/* Bound but not started: no clients, no waiting. */
	text = proxy_clients(proxy);
	ck_assert_str_eq(text, "");
	free(text);
	proxy_start(proxy);
	a = fixture_dial(path);
	b = fixture_dial(path);
	fixture_ask(a, "PING\r\n", "+PONG\r\n");
	fixture_ask(b, "SELECT 3\r\nHELLO 3\r\nMULTI\r\nRESET\r\nSELECT 4\r\n",
	    "+OK\r\n%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
	fixture_want_sessions(2);
	close(b);
	fixture_want_sessions(1);
	b = fixture_dial(path);
	fixture_ask(
	    b, "SELECT 4\r\nMULTI\r\nSET k v\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
	text = proxy_clients(proxy);
	ck_assert_ptr_nonnull(strstr(text,
	    " db=0 resp=2 mode=plain in_flight=0 unsent=0 upstream=open\n"));
	ck_assert_ptr_nonnull(strstr(text,
	    " db=4 resp=2 mode=forward_only in_flight=0 unsent=0 "
	    "upstream=open\n"));
	free(text);
	fixture_ask(b, "EXEC\r\n", "*1\r\n+OK\r\n");
	text = proxy_clients(proxy);
	ck_assert_ptr_nonnull(strstr(text,
	    " db=4 resp=2 mode=plain in_flight=0 unsent=0 upstream=open\n"));
	free(text);
	fixture_ask(a, "QUIT\r\n", "+OK\r\n");
	fixture_want(a, "");
	fixture_want_sessions(1);
	close(a);
	/* Stopped with a client on it. */
	proxy_stop(proxy);
	fixture_want(b, "");
	ck_assert_uint_eq(proxy_sessions(proxy), 0);
	close(b);
	ck_assert_int_eq(fixture_dial(path), -1);
	text = proxy_clients(proxy);
	ck_assert_str_eq(text, "");
	free(text);
	fixture_fini();
}
END_TEST

/* What is absent is answered here; what is added by writing is not. */
START_TEST(test_answers)
{
	int c;

	fixture_init(1);
	fixture_open();
	proxy_start(proxy);
	fixture_serve();
	until_ready();
	/* Behind bloomgate's back, so that only it says nil. */
	redis_server_want(&server, "SET user:1 x", "+OK");
	c = fixture_dial(path);
	fixture_ask(c, "GET user:1\r\n", "$-1\r\n");
	fixture_ask(c, "SET user:2 y\r\nGET user:2\r\n", "+OK\r\n$1\r\ny\r\n");
	fixture_ask(c,
	    "*4\r\n$4\r\nMGET\r\n$6\r\nuser:1\r\n$6\r\nuser:2\r\n$"
	    "5\r\nother\r\n",
	    "*3\r\n$-1\r\n$1\r\ny\r\n$-1\r\n");
	want_operation(false, "1 2", "0 1");
	want_operation(true, "1", "1");
	fixture_ask(c, "GET user:1\r\n", "$1\r\nx\r\n");
	close(c);
	fixture_fini();
}
END_TEST

START_TEST(test_drain)
{
	int idle, busy, late;

	fixture_init((unsigned)_i);
	fixture_open();
	proxy_start(proxy);
	idle = fixture_dial(path);
	busy = fixture_dial(path);
	fixture_ask(idle, "PING\r\n", "+PONG\r\n");
	fixture_ask(busy, "PING\r\n", "+PONG\r\n");
	fixture_say(busy, "BLPOP list 0\r\n");
	/* It has left when Redis has a client that is blocked. */
	for (;;) {
		char line[64];

		ck_assert_int_eq(
		    redis_server_line(&server,
			"EVAL \"return string.match(redis.call("
			"'INFO','clients'),'blocked_clients:1')\" 0",
			line, sizeof(line)),
		    0);
		if (strcmp(line, "$17") == 0)
			break;
		poll(NULL, 0, 2);
	}
	proxy_drain(proxy);
	fixture_want(idle, "");
	fixture_want_sessions(1);
	/* Each worker stops accepting on its own turn. */
	while ((late = fixture_dial(path)) != -1) {
		close(late);
		poll(NULL, 0, 2);
	}
	redis_server_want(&server, "LPUSH list v", ":1");
	fixture_want(busy, "*2\r\n$4\r\nlist\r\n$1\r\nv\r\n");
	fixture_want(busy, "");
	fixture_want_sessions(0);
	close(idle);
	close(busy);
	/* Draining goes on being what it is. */
	proxy_drain(proxy);
	want_operation(false, "1", "1");
	proxy_stop(proxy);
	proxy_drain(proxy);
	fixture_fini();
}
END_TEST

/* Checks, adds and requests are out, for Redis stands still: each is answered,
 * once, and nothing is left. */
START_TEST(test_stop_with_work)
{
	struct outcome checks = OUTCOME, adds = OUTCOME, late = OUTCOME;
	struct slice items[] = {slice_str("1"), slice_str("2")};
	int clients[8];

	fixture_init(1);
	fixture_open();
	proxy_start(proxy);
	fixture_serve();
	until_ready();
	for (size_t i = 0; i < 8; i++) {
		clients[i] = fixture_dial(path);
		fixture_ask(clients[i], "PING\r\n", "+PONG\r\n");
	}
	ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
	for (size_t i = 0; i < 8; i++)
		fixture_say(clients[i],
		    i % 2 ? "SET user:1 v\r\nGET user:2\r\nGET other\r\n"
			  : "GET user:1\r\nMGET user:1 user:2\r\nMULTI\r\n"
			    "SUBSCRIBE a\r\n");
	proxy_add(proxy, 0, items, 2, on_done, &adds);
	proxy_check(proxy, 0, items, 2, on_done, &checks);
	proxy_stop(proxy);
	for (size_t i = 0; i < 8; i++) {
		fixture_want(clients[i], "");
		close(clients[i]);
	}
	/* Nobody is there to do it. */
	proxy_check(proxy, 0, items, 2, on_done, &late);
	ck_assert_uint_eq(late.calls, 1);
	ck_assert(late.failed);
	proxy_add(proxy, 0, items, 2, on_done, &late);
	ck_assert_uint_eq(late.calls, 2);
	proxy_free(proxy);
	proxy = NULL;
	ck_assert_uint_eq(adds.calls, 1);
	ck_assert(adds.failed);
	ck_assert_str_eq(adds.error, "bloomgate is stopping");
	ck_assert_uint_eq(checks.calls, 1);
	ck_assert(!checks.failed);
	ck_assert(checks.values[0] == 1 && checks.values[1] == 1);
	ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
	fixture_fini();
}
END_TEST

/* Never started. */
START_TEST(test_not_started)
{
	struct outcome o = OUTCOME;

	fixture_init(3);
	fixture_open();
	proxy_check(proxy, 0, NULL, 0, on_done, &o);
	ck_assert_uint_eq(o.calls, 1);
	proxy_stop(proxy);
	fixture_fini();
	proxy = NULL;
}
END_TEST

START_TEST(test_cannot_bind)
{
	struct err err = {""};
	struct settings *bad;

	fixture_init(1);
	bad = fixture_settings(
	    "[\"127.0.0.1:0\", \"unix:/nonexistent/x.sock\"]", 2);
	ck_assert_ptr_null(proxy_new(
	    &(struct proxy_options){
		.settings = bad, .filters = &filter, .metrics = metrics},
	    &err));
	ck_assert_msg(
	    strstr(err.text, "/nonexistent/x.sock") != NULL, "%s", err.text);
	settings_unref(bad);
	/* Another one listens there. */
	fixture_open();
	err.text[0] = '\0';
	ck_assert_ptr_null(proxy_new(
	    &(struct proxy_options){
		.settings = settings, .filters = &filter, .metrics = metrics},
	    &err));
	ck_assert_msg(strstr(err.text, path) != NULL, "%s", err.text);
	fixture_fini();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("proxy");
	TCase *t = tcase_create("proxy");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_operations);
	tcase_add_test(t, test_add_newer_epoch);
	tcase_add_loop_test(t, test_serve_clients, 1, 4);
	tcase_add_test(t, test_answers);
	tcase_add_loop_test(t, test_drain, 1, 4);
	tcase_add_test(t, test_stop_with_work);
	tcase_add_test(t, test_not_started);
	tcase_add_test(t, test_cannot_bind);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
