/* SPDX-License-Identifier: BSD-2-Clause */
/* See mode_fixture.h. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <check.h>

#include "mode_fixture.h"

/* Process-wide: every test has a process of its own. */
static struct command_table *table;

static void
add(const char *name, unsigned flags)
{
	struct command c = {.arity = -1, .flags = flags};

	snprintf(c.name, sizeof(c.name), "%s", name);
	command_table_add(table, &c);
}

const struct command *
fixture_command(struct slice name)
{
	if (table == NULL) {
		table = command_table_new();
		add("get", COMMAND_READONLY);
		add("set", COMMAND_WRITE);
		add("ping", 0);
		add("acl", 0);
		add("blpop", COMMAND_WRITE | COMMAND_BLOCKING);
	}
	return command_find(table, name);
}

size_t
fixture_split(const char *words, struct slice *argv)
{
	size_t argc = 0, len;

	for (;; words += len + 1) {
		ck_assert_uint_lt(argc, FIXTURE_ARGS);
		len = strcspn(words, " ");
		argv[argc++] = len == 2 && memcmp(words, "''", 2) == 0
		    ? slice_of(words, 0)
		    : slice_of(words, len);
		if (words[len] == '\0')
			return argc;
	}
}

struct change *
fixture_ask(struct mode *m, const char *words, enum mode_wish wish)
{
	struct slice argv[FIXTURE_ARGS];
	size_t argc = fixture_split(words, argv);
	const struct command *c = fixture_command(argv[0]);
	unsigned outstanding = m->outstanding;
	struct change *change = (struct change *)m;
	enum mode_wish got = mode_request(m, c, argv, argc, true, &change);

	ck_assert_msg(got == wish, "%s: wish %d, not %d", words, got, wish);
	ck_assert_uint_eq(m->outstanding, outstanding + (change != NULL));
	if (got != MODE_SEND)
		ck_assert_ptr_null(change);
	return change;
}

unsigned
fixture_answer(struct mode *m, struct change *c, const char *bytes)
{
	size_t len = strlen(bytes), used;
	unsigned outside = 0, outstanding = m->outstanding;
	enum parse_status status = PARSE_MORE;
	struct reply r;
	bool last = false;

	reply_init(&r);
	for (size_t i = 0; i < len; i++) {
		status = reply_feed(&r, (const uint8_t *)bytes + i, 1, &used);
		ck_assert_msg(status != PARSE_BAD, "not RESP: %s", bytes);
		ck_assert_uint_eq(used, 1);
		if (status != PARSE_READY)
			continue;
		if (mode_out_of_band(m, &r, c)) {
			outside++;
		} else {
			ck_assert_msg(!last, "one reply too many: %s", bytes);
			last = c == NULL || mode_reply(m, c, &r);
		}
		reply_reset(&r);
	}
	reply_fini(&r);
	ck_assert_msg(status == PARSE_READY, "cut: %s", bytes);
	ck_assert_msg(last, "more replies are expected than %s", bytes);
	ck_assert_uint_eq(m->outstanding, outstanding - (c != NULL));
	return outside;
}

void
fixture_do(struct mode *m, const char *words, const char *bytes)
{
	fixture_answer(m, fixture_ask(m, words, MODE_SEND), bytes);
}

static char text[1024];

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void
say(const char *fmt, ...)
{
	size_t at = strlen(text);
	va_list ap;

	if (at != 0)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "; ");
	va_start(ap, fmt);
	vsnprintf(text + at, sizeof(text) - at, fmt, ap);
	va_end(ap);
}

static void
say_bytes(const char *name, const uint8_t *data, size_t len)
{
	if (data != NULL)
		say("%s=%.*s", name, (int)len, (const char *)data);
}

const char *
fixture_text(const struct mode *m)
{
	static const char *const switches[SWITCHES] = {
	    "tracking", "no-evict", "no-touch"};

	text[0] = '\0';
	if (m->level != MODE_PLAIN)
		say("%s", m->level == MODE_OPAQUE ? "opaque" : "forward");
	if (m->proto != 2)
		say("proto=%d", m->proto);
	if (m->hello != 0)
		say("hello=%d", m->hello);
	if (m->db != 0)
		say("db=%u", m->db);
	ck_assert_int_eq(m->user != NULL, m->secret != NULL);
	if (m->user != NULL)
		say("user=%s:%.*s", m->user, (int)m->secret_len,
		    (const char *)m->secret);
	say_bytes("name", m->name, m->name_len);
	say_bytes("lib", m->lib_name, m->lib_name_len);
	say_bytes("ver", m->lib_version, m->lib_version_len);
	if (m->in_multi)
		say("multi");
	if (m->multi_failed)
		say("failed");
	if (m->watched)
		say("watched");
	for (unsigned i = 0; i < SWITCHES; i++)
		if (m->switches[i])
			say("%s", switches[i]);
	if (m->foreign)
		say("foreign");
	if (m->subs[SUBS_CHANNEL] != 0 || m->subs[SUBS_PATTERN] != 0 ||
	    m->subs[SUBS_SHARD] != 0)
		say("subs=%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		    m->subs[SUBS_CHANNEL], m->subs[SUBS_PATTERN],
		    m->subs[SUBS_SHARD]);
	if (mode_is_stateful(m))
		say("stateful");
	return text;
}
