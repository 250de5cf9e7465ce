/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session mode against a redis-server of the test's own: random sessions get
 * as many replies as the mode expects, and are what CLIENT LIST says they are.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "core/random.h"
#include "mode_fixture.h"
#include "redis_server.h"
#include "resp/encode.h"

struct live {
	struct redis_server server;
	int fd, other; /* the session; who looks at it */
	struct mode m;
	struct buf in; /* bytes read and not yet framed */
};

static int
dial(const struct redis_server *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", s->path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void
send_words(int fd, const char *words)
{
	struct slice argv[FIXTURE_ARGS];
	size_t argc = fixture_split(words, argv);
	struct buf out;

	buf_init(&out, 65536);
	ck_assert_int_eq(encode_request(&out, argv, argc), 0);
	ck_assert_int_eq(
	    write(fd, buf_head(&out), buf_len(&out)), (ssize_t)buf_len(&out));
	buf_fini(&out);
}

/* Reads until r is complete. */
static void
read_reply(int fd, struct buf *in, struct reply *r)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	enum parse_status status = PARSE_MORE;
	size_t used;

	for (;;) {
		if (buf_len(in) != 0) {
			status = reply_feed(
			    r, buf_head(in), buf_len(in), &used);
			ck_assert_int_ne(status, PARSE_BAD);
			buf_consume(in, used);
			if (status == PARSE_READY)
				return;
		}
		ck_assert_int_eq(poll(&p, 1, 10000), 1);
		ssize_t n = read(fd, buf_reserve(in, 4096), 4096);

		ck_assert_int_gt(n, 0);
		buf_commit(in, (size_t)n);
	}
}

/* PING's answer, and what it is under RESP2 with subscriptions. */
static bool
is_mark(const struct reply *r)
{
	static const char *const marks[] = {
	    "$4\r\nmark\r\n", "*2\r\n$4\r\npong\r\n$4\r\nmark\r\n"};
	struct slice head = slice_of(r->head, r->head_len);

	return slice_is(head, marks[0]) || slice_is(head, marks[1]);
}

/* One request of the session, all its replies, and a PING that must come next. */
static void
live_do(struct live *l, const char *words)
{
	struct change *c = fixture_ask(&l->m, words, MODE_SEND);
	struct reply r;
	bool last = false;

	send_words(l->fd, words);
	send_words(l->fd, "ping mark");
	reply_init(&r);
	while (!last) {
		read_reply(l->fd, &l->in, &r);
		ck_assert_msg(!is_mark(&r),
		    "%s: more replies are expected than Redis gives", words);
		if (!mode_out_of_band(&l->m, &r, c))
			last = c == NULL || mode_reply(&l->m, c, &r);
		reply_reset(&r);
	}
	do {
		reply_reset(&r);
		read_reply(l->fd, &l->in, &r);
	} while (mode_out_of_band(&l->m, &r, NULL));
	ck_assert_msg(is_mark(&r) ||
		(l->m.in_multi &&
		    slice_is(slice_of(r.head, r.head_len), "+QUEUED\r\n")),
	    "%s: Redis gives more replies than expected: %.*s", words,
	    (int)r.head_len, (const char *)r.head);
	reply_fini(&r);
}

/* The value of a field of CLIENT LIST's only line. */
static void
field(const char *line, const char *name, char *out, size_t size)
{
	char key[24];
	const char *at;

	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(line, key);
	ck_assert_msg(at != NULL, "no %s in %s", name, line);
	at += strlen(key);
	snprintf(out, size, "%.*s", (int)strcspn(at, " \n"), at);
}

static void
want_number(const char *line, const char *name, uint64_t want, const char *last)
{
	char text[64];

	field(line, name, text, sizeof(text));
	ck_assert_msg(strtoull(text, NULL, 10) == want,
	    "after %s: %s is %s, not %llu: %s", last, name, text,
	    (unsigned long long)want, line);
}

static void
want_flag(const char *flags, char flag, bool want, const char *last)
{
	ck_assert_msg((strchr(flags, flag) != NULL) == want,
	    "after %s: flags %s, but %c is%s expected", last, flags, flag,
	    want ? "" : " not");
}

/* What CLIENT LIST says of the session, a bulk string with one line in it. */
static void
list(struct live *l, const char *id, char *line, size_t size)
{
	struct pollfd p = {.fd = l->other, .events = POLLIN};
	char words[64];
	size_t len = 0;

	snprintf(words, sizeof(words), "client list id %s", id);
	send_words(l->other, words);
	do {
		ck_assert_int_eq(poll(&p, 1, 10000), 1);
		ssize_t n = read(l->other, line + len, size - 1 - len);

		ck_assert_int_gt(n, 0);
		len += (size_t)n;
		line[len] = '\0';
	} while (strstr(line, "\n\r\n") == NULL);
}

/* Compares the mode with what Redis knows of the session. */
static void
compare(struct live *l, const char *id, const char *last)
{
	const struct mode *m = &l->m;
	char line[2048], text[64];

	list(l, id, line, sizeof(line));
	want_number(line, "db", m->db, last);
	want_number(line, "resp", (uint64_t)m->proto, last);
	want_number(line, "sub", m->subs[SUBS_CHANNEL], last);
	want_number(line, "psub", m->subs[SUBS_PATTERN], last);
	want_number(line, "ssub", m->subs[SUBS_SHARD], last);
	field(line, "multi", text, sizeof(text));
	ck_assert_msg(
	    (text[0] != '-') == m->in_multi, "after %s: %s", last, line);
	field(line, "flags", text, sizeof(text));
	want_flag(text, 't', m->switches[SWITCH_TRACKING], last);
	want_flag(text, 'e', m->switches[SWITCH_NO_EVICT], last);
	want_flag(text, 'P',
	    m->subs[SUBS_CHANNEL] + m->subs[SUBS_PATTERN] +
		    m->subs[SUBS_SHARD] !=
		0,
	    last);
	want_flag(text, 'x', m->in_multi, last);
	field(line, "user", text, sizeof(text));
	ck_assert_msg(strcmp(text, m->user != NULL ? m->user : "default") == 0,
	    "after %s: user %s, not %s", last, text,
	    m->user != NULL ? m->user : "default");
	field(line, "name", text, sizeof(text));
	ck_assert_msg(strlen(text) == m->name_len &&
		memcmp(text, m->name != NULL ? m->name : (void *)"",
		    m->name_len) == 0,
	    "after %s: name %s", last, text);
}

/* What a random session sends; each is drawn as often as it stands here. */
static const char *const lives[] = {"subscribe a", "subscribe a b c",
    "subscribe a a b", "subscribe", "psubscribe p*", "psubscribe p* q* p*",
    "ssubscribe s", "ssubscribe s t u", "unsubscribe", "unsubscribe a",
    "unsubscribe a x a", "punsubscribe", "punsubscribe q* q*", "sunsubscribe",
    "sunsubscribe s t", "select 1", "select 2", "select 99", "select",
    "hello 2", "hello 3", "hello 4", "hello", "hello x", "hello 3 auth u pw",
    "hello 2 auth v pw setname n", "hello 3 auth u no",
    "hello 3 auth u no setname m", "hello 3 setname o", "auth u pw",
    "auth v pw", "auth u no", "auth default any", "auth u", "auth a b c",
    "client setname x", "client setname y", "client setname ''", "client id",
    "multi", "multi", "multi", "exec", "exec", "exec x", "discard", "watch k",
    "watch k l", "watch k", "unwatch", "set k v", "get k", "nosuch", "set k",
    "reset", "client tracking on", "client tracking on bcast",
    "client tracking on foo", "client tracking off",
    "client tracking off bcast", "client caching yes", "client no-evict on",
    "client no-evict off", "client no-evict foo", "client reply on",
    "client foo", "client list", "client getredir", "client pause 0",
    "blpop nolist 0.001", "wait 0 0"};
#define LIVES (sizeof(lives) / sizeof(*lives))

#define LIVE_STEPS 4000

static void
begin(struct live *l, char *id, size_t size)
{
	struct reply r;

	l->fd = dial(&l->server);
	mode_init(&l->m);
	buf_init(&l->in, 1 << 20);
	reply_init(&r);
	send_words(l->fd, "client id");
	read_reply(l->fd, &l->in, &r);
	snprintf(id, size, "%lld", (long long)r.number);
	reply_fini(&r);
}

static void
end(struct live *l)
{
	close(l->fd);
	l->fd = -1;
	mode_fini(&l->m);
	buf_fini(&l->in);
}

static bool
would_be_opaque(struct mode *m, const char *words)
{
	struct slice argv[FIXTURE_ARGS];
	size_t argc = fixture_split(words, argv);
	struct change *c;
	enum mode_wish wish;

	wish = mode_request(m, fixture_command(argv[0]), argv, argc, true, &c);
	ck_assert_int_ne(wish, MODE_WAIT);
	if (c != NULL)
		mode_abandon(m, c);
	return wish == MODE_OPAQUE_WISH;
}

/* Others publish: what is no reply comes in between. */
static void
publish(struct live *l)
{
	redis_server_want(&l->server, "PUBLISH a m", ":");
	redis_server_want(&l->server, "PUBLISH px m", ":");
	redis_server_want(&l->server, "SPUBLISH s m", ":");
}

/* Whether k is watched is seen by a transaction only: it fails when k changes. */
static void
probe_watch(struct live *l)
{
	struct reply r;

	if (l->m.in_multi || l->m.user != NULL || mode_subscribed2(&l->m))
		return;
	/* In each database that it may have been watched in. */
	redis_server_want(&l->server,
	    "EVAL \"for i = 0, 2 do redis.call('SELECT', i) "
	    "redis.call('SET', 'k', 'other') end return 1\" 0",
	    ":1");
	send_words(l->fd, "multi");
	send_words(l->fd, "exec");
	reply_init(&r);
	for (unsigned replies = 0; replies < 2;) {
		read_reply(l->fd, &l->in, &r);
		replies += !mode_out_of_band(&l->m, &r, NULL);
		if (replies < 2)
			reply_reset(&r);
	}
	ck_assert_msg(r.nil == l->m.watched, "watched is %d, EXEC says %.*s",
	    l->m.watched, (int)r.head_len, (const char *)r.head);
	reply_fini(&r);
	l->m.watched = false;
}

/* A random session goes on as long as it is not opaque; then another begins. */
START_TEST(test_live)
{
	const char *given = getenv("BLOOMGATE_SEED"), *words;
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10)
				      : (unsigned)random_u64();
	unsigned sessions = 0, i;
	struct live l = {.fd = -1};
	char id[32];

	fprintf(stderr, "BLOOMGATE_SEED=%u\n", seed);
	srandom(seed);
	redis_server_init(&l.server, false, NULL);
	redis_server_start(&l.server);
	redis_server_want(
	    &l.server, "ACL SETUSER u on >pw ~* &* +@all -select -exec", "+OK");
	redis_server_want(&l.server,
	    "ACL SETUSER v on >pw ~* &a &p* +@all -ssubscribe -multi -hello",
	    "+OK");
	l.other = dial(&l.server);
	for (i = 0; i < LIVE_STEPS; i++) {
		if (l.fd == -1) {
			begin(&l, id, sizeof(id));
			sessions++;
		}
		words = lives[(size_t)random() % LIVES];
		if (would_be_opaque(&l.m, words)) {
			end(&l);
			continue;
		}
		live_do(&l, words);
		ck_assert_uint_eq(l.m.outstanding, 0);
		compare(&l, id, words);
		if (random() % 4 == 0)
			publish(&l);
		if (random() % 8 == 0)
			probe_watch(&l);
	}
	ck_assert_uint_gt(sessions, 10);
	if (l.fd != -1)
		end(&l);
	close(l.other);
	redis_server_fini(&l.server);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy_mode_live");
	TCase *t = tcase_create("live");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_live);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
