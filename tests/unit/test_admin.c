/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operator's socket over real sockets, the loop turned by the test; what the
 * commands do is recorded by the calls given to it.
 */
#include "config.h"

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

#include "admin/admin.h"
#include "admin/commands.h"
#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"
#include "resp/encode.h"

#define DEADLINE_MS 10000
#define ANSWER_MAX  (4 << 20)

static struct event_base *base;
static struct admin *admin;
static char folder[64], path[100];
static struct settings settings;
static struct filter_settings filters[2];

/* What the calls saw last. */
static char said[512];
static struct admin_request *pending;
static size_t pending_count;
static bool answer_at_once;

/* --- the calls ------------------------------------------------------------------- */

static char *
on_status(long index, void *arg)
{
	(void)arg;
	return mem_printf("{\"index\":%ld}", index);
}

static int
on_rebuild(size_t index, bool force, struct err *err, void *arg)
{
	(void)arg;
	snprintf(said, sizeof(said), "rebuild %zu %d", index, force);
	return index == 1 ? err_set(err, "it runs\r\nalready") : 0;
}

static int
on_abort(size_t index, struct err *err, void *arg)
{
	(void)err;
	(void)arg;
	snprintf(said, sizeof(said), "abort %zu", index);
	return 0;
}

static int
on_mode(size_t index, int mode, struct err *err, void *arg)
{
	(void)err;
	(void)arg;
	snprintf(said, sizeof(said), "mode %zu %d", index, mode);
	return 0;
}

static void
on_items(const char *what, size_t index, const struct slice *items,
    size_t count, struct admin_request *request)
{
	static const int values[COMMANDS_ITEMS_MAX] = {1, 0, 1};
	size_t i, len;

	len = (size_t)snprintf(said, sizeof(said), "%s %zu", what, index);
	for (i = 0; i < count && i < 8 && len < sizeof(said); i++)
		len += (size_t)snprintf(said + len, sizeof(said) - len, " %.*s",
		    (int)items[i].len, (const char *)items[i].data);
	pending = request;
	pending_count = count;
	if (answer_at_once) {
		pending = NULL;
		admin_answer(request, values, count, NULL);
	}
}

static void
on_check(size_t index, const struct slice *items, size_t count,
    struct admin_request *request, void *arg)
{
	(void)arg;
	on_items("check", index, items, count, request);
}

static void
on_add(size_t index, const struct slice *items, size_t count,
    struct admin_request *request, void *arg)
{
	(void)arg;
	on_items("add", index, items, count, request);
}

static char *
on_config(void *arg)
{
	(void)arg;
	return mem_strdup("listen: x\n");
}

/* Large, for clients that do not read. */
static char *
on_clients(void *arg)
{
	char *text = mem_alloc(2 << 20);

	(void)arg;
	memset(text, 'c', (2 << 20) - 1);
	text[(2 << 20) - 1] = '\0';
	return text;
}

static void
on_drain(void *arg)
{
	(void)arg;
	snprintf(said, sizeof(said), "drain");
}

static void
setup(void)
{
	static char names[2][8] = {"user", "order"};
	struct address at = {.kind = ADDRESS_UNIX, .path = path};
	struct admin_options o = {
	    .listen = &at,
	    .settings = &settings,
	    .calls =
		{
		    .status_json = on_status,
		    .rebuild = on_rebuild,
		    .abort = on_abort,
		    .mode = on_mode,
		    .check = on_check,
		    .add = on_add,
		    .config_yaml = on_config,
		    .clients_text = on_clients,
		    .drain = on_drain,
		},
	};
	struct err err;

	filters[0].name = names[0];
	filters[1].name = names[1];
	settings.filters = filters;
	settings.filter_count = 2;
	base = event_base_new();
	snprintf(folder, sizeof(folder), "/tmp/test_admin.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/admin.sock", folder);
	o.base = base;
	admin = admin_new(&o, &err);
	ck_assert_msg(admin != NULL, "%s", err.text);
	said[0] = '\0';
	pending = NULL;
	answer_at_once = false;
}

static void
teardown(void)
{
	admin_free(admin);
	event_base_free(base);
	/* The socket went with it. */
	ck_assert_int_eq(rmdir(folder), 0);
}

/* --- a client ----------------------------------------------------------------------- */

static int
dial(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(at.sun_path, path, strlen(path) + 1);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void
turn(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	event_base_loop(base, EVLOOP_NONBLOCK);
	poll(&p, 1, 1);
}

/* Sends everything, turning the loop where the socket is full. */
static void
say(int fd, const char *data, size_t len)
{
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	ssize_t n;

	while (len > 0) {
		ck_assert_uint_lt(clock_boot_ms(), until);
		n = send(fd, data, len, MSG_NOSIGNAL);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else {
			ck_assert_int_eq(errno, EAGAIN);
			turn(-1);
		}
	}
}

static void
say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

/* Reads until text has arrived, or (want NULL) the end. */
static char *
hear(int fd, const char *want)
{
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	char *text = mem_alloc(ANSWER_MAX);
	size_t len = 0;
	ssize_t n;

	text[0] = '\0';
	while (want == NULL || len < strlen(want)) {
		ck_assert_msg(
		    clock_boot_ms() < until, "heard only: %.200s", text);
		turn(fd);
		n = recv(fd, text + len, ANSWER_MAX - 1 - len, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (n > 0)
			text[len += (size_t)n] = '\0';
	}
	return text;
}

static void
expect_on(int fd, const char *request, const char *reply)
{
	char *text;

	say(fd, request, strlen(request));
	text = hear(fd, reply);
	ck_assert_str_eq(text, reply);
	free(text);
}

static void
expect(const char *request, const char *reply)
{
	int fd = dial();

	expect_on(fd, request, reply);
	close(fd);
}

/* --- commands ----------------------------------------------------------------------------- */

START_TEST(simple_commands)
{
	expect("PING\r\n", "+PONG\r\n");
	expect("*2\r\n$4\r\nping\r\n$2\r\nhi\r\n", "$2\r\nhi\r\n");
	expect("*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n", "*0\r\n");
	expect("STATUS\r\n", "$12\r\n{\"index\":-1}\r\n");
	expect("status order\r\n", "$11\r\n{\"index\":1}\r\n");
	expect("CONFIG\r\n", "$10\r\nlisten: x\n\r\n");
	expect("QUIT\r\n", "+OK\r\n");
	expect("DRAIN\r\n", "+OK\r\n");
	ck_assert_str_eq(said, "drain");
}
END_TEST

START_TEST(filter_commands)
{
	expect("REBUILD user\r\n", "+OK\r\n");
	ck_assert_str_eq(said, "rebuild 0 0");
	expect("rebuild user force\r\n", "+OK\r\n");
	ck_assert_str_eq(said, "rebuild 0 1");
	expect("REBUILD order\r\n", "-ERR bloomgate: it runs  already\r\n");
	expect("REBUILD user now\r\n", "-ERR syntax error\r\n");
	expect("ABORT order\r\n", "+OK\r\n");
	ck_assert_str_eq(said, "abort 1");
	expect("MODE user Observe\r\n", "+OK\r\n");
	ck_assert_str_eq(said, "mode 0 1");
	expect("MODE user off\r\n", "+OK\r\n");
	ck_assert_str_eq(said, "mode 0 2");
	expect("MODE user on\r\n",
	    "-ERR bloomgate: a mode is enforce, observe or off\r\n");
}
END_TEST

START_TEST(unknown_filter)
{
	static const char *const requests[] = {"STATUS nope\r\n",
	    "REBUILD nope\r\n", "ABORT nope\r\n", "MODE nope off\r\n",
	    "CHECK nope 1\r\n", "ADD nope 1\r\n"};
	size_t i;

	for (i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		expect(requests[i],
		    "-ERR bloomgate: no filter is called 'nope'\r\n");
	ck_assert_str_eq(said, "");
}
END_TEST

/* A name is compared whole, whatever bytes it has. */
START_TEST(name_with_nul)
{
	static const char request[] = "*2\r\n$6\r\nSTATUS\r\n$5\r\nuser\0\r\n";
	char *text;
	int fd = dial();

	say(fd, request, sizeof(request) - 1);
	text = hear(fd, "-ERR bloomgate: no filter");
	ck_assert_int_eq(strncmp(text, "-ERR bloomgate: no filter", 25), 0);
	free(text);
	close(fd);
}
END_TEST

START_TEST(arity)
{
	static const char *const requests[] = {"STATUS a b", "REBUILD",
	    "REBUILD a FORCE b", "ABORT", "ABORT a b", "MODE", "MODE user",
	    "MODE user off x", "CHECK", "CHECK user", "ADD", "ADD user",
	    "CLIENTS x", "CONFIG x", "DRAIN now", "HELP x", "PING a b"};
	char request[64], reply[128], name[16];
	size_t i, n;

	for (i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		n = strcspn(requests[i], " ");
		memcpy(name, requests[i], n);
		name[n] = '\0';
		for (n = 0; name[n] != '\0'; n++)
			name[n] = (char)(name[n] | 32);
		snprintf(request, sizeof(request), "%s\r\n", requests[i]);
		snprintf(reply, sizeof(reply),
		    "-ERR wrong number of arguments for '%s' command\r\n",
		    name);
		expect(request, reply);
	}
	ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(unknown_commands)
{
	char request[400], *text;
	int fd = dial();

	expect("FOO a b\r\n",
	    "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "
	    "\r\n");
	expect("LOAD user x\r\n",
	    "-ERR bloomgate: LOAD is not available in this version\r\n");
	expect("rollback user\r\n",
	    "-ERR bloomgate: ROLLBACK is not available in this version\r\n");
	/* Long words are cut, and CR and LF in them do no harm. */
	memset(request, 'x', sizeof(request));
	memcpy(request, "*2\r\n$3\r\nA\r\n\r\n$300\r\n", 20);
	request[320] = '\r';
	request[321] = '\n';
	say(fd, request, 322);
	text = hear(fd, "-ERR unknown command 'A  ', with");
	ck_assert_int_eq(
	    strncmp(text, "-ERR unknown command 'A  ', with", 32), 0);
	ck_assert_uint_lt(strlen(text), 300);
	free(text);
	expect_on(fd, "PING\r\n", "+PONG\r\n");
	close(fd);
}
END_TEST

START_TEST(help)
{
	char *text;
	int fd = dial();

	say_text(fd, "HELP\r\nQUIT\r\n");
	text = hear(fd, NULL);
	ck_assert_ptr_nonnull(strstr(text, "STATUS [name]"));
	ck_assert_ptr_nonnull(strstr(text, "CHECK name element..."));
	ck_assert_ptr_null(strstr(text, "ROLLBACK"));
	ck_assert_ptr_null(strstr(text, "DOCTOR"));
	free(text);
	close(fd);
}
END_TEST

/* --- answers that come later ------------------------------------------------------------------ */

START_TEST(check_and_add)
{
	static const int values[] = {0, 1};
	char *text;
	int fd = dial();

	say_text(fd, "CHECK user 1 2\r\nPING\r\n");
	while (pending == NULL)
		turn(-1);
	ck_assert_str_eq(said, "check 0 1 2");
	admin_answer(pending, values, 2, NULL);
	/* What stood behind it is answered behind it. */
	text = hear(fd, "*2\r\n:0\r\n:1\r\n+PONG\r\n");
	ck_assert_str_eq(text, "*2\r\n:0\r\n:1\r\n+PONG\r\n");
	free(text);

	pending = NULL;
	say_text(fd, "ADD order x\r\n");
	while (pending == NULL)
		turn(-1);
	ck_assert_str_eq(said, "add 1 x");
	admin_answer(pending, NULL, 0, "the store is down");
	text = hear(fd, "-ERR bloomgate: the store is down\r\n");
	ck_assert_str_eq(text, "-ERR bloomgate: the store is down\r\n");
	free(text);

	answer_at_once = true;
	expect_on(fd, "CHECK user a b c\r\nPING\r\n",
	    "*3\r\n:1\r\n:0\r\n:1\r\n+PONG\r\n");
	close(fd);
}
END_TEST

START_TEST(too_many_items)
{
	struct buf b;
	struct slice *argv = mem_zalloc(COMMANDS_ITEMS_MAX + 3, sizeof(*argv));
	char *text;
	size_t i;
	int fd = dial();

	argv[0] = slice_str("CHECK");
	argv[1] = slice_str("user");
	for (i = 2; i < COMMANDS_ITEMS_MAX + 3; i++)
		argv[i] = slice_str("e");
	buf_init(&b, 1 << 20);
	answer_at_once = true;
	ck_assert_int_eq(encode_request(&b, argv, COMMANDS_ITEMS_MAX + 3), 0);
	say(fd, (const char *)buf_head(&b), buf_len(&b));
	text = hear(fd, "-ERR bloomgate: at most 1000 elements at a time\r\n");
	ck_assert_str_eq(
	    text, "-ERR bloomgate: at most 1000 elements at a time\r\n");
	free(text);
	buf_consume(&b, buf_len(&b));
	ck_assert_int_eq(encode_request(&b, argv, COMMANDS_ITEMS_MAX + 2), 0);
	say(fd, (const char *)buf_head(&b), buf_len(&b));
	text = hear(fd, "*1000\r\n:1\r\n:0\r\n");
	ck_assert_int_eq(strncmp(text, "*1000\r\n:1\r\n:0\r\n", 15), 0);
	free(text);
	free(argv);
	buf_fini(&b);
	close(fd);
}
END_TEST

/* The client goes, the answer comes: freed once, nothing is touched. */
START_TEST(client_gone_while_waiting)
{
	static const int values[] = {1};
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	int fd = dial();

	say_text(fd, "CHECK user 1\r\n");
	while (pending == NULL && clock_boot_ms() < until)
		turn(-1);
	ck_assert_ptr_nonnull(pending);
	close(fd);
	turn(-1);
	admin_answer(pending, values, 1, NULL);
	turn(-1);
	expect("PING\r\n", "+PONG\r\n");
}
END_TEST

START_TEST(admin_gone_while_waiting)
{
	static const int values[] = {1};
	int fd = dial();

	say_text(fd, "ADD user 1\r\n");
	while (pending == NULL)
		turn(-1);
	admin_free(admin);
	event_base_loop(base, EVLOOP_NONBLOCK);
	admin_answer(pending, values, 1, NULL);
	close(fd);
	event_base_free(base);
	ck_assert_int_eq(rmdir(folder), 0);
	setup(); /* for teardown to end */
}
END_TEST

START_TEST(half_close)
{
	static const int values[] = {1};
	char *text;
	int fd = dial();

	say_text(fd, "PING\r\nCHECK user 1\r\nPING\r\n");
	shutdown(fd, SHUT_WR);
	while (pending == NULL)
		turn(-1);
	admin_answer(pending, values, 1, NULL);
	text = hear(fd, NULL);
	ck_assert_str_eq(text, "+PONG\r\n*1\r\n:1\r\n+PONG\r\n");
	free(text);
	close(fd);
}
END_TEST

/* --- bytes ------------------------------------------------------------------------------------- */

START_TEST(protocol_errors)
{
	char *text;
	int fd = dial();

	say_text(fd, "*1\r\n:4\r\n");
	text = hear(fd, NULL);
	ck_assert_str_eq(
	    text, "-ERR Protocol error: expected '$', got ':'\r\n");
	free(text);
	close(fd);
	/* Far above what an operator sends. */
	fd = dial();
	say_text(fd, "*2\r\n$4\r\nPING\r\n$999999999\r\n");
	text = hear(fd, NULL);
	ck_assert_str_eq(text, "-ERR Protocol error: invalid bulk length\r\n");
	free(text);
	close(fd);
	/* What a browser sends. */
	fd = dial();
	say_text(fd, "POST / HTTP/1.1\r\nHost: x\r\n\r\nDRAIN\r\n");
	text = hear(fd, NULL);
	ck_assert_str_eq(text, "");
	ck_assert_str_eq(said, "");
	free(text);
	close(fd);
}
END_TEST

START_TEST(byte_by_byte)
{
	static const char request[] =
	    "*2\r\n$6\r\nSTATUS\r\n$4\r\nuser\r\n*0\r\n\r\nPING\r\n";
	char *text;
	size_t i;
	int fd = dial();

	for (i = 0; request[i] != '\0'; i++) {
		say(fd, request + i, 1);
		turn(-1);
	}
	text = hear(fd, "$11\r\n{\"index\":0}\r\n+PONG\r\n");
	ck_assert_str_eq(text, "$11\r\n{\"index\":0}\r\n+PONG\r\n");
	free(text);
	close(fd);
}
END_TEST

/* A request of many MiB ends in an error, not in memory. */
START_TEST(endless_request)
{
	char *chunk = mem_alloc(1 << 20), *text;
	uint64_t until = clock_boot_ms() + DEADLINE_MS;
	int i, fd = dial();

	memset(chunk, 'x', 1 << 20);
	say_text(fd, "*1000\r\n");
	for (i = 0; i < 64; i++) {
		ck_assert_uint_lt(clock_boot_ms(), until);
		if (send(fd, "$1000000\r\n", 10, MSG_NOSIGNAL) != 10)
			break;
		turn(-1);
		if (send(fd, chunk, 1000000, MSG_NOSIGNAL) < 0 &&
		    errno != EAGAIN)
			break;
		turn(-1);
	}
	ck_assert_int_lt(i, 64);
	text = hear(fd, NULL);
	ck_assert_int_eq(strncmp(text, "-ERR Protocol error", 19), 0);
	free(text);
	free(chunk);
	close(fd);
}
END_TEST

/* One that sends and never reads holds one reply, not a thousand. */
START_TEST(never_reads)
{
	int i, sent = 0, fd = dial();

	for (i = 0; i < 100000; i++) {
		if (send(fd, "CLIENTS\r\n", 9, MSG_NOSIGNAL) == 9)
			sent++;
		else
			break;
		if (i % 100 == 0)
			turn(-1);
	}
	/* We stopped reading from it: its own socket is full. */
	ck_assert_int_lt(sent, 100000);
	expect("PING\r\n", "+PONG\r\n");
	close(fd);
	expect("PING\r\n", "+PONG\r\n");
}
END_TEST

START_TEST(many_connections)
{
	int fds[ADMIN_CONNECTIONS_MAX + 30];
	size_t i, n = sizeof(fds) / sizeof(*fds);

	for (i = 0; i < n; i++) {
		fds[i] = dial();
		turn(-1);
	}
	expect("PING\r\n", "+PONG\r\n");
	expect_on(fds[n - 1], "PING\r\n", "+PONG\r\n");
	for (i = 0; i < n; i++)
		close(fds[i]);
}
END_TEST

START_TEST(socket_mode)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_int_eq(st.st_mode & 0777, 0660);
	ck_assert_int_eq(strncmp(admin_address(admin), "unix:/tmp/", 10), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("admin");
	TCase *t = tcase_create("admin");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, simple_commands);
	tcase_add_test(t, filter_commands);
	tcase_add_test(t, unknown_filter);
	tcase_add_test(t, name_with_nul);
	tcase_add_test(t, arity);
	tcase_add_test(t, unknown_commands);
	tcase_add_test(t, help);
	tcase_add_test(t, check_and_add);
	tcase_add_test(t, too_many_items);
	tcase_add_test(t, client_gone_while_waiting);
	tcase_add_test(t, admin_gone_while_waiting);
	tcase_add_test(t, half_close);
	tcase_add_test(t, protocol_errors);
	tcase_add_test(t, byte_by_byte);
	tcase_add_test(t, endless_request);
	tcase_add_test(t, never_reads);
	tcase_add_test(t, many_connections);
	tcase_add_test(t, socket_mode);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
