/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks Redis, each time the link is up, whether bloomgate's own user may do what
 * the scripts do inside: a refused inner command would stop a script half-way, for
 * nothing is rolled back. What is missing is logged with the rule that gives it.
 * Redis 6 has no ACL DRYRUN, and a user may be denied it: then nothing is known
 * and nothing is said above info. Control's loop only.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/tracked.h"
#include "core/log.h"
#include "core/mem.h"

#define PROBE_ARGS 6

/* What stands for the filter's own names in the commands below. */
#define META  "\001"
#define PEERS "\002"
#define SHARD "\003"
#define T0    "\004"
#define T1    "\005"
#define EVENT "\006"

/* Everything that scripts, checks and control send, in a valid form each. */
static const char *const commands[][PROBE_ARGS] = {
    {"EVAL", "return 1", "1", META},
    {"EVALSHA", "0000000000000000000000000000000000000000", "1", META},
    {"TIME"},
    {"INFO"},
    {"EXISTS", META},
    {"PERSIST", META},
    {"HGETALL", META},
    {"HKEYS", META},
    {"HEXISTS", META, "f"},
    {"HGET", META, "f"},
    {"HMGET", META, "f"},
    {"HSET", META, "f", "v"},
    {"HDEL", META, "f"},
    {"HGETALL", PEERS},
    {"HSET", PEERS, "f", "v"},
    {"HDEL", PEERS, "f"},
    {"HLEN", PEERS},
    {"STRLEN", SHARD},
    {"GETRANGE", SHARD, "0", "1"},
    {"SETRANGE", SHARD, "0", "v"},
    {"BITCOUNT", SHARD},
    {"BITFIELD", SHARD, "SET", "u1", "0", "1"},
    {"BITFIELD_RO", SHARD, "GET", "u1", "0"},
    {"UNLINK", SHARD},
    {"SET", T0, "v"},
    {"GET", T0},
    {"BITOP", "OR", T0, T0, T1},
    {"DEL", T0, T1},
    {"PUBLISH", EVENT, "v"},
    {"SUBSCRIBE", EVENT},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

struct probe {
	struct filter *filter; /* borrowed */
	char user[128];
	const char *const *command; /* of commands */
};

static const char *
name_of(const struct filter *f, const char *word, char *out, size_t size)
{
	static const char *const suffixes[] = {
	    "meta", "peers", NULL, "t0", "t1", "events"};

	if (word[0] < 1 || word[0] > 6)
		return word;
	if (suffixes[word[0] - 1] == NULL)
		name_shard(out, size, f->redis_key, "probe", 0);
	else
		name_other(out, size, f->redis_key, suffixes[word[0] - 1]);
	return out;
}

static void
on_dryrun(struct link *l, const struct redisReply *reply, void *arg)
{
	struct probe *p = arg;
	struct slice text = link_reply_text(reply);
	char rule[400], lower[32];
	size_t i;

	(void)l;
	for (i = 0; p->command[0][i] != '\0' && i < sizeof(lower) - 1; i++)
		lower[i] = (char)tolower((unsigned char)p->command[0][i]);
	lower[i] = '\0';
	if (link_reply_type(reply) == LINK_ERROR) {
		/* DRYRUN itself is refused or unknown. */
		log_debug("acl_unknown", LOG_STR("filter", p->filter->name),
		    LOG_SLICE("error", text));
	} else if (reply != NULL && !slice_is(text, "OK")) {
		snprintf(rule, sizeof(rule),
		    "ACL SETUSER %s +%s ~%s:* &%s:events", p->user, lower,
		    p->filter->redis_key, p->filter->redis_key);
		log_error("acl_missing", LOG_STR("filter", p->filter->name),
		    LOG_STR("user", p->user), LOG_STR("command", lower),
		    LOG_SLICE("redis", text), LOG_STR("remedy", rule));
	}
	free(p);
}

static void
ask(struct link *l, struct filter *f, const char *user,
    const char *const *command)
{
	struct slice argv[3 + PROBE_ARGS];
	char names[PROBE_ARGS][NAME_MAX_BYTES];
	struct probe *p = mem_zalloc(1, sizeof(*p));
	size_t n = 0;

	p->filter = f;
	p->command = command;
	snprintf(p->user, sizeof(p->user), "%s", user);
	argv[n++] = slice_str("ACL");
	argv[n++] = slice_str("DRYRUN");
	argv[n++] = slice_str(user);
	for (size_t i = 0; i < PROBE_ARGS && command[i] != NULL; i++)
		argv[n++] = slice_str(
		    name_of(f, command[i], names[i], sizeof(names[i])));
	if (link_command(l, CONTROL_REPLY_MS, on_dryrun, p, argv, n) != 0)
		free(p); /* asked again when the link is up again */
}

static void
on_whoami(struct link *l, const struct redisReply *reply, void *arg)
{
	struct control_group *g = arg;
	struct control *c = g->control;
	struct slice text = link_reply_text(reply);
	char user[128];

	if (link_reply_type(reply) != LINK_STRING &&
	    link_reply_type(reply) != LINK_STATUS) {
		if (reply != NULL)
			log_info("acl_unknown", LOG_SLICE("error", text),
			    LOG_STR("remedy",
				"give bloomgate's own user +acl|whoami "
				"+acl|dryrun to have its rules checked"));
		return;
	}
	if (c->stopping || text.len >= sizeof(user))
		return;
	memcpy(user, text.data, text.len);
	user[text.len] = '\0';
	for (size_t i = 0; i < c->count; i++) {
		if (c->tracked[i].group != g)
			continue;
		for (size_t k = 0; k < COMMANDS; k++)
			ask(l, c->tracked[i].filter, user, commands[k]);
	}
}

void
probe_start(struct control_group *g)
{
	struct slice argv[] = {slice_str("ACL"), slice_str("WHOAMI")};

	if (link_command(g->link, CONTROL_REPLY_MS, on_whoami, g, argv, 2) != 0)
		log_debug("acl_not_asked", LOG_INT("db", g->db));
}
