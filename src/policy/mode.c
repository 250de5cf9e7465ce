/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Session state. Who changes what:
 *
 *   SELECT   +OK            db
 *   AUTH     +OK            user, secret
 *   HELLO    map or array   proto, user and secret with AUTH, name with SETNAME
 *   RESET    +RESET         all of it back to the start
 *   MULTI    +OK            in_multi
 *   EXEC     array, nil, EXECABORT, "EXEC without MULTI": in_multi ends
 *   DISCARD  +OK            in_multi ends
 *   (un)subscribe           the counts that their confirmations carry
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "policy/mode.h"

struct change *
change_new(enum effect effect)
{
	struct change *c = mem_zalloc(1, sizeof(*c));

	c->effect = effect;
	return c;
}

static void
forget_secret(uint8_t **secret, size_t *len)
{
	if (*secret != NULL)
		mem_wipe(*secret, *len);
	free(*secret);
	*secret = NULL;
	*len = 0;
}

void
change_free(struct change *c)
{
	if (c == NULL)
		return;
	forget_secret(&c->secret, &c->secret_len);
	free(c->user);
	free(c->text);
	free(c);
}

void
mode_init(struct mode *m)
{
	*m = (struct mode){.proto = 2};
}

/* Everything that RESET takes back. */
static void
forget(struct mode *m)
{
	forget_secret(&m->secret, &m->secret_len);
	free(m->user);
	free(m->name);
	m->user = NULL;
	m->name = NULL;
	m->name_len = 0;
	m->proto = 2;
	m->hello = 0;
	m->db = 0;
	m->in_multi = false;
	m->multi_failed = false;
	m->stateful = false;
	memset(m->subs, 0, sizeof(m->subs));
}

/* What was sent behind RESET (WATCH, say) was noted when it was sent, and RESET
 * does not take it back. */
static void
reset(struct mode *m)
{
	bool stateful = m->stateful && m->outstanding > 1;

	forget(m);
	m->stateful = stateful;
}

void
mode_fini(struct mode *m)
{
	forget(m);
	free(m->lib_name);
	free(m->lib_version);
	mode_init(m);
}

bool
mode_subscribed2(const struct mode *m)
{
	return m->proto == 2 &&
	    m->subs[SUBS_CHANNEL] + m->subs[SUBS_PATTERN] +
		m->subs[SUBS_SHARD] !=
	    0;
}

static void
take_auth(struct mode *m, struct change *c)
{
	if (!c->has_auth)
		return;
	free(m->user);
	m->user = c->user;
	c->user = NULL;
	forget_secret(&m->secret, &m->secret_len);
	m->secret = c->secret;
	m->secret_len = c->secret_len;
	c->secret = NULL;
	c->secret_len = 0;
}

static void
take_text(struct change *c, uint8_t **to, size_t *len)
{
	free(*to);
	*to = c->text;
	*len = c->text_len;
	c->text = NULL;
}

static bool
head_starts(const struct reply *r, const char *text)
{
	size_t len = strlen(text);

	return r->head_len >= len && memcmp(r->head, text, len) == 0;
}

static bool
exec_ended(const struct reply *r)
{
	return r->type == '*' || r->type == '_' ||
	    head_starts(r, "-EXECABORT") ||
	    head_starts(r, "-ERR EXEC without MULTI");
}

/* One confirmation of the subscribe family; the count it carries is that of
 * channels and patterns together, or of shard channels. */
static bool
take_subscription(struct mode *m, struct change *c, const struct reply *r)
{
	struct slice count_text = reply_head_element(r, 2);
	int64_t count = 0;
	uint64_t before = m->subs[SUBS_CHANNEL] + m->subs[SUBS_PATTERN];

	if (reply_is_error(r) || r->elements_done < 3)
		return true;
	if (c->expect == 0 && c->effect == EFFECT_UNSUBSCRIBE)
		c->expect = m->subs[c->kind] != 0 ? m->subs[c->kind] : 1;
	/* Redis's counts are never anything else; CHANNEL_MAX keeps them in
	 * sight. */
	if (count_text.data == NULL ||
	    slice_to_int64(count_text, &count) != 0 || count < 0)
		return --c->expect == 0;
	if (c->kind == SUBS_SHARD)
		m->subs[SUBS_SHARD] = (uint64_t)count;
	else
		/* Wraps down as it should where the count fell. */
		m->subs[c->kind] += (uint64_t)count - before;
	return --c->expect == 0;
}

static bool
apply(struct mode *m, struct change *c, const struct reply *r)
{
	bool ok = !reply_is_error(r);

	switch (c->effect) {
	case EFFECT_SELECT:
		if (ok)
			m->db = c->db;
		break;
	case EFFECT_AUTH:
		if (ok)
			take_auth(m, c);
		break;
	case EFFECT_HELLO:
		if (!ok)
			break;
		if (c->proto != 0)
			m->proto = m->hello = c->proto;
		take_auth(m, c);
		if (c->has_name)
			take_text(c, &m->name, &m->name_len);
		break;
	case EFFECT_CLIENT:
		if (ok && c->has_name)
			take_text(c, &m->name, &m->name_len);
		else if (ok && c->has_lib_name)
			take_text(c, &m->lib_name, &m->lib_name_len);
		else if (ok && c->has_lib_version)
			take_text(c, &m->lib_version, &m->lib_version_len);
		break;
	case EFFECT_RESET:
		if (ok)
			reset(m);
		break;
	case EFFECT_MULTI:
		if (ok) {
			m->in_multi = true;
			m->multi_failed = false;
		}
		break;
	case EFFECT_EXEC:
		if (exec_ended(r))
			m->in_multi = m->multi_failed = false;
		break;
	case EFFECT_DISCARD:
		if (ok)
			m->in_multi = m->multi_failed = false;
		break;
	case EFFECT_SUBSCRIBE:
	case EFFECT_UNSUBSCRIBE:
		return take_subscription(m, c, r);
	default:
		break;
	}
	return true;
}

bool
mode_reply(struct mode *m, struct change *c, const struct reply *r)
{
	if (!apply(m, c, r))
		return false;
	mode_abandon(m, c);
	return true;
}

void
mode_abandon(struct mode *m, struct change *c)
{
	check(m->outstanding > 0);
	m->outstanding--;
	m->multis -= c->effect == EFFECT_MULTI;
	change_free(c);
}

/* The word that an out-of-band frame or a confirmation begins with. */
static bool
is_confirmation(const struct reply *r, const struct change *c)
{
	static const char *const words[2][SUBS_KINDS] = {
	    {"subscribe", "psubscribe", "ssubscribe"},
	    {"unsubscribe", "punsubscribe", "sunsubscribe"}};

	if (c == NULL ||
	    (c->effect != EFFECT_SUBSCRIBE && c->effect != EFFECT_UNSUBSCRIBE))
		return false;
	return slice_is(reply_head_element(r, 0),
	    words[c->effect == EFFECT_UNSUBSCRIBE][c->kind]);
}

bool
mode_out_of_band(
    const struct mode *m, const struct reply *r, const struct change *c)
{
	struct slice word;

	if (r->type == '>')
		return !is_confirmation(r, c);
	if (r->type != '*' || !mode_subscribed2(m))
		return false;
	word = reply_head_element(r, 0);
	return slice_is(word, "message") || slice_is(word, "pmessage") ||
	    slice_is(word, "smessage");
}
