/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Session state. Who changes what (every other reply changes nothing; measured
 * with redis-server 7.0.15):
 *
 *   SELECT   +OK            db
 *   AUTH     +OK            user, secret
 *   HELLO    map or array   proto, user and secret with AUTH, name with SETNAME
 *   CLIENT   +OK            SETNAME, SETINFO: their text; TRACKING, NO-EVICT,
 *                           NO-TOUCH: their switch
 *   RESET    +RESET         all back to the start but NO-EVICT, NO-TOUCH and the
 *                           library's name and version
 *   MULTI    +OK            in_multi
 *   WATCH    +OK            watched
 *   UNWATCH  +OK            watched ends (queued, EXEC does it)
 *   EXEC     array, nil, EXECABORT: in_multi and watched end
 *            "EXEC without MULTI": in_multi is not; watched stays
 *   DISCARD  +OK            in_multi and watched end
 *            "DISCARD without MULTI": in_multi is not; watched stays
 *   (un)subscribe           the counts that their confirmations carry
 *   unknown  no error       foreign
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/clock.h"
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

bool
change_moves_database(const struct change *c)
{
	return c->effect == EFFECT_SELECT || c->effect == EFFECT_RESET ||
	    (c->effect == EFFECT_UNKNOWN && !c->harmless);
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
	m->watched = false;
	m->switches[SWITCH_TRACKING] = false;
	memset(m->subs, 0, sizeof(m->subs));
}

void
mode_fini(struct mode *m)
{
	forget(m);
	free(m->lib_name);
	free(m->lib_version);
	mode_init(m);
}

static bool
is_subscribed(const struct mode *m)
{
	return m->subs[SUBS_CHANNEL] + m->subs[SUBS_PATTERN] +
	    m->subs[SUBS_SHARD] !=
	    0;
}

bool
mode_subscribed2(const struct mode *m)
{
	return m->proto == 2 && is_subscribed(m);
}

bool
mode_is_stateful(const struct mode *m)
{
	return m->in_multi || m->watched || is_subscribed(m) ||
	    m->switches[SWITCH_TRACKING] || m->switches[SWITCH_NO_EVICT] ||
	    m->switches[SWITCH_NO_TOUCH] || m->foreign_state;
}

/* The level that the facts give. */
static void
settle(struct mode *m)
{
	bool forward = m->in_multi || m->watched ||
	    m->switches[SWITCH_TRACKING] || mode_subscribed2(m) || m->foreign;

	if (m->level != MODE_OPAQUE)
		m->level = forward ? MODE_FORWARD_ONLY : MODE_PLAIN;
}

static void
take_auth(struct mode *m, struct change *c)
{
	if (!c->has_auth)
		return;
	free(m->user);
	m->since_ns = clock_boot_ns();
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

static void
end_multi(struct mode *m)
{
	m->in_multi = m->multi_failed = false;
}

/* A transaction ends: what is watched, with it. */
static void
end_transaction(struct mode *m)
{
	end_multi(m);
	m->watched = false;
}

static void
take_exec(struct mode *m, const struct reply *r)
{
	if (r->type == '*' || r->type == '_' ||
	    reply_head_starts(r, "-EXECABORT"))
		end_transaction(m);
	else if (reply_head_starts(r, "-ERR EXEC without MULTI"))
		end_multi(m);
}

static void
take_discard(struct mode *m, const struct reply *r)
{
	if (reply_head_starts(r, "+OK\r"))
		end_transaction(m);
	else if (reply_head_starts(r, "-ERR DISCARD without MULTI"))
		end_multi(m);
}

static void
take_client(struct mode *m, struct change *c)
{
	if (c->has_name)
		take_text(c, &m->name, &m->name_len);
	else if (c->has_lib_name)
		take_text(c, &m->lib_name, &m->lib_name_len);
	else if (c->has_lib_version)
		take_text(c, &m->lib_version, &m->lib_version_len);
	else if (c->has_switch)
		m->switches[c->which] = c->on;
}

static void
take_hello(struct mode *m, struct change *c, const struct reply *r)
{
	/* Its form is the one that it brings. */
	m->proto = r->type == '%' ? 3 : 2;
	if (c->proto != 0)
		m->hello = m->proto;
	take_auth(m, c);
	if (c->has_name)
		take_text(c, &m->name, &m->name_len);
}

static void
take_foreign(struct mode *m, const struct change *c)
{
	m->foreign = true;
	if (!c->harmless)
		m->foreign_state = true;
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
	bool ok = reply_head_starts(r, "+OK\r");

	if (reply_head_starts(r, "+QUEUED\r")) {
		/* In a transaction that only Redis knows of? */
		if (!m->in_multi)
			m->foreign = m->foreign_state = true;
		else if (c->effect == EFFECT_UNKNOWN)
			take_foreign(m, c);
		return true;
	}
	if (c->cut && !reply_is_error(r))
		take_foreign(m, c);
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
		if (r->type == '%' || r->type == '*')
			take_hello(m, c, r);
		break;
	case EFFECT_CLIENT:
		if (ok)
			take_client(m, c);
		break;
	case EFFECT_RESET:
		if (reply_head_starts(r, "+RESET\r")) {
			forget(m);
			m->since_ns = clock_boot_ns();
		}
		break;
	case EFFECT_MULTI:
		if (ok) {
			m->in_multi = true;
			m->multi_failed = false;
		}
		break;
	case EFFECT_EXEC:
		take_exec(m, r);
		break;
	case EFFECT_DISCARD:
		take_discard(m, r);
		break;
	case EFFECT_WATCH:
		if (ok)
			m->watched = true;
		break;
	case EFFECT_UNWATCH:
		if (ok)
			m->watched = false;
		break;
	case EFFECT_SUBSCRIBE:
	case EFFECT_UNSUBSCRIBE:
		return take_subscription(m, c, r);
	case EFFECT_UNKNOWN:
		if (!reply_is_error(r))
			take_foreign(m, c);
		break;
	default:
		break;
	}
	return true;
}

bool
mode_reply(struct mode *m, struct change *c, const struct reply *r)
{
	bool last = apply(m, c, r);

	settle(m);
	if (last)
		mode_abandon(m, c);
	return last;
}

void
mode_excuse(struct mode *m, struct change *c)
{
	c->harmless = true;
	m->opening -= c->opens;
	c->opens = false;
}

void
mode_abandon(struct mode *m, struct change *c)
{
	check(m->outstanding > 0);
	m->outstanding--;
	m->opening -= c->opens;
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
