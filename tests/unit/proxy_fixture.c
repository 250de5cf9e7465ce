/* SPDX-License-Identifier: BSD-2-Clause */
/* See proxy_fixture.h. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "core/clock.h"
#include "core/mem.h"
#include "proxy_fixture.h"

struct redis_server server;
struct settings *settings;
struct filter *filter;
struct metrics *metrics;
struct proxy *proxy;
char *path;

struct settings *
fixture_settings(const char *listen, unsigned workers)
{
	char *file = mem_printf("%s/bloomgate.yaml", server.dir);
	struct settings_report report;
	struct settings *s;
	FILE *out = fopen(file, "we");

	ck_assert_ptr_nonnull(out);
	fprintf(out,
	    "listen: %s\nworkers: %u\npermission: trust\n"
	    "upstream:\n  address: unix:%s\n"
	    "filters:\n  - name: user\n    keys: [\"user:{id}\"]\n"
	    "    capacity: 1000\n    check: remote\n"
	    "    rebuild: {source: {file: /nonexistent}, min-elements: 0}\n",
	    listen, workers, server.path);
	fclose(out);
	s = settings_load(file, &report);
	for (size_t i = 0; i < report.count; i++)
		ck_assert_msg(!report.items[i].fatal, "line %u: %s",
		    report.items[i].line, report.items[i].text);
	settings_report_fini(&report);
	free(file);
	return s;
}

void
fixture_init(unsigned workers)
{
	const char *name = "user";
	char *listen;

	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	redis_server_init(&server, false, NULL);
	redis_server_start(&server);
	path = mem_printf("%s/gate.sock", server.dir);
	listen = mem_printf("unix:%s", path);
	settings = fixture_settings(listen, workers);
	free(listen);
	metrics = metrics_new(&name, 1, "test");
	filter = filter_new(0, name, "bloom:{user}", 0, NULL);
}

void
fixture_open(void)
{
	struct err err = {""};

	proxy = proxy_new(
	    &(struct proxy_options){
		.settings = settings, .filters = &filter, .metrics = metrics},
	    &err);
	ck_assert_msg(proxy != NULL, "%s", err.text);
}

void
fixture_fini(void)
{
	proxy_free(proxy);
	filter_free(filter);
	metrics_free(metrics);
	settings_unref(settings);
	free(path);
	redis_server_fini(&server);
}

/* -1 where nobody listens. */
int
fixture_dial(const char *to)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", to);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Reads exactly want, or fails; "" waits for the end. */
void
fixture_want(int fd, const char *want)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t len = 0, whole = strlen(want);
	char got[512];

	ck_assert_uint_lt(whole, sizeof(got));
	do {
		ck_assert_msg(
		    poll(&p, 1, WAIT_MS) == 1, "nothing comes: %s", want);
		ssize_t n = read(fd, got + len, whole != 0 ? whole - len : 1);

		got[len + (n > 0 ? (size_t)n : 0)] = '\0';
		ck_assert_msg(n > 0 || (n == 0 && whole == 0),
		    "ends with %s, not %s", got, want);
		len += (size_t)n;
		ck_assert_msg(len <= whole, "more comes: %s", got);
	} while (len < whole);
	ck_assert_str_eq(got, want);
}

void
fixture_say(int fd, const char *line)
{
	ck_assert_int_eq(write(fd, line, strlen(line)), (ssize_t)strlen(line));
}

void
fixture_ask(int fd, const char *line, const char *want)
{
	fixture_say(fd, line);
	fixture_want(fd, want);
}

void
fixture_want_sessions(size_t n)
{
	uint64_t until_ms = clock_boot_ms() + WAIT_MS;

	while (proxy_sessions(proxy) != n) {
		ck_assert_msg(clock_boot_ms() < until_ms, "%zu sessions",
		    proxy_sessions(proxy));
		poll(NULL, 0, 2);
	}
}

/* Redis's run id as links tell it. */
static void
run_id(char id[RUN_ID_LEN + 1])
{
	int fd = fixture_dial(server.path);
	char got[8192];
	const char *at = NULL, *run;
	size_t len = 0;

	fixture_say(fd, "INFO server\r\nINFO replication\r\n");
	while (at == NULL || strchr(at, '\n') == NULL) {
		ssize_t n = read(fd, got + len, sizeof(got) - 1 - len);

		ck_assert_int_gt(n, 0);
		len += (size_t)n;
		got[len] = '\0';
		at = strstr(got, "master_replid:");
	}
	run = strstr(got, "run_id:");
	ck_assert_ptr_nonnull(run);
	snprintf(id, RUN_ID_LEN + 1, "%.40s:%.40s", run + strlen("run_id:"),
	    at + strlen("master_replid:"));
	close(fd);
}

/* Makes a sealed generation of one shard, and publishes it as control would. */
void
fixture_serve(void)
{
	const char *fields[] = {"layout", "1", "epoch", "9", "seq", "0",
	    "active", "a", "g:a:state", "sealed", "g:a:shards", "1", "g:a:bits",
	    "64000", "g:a:k", "7", "g:a:scheme", "guava", "g:a:single", "0",
	    "g:a:tag", "TAGTAGAA", "run-id", NULL};
	enum {
		FIELDS = sizeof(fields) / sizeof(*fields)
	};
	struct slice slices[FIELDS];
	struct meta *meta = mem_zalloc(1, sizeof(*meta));
	char id[RUN_ID_LEN + 1], line[512] = "HSET " META;
	struct err err = {""};
	struct view *v;

	run_id(id);
	fields[FIELDS - 1] = id;
	for (size_t i = 0; i < FIELDS; i++) {
		slices[i] = slice_str(fields[i]);
		snprintf(line + strlen(line), sizeof(line) - strlen(line),
		    " %s", fields[i]);
	}
	redis_server_want(&server, line, ":12");
	redis_server_want(
	    &server, "SETRANGE bloom:{user}:a/0 8000 TAGTAGAA", ":8008");
	ck_assert_int_eq(meta_parse(meta, slices, FIELDS, &err), 0);
	v = view_new(filter, meta, id);
	ck_assert_int_eq(v->state, FILTER_SERVING);
	atomic_store(&v->lease_until_ns, UINT64_MAX);
	filter_publish(filter, v);
	view_unref(v);
	free(meta);
}
