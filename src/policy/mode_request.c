/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What requests mean for a session before they are sent: which changes their
 * replies may bring, and which of them make the session opaque. Pure; any thread
 * that owns the mode.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "policy/mode.h"

/* Longest channel of which a confirmation is within reply's head, whole:
 * "*3 $12 punsubscribe $NNN CHANNEL :COUNT" with their CRLFs. */
#define CHANNEL_MAX ((size_t)(REPLY_HEAD_MAX - 56))

static void
keep_text(struct change *c, struct slice text)
{
	c->text = mem_dup(text.data, text.len);
	c->text_len = text.len;
}

static void
keep_auth(struct change *c, struct slice user, struct slice secret)
{
	c->has_auth = true;
	c->user = mem_zalloc(user.len + 1, 1);
	memcpy(c->user, user.data, user.len);
	c->secret = mem_dup(secret.data, secret.len);
	c->secret_len = secret.len;
}

/* A name that Redis takes: no blanks, nothing unprintable. */
static bool
is_client_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] < '!' || name.data[i] > '~')
			return false;
	return true;
}

/*
 * True where Redis may do a part of a HELLO and then refuse it: it lets the user
 * in (or takes the name) before it looks at what follows, so that the error
 * would not tell who the session is. The usual order, AUTH then SETNAME, is safe:
 * what may fail comes first. So is what Redis refuses before it does anything.
 */
static bool
hello_is_odd(const struct slice *argv, size_t argc)
{
	bool auth = false, name = false;
	size_t i;

	for (i = 2; i < argc; i++) {
		if (slice_is_nocase(argv[i], "auth") && i + 2 < argc && !auth &&
		    !name) {
			auth = true;
			i += 2;
		} else if (slice_is_nocase(argv[i], "setname") &&
		    i + 1 < argc && !name && is_client_name(argv[i + 1])) {
			name = true;
			i++;
		} else {
			return auth || name;
		}
	}
	return false;
}

/* HELLO [version [AUTH user secret] [SETNAME name]], not an odd one. */
static void
read_hello(struct change *c, const struct slice *argv, size_t argc)
{
	int64_t version;
	size_t i;

	if (argc < 2)
		return;
	if (slice_to_int64(argv[1], &version) != 0) {
		c->effect = EFFECT_UNKNOWN; /* refused, then */
		return;
	}
	c->proto = version == 3 ? 3 : 2;
	for (i = 2; i < argc; i++) {
		if (slice_is_nocase(argv[i], "auth") && i + 2 < argc) {
			keep_auth(c, argv[i + 1], argv[i + 2]);
			i += 2;
		} else if (slice_is_nocase(argv[i], "setname") &&
		    i + 1 < argc) {
			c->has_name = true;
			keep_text(c, argv[i + 1]);
			i++;
		} else {
			c->effect = EFFECT_UNKNOWN; /* likewise */
			return;
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

/* A setting that is not one of these: Redis refuses it, or it is news. */
static void
read_switch(struct change *c, enum client_switch which,
    const struct slice *argv, size_t argc)
{
	bool on = argc > 2 && slice_is_nocase(argv[2], "on");

	if (!on && !(argc > 2 && slice_is_nocase(argv[2], "off"))) {
		c->effect = EFFECT_UNKNOWN;
		return;
	}
	c->has_switch = true;
	c->which = which;
	c->on = on;
}

static void
read_setinfo(struct change *c, const struct slice *argv, size_t argc)
{
	c->has_lib_name = argc == 4 && slice_is_nocase(argv[2], "lib-name");
	c->has_lib_version = argc == 4 && slice_is_nocase(argv[2], "lib-ver");
	if (c->has_lib_name || c->has_lib_version) {
		c->harmless = true;
		keep_text(c, argv[3]);
	} else {
		c->effect = EFFECT_UNKNOWN;
	}
}

/*
 * CLIENT by its subcommands. Those of `idle` do nothing to the session that asks:
 * CACHING is of tracking, where all is forwarded; PAUSE, KILL and UNBLOCK are
 * about others (DESIGN.md, State, of PAUSE); REPLY ON is what it is already, for
 * OFF and SKIP are opaque.
 */
static void
read_client(struct change *c, const struct slice *argv, size_t argc)
{
	static const char *const idle[] = {"caching", "getname", "getredir",
	    "help", "id", "info", "kill", "list", "pause", "reply",
	    "trackinginfo", "unblock", "unpause"};
	struct slice sub = argc > 1 ? argv[1] : slice_of("", 0);

	if (slice_is_nocase(sub, "setname") && argc == 3) {
		c->has_name = c->harmless = true;
		keep_text(c, argv[2]);
		return;
	}
	if (slice_is_nocase(sub, "setinfo")) {
		read_setinfo(c, argv, argc);
		return;
	}
	if (slice_is_nocase(sub, "tracking")) {
		read_switch(c, SWITCH_TRACKING, argv, argc);
		return;
	}
	if (slice_is_nocase(sub, "no-evict")) {
		read_switch(c, SWITCH_NO_EVICT, argv, argc);
		return;
	}
	if (slice_is_nocase(sub, "no-touch")) {
		read_switch(c, SWITCH_NO_TOUCH, argv, argc);
		return;
	}
	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		if (slice_is_nocase(sub, idle[i])) {
			c->harmless = true;
			return;
		}
	c->effect = EFFECT_UNKNOWN;
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

/* A confirmation shows its count only behind the channel; one that reply's head
 * cannot hold would hide it, and with it how many more are due. */
static bool
hides_count(const struct slice *argv, size_t argc)
{
	for (size_t i = 1; i < argc; i++)
		if (argv[i].len > CHANNEL_MAX)
			return true;
	return false;
}

/* Requests whose replies, or what they did, could not be told. */
static bool
breaks_count(const struct command *c, const struct slice *argv, size_t argc)
{
	switch (c->effect) {
	case EFFECT_MONITOR:
		return true;
	case EFFECT_CLIENT:
		return argc > 1 && slice_is_nocase(argv[1], "reply") &&
		    !(argc == 3 && slice_is_nocase(argv[2], "on"));
	case EFFECT_HELLO:
		return hello_is_odd(argv, argc);
	case EFFECT_SUBSCRIBE:
	case EFFECT_UNSUBSCRIBE:
		return hides_count(argv, argc);
	default:
		return false;
	}
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

/* Fills in what the reply may change. */
static void
read_change(struct change *ch, const struct command *c,
    const struct slice *argv, size_t argc)
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
	case EFFECT_CLIENT:
		read_client(ch, argv, argc);
		break;
	case EFFECT_SUBSCRIBE:
	case EFFECT_UNSUBSCRIBE:
		read_subscription(ch, c, argc);
		break;
	case EFFECT_QUIT:
	case EFFECT_ORDINARY:
		ch->harmless = true;
		break;
	default:
		break;
	}
}

static struct change *
expect(struct mode *m, enum effect effect)
{
	m->outstanding++;
	return change_new(effect);
}

struct change *
mode_discard(struct mode *m)
{
	return expect(m, EFFECT_DISCARD);
}

enum mode_wish
mode_request(struct mode *m, const struct command *c, const struct slice *argv,
    size_t argc, bool whole, struct change **change)
{
	bool ordinary = c->effect == EFFECT_ORDINARY || c->effect == EFFECT_BF;

	*change = NULL;
	if (ordinary && !(c->flags & COMMAND_BLOCKING))
		return MODE_SEND;
	if (breaks_count(c, argv, argc))
		return MODE_OPAQUE_WISH;
	if (breaks_multi(c->effect)) {
		/* Whether it is queued is known when what may open or end a
		 * transaction has its reply. */
		if (m->opening != 0 || (m->in_multi && m->outstanding != 0))
			return MODE_WAIT;
		if (m->in_multi || m->foreign_state)
			return MODE_OPAQUE_WISH;
	}
	*change = expect(m, ordinary ? EFFECT_ORDINARY : c->effect);
	read_change(*change, c, argv, argc);
	if (!whole && !ordinary) {
		(*change)->cut = true;
		(*change)->harmless = false;
	}
	(*change)->opens = c->effect == EFFECT_MULTI ||
	    (*change)->effect == EFFECT_UNKNOWN;
	m->opening += (*change)->opens;
	return MODE_SEND;
}
