/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of src/redis's link: against a redis-server of the test's own, and
 * against a small scripted server on the test's loop where Redis cannot be made
 * to behave badly on purpose.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <hiredis/async.h>

#include "core/clock.h"
#include "core/mem.h"
#include "redis/link_private.h"
#include "redis/script.h"
#include "redis_server.h"

#define WAIT_MS 20000

static struct event_base *base;

/* What the link told its owner. */
struct seen {
	unsigned up, down;
	char run_id[82];
	char reason[256];
	bool send_in_callbacks; /* try to send from on_down and NULL replies */
	unsigned refused;       /* such attempts that were refused */
};

static void
on_up(struct link *l, void *arg)
{
	struct seen *s = arg;

	ck_assert(link_is_up(l));
	s->up++;
	snprintf(s->run_id, sizeof(s->run_id), "%s", link_run_id(l));
}

static void
ignore_reply(struct link *l, const struct redisReply *r, void *arg)
{
	(void)l;
	(void)r;
	(void)arg;
}

static void
on_down(struct link *l, const char *reason, void *arg)
{
	struct seen *s = arg;
	struct slice ping = slice_str("PING");

	ck_assert(!link_is_up(l));
	ck_assert_str_eq(link_run_id(l), "");
	s->down++;
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
	if (s->send_in_callbacks &&
	    link_command(l, 0, ignore_reply, NULL, &ping, 1) == -1)
		s->refused++;
}

static struct link *
open_link(struct seen *s, const struct endpoint *e)
{
	struct link_options o = {.base = base,
	    .endpoint = e,
	    .connect_timeout_ms = 5000,
	    .purpose = "test",
	    .on_up = on_up,
	    .on_down = on_down,
	    .arg = s};
	struct link *l;

	memset(s, 0, sizeof(*s));
	l = link_new(&o);
	link_start(l);
	return l;
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* Runs the loop until cond, at most WAIT_MS. */
#define wait_until(cond)                                                       \
	do {                                                                   \
		uint64_t end_ms_ = clock_boot_ms() + WAIT_MS;                  \
		while (!(cond)) {                                              \
			ck_assert_msg(clock_boot_ms() < end_ms_,               \
			    "never happened: " #cond);                         \
			event_base_loop(base, EVLOOP_ONCE);                    \
		}                                                              \
	} while (0)

static struct event *tick;

static void
setup(void)
{
	struct timeval tv = {.tv_usec = 10000};

	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	tick = event_new(base, -1, EV_PERSIST, on_tick, NULL);
	event_add(tick, &tv);
}

static void
teardown(void)
{
	event_free(tick);
	event_base_free(base);
}

/* --- replies ---------------------------------------------------------------*/

/* Counts the answers of many commands and keeps the last. */
struct answers {
	unsigned total, null, errors;
	int64_t last;
	char text[256];
	int64_t next; /* echoes must come in order */
	bool ordered;
	struct seen *seen;
};

static void
on_answer(struct link *l, const struct redisReply *r, void *arg)
{
	struct answers *a = arg;
	struct slice text = link_reply_text(r);

	a->total++;
	if (r == NULL) {
		struct slice ping = slice_str("PING");

		a->null++;
		ck_assert_int_eq(link_reply_type(r), LINK_NONE);
		if (a->seen != NULL && a->seen->send_in_callbacks &&
		    link_command(l, 0, ignore_reply, NULL, &ping, 1) == -1)
			a->seen->refused++;
		return;
	}
	if (link_reply_type(r) == LINK_ERROR)
		a->errors++;
	a->last = link_reply_integer(r);
	if (a->last != a->next++)
		a->ordered = false;
	snprintf(a->text, sizeof(a->text), "%.*s", (int)text.len,
	    (const char *)text.data);
}

static int
send_words(struct link *l, uint64_t timeout_ms, struct answers *a,
    const char *one, const char *two, const char *three)
{
	struct slice argv[3];
	size_t n = 0;

	argv[n++] = slice_str(one);
	if (two != NULL)
		argv[n++] = slice_str(two);
	if (three != NULL)
		argv[n++] = slice_str(three);
	return link_command(l, timeout_ms, on_answer, a, argv, n);
}

/* --- a scripted server -------------------------------------------------------*/

enum fake_mode {
	FAKE_GOOD,
	FAKE_SILENT,     /* accepts and never answers */
	FAKE_LOADING,    /* -LOADING to INFO */
	FAKE_LOADING_1,  /* loading:1 in INFO */
	FAKE_NO_SECTION, /* only INFO without a section is allowed */
	FAKE_NO_INFO,
	FAKE_NO_RUN_ID,
	FAKE_DENIED,
	FAKE_GARBAGE, /* bytes that are not RESP */
	FAKE_CLOSES,  /* accepts and closes */
	FAKE_ECHOES,  /* an error to AUTH that holds its arguments */
	FAKE_REPLICA,
};

/*
 * Commands: HOLD is answered by fake_release only; FAIL text answers -text;
 * CLOSE closes; ECHO answers its argument.
 */
struct fake {
	enum fake_mode mode;
	struct evconnlistener *listener;
	struct bufferevent *conn; /* the last accepted */
	struct endpoint endpoint;
	unsigned accepted, held, named, plain_info;
	char last_auth[64];
};

static void
answer_info(struct fake *f, struct evbuffer *out, const char *section)
{
	char text[256];

	if (section == NULL)
		f->plain_info++;
	if (f->mode == FAKE_LOADING) {
		evbuffer_add_printf(
		    out, "-LOADING Redis is loading the dataset\r\n");
		return;
	}
	if (f->mode == FAKE_NO_INFO ||
	    (f->mode == FAKE_NO_SECTION && section != NULL)) {
		evbuffer_add_printf(out, "-NOPERM no\r\n");
		return;
	}
	snprintf(text, sizeof(text),
	    "# Server\r\n%s%s\r\n# Replication\r\nrole:%s\r\n"
	    "# Persistence\r\nloading:%d\r\n",
	    f->mode == FAKE_NO_RUN_ID ? "x:" : "run_id:",
	    "0123456789012345678901234567890123456789",
	    f->mode == FAKE_REPLICA ? "slave" : "master",
	    f->mode == FAKE_LOADING_1);
	evbuffer_add_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void
fake_answer(struct fake *f, char *argv[4], int argc)
{
	struct evbuffer *out = bufferevent_get_output(f->conn);

	if (f->mode == FAKE_SILENT)
		return;
	if (f->mode == FAKE_GARBAGE)
		evbuffer_add_printf(out, "HTTP/1.1 400 Bad Request\r\n\r\n");
	else if (f->mode == FAKE_DENIED)
		evbuffer_add_printf(out, "-DENIED protected mode\r\n");
	else if (strcmp(argv[0], "INFO") == 0)
		answer_info(f, out, argc > 1 ? argv[1] : NULL);
	else if (strcmp(argv[0], "HOLD") == 0)
		f->held++;
	else if (strcmp(argv[0], "FAIL") == 0)
		evbuffer_add_printf(out, "-%s\r\n", argv[1]);
	else if (strcmp(argv[0], "ECHO") == 0)
		evbuffer_add_printf(
		    out, "$%zu\r\n%s\r\n", strlen(argv[1]), argv[1]);
	else if (strcmp(argv[0], "AUTH") == 0 && f->mode == FAKE_ECHOES)
		evbuffer_add_printf(out,
		    "-ERR unknown command 'AUTH', with args beginning with: "
		    "'%s'\r\n",
		    argv[1]);
	else if (strcmp(argv[0], "CLOSE") == 0) {
		bufferevent_free(f->conn);
		f->conn = NULL;
	} else {
		if (strcmp(argv[0], "CLIENT") == 0)
			f->named++;
		evbuffer_add_printf(out, "+OK\r\n");
	}
}

/* Cuts whole commands (at most 4 short words kept) out of what has arrived. */
static void
on_fake_read(struct bufferevent *bev, void *arg)
{
	struct fake *f = arg;
	struct evbuffer *in = bufferevent_get_input(bev);

	while (f->conn == bev) {
		char *text = (char *)evbuffer_pullup(in, -1), *at = text;
		size_t len = evbuffer_get_length(in);
		char *words[4] = {NULL};
		int argc;

		if (len < 4 || memchr(text, '\n', len) == NULL)
			return;
		argc = (int)strtol(at + 1, NULL, 10);
		at = memchr(at, '\n', len);
		at++;
		for (int i = 0; i < argc; i++) {
			size_t left = len - (size_t)(at - text), size;
			char *end = left > 0 ? memchr(at, '\n', left) : NULL;

			size = end != NULL ? strtoul(at + 1, NULL, 10) : 0;
			if (end == NULL ||
			    (size_t)(end + 1 - text) + size + 2 > len) {
				for (int j = 0; j < 4; j++)
					free(words[j]);
				return;
			}
			if (i < 4)
				words[i] = strndup(end + 1, size);
			at = end + 1 + size + 2;
		}
		evbuffer_drain(in, (size_t)(at - text));
		fake_answer(f, words, argc);
		for (int j = 0; j < 4; j++)
			free(words[j]);
	}
}

static void
on_fake_event(struct bufferevent *bev, short what, void *arg)
{
	struct fake *f = arg;

	(void)what;
	if (f->conn == bev)
		f->conn = NULL;
	bufferevent_free(bev);
}

static void
on_fake_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *sa, int len, void *arg)
{
	struct fake *f = arg;

	(void)listener;
	(void)sa;
	(void)len;
	f->accepted++;
	if (f->mode == FAKE_CLOSES) {
		close(fd);
		return;
	}
	if (f->conn != NULL)
		bufferevent_free(f->conn);
	f->conn = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(f->conn, on_fake_read, NULL, on_fake_event, f);
	bufferevent_enable(f->conn, EV_READ | EV_WRITE);
}

static void
fake_start(struct fake *f, enum fake_mode mode)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	memset(f, 0, sizeof(*f));
	f->mode = mode;
	f->listener = evconnlistener_new_bind(base, on_fake_accept, f,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16,
	    (struct sockaddr *)&a, sizeof(a));
	ck_assert_ptr_nonnull(f->listener);
	getsockname(
	    evconnlistener_get_fd(f->listener), (struct sockaddr *)&a, &len);
	f->endpoint = (struct endpoint){
	    .address = {.kind = ADDRESS_TCP,
		.text = (char *)"fake",
		.host = (char *)"127.0.0.1",
		.port = ntohs(a.sin_port)},
	    .username = (char *)"",
	    .password_file = (char *)"",
	};
}

static void
fake_release(struct fake *f, const char *reply)
{
	ck_assert_uint_gt(f->held, 0);
	f->held--;
	evbuffer_add_printf(bufferevent_get_output(f->conn), "%s\r\n", reply);
}

static void
fake_stop(struct fake *f)
{
	if (f->conn != NULL)
		bufferevent_free(f->conn);
	evconnlistener_free(f->listener);
}

/* --- up and down -------------------------------------------------------------*/

START_TEST(up_restart_new_run_id)
{
	struct redis_server s;
	struct seen seen;
	struct link *l;
	char first[82];

	redis_server_init(&s, true, NULL);
	redis_server_start(&s);
	l = open_link(&seen, _i == 0 ? &s.unix_endpoint : &s.tcp_endpoint);
	ck_assert(!link_is_up(l));
	wait_until(seen.up == 1);
	/* The process, and the history of its data. */
	ck_assert_uint_eq(strlen(seen.run_id), 81);
	ck_assert_int_eq(seen.run_id[40], ':');
	snprintf(first, sizeof(first), "%s", seen.run_id);
	redis_server_kill(&s);
	wait_until(seen.down == 1);
	redis_server_start(&s);
	wait_until(seen.up == 2);
	ck_assert_uint_eq(seen.down, 1);
	ck_assert_str_ne(first, seen.run_id);
	ck_assert_str_eq(link_run_id(l), seen.run_id);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(refused_then_started)
{
	struct redis_server s;
	struct seen seen;
	struct link *l;

	redis_server_init(&s, true, NULL);
	l = open_link(&seen, _i == 0 ? &s.unix_endpoint : &s.tcp_endpoint);
	wait_until(l->failures >= 2);
	ck_assert_uint_eq(seen.up + seen.down, 0);
	redis_server_start(&s);
	wait_until(seen.up == 1);
	ck_assert_uint_eq(seen.down, 0);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(drop_reconnects)
{
	struct redis_server s;
	struct answers a = {.total = 0};
	struct seen seen;
	struct link *l;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	seen.send_in_callbacks = true;
	ck_assert_int_eq(send_words(l, 0, &a, "PING", NULL, NULL), 0);
	link_drop(l, "by the test");
	ck_assert(!link_is_up(l));
	ck_assert_int_eq(send_words(l, 0, &a, "PING", NULL, NULL), -1);
	wait_until(seen.down == 1);
	ck_assert_uint_eq(a.total, 1);
	ck_assert_uint_eq(a.null, 1);
	ck_assert_uint_eq(seen.refused, 1);
	ck_assert_str_eq(seen.reason, "by the test");
	wait_until(seen.up == 2);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(long_unix_path)
{
	char path[200];
	struct endpoint e = {
	    .address = {.kind = ADDRESS_UNIX, .text = path, .path = path},
	    .username = (char *)"",
	    .password_file = (char *)""};
	struct seen seen;
	struct link *l;

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	l = open_link(&seen, &e);
	wait_until(l->failures == 1);
	ck_assert_ptr_nonnull(strstr(l->logged, "too long"));
	link_free(l);
}
END_TEST

START_TEST(database_and_name)
{
	struct redis_server s;
	struct link_options o = {
	    .connect_timeout_ms = 5000, .purpose = "a b\n", .db = 3};
	struct answers a = {.total = 0};
	struct link *l;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	o.base = base;
	o.endpoint = &s.unix_endpoint;
	l = link_new(&o);
	link_start(l);
	wait_until(link_is_up(l));
	ck_assert_int_eq(send_words(l, 0, &a, "CLIENT", "GETNAME", NULL), 0);
	wait_until(a.total == 1);
	ck_assert_str_eq(a.text, "bloomgate-a-b-");
	ck_assert_int_eq(send_words(l, 0, &a, "CLIENT", "INFO", NULL), 0);
	wait_until(a.total == 2);
	ck_assert_ptr_nonnull(strstr(a.text, " db=3 "));
	link_free(l);
	o.db = 99;
	l = link_new(&o);
	link_start(l);
	wait_until(l->failures == 1);
	ck_assert_str_eq(l->logged, "SELECT 99 is refused");
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

/* --- names ---------------------------------------------------------------------*/

START_TEST(resolves_off_the_loop)
{
	struct redis_server s;
	struct seen seen;
	struct link *l;

	redis_server_init(&s, true, NULL);
	redis_server_start(&s);
	s.tcp_endpoint.address.host = (char *)"localhost";
	l = open_link(&seen, &s.tcp_endpoint);
	ck_assert_int_eq(l->state, LINK_STATE_RESOLVING);
	wait_until(seen.up == 1);
	link_free(l);
	/* freed while the lookup runs */
	for (int i = 0; i < 20; i++) {
		l = open_link(&seen, &s.tcp_endpoint);
		if (i % 2 == 0)
			event_base_loop(base, EVLOOP_NONBLOCK);
		link_free(l);
	}
	redis_server_fini(&s);
}
END_TEST

START_TEST(name_that_does_not_exist)
{
	struct endpoint e = {.address = {.kind = ADDRESS_TCP,
				 .text = (char *)"nowhere.invalid:1",
				 .host = (char *)"nowhere.invalid",
				 .port = 1},
	    .username = (char *)"",
	    .password_file = (char *)""};
	struct seen seen;
	struct link *l = open_link(&seen, &e);

	wait_until(l->failures == 1);
	ck_assert_ptr_nonnull(strstr(l->logged, "name lookup"));
	/* A drop while it looks up again goes to the back-off, once. */
	wait_until(l->state == LINK_STATE_RESOLVING);
	link_drop(l, "test");
	wait_until(l->state == LINK_STATE_WAITING);
	link_free(l);
}
END_TEST

/* --- AUTH ----------------------------------------------------------------------*/

static void
write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(auth_with_rotated_secrets)
{
	static const char *const args[] = {"--requirepass", "one", NULL};
	struct redis_server s;
	char file[128];
	struct seen seen;
	struct link *l;

	redis_server_init(&s, false, args);
	redis_server_start(&s);
	snprintf(file, sizeof(file), "%s/secrets", s.dir);
	write_file(file, "wrong\none\n");
	s.unix_endpoint.password_file = file;
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	/* the file is read again at each connect */
	write_file(file, "two\n");
	redis_server_kill(&s);
	wait_until(seen.down == 1);
	s.args[1] = "two";
	redis_server_start(&s);
	wait_until(seen.up == 2);
	write_file(file, "wrong\nbad\n");
	link_drop(l, "test");
	wait_until(strstr(l->logged, "every secret") != NULL);
	ck_assert_uint_eq(seen.up, 2);
	/* a file that gives no secret, one that is gone, no file at all */
	write_file(file, "");
	wait_until(strstr(l->logged, "every secret") == NULL);
	unlink(file);
	wait_until(strstr(l->logged, "No such file") != NULL);
	s.unix_endpoint.password_file = (char *)"";
	wait_until(strstr(l->logged, "set password-file") != NULL);
	ck_assert_uint_eq(seen.up, 2);
	s.unix_endpoint.password_file = file;
	write_file(file, "two");
	wait_until(seen.up == 3);
	ck_assert_ptr_null(l->handshake.secrets.items);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(auth_with_a_user)
{
	struct redis_server s;
	char file[128];
	struct seen seen;
	struct link *l;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	redis_server_want(&s, "ACL SETUSER gate on >pw ~* +@all", "+OK");
	redis_server_want(&s, "ACL SETUSER open on nopass ~* +@all", "+OK");
	redis_server_want(&s, "ACL SETUSER default off", "+OK");
	snprintf(file, sizeof(file), "%s/secrets", s.dir);
	write_file(file, "x\npw\n");
	s.unix_endpoint.username = (char *)"gate";
	s.unix_endpoint.password_file = file;
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	link_free(l);
	s.unix_endpoint.username = (char *)"open";
	s.unix_endpoint.password_file = (char *)"";
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	link_free(l);
	s.unix_endpoint.username = (char *)"nobody";
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(l->failures == 1);
	ck_assert_uint_eq(seen.up, 0);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(password_for_a_redis_without)
{
	struct redis_server s;
	char file[128];
	struct seen seen;
	struct link *l;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	snprintf(file, sizeof(file), "%s/secrets", s.dir);
	write_file(file, "pw\n");
	s.unix_endpoint.password_file = file;
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(secrets_are_not_logged)
{
	char file[] = "/tmp/bgs-XXXXXX";
	struct fake f;
	struct seen seen;
	struct link *l;

	close(mkstemp(file));
	write_file(file, "hush-hush\n");
	fake_start(&f, FAKE_ECHOES);
	f.endpoint.password_file = file;
	l = open_link(&seen, &f.endpoint);
	wait_until(l->failures == 1);
	ck_assert_str_eq(l->logged, "AUTH is refused");
	ck_assert_ptr_null(
	    memmem(l->wire.data, l->wire.capacity, "hush-hush", 9));
	link_free(l);
	fake_stop(&f);
	unlink(file);
}
END_TEST

/* --- what does not count -----------------------------------------------------*/

START_TEST(replica_is_refused)
{
	static const char *const args[] = {"--replicaof", "127.0.0.1 1", NULL};
	struct redis_server s;
	struct link_options o = {
	    .connect_timeout_ms = 5000, .purpose = "test", .any_role = true};
	struct seen seen;
	struct link *l;

	redis_server_init(&s, false, args);
	redis_server_start(&s);
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(l->failures == 1);
	ck_assert_ptr_nonnull(strstr(l->logged, "replica"));
	ck_assert_uint_eq(seen.up, 0);
	/* promoted: the next attempt finds a master */
	redis_server_want(&s, "REPLICAOF NO ONE", "+OK");
	wait_until(seen.up == 1);
	redis_server_want(&s, "REPLICAOF 127.0.0.1 1", "+OK");
	link_free(l);
	o.base = base;
	o.endpoint = &s.unix_endpoint;
	l = link_new(&o);
	link_start(l);
	wait_until(link_is_up(l));
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(bad_servers)
{
	static const struct {
		enum fake_mode mode;
		const char *reason;
	} cases[] = {
	    {FAKE_LOADING, "LOADING"},
	    {FAKE_LOADING_1, "loading its data"},
	    {FAKE_NO_INFO, "INFO is refused"},
	    {FAKE_NO_RUN_ID, "no run id"},
	    {FAKE_DENIED, "protected mode"},
	    {FAKE_GARBAGE, "Protocol error"},
	    {FAKE_CLOSES, ""},
	    {FAKE_REPLICA, "replica"},
	};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, cases[_i].mode);
	l = open_link(&seen, &f.endpoint);
	wait_until(l->failures == 2);
	ck_assert_msg(strstr(l->logged, cases[_i].reason) != NULL, "%s: %s",
	    cases[_i].reason, l->logged);
	ck_assert_uint_eq(seen.up + seen.down, 0);
	ck_assert_uint_ge(f.accepted, 2);
	f.mode = FAKE_GOOD;
	wait_until(seen.up == 1);
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(info_without_sections)
{
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_NO_SECTION);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	ck_assert_uint_eq(f.plain_info, 1);
	ck_assert_str_eq(
	    seen.run_id, "0123456789012345678901234567890123456789");
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(silent_server)
{
	struct link_options o = {.connect_timeout_ms = 100, .purpose = "test"};
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_SILENT);
	o.base = base;
	o.endpoint = &f.endpoint;
	l = link_new(&o);
	link_start(l);
	wait_until(l->failures == 1);
	ck_assert_ptr_nonnull(strstr(l->logged, "no answer in time"));
	f.mode = FAKE_GOOD;
	wait_until(link_is_up(l));
	link_free(l);
	fake_stop(&f);
}
END_TEST

/* --- answers, timeouts, losses ---------------------------------------------*/

START_TEST(errors_that_drop)
{
	static const char *const errors[] = {
	    "READONLY You can't write against a read only replica.",
	    "LOADING Redis is loading",
	    "MASTERDOWN Link with MASTER is down",
	    "UNBLOCKED force unblock",
	    "ERR Error running script (call to f_00): @user_script:1: "
	    "@user_script: 1: -READONLY You can't write against it",
	};
	struct answers a = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	ck_assert_int_eq(send_words(l, 0, &a, "FAIL", errors[_i], NULL), 0);
	wait_until(seen.down == 1);
	ck_assert_uint_eq(a.errors, 1); /* delivered before */
	ck_assert_str_eq(a.text, errors[_i]);
	wait_until(seen.up == 2);
	ck_assert_int_eq(
	    send_words(l, 0, &a, "FAIL", "OOM command not allowed", NULL), 0);
	ck_assert_int_eq(send_words(l, 0, &a, "FAIL", "READONLYX no", NULL), 0);
	wait_until(a.total == 3);
	event_base_loop(base, EVLOOP_NONBLOCK);
	ck_assert(link_is_up(l));
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(timeout_and_late_reply)
{
	struct answers slow = {.total = 0}, quick = {.total = 0};
	struct answers none = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	ck_assert_int_eq(send_words(l, 30, &slow, "HOLD", NULL, NULL), 0);
	ck_assert_int_eq(send_words(l, 0, &none, "HOLD", NULL, NULL), 0);
	wait_until(slow.total == 1);
	ck_assert_uint_eq(slow.null, 1);
	ck_assert(link_is_up(l));
	/* The late reply belongs to the first and goes nowhere. */
	fake_release(&f, ":1");
	fake_release(&f, ":2");
	ck_assert_int_eq(send_words(l, 1000, &quick, "ECHO", "3", NULL), 0);
	wait_until(quick.total == 1);
	ck_assert_int_eq(quick.last, 3);
	ck_assert_uint_eq(none.total, 1);
	ck_assert_int_eq(none.last, 2);
	ck_assert_uint_eq(slow.total, 1);
	ck_assert_uint_eq(l->requests.outstanding, 0);
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(late_reply_that_says_readonly_drops)
{
	struct answers slow = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	ck_assert_int_eq(send_words(l, 20, &slow, "HOLD", NULL, NULL), 0);
	wait_until(slow.total == 1);
	fake_release(&f, "-READONLY no");
	wait_until(seen.down == 1);
	ck_assert_uint_eq(slow.total, 1);
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(overdue_drops)
{
	struct answers a = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	ck_assert_int_eq(send_words(l, 20, &a, "HOLD", NULL, NULL), 0);
	wait_until(a.total == 1);
	clock_test_shift(INT64_C(5100000000), 0);
	/* Its deadline makes the link look at the clock. */
	ck_assert_int_eq(send_words(l, 20, &a, "HOLD", NULL, NULL), 0);
	wait_until(seen.down == 1);
	ck_assert_uint_eq(a.total, 2);
	ck_assert_uint_eq(a.null, 2);
	ck_assert_ptr_nonnull(strstr(seen.reason, "no answer"));
	clock_test_shift(0, 0);
	link_free(l);
	fake_stop(&f);
}
END_TEST

/* Many timeouts, more different ones than there are lists. */
START_TEST(deadlines_in_order)
{
	struct answers a[30];
	struct seen seen;
	struct fake f;
	struct link *l;
	unsigned done = 0;

	memset(a, 0, sizeof(a));
	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	for (unsigned i = 0; i < 30; i++)
		ck_assert_int_eq(send_words(l, 20 + (i * 7) % 30 * 10, &a[i],
				     "HOLD", NULL, NULL),
		    0);
	while (done < 30) {
		uint64_t before = 0;

		event_base_loop(base, EVLOOP_ONCE);
		done = 0;
		for (unsigned i = 0; i < 30; i++)
			done += a[i].total;
		/* None is out while a much shorter one is not. */
		for (unsigned i = 0; i < 30; i++) {
			uint64_t ms = 20 + (i * 7) % 30 * 10;

			if (a[i].total > 0 && ms > before)
				before = ms;
		}
		for (unsigned i = 0; i < 30; i++) {
			if (20 + (i * 7) % 30 * 10 + 10 < before)
				ck_assert_uint_eq(a[i].total, 1);
		}
	}
	ck_assert_uint_eq(l->requests.outstanding, 30);
	link_free(l);
	for (unsigned i = 0; i < 30; i++)
		ck_assert_uint_eq(a[i].total, 1);
	fake_stop(&f);
}
END_TEST

/* A loop that stood still past a deadline reads before it gives up. */
START_TEST(stall_is_no_timeout)
{
	struct redis_server s;
	struct answers a = {.total = 0};
	struct pollfd p = {.events = POLLIN};
	struct seen seen;
	struct link *l;
	uint64_t end_ns;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	redis_server_want(&s, "SETRANGE big 999999 x", ":1000000");
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	ck_assert_int_eq(send_words(l, 300, &a, "GET", "big", NULL), 0);
	end_ns = clock_boot_ns() + UINT64_C(400000000);
	while (l->ac->ev.data != NULL && a.total == 0) {
		event_base_loop(base, EVLOOP_NONBLOCK); /* sends it */
		p.fd = l->ac->c.fd;
		if (poll(&p, 1, 100) == 1)
			break;
	}
	while (clock_boot_ns() < end_ns)
		; /* the stall */
	wait_until(a.total == 1);
	ck_assert_uint_eq(a.null, 0);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(lost_with_outstanding)
{
	struct answers a = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	seen.send_in_callbacks = true;
	a.seen = &seen;
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(
		    send_words(l, i % 2 ? 5000 : 0, &a, "HOLD", NULL, NULL), 0);
	ck_assert_int_eq(send_words(l, 0, &a, "CLOSE", NULL, NULL), 0);
	wait_until(seen.down == 1);
	ck_assert_uint_eq(a.total, 101);
	ck_assert_uint_eq(a.null, 101);
	ck_assert_uint_eq(seen.refused, 102); /* and one by on_down */
	wait_until(seen.up == 2);
	ck_assert_uint_eq(a.total, 101);
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(free_with_outstanding)
{
	struct answers a = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(
		    send_words(l, i % 3 ? 20 : 0, &a, "HOLD", NULL, NULL), 0);
	if (_i == 1) /* some have timed out, some have not left at all */
		wait_until(a.total > 0);
	if (_i == 2)
		link_drop(l, "test");
	link_free(l);
	ck_assert_uint_eq(a.total, 50);
	ck_assert_uint_eq(a.null, 50);
	ck_assert_uint_eq(seen.down, 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	ck_assert_uint_eq(a.total, 50);
	fake_stop(&f);
}
END_TEST

START_TEST(free_at_every_state)
{
	struct seen seen;
	struct fake f;

	fake_start(&f, FAKE_SILENT);
	for (int turns = 0; turns < 12; turns++) {
		struct link *l = open_link(&seen, &f.endpoint);

		for (int i = 0; i < turns; i++)
			event_base_loop(base, EVLOOP_NONBLOCK);
		link_free(l);
	}
	f.mode = FAKE_GOOD;
	for (int turns = 0; turns < 12; turns++) {
		struct link *l = open_link(&seen, &f.endpoint);

		for (int i = 0; i < turns; i++)
			event_base_loop(base, EVLOOP_NONBLOCK);
		link_free(l);
	}
	fake_stop(&f);
}
END_TEST

START_TEST(big_pipeline)
{
	struct redis_server s;
	struct answers a = {.ordered = true};
	struct seen seen;
	struct link *l;
	unsigned n = 0;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	l = open_link(&seen, &s.unix_endpoint);
	wait_until(seen.up == 1);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 10000; i++) {
			char number[16];

			snprintf(number, sizeof(number), "%u", n++);
			ck_assert_int_eq(send_words(l, i % 2 ? 20000 : 0, &a,
					     "ECHO", number, NULL),
			    0);
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	wait_until(a.total == n);
	ck_assert_uint_eq(a.null + a.errors, 0);
	ck_assert(a.ordered);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

/* --- link_call and scripts ---------------------------------------------------*/

static struct redisReply *
call_words(struct link *l, uint64_t timeout_ms, const _Atomic bool *cancel,
    const char *one, const char *two)
{
	struct slice argv[2] = {slice_str(one), slice_str(two ? two : "")};

	return link_call(l, timeout_ms, argv, two != NULL ? 2 : 1, cancel);
}

START_TEST(calls)
{
	struct redis_server s;
	struct slice argv[3] = {slice_str("SET"), slice_str("big")};
	uint8_t *data = mem_alloc(200000);
	struct redisReply *r;
	struct seen seen;
	struct link *l;

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	l = open_link(&seen, &s.unix_endpoint);
	r = call_words(l, 10000, NULL, "PING", NULL); /* waits for up */
	ck_assert_int_eq(link_reply_type(r), LINK_STATUS);
	ck_assert(slice_is(link_reply_text(r), "PONG"));
	link_reply_free(r);
	for (size_t i = 0; i < 200000; i++)
		data[i] = (uint8_t)(i * 7 >> 3);
	argv[2] = slice_of(data, 200000);
	link_reply_free(link_call(l, 10000, argv, 3, NULL));
	r = call_words(l, 10000, NULL, "GET", "big");
	ck_assert(slice_eq(link_reply_text(r), argv[2]));
	link_reply_free(r);
	r = call_words(l, 0, NULL, "GET", "nothing");
	ck_assert_int_eq(link_reply_type(r), LINK_NIL);
	link_reply_free(r);
	r = call_words(l, 0, NULL, "COMMAND", NULL);
	ck_assert_uint_gt(link_reply_count(r), 100);
	ck_assert_int_eq(link_reply_type(link_reply_at(r, 0)), LINK_ARRAY);
	ck_assert_ptr_null(link_reply_at(r, link_reply_count(r)));
	link_reply_free(r);
	r = call_words(l, 0, NULL, "NOSUCH", NULL);
	ck_assert(link_reply_is_error(r, "ERR"));
	ck_assert(!link_reply_is_error(r, "ER"));
	ck_assert(!link_reply_is_error(NULL, "ERR"));
	link_reply_free(r);
	redis_server_kill(&s);
	ck_assert_ptr_null(call_words(l, 200, NULL, "PING", NULL));
	link_free(l);
	free(data);
	redis_server_fini(&s);
}
END_TEST

struct canceller {
	_Atomic bool cancel;
	uint64_t at_ms;
};

static void *
cancel_thread(void *arg)
{
	struct canceller *c = arg;

	while (clock_boot_ms() < c->at_ms)
		poll(NULL, 0, 1);
	atomic_store_explicit(&c->cancel, true, memory_order_release);
	return NULL;
}

START_TEST(call_timeout_and_cancel)
{
	struct canceller c = {.at_ms = clock_boot_ms() + 150};
	struct answers a = {.total = 0};
	uint64_t began_ms;
	struct seen seen;
	pthread_t thread;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	began_ms = clock_boot_ms();
	ck_assert_ptr_null(call_words(l, 60, NULL, "HOLD", NULL));
	ck_assert_uint_ge(clock_boot_ms() - began_ms, 60);
	fake_release(&f, ":1");
	ck_assert_int_eq(pthread_create(&thread, NULL, cancel_thread, &c), 0);
	ck_assert_ptr_null(call_words(l, 0, &c.cancel, "HOLD", NULL));
	ck_assert(c.cancel);
	pthread_join(thread, NULL);
	ck_assert_ptr_null(call_words(l, 0, &c.cancel, "PING", NULL));
	/* The abandoned answer is not taken for the next one's. */
	fake_release(&f, ":2");
	ck_assert_int_eq(send_words(l, 0, &a, "ECHO", "7", NULL), 0);
	wait_until(a.total == 1);
	ck_assert_int_eq(a.last, 7);
	/* Lost while waiting: NULL at once, without a timeout. */
	ck_assert_ptr_null(call_words(l, 0, NULL, "CLOSE", NULL));
	/* Not up, and never: the timeout ends it. */
	f.mode = FAKE_CLOSES;
	wait_until(!link_is_up(l));
	ck_assert_ptr_null(call_words(l, 100, NULL, "PING", NULL));
	link_free(l);
	fake_stop(&f);
}
END_TEST

START_TEST(scripts_load_themselves)
{
	struct redis_server s;
	struct slice argv[2] = {slice_str("m"), slice_str("token")};
	struct answers a = {.total = 0};
	struct redisReply *r;
	struct seen seen;
	struct link *l;
	char line[128];

	redis_server_init(&s, false, NULL);
	redis_server_start(&s);
	l = open_link(&seen, &s.unix_endpoint);
	for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
		/* Not the right number of arguments: an error from within,
		 * which shows that it was compiled under its own name. */
		r = script_call(l, i, 10000, 1, argv, 2, NULL);
		ck_assert_msg(!link_reply_is_error(r, "NOSCRIPT") &&
			link_reply_type(r) != LINK_NONE,
		    "%s", script_name(i));
		link_reply_free(r);
		snprintf(
		    line, sizeof(line), "SCRIPT EXISTS %s", script_sha1(i));
		redis_server_want(&s, line, "*1");
		r = script_call(l, SCRIPT_RELEASE, 10000, 1, argv, 2, NULL);
		ck_assert_int_eq(link_reply_integer(link_reply_at(r, 0)), 1);
		link_reply_free(r);
	}
	for (int i = 0; i < 3; i++) {
		redis_server_want(&s, "SCRIPT FLUSH", "+OK");
		ck_assert_int_eq(script_run(l, SCRIPT_RELEASE, i * 5000,
				     on_answer, &a, 1, argv, 2),
		    0);
		ck_assert_int_eq(
		    script_run(l, SCRIPT_RELEASE, 0, on_answer, &a, 1, argv, 2),
		    0);
		wait_until(a.total == 2 * (unsigned)i + 2);
		ck_assert_uint_eq(a.null + a.errors, 0);
	}
	redis_server_want(&s, "CONFIG RESETSTAT", "+OK");
	ck_assert_int_eq(
	    script_run(l, SCRIPT_RELEASE, 0, on_answer, &a, 1, argv, 2), 0);
	wait_until(a.total == 7);
	r = call_words(l, 0, NULL, "INFO", "commandstats");
	ck_assert_ptr_null(memmem(link_reply_text(r).data,
	    link_reply_text(r).len, "cmdstat_eval:", 13));
	link_reply_free(r);
	link_drop(l, "test");
	ck_assert_int_eq(
	    script_run(l, SCRIPT_RELEASE, 0, on_answer, &a, 1, argv, 2), -1);
	link_free(l);
	redis_server_fini(&s);
}
END_TEST

START_TEST(script_lost_between_evalsha_and_eval)
{
	struct slice argv[2] = {slice_str("m"), slice_str("token")};
	struct answers a = {.total = 0};
	struct seen seen;
	struct fake f;
	struct link *l;

	fake_start(&f, FAKE_GOOD);
	l = open_link(&seen, &f.endpoint);
	wait_until(seen.up == 1);
	/* Answered out of the loop: +OK for EVALSHA is passed on as it is. */
	ck_assert_int_eq(
	    script_run(l, SCRIPT_ADD, 100, on_answer, &a, 1, argv, 2), 0);
	wait_until(a.total == 1);
	ck_assert_str_eq(a.text, "OK");
	f.mode = FAKE_SILENT;
	ck_assert_int_eq(
	    script_run(l, SCRIPT_ADD, 30, on_answer, &a, 1, argv, 2), 0);
	wait_until(a.total == 2);
	ck_assert_uint_eq(a.null, 1);
	evbuffer_add_printf(bufferevent_get_output(f.conn),
	    "-NOSCRIPT No matching script\r\n"); /* late: no EVAL */
	f.mode = FAKE_GOOD;
	ck_assert_int_eq(send_words(l, 0, &a, "ECHO", "5", NULL), 0);
	wait_until(a.total == 3);
	ck_assert_int_eq(a.last, 5);
	link_free(l);
	fake_stop(&f);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("redis link");
	TCase *t = tcase_create("link");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, up_restart_new_run_id, 0, 2);
	tcase_add_loop_test(t, refused_then_started, 0, 2);
	tcase_add_test(t, drop_reconnects);
	tcase_add_test(t, long_unix_path);
	tcase_add_test(t, database_and_name);
	tcase_add_test(t, resolves_off_the_loop);
	tcase_add_test(t, name_that_does_not_exist);
	tcase_add_test(t, auth_with_rotated_secrets);
	tcase_add_test(t, auth_with_a_user);
	tcase_add_test(t, password_for_a_redis_without);
	tcase_add_test(t, secrets_are_not_logged);
	tcase_add_test(t, replica_is_refused);
	tcase_add_loop_test(t, bad_servers, 0, 8);
	tcase_add_test(t, info_without_sections);
	tcase_add_test(t, silent_server);
	tcase_add_loop_test(t, errors_that_drop, 0, 5);
	tcase_add_test(t, timeout_and_late_reply);
	tcase_add_test(t, late_reply_that_says_readonly_drops);
	tcase_add_test(t, overdue_drops);
	tcase_add_test(t, deadlines_in_order);
	tcase_add_test(t, stall_is_no_timeout);
	tcase_add_test(t, lost_with_outstanding);
	tcase_add_loop_test(t, free_with_outstanding, 0, 3);
	tcase_add_test(t, free_at_every_state);
	tcase_add_test(t, big_pipeline);
	tcase_add_test(t, calls);
	tcase_add_test(t, call_timeout_and_cancel);
	tcase_add_test(t, scripts_load_themselves);
	tcase_add_test(t, script_lost_between_evalsha_and_eval);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
