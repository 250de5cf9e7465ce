/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The permission cache. One entry a user; an entry that is being asked keeps no
 * older answer, so a revoked right ends with its permission-ttl.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/permission.h"

#define ENTRIES_MAX    1024 /* users; the oldest goes when one more comes */
#define ASK_TIMEOUT_MS 1000
#define RETRY_MS       1000 /* after an answer that could not be had */

struct entry {
	TAILQ_ENTRY(entry) next;
	char *user;
	enum permission verdict; /* of a session that authenticated as user */
	bool nopass;             /* on and without a password */
	bool asking;
	bool known;          /* Redis has told */
	uint64_t expires_ms; /* clock_boot_ms */
};

struct permissions {
	struct worker *worker;
	TAILQ_HEAD(entry_list, entry) entries; /* newest first */
	size_t count;
};

struct question {
	struct permissions *permissions;
	char *user; /* owned */
};

struct permissions *
permissions_new(struct worker *w)
{
	struct permissions *p = mem_zalloc(1, sizeof(*p));

	p->worker = w;
	TAILQ_INIT(&p->entries);
	return p;
}

static void
drop(struct permissions *p, struct entry *e)
{
	TAILQ_REMOVE(&p->entries, e, next);
	p->count--;
	free(e->user);
	free(e);
}

void
permissions_free(struct permissions *p)
{
	struct entry *e;

	while ((e = TAILQ_FIRST(&p->entries)) != NULL)
		drop(p, e);
	free(p);
}

static struct entry *
find(struct permissions *p, const char *user)
{
	struct entry *e;

	TAILQ_FOREACH (e, &p->entries, next)
		if (strcmp(e->user, user) == 0)
			return e;
	return NULL;
}

/* The value after the field called name in a flat reply; NULL without. */
static const struct redisReply *
field(const struct redisReply *reply, const char *name)
{
	size_t i, n = link_reply_count(reply);

	for (i = 0; i + 1 < n; i += 2)
		if (slice_is(link_reply_text(link_reply_at(reply, i)), name))
			return link_reply_at(reply, i + 1);
	return NULL;
}

static bool
holds(const struct redisReply *list, const char *word)
{
	size_t i;

	for (i = 0; i < link_reply_count(list); i++)
		if (slice_is(link_reply_text(link_reply_at(list, i)), word))
			return true;
	return false;
}

/* True when one of the words of a space-separated text is word. */
static bool
has_word(struct slice text, const char *word)
{
	size_t len = strlen(word), i = 0, start;

	while (i < text.len) {
		while (i < text.len && text.data[i] == ' ')
			i++;
		start = i;
		while (i < text.len && text.data[i] != ' ')
			i++;
		if (i - start == len &&
		    memcmp(text.data + start, word, len) == 0)
			return true;
	}
	return false;
}

/* Exactly all commands: a later "-get" shows as "+@all -get". */
static bool
all_commands(const struct redisReply *reply)
{
	return slice_is(link_reply_text(field(reply, "commands")), "+@all");
}

/* Redis 7 gives a text ("~* &*" without the channels), Redis 6 a list. */
static bool
all_keys(const struct redisReply *reply)
{
	const struct redisReply *keys = field(reply, "keys");

	if (link_reply_type(keys) == LINK_ARRAY)
		return holds(keys, "*");
	return has_word(link_reply_text(keys), "~*");
}

static void
on_user(struct link *link, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct permissions *p = q->permissions;
	struct entry *e = find(p, q->user);
	const struct redisReply *flags;

	(void)link;
	if (e != NULL) {
		e->asking = false;
		e->verdict = PERMISSION_NO;
		e->nopass = e->known = false;
		e->expires_ms = clock_boot_ms() + RETRY_MS;
	}
	if (e != NULL && link_reply_type(reply) == LINK_ARRAY) {
		flags = field(reply, "flags");
		e->known = true;
		e->nopass = holds(flags, "on") && holds(flags, "nopass");
		if (holds(flags, "on") && all_commands(reply) &&
		    all_keys(reply))
			e->verdict = PERMISSION_ALL;
		e->expires_ms = clock_boot_ms() +
		    p->worker->settings->permission_ttl_ms;
	} else if (link_reply_type(reply) == LINK_ERROR) {
		log_warn("permission_unknown", LOG_STR("user", q->user),
		    LOG_SLICE("error", link_reply_text(reply)),
		    LOG_STR("remedy",
			"give bloomgate's own user +acl|getuser, or set "
			"permission: trust"));
	}
	if (e != NULL && strcmp(e->user, "default") == 0)
		p->worker->default_closed = e->known && !e->nopass;
	worker_pump_all(p->worker);
	free(q->user);
	free(q);
}

static void
ask(struct permissions *p, struct entry *e)
{
	const struct slice argv[] = {
	    slice_str("ACL"), slice_str("GETUSER"), slice_str(e->user)};
	struct question *q = mem_alloc(sizeof(*q));

	q->permissions = p;
	q->user = mem_strdup(e->user);
	e->asking = true;
	if (link_command(
		p->worker->upstream, ASK_TIMEOUT_MS, on_user, q, argv, 3) == 0)
		return;
	e->asking = e->known = false;
	e->verdict = PERMISSION_NO;
	e->expires_ms = 0;
	free(q->user);
	free(q);
}

/* The user's entry, being asked where it is not known or too old. */
static struct entry *
entry_of(struct permissions *p, const char *user)
{
	struct entry *e = find(p, user);

	if (e == NULL) {
		if (p->count >= ENTRIES_MAX)
			drop(p, TAILQ_LAST(&p->entries, entry_list));
		e = mem_zalloc(1, sizeof(*e));
		e->user = mem_strdup(user);
		TAILQ_INSERT_HEAD(&p->entries, e, next);
		p->count++;
	}
	if (!e->asking && clock_boot_ms() >= e->expires_ms)
		ask(p, e);
	return e;
}

bool
permission_default_closed(struct permissions *p)
{
	const struct entry *e = entry_of(p, "default");

	return !e->asking && e->known && !e->nopass;
}

enum permission
permission_of(struct permissions *p, const struct mode *m)
{
	const struct entry *e;

	if (p->worker->settings->permission == SETTING_PERMISSION_TRUST)
		return PERMISSION_ALL;
	e = entry_of(p, m->user != NULL ? m->user : "default");
	if (e->asking)
		return PERMISSION_ASKING;
	if (!e->known)
		return PERMISSION_UNKNOWN;
	if (m->user == NULL && !e->nopass)
		return PERMISSION_NOAUTH;
	return e->verdict;
}
