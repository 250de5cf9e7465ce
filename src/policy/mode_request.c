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
 * what may fail comes first.
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
			return true;
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

	if (argc < 2 || slice_to_int64(argv[1], &version) != 0)
		return;
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
		return argc > 1 && slice_is_nocase(argv[1], "reply");
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
	if (breaks_count(c, argv, argc))
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
	m->multis += c->effect == EFFECT_MULTI;
	return MODE_SEND;
}
