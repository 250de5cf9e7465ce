/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the upstream's own COMMAND into the command table: flags, arity and where
 * keys are (key specifications of Redis 7, or first, last and step before); then
 * COMMAND INFO of every name, for COMMAND does not tell what has been renamed.
 * Worker's thread.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/mem.h"
#include "proxy/worker.h"

#define COMMAND_TIMEOUT_MS 5000

static int
number(const struct redisReply *map, const char *name)
{
	return (int)link_reply_integer(link_reply_field(map, name));
}

static bool
type_is(const struct redisReply *part, const char *type)
{
	return slice_is(link_reply_text(link_reply_field(part, "type")), type);
}

/* A place that Redis itself does not know, or that cannot be kept. */
static const struct key_spec unknown_spec = {.incomplete = true};

/* False when Redis itself does not know where these keys are. */
static bool
read_spec(const struct redisReply *r, struct key_spec *spec)
{
	const struct redisReply *begin = link_reply_field(r, "begin_search");
	const struct redisReply *find = link_reply_field(r, "find_keys");
	const struct redisReply *flags = link_reply_field(r, "flags"), *s;
	struct slice word;
	size_t i;

	*spec = (struct key_spec){0};
	s = link_reply_field(begin, "spec");
	if (type_is(begin, "index")) {
		spec->index = number(s, "index");
	} else if (type_is(begin, "keyword")) {
		spec->keyword = true;
		spec->index = number(s, "startfrom");
		word = link_reply_text(link_reply_field(s, "keyword"));
		if (word.len == 0 || word.len >= sizeof(spec->word))
			return false;
		memcpy(spec->word, word.data, word.len);
	} else {
		return false;
	}
	s = link_reply_field(find, "spec");
	if (type_is(find, "range")) {
		spec->last = number(s, "lastkey");
		spec->step = number(s, "keystep");
		spec->limit = number(s, "limit");
	} else if (type_is(find, "keynum")) {
		spec->keynum = true;
		spec->keynum_index = number(s, "keynumidx");
		spec->first_key = number(s, "firstkey");
		spec->step = number(s, "keystep");
	} else {
		return false;
	}
	for (i = 0; i < link_reply_count(flags); i++)
		if (slice_is_nocase(
			link_reply_text(link_reply_at(flags, i)), "incomplete"))
			spec->incomplete = true;
	return true;
}

static void
read_specs(const struct redisReply *r, struct command *c)
{
	const struct redisReply *specs = link_reply_at(r, 8);
	size_t i;

	if (link_reply_count(r) > 8) {
		for (i = 0; i < link_reply_count(specs); i++) {
			if (c->spec_count == KEY_SPECS_MAX) {
				c->specs[KEY_SPECS_MAX - 1] = unknown_spec;
				return;
			}
			if (!read_spec(link_reply_at(specs, i),
				&c->specs[c->spec_count]))
				c->specs[c->spec_count] = unknown_spec;
			c->spec_count++;
		}
		return;
	}
	if (link_reply_integer(link_reply_at(r, 3)) > 0) {
		int first = (int)link_reply_integer(link_reply_at(r, 3));
		int last = (int)link_reply_integer(link_reply_at(r, 4));

		/* Key specifications count the last key from the first. */
		c->specs[0] = (struct key_spec){.index = first,
		    .last = last >= 0 ? last - first : last,
		    .step = (int)link_reply_integer(link_reply_at(r, 5))};
		c->spec_count = 1;
	}
}

static unsigned
read_flags(const struct redisReply *flags)
{
	static const struct {
		const char *name;
		unsigned flag;
	} known[] = {{"write", COMMAND_WRITE}, {"readonly", COMMAND_READONLY},
	    {"blocking", COMMAND_BLOCKING},
	    {"movablekeys", COMMAND_MOVABLE_KEYS},
	    {"may_replicate", COMMAND_MAY_REPLICATE},
	    {"pubsub", COMMAND_PUBSUB}};
	unsigned result = 0;
	size_t i, k;

	for (i = 0; i < link_reply_count(flags); i++) {
		struct slice f = link_reply_text(link_reply_at(flags, i));

		for (k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (slice_is(f, known[k].name))
				result |= known[k].flag;
	}
	return result;
}

static bool
read_command(const struct redisReply *r, struct command *c)
{
	struct slice name = link_reply_text(link_reply_at(r, 0));

	*c = (struct command){0};
	if (link_reply_count(r) < 6 || name.len == 0 ||
	    name.len >= sizeof(c->name))
		return false;
	memcpy(c->name, name.data, name.len);
	c->arity = (int)link_reply_integer(link_reply_at(r, 1));
	c->flags = read_flags(link_reply_at(r, 2));
	read_specs(r, c);
	return true;
}

/* A command, and its subcommands by their own names ("xgroup|create"), which the
 * table joins with it. */
static void
add_command(struct command_table *table, const struct redisReply *r)
{
	const struct redisReply *subs = link_reply_at(r, 9);
	struct command c;
	size_t i;

	if (!read_command(r, &c))
		return;
	command_table_add(table, &c);
	for (i = 0; i < link_reply_count(subs); i++)
		if (read_command(link_reply_at(subs, i), &c))
			command_table_add(table, &c);
}

/* The names that COMMAND lists, for asking what each of them runs. */
struct listing {
	struct worker *worker; /* borrowed: it frees its link first */
	size_t count;
	char (*names)[sizeof(((struct command *)0)->name)]; /* owned */
};

static void
listing_free(struct listing *l)
{
	free(l->names);
	free(l);
}

static void
refuse(struct worker *w, const struct redisReply *reply)
{
	w->commands_refused = true;
	log_error("commands_unknown",
	    LOG_SLICE("error", link_reply_text(reply)),
	    LOG_STR("effect",
		"nothing is answered from filters, and every argument of every "
		"command is learned as a key"),
	    LOG_STR("remedy", "give bloomgate's own user +command"));
	worker_pump_all(w);
}

/* True when reply i is about the command of that name. */
static bool
is_itself(const struct listing *l, size_t i, const struct redisReply *r)
{
	return slice_is(link_reply_text(link_reply_at(r, 0)), l->names[i]);
}

/*
 * COMMAND lists a command that rename-command calls otherwise under the name that
 * it was born with, which then runs nothing, or another command. Only what has its
 * own name is known; the rest is as unknown as what COMMAND does not list.
 */
static void
take_infos(
    struct worker *w, const struct listing *l, const struct redisReply *reply)
{
	struct command_table *table = command_table_new();
	size_t i, renamed = 0;

	for (i = 0; i < l->count; i++) {
		const struct redisReply *r = link_reply_at(reply, i);

		if (is_itself(l, i, r))
			add_command(table, r);
		else
			renamed++;
	}
	command_table_free(w->commands);
	w->commands = table;
	w->recent.len = 0;
	w->commands_known = true;
	w->commands_refused = false;
	log_debug(
	    "commands_known", LOG_INT("count", command_table_size(table)));
	if (renamed != 0)
		log_warn("commands_renamed", LOG_INT("count", renamed),
		    LOG_STR("effect",
			"every argument of a renamed command is learned as a "
			"key, and its session is answered by Redis alone until "
			"it closes"));
	worker_pump_all(w);
}

static void
on_infos(struct link *link, const struct redisReply *reply, void *arg)
{
	struct listing *l = arg;

	(void)link;
	if (reply != NULL) {
		if (link_reply_type(reply) == LINK_ARRAY &&
		    link_reply_count(reply) == l->count)
			take_infos(l->worker, l, reply);
		else
			refuse(l->worker, reply);
	}
	listing_free(l);
}

static struct listing *
listing_new(struct worker *w, const struct redisReply *reply)
{
	struct listing *l = mem_zalloc(1, sizeof(*l));
	size_t i, n = link_reply_count(reply);
	struct command c;

	l->worker = w;
	l->names = mem_zalloc(n, sizeof(*l->names));
	for (i = 0; i < n; i++)
		if (read_command(link_reply_at(reply, i), &c))
			memcpy(l->names[l->count++], c.name, sizeof(c.name));
	return l;
}

static void
on_commands(struct link *link, const struct redisReply *reply, void *arg)
{
	struct worker *w = arg;
	struct listing *l;
	struct slice *argv;
	size_t i;

	if (reply == NULL)
		return; /* asked again when the link is up again */
	if (link_reply_type(reply) != LINK_ARRAY ||
	    link_reply_count(reply) == 0) {
		refuse(w, reply);
		return;
	}
	l = listing_new(w, reply);
	argv = mem_zalloc(l->count + 2, sizeof(*argv));
	argv[0] = slice_str("COMMAND");
	argv[1] = slice_str("INFO");
	for (i = 0; i < l->count; i++)
		argv[i + 2] = slice_str(l->names[i]);
	if (link_command(
		link, COMMAND_TIMEOUT_MS, on_infos, l, argv, l->count + 2) != 0)
		listing_free(l); /* as above */
	free(argv);
}

void
commands_load(struct worker *w)
{
	struct slice argv = slice_str("COMMAND");

	if (link_command(
		w->upstream, COMMAND_TIMEOUT_MS, on_commands, w, &argv, 1) != 0)
		return; /* the link is down again: on_up comes back here */
}
