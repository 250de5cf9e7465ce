/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a request is and what is to happen with it. A slot that cannot be decided
 * yet is held; everything else leaves here PENDING, READY or ANSWERED.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "proxy/check.h"
#include "proxy/permission.h"
#include "proxy/session.h"

size_t
decide_argv(struct session *s, const uint8_t *base)
{
	struct worker *w = s->worker;
	const struct request *r = &s->request;
	size_t i;

	if (w->argv_cap < r->argc) {
		w->argv_cap = r->argc * 2;
		w->argv = mem_realloc(w->argv, w->argv_cap * sizeof(*w->argv));
	}
	for (i = 0; i < r->argc; i++)
		w->argv[i] = request_arg(r, base, i);
	return r->argc;
}

static bool
is_ready(struct slot *t)
{
	t->state = SLOT_READY;
	return true;
}

/* Counts a lookup of the filter that was not decided. */
static void
count_bypass(struct session *s, size_t filter, enum metric_bypass reason)
{
	struct metrics *m = s->worker->metrics;

	metric_add(m, METRIC_FILTER_LOOKUPS_TOTAL, filter, RESULT_BYPASS, 1);
	metric_add(m, METRIC_FILTER_BYPASS_TOTAL, filter, reason, 1);
}

static void
count_verdict(struct metrics *m, size_t filter, enum verdict v, bool answered)
{
	if (answered)
		metric_add(m, METRIC_FILTER_LOOKUPS_TOTAL, filter,
		    v == VERDICT_ABSENT ? RESULT_ABSENT : RESULT_MAYBE, 1);
	else
		metric_add(
		    m, METRIC_FILTER_LOOKUPS_TOTAL, filter, RESULT_ERROR, 1);
}

/* All verdicts of a covered read are known. */
static void
settle_read(struct session *s, struct slot *t)
{
	size_t absent = slot_absent_count(t);
	struct slice text;

	t->state = SLOT_READY;
	if (absent == 0)
		return;
	if (t->permitted) {
		if (absent == t->key_count || answer_first_error(s, t, &text)) {
			answer_absent(t);
			return;
		}
		t->send = SEND_SPLIT;
		if (t->covered->value)
			t->shape = SHAPE_ELEMENTS;
		return;
	}
	/* Redis judges whether the user may read; its word that a key is
	 * missing is then said in the filter's way. */
	if (t->covered->args != ARGS_KEYS)
		t->shape = SHAPE_MISSING;
	else
		t->shape = t->covered->value ? SHAPE_ELEMENTS : SHAPE_COUNT;
}

static void
on_verdict(
    enum verdict verdict, bool answered, void *owner, void *what, size_t n)
{
	struct session *s = owner;
	struct slot *t = what;

	session_enter(s);
	check(s->ops > 0 && t->pending > 0);
	s->ops--;
	t->pending--;
	count_verdict(s->worker->metrics, t->keys[n].filter, verdict, answered);
	t->keys[n].verdict = verdict == VERDICT_ABSENT ? KEY_ABSENT : KEY_MAYBE;
	if (!s->closed && t->pending == 0) {
		settle_read(s, t);
		session_pump(s);
	}
	session_leave(s);
}

/* Observe: the verdict is only counted, whatever becomes of the session. */
static void
on_observed(
    enum verdict verdict, bool answered, void *owner, void *what, size_t n)
{
	(void)what;
	count_verdict(owner, n, verdict, answered);
}

/* Asks about key i of t, or says at once why not. */
static void
start_check(struct session *s, struct slot *t, size_t i, struct slice element)
{
	struct worker *w = s->worker;
	struct slot_key *k = &t->keys[i];
	int mode = atomic_load_explicit(
	    &w->filters[k->filter]->mode, memory_order_relaxed);
	enum check_start started;

	k->verdict = KEY_MAYBE;
	if (mode == FILTER_OFF) {
		count_bypass(s, k->filter, BYPASS_MODE);
		return;
	}
	if (element.data == NULL) {
		/* Too long to be in any filter: never absent. */
		count_verdict(w->metrics, k->filter, VERDICT_MAYBE, true);
		return;
	}
	if (mode == FILTER_OBSERVE)
		started = check_start(w, k->filter, element, on_observed,
		    w->metrics, NULL, k->filter);
	else
		started = check_start(
		    w, k->filter, element, on_verdict, s, t, i);
	switch (started) {
	case CHECK_NOT_READY:
		count_bypass(s, k->filter, BYPASS_NOT_READY);
		break;
	case CHECK_NO_STORE:
		count_bypass(s, k->filter, BYPASS_STORE);
		break;
	case CHECK_MAYBE:
		count_verdict(w->metrics, k->filter, VERDICT_MAYBE, true);
		break;
	case CHECK_ABSENT:
		count_verdict(w->metrics, k->filter, VERDICT_ABSENT, true);
		if (mode == FILTER_ENFORCE)
			k->verdict = KEY_ABSENT;
		break;
	case CHECK_STARTED:
		if (mode != FILTER_ENFORCE)
			break;
		k->verdict = KEY_WAITING;
		t->pending++;
		s->ops++;
		break;
	}
}

/* Whether any key of the request is covered; *on: by a filter that is not off. */
static bool
any_covered(
    const struct session *s, const struct slice *keys, size_t count, bool *on)
{
	const struct worker *w = s->worker;
	struct pattern_match m;
	bool any = false;
	size_t i;

	*on = false;
	for (i = 0; i < count && !*on; i++) {
		if (!pattern_match(w->patterns, s->mode.db, keys[i], &m))
			continue;
		any = true;
		*on = atomic_load_explicit(&w->filters[m.filter]->mode,
			  memory_order_relaxed) != FILTER_OFF;
	}
	return any;
}

static void
bypass_all(struct session *s, const struct slice *keys, size_t count,
    enum metric_bypass reason)
{
	struct pattern_match m;
	size_t i;

	for (i = 0; i < count; i++)
		if (pattern_match(s->worker->patterns, s->mode.db, keys[i], &m))
			count_bypass(s, m.filter, reason);
}

/* Begins the checks of a covered read's keys; settled when all are back. */
static void
check_keys(struct session *s, struct slot *t, const struct slice *keys)
{
	const struct pattern_set *patterns = s->worker->patterns;
	const uint8_t *base = session_request_base(s, t);
	uint8_t scratch[ELEMENT_MAX];
	struct pattern_match m;
	size_t i;

	t->keys = mem_zalloc(t->key_count, sizeof(*t->keys));
	t->state = SLOT_PENDING;
	for (i = 0; i < t->key_count; i++) {
		struct slot_key *k = &t->keys[i];

		if (!s->request.is_inline) {
			k->offset = (uint32_t)(keys[i].data - base);
			k->len = (uint32_t)keys[i].len;
		}
		if (!pattern_match(patterns, s->mode.db, keys[i], &m))
			continue;
		k->filter = (uint32_t)m.filter;
		start_check(s, t, i,
		    pattern_element(patterns, m.filter, m.capture, scratch));
	}
	if (t->pending == 0)
		settle_read(s, t);
}

static bool
decide_read(struct session *s, struct slot *t, const struct covered_read *r,
    const struct slice *argv, size_t argc)
{
	const struct slice *keys = argv + covered_first_key(r);
	size_t count = covered_key_count(r, argc);
	enum permission permission;
	bool on;

	if (!any_covered(s, keys, count, &on))
		return is_ready(t);
	if (s->mode.level != MODE_PLAIN || s->mode.outstanding != 0) {
		bypass_all(s, keys, count, BYPASS_STATE);
		return is_ready(t);
	}
	if (!on) {
		bypass_all(s, keys, count, BYPASS_MODE);
		return is_ready(t);
	}
	/* What this session has just added must be seen by its own reads. */
	if (s->adds != 0)
		return false;
	/* An inline request's arguments are not where its bytes are, so it
	 * could not be split; that is rare enough to be Redis's. */
	if (s->request.is_inline && count != 1)
		return is_ready(t);
	permission = permission_of_request(
	    s->worker->permissions, &s->mode, r, keys, count);
	if (permission == PERMISSION_ASKING)
		return false;
	t->covered = r;
	t->permitted = permission == PERMISSION_ALL;
	t->key_count = count;
	t->elements = covered_element_count(r, argc);
	check_keys(s, t, keys);
	return true;
}

bool
decide_table_missing(const struct session *s)
{
	const struct worker *w = s->worker;

	return !w->commands_known && !w->commands_refused &&
	    w->settings->filter_count != 0;
}

static bool
decide_without_table(struct session *s, struct slot *t)
{
	if (!s->worker->upstream_failed)
		return false;
	slot_answer_error(t, TABLE_MISSING_TEXT);
	t->send = SEND_NOTHING;
	return true;
}

/* Adds what the request needs added; the slot waits for it. */
static bool
decide_adds(struct session *s, struct slot *t, const struct command *c,
    const struct slice *argv, size_t argc)
{
	t->state = SLOT_PENDING;
	learn_start(s, t, c, argv, argc);
	if (t->state == SLOT_PENDING && t->pending == 0)
		t->state = SLOT_READY;
	return true;
}

/* Bytes pass, but a write's elements are still added before it. */
static bool
decide_opaque(
    struct session *s, struct slot *t, const struct slice *argv, size_t argc)
{
	const struct command *c = command_find(s->worker->commands, argv[0]);

	if (c->effect == EFFECT_BF && argc > 1 &&
	    pattern_filter_named(s->worker->patterns, argv[1]) >= 0) {
		/* No reply can be put between Redis's. */
		t->state = SLOT_READY;
		session_close(s);
		return true;
	}
	return decide_adds(s, t, c, argv, argc);
}

static void
become_opaque(struct session *s)
{
	enum mode_level before = s->mode.level;

	s->mode.level = MODE_OPAQUE;
	session_count_level(s, before);
}

enum mode_wish
decide_mode(struct session *s, const struct command *c,
    const struct slice *argv, size_t argc, struct slot *t)
{
	enum mode_wish wish = mode_request(
	    &s->mode, c, argv, argc, !s->request.detached, &t->change);

	if (t->change == NULL)
		return wish;
	/* Unknown only as long as the table is. */
	if (c->effect == EFFECT_UNKNOWN && !s->worker->commands_known)
		mode_excuse(&s->mode, t->change);
	s->databases += change_moves_database(t->change);
	return wish;
}

/* EXEC of a transaction in which a BF.* or a write was refused here. */
static bool
decide_failed_exec(struct session *s, struct slot *t)
{
	t->send = SEND_DISCARD;
	t->shape = SHAPE_EXECABORT;
	t->change = mode_discard(&s->mode);
	return is_ready(t);
}

/* The command, and its index in the metrics. Mostly it is that of the request
 * before, spelled alike. */
static const struct command *
find_command(struct worker *w, struct slice name, size_t *metric)
{
	struct recent_command *r = &w->recent;

	if (r->len == 0 || !slice_eq(name, slice_of(r->name, r->len))) {
		r->command = command_find(w->commands, name);
		r->metric = metric_command_index(
		    (const char *)name.data, name.len);
		r->only_key = r->command->covered != NULL &&
		    covered_is_only_key(r->command->covered);
		r->len = name.len <= sizeof(r->name) ? name.len : 0;
		if (r->len != 0)
			memcpy(r->name, name.data, r->len);
	}
	*metric = r->metric;
	return r->command;
}

bool
decide_passes(struct session *s, size_t command)
{
	struct worker *w = s->worker;
	const uint8_t *base = buf_head(&s->in) + s->parsed;
	const struct slice *argv;
	const struct command *c;
	struct pattern_match m;
	size_t argc, metric;
	bool on;

	c = find_command(w, request_arg(&s->request, base, 0), &metric);
	if (metric != command || s->mode.level == MODE_OPAQUE ||
	    decide_table_missing(s))
		return false;
	if (w->recent.only_key && s->request.argc == 2)
		return !pattern_match(w->patterns, s->mode.db,
		    request_arg(&s->request, base, 1), &m);
	argc = decide_argv(s, base);
	argv = w->argv;
	if (c->covered != NULL && covered_is_plain(c->covered, argv, argc))
		return !any_covered(s, argv + covered_first_key(c->covered),
		    covered_key_count(c->covered, argc), &on);
	return c->effect == EFFECT_ORDINARY && !(c->flags & COMMAND_BLOCKING) &&
	    learn_is_idle(s, c, argv, argc);
}

bool
decide(struct session *s, struct slot *t)
{
	struct worker *w = s->worker;
	size_t argc = decide_argv(s, session_request_base(s, t));
	const struct slice *argv = w->argv;
	const struct command *c;
	int filter;

	if (s->mode.level == MODE_OPAQUE)
		return decide_opaque(s, t, argv, argc);
	c = find_command(w, argv[0], &t->command);
	if (c->effect == EFFECT_BF && argc > 1 &&
	    (filter = pattern_filter_named(w->patterns, argv[1])) >= 0)
		return bf_decide(s, t, (size_t)filter, argv, argc);
	if (decide_table_missing(s))
		return decide_without_table(s, t);
	if (c->covered != NULL && covered_is_plain(c->covered, argv, argc))
		return decide_read(s, t, c->covered, argv, argc);
	/* Which database it writes to, and whether its failure is also that of a
	 * transaction, must be known. */
	if ((s->databases != 0 || s->mode.opening != 0) && learn_may(s, c))
		return false;
	/* An add that is out may yet fail, and EXEC with it. */
	if (c->effect == EFFECT_EXEC && s->adds != 0)
		return false;
	if (c->effect == EFFECT_EXEC && argc == 1 && s->mode.multi_failed) {
		/* An EXEC or DISCARD on its way may have ended it already. */
		if (s->mode.outstanding != 0)
			return false;
		return decide_failed_exec(s, t);
	}
	switch (decide_mode(s, c, argv, argc, t)) {
	case MODE_WAIT:
		return false;
	case MODE_OPAQUE_WISH:
		if (s->slot_count != 1)
			return false;
		become_opaque(s);
		return is_ready(t);
	case MODE_SEND:
		break;
	}
	slot_set_command(t, c);
	t->quit = c->effect == EFFECT_QUIT;
	if (t->quit)
		session_end_input(s);
	return decide_adds(s, t, c, argv, argc);
}

bool
decide_may_stream(struct session *s)
{
	const struct request *r = &s->request;
	const uint8_t *base = buf_head(&s->in) + s->parsed;
	const struct command *c;

	if (r->is_inline || decide_table_missing(s))
		return false;
	if (r->argc == 0)
		return r->declared != 0;
	c = command_find(s->worker->commands, request_arg(r, base, 0));
	if (c->covered != NULL)
		return false;
	if (c->effect == EFFECT_BF)
		return r->argc > 1 &&
		    pattern_filter_named(
			s->worker->patterns, request_arg(r, base, 1)) < 0;
	return c->effect == EFFECT_ORDINARY || c->effect == EFFECT_UNKNOWN;
}
