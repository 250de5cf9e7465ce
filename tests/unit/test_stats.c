/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stats port and the acceptor below it, over real sockets, the loop turned
 * by the test.
 */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/acceptor.h"
#include "core/mem.h"
#include "stats/http.h"
#include "stats/stats.h"

#define DEADLINE_MS 10000
#define ANSWER_MAX  (4 << 20)

static struct event_base *base;
static struct metrics *metrics;
static struct stats *stats;
static bool ready_now;
static int refreshed;
static char folder[64];

/* --- callbacks of stats -------------------------------------------------------- */

static char *
on_status(void *arg)
{
	ck_assert_ptr_eq(arg, &ready_now);
	return mem_strdup("{\"program\":\"bloomgate\"}");
}

static char *
on_readiness(bool *ready, void *arg)
{
	(void)arg;
	*ready = ready_now;
	return mem_strdup("user serving\n");
}

static void
on_refresh(void *arg)
{
	(void)arg;
	refreshed++;
	metric_set(metrics, METRIC_UPSTREAM_UP, 0, 0, refreshed);
}

static void
setup(void)
{
	static const char *const names[] = {"user"};

	base = event_base_new();
	ck_assert_ptr_nonnull(base);
	metrics = metrics_new(names, 1, "1.2.3");
	snprintf(folder, sizeof(folder), "/tmp/test_stats.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ready_now = true;
	refreshed = 0;
}

static void
teardown(void)
{
	if (stats != NULL)
		stats_free(stats);
	stats = NULL;
	metrics_free(metrics);
	event_base_free(base);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void
start(const char *listen)
{
	struct address a;
	struct err err;
	struct stats_options o = {
	    .base = base,
	    .listen = &a,
	    .metrics = metrics,
	    .status_json = on_status,
	    .readiness = on_readiness,
	    .refresh = on_refresh,
	    .arg = &ready_now,
	};

	ck_assert_int_eq(address_parse(&a, listen, &err), 0);
	stats = stats_new(&o, &err);
	address_fini(&a);
	ck_assert_msg(stats != NULL, "%s", err.text);
}

/* --- a client -------------------------------------------------------------------- */

static int
dial(const char *address)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET};
	const char *colon = strrchr(address, ':');
	int fd, rc;

	if (strncmp(address, "unix:", 5) == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		ck_assert_uint_lt(strlen(address + 5), sizeof(un.sun_path));
		memcpy(un.sun_path, address + 5, strlen(address + 5) + 1);
		rc = connect(fd, (struct sockaddr *)&un, sizeof(un));
	} else {
		ck_assert_int_eq(strncmp(address, "127.0.0.1:", 10), 0);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		in.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		rc = connect(fd, (struct sockaddr *)&in, sizeof(in));
	}
	ck_assert_int_eq(rc, 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void
say(int fd, const char *text)
{
	ck_assert_int_eq(
	    send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void
turn(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	event_base_loop(base, EVLOOP_NONBLOCK);
	poll(&p, 1, 1);
}

/* All bytes up to the end of the connection, NUL-terminated; free(). */
static char *
hear(int fd, size_t *len_out)
{
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	char *text = mem_alloc(ANSWER_MAX);
	size_t len = 0;
	ssize_t n;

	for (;;) {
		ck_assert_msg(clock_boot_ms() < until, "no end of the answer");
		turn(fd);
		n = recv(fd, text + len, ANSWER_MAX - 1 - len, 0);
		if (n == 0)
			break;
		if (n > 0)
			len += (size_t)n;
		else if (errno != EAGAIN)
			break;
	}
	text[len] = '\0';
	if (len_out != NULL)
		*len_out = len;
	return text;
}

static char *
ask(const char *request)
{
	int fd = dial(stats_address(stats));
	char *answer;

	say(fd, request);
	answer = hear(fd, NULL);
	close(fd);
	return answer;
}

static void
expect_status(const char *request, int status)
{
	char *answer = ask(request);
	char begin[32];

	snprintf(begin, sizeof(begin), "HTTP/1.1 %d ", status);
	ck_assert_msg(strncmp(answer, begin, strlen(begin)) == 0,
	    "to \"%.60s\" not %d but: %.100s", request, status, answer);
	ck_assert_ptr_nonnull(strstr(answer, "\r\nConnection: close\r\n"));
	free(answer);
}

static const char *
body_of(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");

	ck_assert_ptr_nonnull(end);
	return end + 4;
}

static size_t
length_of(const char *answer)
{
	const char *at = strstr(answer, "\r\nContent-Length: ");

	ck_assert_ptr_nonnull(at);
	return strtoul(at + 18, NULL, 10);
}

/* --- what is behind the paths ------------------------------------------------------ */

START_TEST(metrics_page)
{
	char *answer;

	start("127.0.0.1:0");
	answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	ck_assert_ptr_nonnull(strstr(answer,
	    "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	ck_assert_uint_eq(length_of(answer), strlen(body_of(answer)));
	/* refresh ran before the text was made. */
	ck_assert_ptr_nonnull(strstr(answer, "\nbloomgate_upstream_up 1\n"));
	free(answer);
	answer = ask("GET /metrics?x=1 HTTP/1.0\r\n\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "\nbloomgate_upstream_up 2\n"));
	free(answer);
}
END_TEST

START_TEST(other_pages)
{
	char *answer;

	start("127.0.0.1:0");
	answer = ask("GET /status.json HTTP/1.1\r\n\r\n");
	ck_assert_str_eq(body_of(answer), "{\"program\":\"bloomgate\"}");
	ck_assert_ptr_nonnull(strstr(answer, "application/json"));
	free(answer);
	answer = ask("GET / HTTP/1.1\r\n\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "text/html; charset=utf-8"));
	ck_assert_ptr_nonnull(strstr(answer, "Content-Security-Policy"));
	ck_assert_ptr_nonnull(strstr(body_of(answer), "</html>"));
	/* Drawn without a network connection. */
	ck_assert_ptr_null(strstr(body_of(answer), "//cdn"));
	ck_assert_ptr_null(strstr(body_of(answer), "http://"));
	ck_assert_ptr_null(strstr(body_of(answer), "https://"));
	ck_assert_ptr_null(strstr(body_of(answer), "innerHTML"));
	free(answer);
	expect_status("GET /healthz HTTP/1.1\r\n\r\n", 200);
	expect_status("GET /nothing HTTP/1.1\r\n\r\n", 404);
	expect_status("GET //metrics HTTP/1.1\r\n\r\n", 404);
}
END_TEST

START_TEST(readiness)
{
	char *answer;

	start("127.0.0.1:0");
	expect_status("GET /readyz HTTP/1.1\r\n\r\n", 200);
	ready_now = false;
	expect_status("GET /readyz HTTP/1.1\r\n\r\n", 503);
	answer = ask("GET /readyz HTTP/1.1\r\n\r\n");
	ck_assert_str_eq(body_of(answer), "user serving\n");
	free(answer);
}
END_TEST

START_TEST(head_has_length_and_no_body)
{
	static const char *const paths[] = {
	    "/", "/metrics", "/status.json", "/healthz", "/readyz", "/none"};
	char request[64], *head, *get;
	size_t i;

	start("127.0.0.1:0");
	for (i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(request, sizeof(request), "HEAD %s HTTP/1.1\r\n\r\n",
		    paths[i]);
		head = ask(request);
		snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n\r\n",
		    paths[i]);
		get = ask(request);
		ck_assert_str_eq(body_of(head), "");
		ck_assert_uint_gt(length_of(head), 0);
		ck_assert_uint_eq(length_of(get), strlen(body_of(get)));
		ck_assert_int_eq(strncmp(head, get, 15), 0);
		free(head);
		free(get);
	}
}
END_TEST

START_TEST(other_methods)
{
	static const char *const methods[] = {"POST", "PUT", "DELETE",
	    "OPTIONS", "TRACE", "PATCH", "CONNECT", "get", "X"};
	char request[128], *answer;
	size_t i;

	start("127.0.0.1:0");
	for (i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		snprintf(request, sizeof(request),
		    "%s /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
		    methods[i]);
		expect_status(request, 405);
	}
	answer = ask("POST / HTTP/1.1\r\n\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
	free(answer);
}
END_TEST

START_TEST(bad_requests)
{
	start("127.0.0.1:0");
	expect_status("GET /\r\n\r\n", 400);
	expect_status("GET / HTTP/9x\r\n\r\n", 400);
	expect_status("GET\r\n\r\n", 400);
	expect_status("GET  / HTTP/1.1\r\n\r\n", 400);
	expect_status("GET http://x/ HTTP/1.1\r\n\r\n", 400);
	expect_status("GET /\x01 HTTP/1.1\r\n\r\n", 400);
	expect_status("\x16\x03\x01 hello\r\n\r\n", 400);
	expect_status("GET / HTTP/2.0\r\n\r\n", 505);
	expect_status("\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", 200);
	expect_status("GET /healthz HTTP/1.1\nHost: x\n\n", 200);
}
END_TEST

START_TEST(too_long)
{
	char *request = mem_alloc(HTTP_REQUEST_MAX + 64);

	start("127.0.0.1:0");
	memset(request, 'a', HTTP_REQUEST_MAX);
	memcpy(request, "GET /", 5);
	request[HTTP_REQUEST_MAX] = '\0';
	expect_status(request, 414);
	memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
	expect_status(request, 431);
	free(request);
}
END_TEST

START_TEST(byte_by_byte)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nA: b\r\n\r\n";
	char byte[2] = "", *answer;
	size_t i;
	int fd;

	start("127.0.0.1:0");
	fd = dial(stats_address(stats));
	for (i = 0; request[i] != '\0'; i++) {
		byte[0] = request[i];
		say(fd, byte);
		turn(fd);
	}
	answer = hear(fd, NULL);
	ck_assert_str_eq(body_of(answer), "ok\n");
	free(answer);
	close(fd);
}
END_TEST

/* --- hostile clients ------------------------------------------------------------------ */

static struct http *short_http;

static void
on_http(const char *path, struct http_response *r, void *arg)
{
	static char big[8 << 20];

	(void)arg;
	r->status = 200;
	r->type = "text/plain";
	memset(big, 'x', sizeof(big));
	r->body = big;
	r->body_len = strcmp(path, "/big") == 0 ? sizeof(big) : 1;
}

static void
start_short(uint64_t total_ms)
{
	struct address a;
	struct err err;
	struct http_options o = {
	    .base = base,
	    .listen = &a,
	    .total_ms = total_ms,
	    .handler = on_http,
	};

	ck_assert_int_eq(address_parse(&a, "127.0.0.1:0", &err), 0);
	short_http = http_new(&o, &err);
	address_fini(&a);
	ck_assert_msg(short_http != NULL, "%s", err.text);
}

/* A byte now and then does not buy time. */
START_TEST(dripping_ends)
{
	uint64_t began, until;
	char byte;
	int fd;

	start_short(300);
	fd = dial(http_address(short_http));
	began = clock_boot_ms();
	until = began + DEADLINE_MS;
	for (;;) {
		ck_assert_uint_lt(clock_boot_ms(), until);
		if (send(fd, "G", 1, MSG_NOSIGNAL) != 1)
			break;
		turn(fd);
		if (recv(fd, &byte, 1, 0) == 0)
			break;
	}
	ck_assert_uint_ge(clock_boot_ms() - began, 250);
	close(fd);
	ck_assert_uint_eq(http_connections(short_http), 0);
	http_free(short_http);
}
END_TEST

/* Nor does taking the answer slowly. */
START_TEST(slow_reader_ends)
{
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	int fd;

	start_short(300);
	fd = dial(http_address(short_http));
	say(fd, "GET /big HTTP/1.1\r\n\r\n");
	do {
		turn(-1);
	} while (http_connections(short_http) == 0 && clock_boot_ms() < until);
	ck_assert_uint_eq(http_connections(short_http), 1);
	while (http_connections(short_http) != 0 && clock_boot_ms() < until)
		turn(-1);
	ck_assert_uint_eq(http_connections(short_http), 0);
	close(fd);
	http_free(short_http);
}
END_TEST

/* Silent connections fill the cap; the next visitor is served all the same. */
START_TEST(cap_gives_way)
{
	int fds[HTTP_CONNECTIONS_MAX + 20], fd;
	size_t i, n = sizeof(fds) / sizeof(*fds);
	char *answer;

	start_short(HTTP_TOTAL_MS);
	for (i = 0; i < n; i++) {
		fds[i] = dial(http_address(short_http));
		turn(-1);
	}
	fd = dial(http_address(short_http));
	say(fd, "GET / HTTP/1.1\r\n\r\n");
	answer = hear(fd, NULL);
	ck_assert_int_eq(strncmp(answer, "HTTP/1.1 200 ", 13), 0);
	free(answer);
	ck_assert_uint_le(http_connections(short_http), HTTP_CONNECTIONS_MAX);
	for (i = 0; i < n; i++)
		close(fds[i]);
	close(fd);
	http_free(short_http);
}
END_TEST

/* The whole of a large answer arrives, and then the end. */
START_TEST(large_answer)
{
	char *answer = mem_alloc(16 << 20);
	size_t len = 0;
	ssize_t n = -1;
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	int fd;

	start_short(HTTP_TOTAL_MS);
	fd = dial(http_address(short_http));
	say(fd, "GET /big HTTP/1.1\r\n\r\n");
	while (n != 0) {
		ck_assert_uint_lt(clock_boot_ms(), until);
		turn(fd);
		n = recv(fd, answer + len, (16 << 20) - 1 - len, 0);
		if (n > 0)
			len += (size_t)n;
	}
	answer[len] = '\0';
	ck_assert_uint_eq(strlen(body_of(answer)), 8 << 20);
	ck_assert_uint_eq(length_of(answer), 8 << 20);
	free(answer);
	close(fd);
	http_free(short_http);
}
END_TEST

/* A client that is gone before its answer harms nobody. */
START_TEST(client_gone)
{
	struct linger reset = {.l_onoff = 1};
	int i, fd;

	start("127.0.0.1:0");
	for (i = 0; i < 50; i++) {
		fd = dial(stats_address(stats));
		say(fd, "GET / HTTP/1.1\r\n\r\n");
		if (i % 2 == 0)
			setsockopt(
			    fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (i % 3 == 0)
			turn(-1);
		close(fd);
		turn(-1);
	}
	expect_status("GET /healthz HTTP/1.1\r\n\r\n", 200);
}
END_TEST

/* --- the acceptor ------------------------------------------------------------------------ */

START_TEST(unix_socket)
{
	char address[128];
	char *answer;
	struct stat st;

	/* The folder is made where it is missing. */
	snprintf(address, sizeof(address), "unix:%s/sub/s.sock", folder);
	start(address);
	ck_assert_str_eq(stats_address(stats), address);
	answer = ask("GET /healthz HTTP/1.1\r\n\r\n");
	ck_assert_str_eq(body_of(answer), "ok\n");
	free(answer);
	stats_free(stats);
	stats = NULL;
	ck_assert_int_eq(stat(address + 5, &st), -1);
	*strrchr(address, '/') = '\0';
	ck_assert_int_eq(rmdir(address + 5), 0);
}
END_TEST

static void
on_accept_close(int fd, void *arg)
{
	(void)arg;
	close(fd);
}

static struct acceptor *
listen_at(const char *path, mode_t mode, struct err *err)
{
	struct acceptor_options o = {
	    .base = base,
	    .name = "test",
	    .path = path,
	    .mode = mode,
	    .on_accept = on_accept_close,
	};

	return acceptor_new(&o, err);
}

START_TEST(stale_socket_is_replaced)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct acceptor *l, *second;
	struct stat st;
	struct err err;
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "%s/s", folder);
	memcpy(at.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd); /* the file stays, nobody answers */
	l = listen_at(path, 0660, &err);
	ck_assert_msg(l != NULL, "%s", err.text);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0660);
	/* One that answers is left alone. */
	second = listen_at(path, 0660, &err);
	ck_assert_ptr_null(second);
	ck_assert_ptr_nonnull(strstr(err.text, "in use"));
	ck_assert_int_eq(stat(path, &st), 0);
	acceptor_free(l);
	ck_assert_int_eq(stat(path, &st), -1);
}
END_TEST

START_TEST(other_files_are_left_alone)
{
	struct acceptor *l;
	struct err err;
	char path[200], deep[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/file", folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert_ptr_null(listen_at(path, 0660, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "no socket"));
	ck_assert_int_eq(access(path, F_OK), 0);
	unlink(path);
	/* A successor's socket in our place is not ours to remove. */
	l = listen_at(path, 0660, &err);
	ck_assert_ptr_nonnull(l);
	unlink(path);
	f = fopen(path, "w");
	fclose(f);
	acceptor_free(l);
	ck_assert_int_eq(access(path, F_OK), 0);
	unlink(path);
	snprintf(deep, sizeof(deep), "%s/a/b/s", folder);
	ck_assert_ptr_null(listen_at(deep, 0660, &err));
	memset(deep, 'x', sizeof(deep) - 1);
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	ck_assert_ptr_null(listen_at(deep, 0660, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "too long"));
}
END_TEST

START_TEST(tcp_in_use)
{
	struct acceptor_options o = {
	    .base = base,
	    .name = "test",
	    .host = "127.0.0.1",
	    .on_accept = on_accept_close,
	};
	struct acceptor *l;
	struct err err;

	l = acceptor_new(&o, &err);
	ck_assert_ptr_nonnull(l);
	o.port = (uint16_t)strtoul(
	    strchr(acceptor_address(l), ':') + 1, NULL, 10);
	ck_assert_uint_ne(o.port, 0);
	ck_assert_ptr_null(acceptor_new(&o, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "cannot"));
	o.host = "no.such.host.invalid";
	ck_assert_ptr_null(acceptor_new(&o, &err));
	acceptor_free(l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("stats");
	TCase *t = tcase_create("stats");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, metrics_page);
	tcase_add_test(t, other_pages);
	tcase_add_test(t, readiness);
	tcase_add_test(t, head_has_length_and_no_body);
	tcase_add_test(t, other_methods);
	tcase_add_test(t, bad_requests);
	tcase_add_test(t, too_long);
	tcase_add_test(t, byte_by_byte);
	tcase_add_test(t, dripping_ends);
	tcase_add_test(t, slow_reader_ends);
	tcase_add_test(t, cap_gives_way);
	tcase_add_test(t, large_answer);
	tcase_add_test(t, client_gone);
	tcase_add_test(t, unix_socket);
	tcase_add_test(t, stale_socket_is_replaced);
	tcase_add_test(t, other_files_are_left_alone);
	tcase_add_test(t, tcp_in_use);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
