/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RedisBloom commands for configured filters: answered here, never forwarded
 * (a Redis with the module would make a real filter of that name).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "proxy/add.h"
#include "proxy/check.h"
#include "proxy/permission.h"
#include "proxy/session.h"
#include "resp/encode.h"

enum bf_kind {
	BF_ADD,
	BF_MADD,
	BF_EXISTS,
	BF_MEXISTS,
	BF_RESERVE,
	BF_OTHER
};

static enum bf_kind
kind_of(struct slice name)
{
	static const char *const names[] = {
	    "bf.add", "bf.madd", "bf.exists", "bf.mexists", "bf.reserve"};
	size_t i;

	for (i = 0; i < BF_OTHER; i++)
		if (slice_is_nocase(name, names[i]))
			return (enum bf_kind)i;
	return BF_OTHER;
}

static bool
is_single(enum bf_kind k)
{
	return k == BF_ADD || k == BF_EXISTS;
}

/* What needs the right to SET a key of the filter; the others: to GET it. */
static bool
is_write(enum bf_kind k)
{
	return k == BF_ADD || k == BF_MADD || k == BF_RESERVE;
}

static bool
refuse(struct slot *t, const char *text)
{
	t->send = SEND_NOTHING;
	slot_answer_error(t, text);
	return true;
}

/* The name in lower case, cut, for texts like Redis's own. */
static void
lower_name(struct slice name, char out[32])
{
	size_t i;

	for (i = 0; i < name.len && i < 31; i++)
		out[i] = name.data[i] >= 'A' && name.data[i] <= 'Z'
		    ? (char)(name.data[i] + 32)
		    : (char)name.data[i];
	out[i] = '\0';
}

static bool
refuse_named(
    struct slot *t, const char *before, struct slice name, const char *after)
{
	char lower[32], *text;

	lower_name(name, lower);
	text = mem_printf("%s'%s'%s", before, lower, after);
	refuse(t, text);
	free(text);
	return true;
}

/* Every item has its value (or one failed): the reply. */
static void
settle(struct session *s, struct slot *t)
{
	struct buf b;
	size_t i;

	t->send = SEND_NOTHING;
	t->source = SOURCE_FILTER;
	if (t->failure != NULL) {
		char *text = mem_printf("ERR bloomgate: %s", t->failure);

		slot_answer_error(t, text);
		free(text);
		return;
	}
	buf_init(&b, SIZE_MAX / 4);
	if (t->key_count == 0)
		check(encode_array(&b, t->value_count) == 0);
	for (i = 0; i < t->value_count; i++)
		check(encode_bool(&b, s->mode.proto, t->values[i] != 0) == 0);
	slot_answer(t, &b);
	buf_fini(&b);
}

static void
take_value(struct session *s, struct slot *t, size_t n, int value)
{
	check(s->ops > 0 && t->pending > 0);
	s->ops--;
	t->values[n] = value;
	if (--t->pending == 0 && !s->closed) {
		settle(s, t);
		session_pump(s);
	}
}

static void
on_check(enum verdict verdict, bool answered, void *owner, void *what, size_t n)
{
	struct session *s = owner;

	(void)answered;
	session_enter(s);
	take_value(s, what, n, verdict == VERDICT_MAYBE);
	session_leave(s);
}

static void
on_add(int result, const char *error, void *owner, void *what, size_t n)
{
	struct session *s = owner;
	struct slot *t = what;

	session_enter(s);
	check(s->adds > 0);
	s->adds--;
	if (result < 0 && t->failure == NULL)
		t->failure = mem_strdup(error);
	take_value(s, t, n, result > 0);
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}

static void
start_add(struct session *s, struct slot *t, size_t filter, size_t n,
    struct slice element)
{
	if (add_start(s->worker, filter, element, ADD_COMMAND, on_add, s, t,
		n) != 0) {
		free(t->failure);
		t->failure = mem_strdup("an item is longer than 4096 bytes");
		return;
	}
	s->ops++;
	s->adds++;
	t->pending++;
}

static void
start_check(struct session *s, struct slot *t, size_t filter, size_t n,
    struct slice element)
{
	struct worker *w = s->worker;
	int mode = atomic_load_explicit(
	    &w->filters[filter]->mode, memory_order_relaxed);

	t->values[n] = 1; /* every doubt */
	if (mode != FILTER_ENFORCE || element.data == NULL)
		return;
	switch (check_start(w, filter, element, on_check, s, t, n)) {
	case CHECK_STARTED:
		s->ops++;
		t->pending++;
		break;
	case CHECK_ABSENT:
		t->values[n] = 0;
		break;
	case CHECK_MAYBE:
	case CHECK_NOT_READY:
	case CHECK_NO_STORE:
		break;
	}
}

static bool
run(struct session *s, struct slot *t, size_t filter, enum bf_kind kind,
    const struct slice *argv, size_t argc)
{
	struct worker *w = s->worker;
	uint8_t scratch[ELEMENT_MAX];
	size_t i;

	t->state = SLOT_PENDING;
	t->value_count = argc - 2;
	t->values = mem_zalloc(t->value_count, sizeof(*t->values));
	/* A single reply is told from an array by its one key. */
	if (is_single(kind)) {
		t->key_count = 1;
		t->keys = mem_zalloc(1, sizeof(*t->keys));
	}
	for (i = 0; i < t->value_count; i++) {
		struct slice element = pattern_element(
		    w->patterns, filter, argv[i + 2], scratch);

		if (is_write(kind))
			start_add(s, t, filter, i, element);
		else
			start_check(s, t, filter, i, element);
	}
	if (t->pending == 0)
		settle(s, t);
	return true;
}

bool
bf_decide(struct session *s, struct slot *t, size_t filter,
    const struct slice *argv, size_t argc)
{
	enum bf_kind kind = kind_of(argv[0]);

	/* Transaction, subscriptions and user must be known, and what the
	 * session added before must be seen. */
	if (s->mode.outstanding != 0 || s->adds != 0)
		return false;
	if (s->mode.foreign_state &&
	    s->worker->settings->permission != SETTING_PERMISSION_TRUST)
		return refuse(t,
		    "ERR bloomgate: this session's user is not certain, for it "
		    "has executed a command that COMMAND does not list; use "
		    "another connection");
	switch (permission_of(s->worker->permissions, &s->mode,
	    is_write(kind) ? NULL : covered_find("get"), filter)) {
	case PERMISSION_ASKING:
		return false;
	case PERMISSION_UNKNOWN:
		/* Just started: the link that asks is not up yet. */
		if (!s->worker->commands_known && !s->worker->upstream_failed)
			return false;
		if (!link_is_up(s->worker->upstream))
			return refuse(t,
			    "ERR bloomgate: upstream is not reachable, so it "
			    "is "
			    "not known what this session may do");
		return refuse(t,
		    "ERR bloomgate: Redis does not tell what this session may "
		    "do; give bloomgate's own user +acl|getuser, or set "
		    "permission: trust");
	case PERMISSION_NOAUTH:
		return refuse(t, "NOAUTH Authentication required.");
	case PERMISSION_NO:
		return refuse_named(t,
		    "NOPERM this user has no permissions to run the ", argv[0],
		    " command");
	case PERMISSION_ALL:
		break;
	}
	if (mode_subscribed2(&s->mode))
		return refuse_named(t, "ERR Can't execute ", argv[0],
		    ": only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
		    "RESET are allowed in this context");
	if (s->mode.in_multi) {
		s->mode.multi_failed = true;
		return refuse(t,
		    "ERR bloomgate: BF commands cannot be used inside MULTI");
	}
	if (kind == BF_RESERVE)
		return argc >= 4 && argc <= 7
		    ? refuse(t, "ERR item exists")
		    : refuse_named(t, "ERR wrong number of arguments for ",
			  argv[0], " command");
	if (kind == BF_OTHER)
		return refuse_named(t, "ERR bloomgate: ", argv[0],
		    " of a configured filter is not available in this version");
	if (argc < 3 || (is_single(kind) && argc != 3))
		return refuse_named(t, "ERR wrong number of arguments for ",
		    argv[0], " command");
	return run(s, t, filter, kind, argv, argc);
}
