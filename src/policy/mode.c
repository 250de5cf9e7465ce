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
keep_text(struct change *c, struct slice text)
{
	c->text = mem_dup(text.data, text.len);
	c->text_len = text.len;
}

static void
keep_auth(struct change *c, struct slice user, struct slice secret)
{
	free(c->user);
	forget_secret(&c->secret, &c->secret_len);
	c->has_auth = true;
	c->user = mem_zalloc(user.len + 1, 1);
	memcpy(c->user, user.data, user.len);
	c->secret = mem_dup(secret.data, secret.len);
	c->secret_len = secret.len;
}

/* HELLO [version [AUTH user secret] [SETNAME name]]; what does not fit is left
 * for Redis to refuse. */
static void
read_hello(struct change *c, const struct slice *argv, size_t argc)
{
	int64_t version;
	size_t i;

	if (argc < 2 || slice_to_int64(argv[1], &version) != 0)
		return;
	c->proto = version == 3 ? 3 : 2;
	for (i = 2; i < argc; i++) {
		if (slice_is_nocase(argv[i], "auth") && i + 2 < argc) {
			keep_auth(c, argv[i + 1], argv[i + 2]);
			i += 2;
		} else if (slice_is_nocase(argv[i], "setname") &&
		    i + 1 < argc) {
			free(c->text);
			c->has_name = true;
			keep_text(c, argv[i + 1]);
			i++;
		}
	}
}

static void
read_auth(struct change *c, const struct slice *argv, size_t argc)
{
	if (argc == 2)
		keep_auth(c, slice_str("default"), argv[1]);
	else if (argc == 3)
		keep_auth(c, argv[1], argv[2]);
}

/* True for the subcommands that leave a session plain. */
static bool
read_client(struct change *c, const struct slice *argv, size_t argc)
{
	if (argc == 2 && slice_is_nocase(argv[1], "id"))
		return true;
	if (argc == 3 && slice_is_nocase(argv[1], "setname")) {
		c->has_name = true;
		keep_text(c, argv[2]);
		return true;
	}
	if (argc == 4 && slice_is_nocase(argv[1], "setinfo")) {
		c->has_lib_name = slice_is_nocase(argv[2], "lib-name");
		c->has_lib_version = slice_is_nocase(argv[2], "lib-ver");
		keep_text(c, argv[3]);
		return true;
	}
	return false;
}

static void
read_subscription(struct change *c, const struct command *cmd, size_t argc)
{
	c->kind = SUBS_CHANNEL;
	if (cmd->name[0] == 'p')
		c->kind = SUBS_PATTERN;
	else if (strncmp(cmd->name, "ss", 2) == 0 ||
	    strncmp(cmd->name, "sun", 3) == 0)
		c->kind = SUBS_SHARD;
	c->expect = argc - 1;
	if (cmd->effect == EFFECT_SUBSCRIBE && argc == 1)
		c->expect = 1; /* the arity error */
}

/* Commands that, queued in a transaction, act inside EXEC where replies are no
 * longer one each. */
static bool
breaks_multi(enum effect e)
{
	switch (e) {
	case EFFECT_SUBSCRIBE:
	case EFFECT_UNSUBSCRIBE:
	case EFFECT_CLIENT:
	case EFFECT_HELLO:
	case EFFECT_AUTH:
	case EFFECT_SELECT:
		return true;
	default:
		return false;
	}
}

static void
lower(struct mode *m)
{
	if (m->level == MODE_PLAIN)
		m->level = MODE_FORWARD_ONLY;
}

/* Fills in what the reply may change, and lowers the level where the request
 * alone does. */
static void
read_change(struct mode *m, struct change *ch, const struct command *c,
    const struct slice *argv, size_t argc, bool whole)
{
	int64_t db;

	switch (c->effect) {
	case EFFECT_SELECT:
		ch->db = UINT32_MAX;
		if (argc == 2 && slice_to_int64(argv[1], &db) == 0 && db >= 0 &&
		    db < UINT32_MAX)
			ch->db = (unsigned)db;
		break;
	case EFFECT_AUTH:
		read_auth(ch, argv, argc);
		break;
	case EFFECT_HELLO:
		read_hello(ch, argv, argc);
		break;
	case EFFECT_QUIT:
		break;
	case EFFECT_CLIENT:
		if (!read_client(ch, argv, argc)) {
			lower(m);
			m->stateful = true;
		}
		break;
	case EFFECT_SUBSCRIBE:
	case EFFECT_UNSUBSCRIBE:
		read_subscription(ch, c, argc);
		/* fall through */
	default:
		lower(m);
		if (c->effect != EFFECT_RESET)
			m->stateful = true;
		break;
	}
	/* A secret or a name that was cut could not be given back. */
	if (!whole) {
		lower(m);
		m->stateful = true;
	}
}

enum mode_wish
mode_request(struct mode *m, const struct command *c, const struct slice *argv,
    size_t argc, bool whole, struct change **change)
{
	*change = NULL;
	if (c->effect == EFFECT_ORDINARY || c->effect == EFFECT_BF) {
		/* While it blocks, nothing may overtake it. */
		if (c->flags & COMMAND_BLOCKING)
			lower(m);
		return MODE_SEND;
	}
	if (c->effect == EFFECT_MONITOR)
		return MODE_OPAQUE_WISH;
	if (c->effect == EFFECT_CLIENT && argc > 1 &&
	    slice_is_nocase(argv[1], "reply"))
		return MODE_OPAQUE_WISH;
	if (breaks_multi(c->effect)) {
		/* Only a session that sent MULTI has this to ask. */
		if (m->level != MODE_PLAIN && m->outstanding != 0)
			return MODE_WAIT;
		if (m->in_multi)
			return MODE_OPAQUE_WISH;
	}
	*change = change_new(c->effect);
	read_change(m, *change, c, argv, argc, whole);
	m->outstanding++;
	return MODE_SEND;
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
	struct slice channel, count_text = reply_head_element(r, 2);
	int64_t count = 0;
	uint64_t before = m->subs[SUBS_CHANNEL] + m->subs[SUBS_PATTERN];
	bool known;

	if (reply_is_error(r) || r->elements_done < 3)
		return true;
	if (c->expect == 0 && c->effect == EFFECT_UNSUBSCRIBE)
		c->expect = m->subs[c->kind] != 0 ? m->subs[c->kind] : 1;
	channel = reply_head_element(r, 1);
	known = count_text.data != NULL &&
	    slice_to_int64(count_text, &count) == 0 && count >= 0;
	if (c->kind == SUBS_SHARD) {
		if (known)
			m->subs[SUBS_SHARD] = (uint64_t)count;
	} else if (known) {
		/* Wraps down as it should where the count fell. */
		m->subs[c->kind] += (uint64_t)count - before;
	} else if (c->effect == EFFECT_SUBSCRIBE) {
		/* A channel name too long for the head hides the count: one
		 * subscription too many is remembered at worst. */
		m->subs[c->kind]++;
	}
	(void)channel;
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
			forget(m);
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
