/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Learning from writes: the covered keys that a command may create are added
 * before it is forwarded (law 2). Too many adds do no harm, one too few would.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/broken.h"
#include "core/check.h"
#include "core/mem.h"
#include "proxy/add.h"
#include "proxy/session.h"

struct learning {
	struct session *session;
	struct slot *slot; /* NULL: opaque, streamed */
	const struct slice *argv;
	size_t argc;
	const struct command *command;
	unsigned started;
};

/* The commands whose value is next to the key: writing a null-value there says
 * that the id does not exist. Index of the value, 0 for others. */
static size_t
value_of(const struct command *c, size_t key, size_t argc)
{
	static const struct {
		const char *name;
		size_t distance;
	} known[] = {{"set", 1}, {"setnx", 1}, {"getset", 1}, {"mset", 1},
	    {"msetnx", 1}, {"setex", 2}, {"psetex", 2}};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(c->name, known[i].name) == 0 &&
		    key + known[i].distance < argc)
			return key + known[i].distance;
	return 0;
}

static void
fail(struct session *s, struct slot *t, const char *why)
{
	if (t == NULL)
		session_end(s); /* opaque: no reply can say so */
	else if (t->failure == NULL)
		t->failure = mem_strdup(why);
}

/* All adds of a request are back. */
static void
settle(struct session *s, struct slot *t)
{
	char *text;

	if (t->streaming) {
		forward_stream_release(s, t->failure);
		return;
	}
	if (t->replied) {
		t->send = SEND_NOTHING;
		t->state = SLOT_ANSWERED; /* by nothing more */
		return;
	}
	if (t->failure == NULL) {
		t->state = SLOT_READY;
		return;
	}
	if (s->mode.level == MODE_OPAQUE) {
		session_end(s); /* no reply can say so */
		return;
	}
	session_abandon_change(s, t);
	/* As in Redis: what is refused when it is queued makes EXEC fail. */
	if (s->mode.in_multi)
		s->mode.multi_failed = true;
	text = mem_printf("ERR bloomgate: not executed: %s", t->failure);
	t->send = SEND_NOTHING;
	slot_answer_error(t, text);
	free(text);
}

static void
on_learned(int result, const char *error, void *owner, void *what, size_t n)
{
	struct session *s = owner;
	struct slot *t = what;

	(void)n;
	session_enter(s);
	check(s->ops > 0 && s->adds > 0);
	s->ops--;
	s->adds--;
	if (result < 0)
		fail(s, t, error);
	if (t != NULL) {
		check(t->pending > 0);
		if (--t->pending == 0 && !s->closed)
			settle(s, t);
	} else if (result >= 0 && s->adds == 0 && !s->closed &&
	    s->stream == STREAM_HELD) {
		forward_stream_release(s, NULL);
	}
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}

/* Broken law 3: nobody waits for the add. */
static void
on_forgotten(int result, const char *error, void *owner, void *what, size_t n)
{
	(void)result;
	(void)error;
	(void)owner;
	(void)what;
	(void)n;
}

/* Adds what key stands for in database db. */
static void
learn_key(struct learning *l, size_t index, unsigned db)
{
	struct session *s = l->session;
	struct worker *w = s->worker;
	struct slice key = l->argv[index];
	uint8_t scratch[ELEMENT_MAX];
	struct pattern_match m;
	size_t value;

	if (!pattern_match(w->patterns, db, key, &m) ||
	    !w->settings->filters[m.filter].learn)
		return;
	value = value_of(l->command, index, l->argc);
	if (value != 0 && request_arg_whole(&s->request, value) &&
	    pattern_is_null_value(w->patterns, m.filter, l->argv[value]))
		return;
	if (add_start(w, m.filter,
		pattern_element(w->patterns, m.filter, m.capture, scratch),
		ADD_LEARN, BROKEN_LAW(3) ? on_forgotten : on_learned, s,
		l->slot, 0) != 0)
		return; /* too long to be in a filter: it is never absent */
	if (BROKEN_LAW(3))
		return;
	s->ops++;
	s->adds++;
	l->started++;
	if (l->slot != NULL)
		l->slot->pending++;
}

/* MOVE and COPY write to a database that they name; what is not known may be
 * one of them. */
static bool
leaves_database(const struct command *c)
{
	return c->effect == EFFECT_UNKNOWN || strcmp(c->name, "move") == 0 ||
	    strcmp(c->name, "copy") == 0;
}

static void
on_key(size_t index, void *arg)
{
	struct learning *l = arg;
	struct session *s = l->session;
	const struct settings *settings = s->worker->settings;
	size_t i, before;

	if (!request_arg_whole(&s->request, index)) {
		/* A key that long has no element; one that is only missing
		 * here, because the request is so large, would be lost. */
		if (s->request.args[index].len <= REQUEST_CAPTURE_MAX)
			fail(s, l->slot,
			    "the request holds too many keys to "
			    "learn; send it in smaller parts");
		return;
	}
	if (s->mode.level != MODE_OPAQUE && !s->mode.foreign &&
	    s->databases == 0 && !leaves_database(l->command)) {
		learn_key(l, index, s->mode.db);
		return;
	}
	/* All databases that it could be: an opaque session's is not known, nor
	 * that of a foreign one, nor that of a stream which did not wait for
	 * the reply to SELECT. */
	for (i = 0; i < settings->filter_count; i++) {
		for (before = 0; before < i; before++)
			if (settings->filters[before].db ==
			    settings->filters[i].db)
				break;
		if (before == i)
			learn_key(l, index, settings->filters[i].db);
	}
}

bool
learn_may(const struct session *s, const struct command *c)
{
	if (s->worker->settings->filter_count == 0)
		return false;
	/* One that is not known may be a write by another name. */
	return command_may_create(c) || c->effect == EFFECT_UNKNOWN;
}

/* For learn_is_idle: whatever could need more than a look. */
static void
on_look(size_t index, void *arg)
{
	struct learning *l = arg;
	struct session *s = l->session;
	struct pattern_match m;

	l->started += !request_arg_whole(&s->request, index) ||
	    pattern_match(s->worker->patterns, s->mode.db, l->argv[index], &m);
}

bool
learn_is_idle(struct session *s, const struct command *c,
    const struct slice *argv, size_t argc)
{
	struct learning l = {
	    .session = s, .argv = argv, .argc = argc, .command = c};

	if (!learn_may(s, c))
		return true;
	if (s->databases != 0 || s->mode.opening != 0 || s->mode.foreign ||
	    leaves_database(c) || command_keys(c, argv, argc, on_look, &l) < 0)
		return false;
	return l.started == 0;
}

unsigned
learn_start(struct session *s, struct slot *t, const struct command *c,
    const struct slice *argv, size_t argc)
{
	struct learning l = {
	    .session = s, .slot = t, .argv = argv, .argc = argc, .command = c};
	size_t i;

	if (!learn_may(s, c))
		return 0;
	if (command_keys(c, argv, argc, on_key, &l) < 0)
		/* Redis cannot say which arguments are keys: all may be. */
		for (i = 1; i < argc; i++)
			on_key(i, &l);
	if (l.started == 0 && t != NULL && t->failure != NULL && !t->streaming)
		settle(s, t);
	return l.started;
}
