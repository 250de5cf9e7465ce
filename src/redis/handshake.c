/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a new connection must show before it counts: AUTH (each secret in turn),
 * CLIENT SETNAME, SELECT, and INFO, which must say that it is a master that has
 * loaded, and its run id. The connect timer of link.c covers it all. Texts of
 * errors to AUTH are not logged: some servers echo the arguments.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/err.h"
#include "core/log.h"
#include "redis/link_private.h"

static void send_auth(struct link *l);

void
handshake_fini(struct link *l)
{
	secrets_fini(&l->handshake.secrets);
	memset(&l->handshake, 0, sizeof(l->handshake));
}

static void
step(struct link *l, link_reply_fn fn)
{
	if (link_send(l, 0, fn, NULL) == NULL)
		link_fail(l, "the connection takes no command");
}

/* True when the answer ends the handshake by itself. */
static bool
ended(struct link *l, const struct redisReply *reply)
{
	if (l->state != LINK_STATE_HANDSHAKE || reply == NULL)
		return true;
	/* LOADING and its like end the connection in link.c. */
	if (link_reply_is_error(reply, "LOADING") ||
	    link_reply_is_error(reply, "MASTERDOWN"))
		return true;
	if (link_reply_is_error(reply, "NOAUTH")) {
		link_fail(l, "redis wants a password: set password-file");
		return true;
	}
	if (link_reply_is_error(reply, "DENIED")) {
		link_fail(l, "redis is in protected mode");
		return true;
	}
	return false;
}

/* --- INFO ------------------------------------------------------------------*/

/* The value of the line that begins with name, where it fits; else nothing. */
static void
read_id(char out[41], struct slice line, const char *name)
{
	size_t skip = strlen(name);

	if (line.len > skip && line.len - skip <= 40 &&
	    memcmp(line.data, name, skip) == 0)
		snprintf(out, 41, "%.*s", (int)(line.len - skip),
		    (const char *)line.data + skip);
}

static void
read_line(struct handshake *h, struct slice line)
{
	read_id(h->process, line, "run_id:");
	read_id(h->history, line, "master_replid:");

	if (slice_is(line, "role:master"))
		h->master = true;
	else if (line.len > 5 && memcmp(line.data, "role:", 5) == 0)
		h->replica = true;
	else if (slice_is(line, "loading:1") ||
	    slice_is(line, "async_loading:1"))
		h->loading = true;
}

static void
read_info(struct handshake *h, struct slice text)
{
	size_t start = 0;

	for (size_t i = 0; i <= text.len; i++) {
		size_t end = i;

		if (i < text.len && text.data[i] != '\n')
			continue;
		if (end > start && text.data[end - 1] == '\r')
			end--;
		if (end > start)
			read_line(h, slice_of(text.data + start, end - start));
		start = i + 1;
	}
}

static void
judge(struct link *l)
{
	struct handshake *h = &l->handshake;

	if (h->process[0] != '\0')
		snprintf(h->run_id, sizeof(h->run_id), "%s%s%s", h->process,
		    h->history[0] != '\0' ? ":" : "", h->history);
	if (h->run_id[0] == '\0' || (!h->master && !h->replica))
		link_fail(l, "INFO gives no role or no run id");
	else if (h->loading)
		link_fail(l, "redis is loading its data");
	else if (h->replica && !l->o.any_role)
		link_fail(l, "redis is a replica, not a master");
	else
		link_up(l);
}

static void on_info(struct link *l, const struct redisReply *reply, void *arg);

static void
send_info(struct link *l, const char *section)
{
	wire_begin(&l->wire, section != NULL ? 2 : 1);
	wire_str(&l->wire, "INFO");
	if (section != NULL)
		wire_str(&l->wire, section);
	l->handshake.outstanding++;
	step(l, on_info);
}

static void
on_info(struct link *l, const struct redisReply *reply, void *arg)
{
	struct handshake *h = &l->handshake;

	(void)arg;
	if (ended(l, reply))
		return;
	h->outstanding--;
	if (link_reply_type(reply) == LINK_STRING)
		read_info(h, link_reply_text(reply));
	else
		h->refused = true;
	if (h->outstanding > 0)
		return;
	if (!h->refused) {
		judge(l);
	} else if (!h->whole) {
		/* An ACL may allow INFO and not INFO with a section. */
		h->refused = false;
		h->whole = true;
		send_info(l, NULL);
	} else {
		link_fail(l, "INFO is refused: bloomgate's user needs +info");
	}
}

/* --- the name, the database ------------------------------------------------*/

static void
on_named(struct link *l, const struct redisReply *reply, void *arg)
{
	(void)arg;
	(void)ended(l, reply); /* a server may refuse names */
}

static void
on_selected(struct link *l, const struct redisReply *reply, void *arg)
{
	(void)arg;
	if (ended(l, reply))
		return;
	if (link_reply_type(reply) == LINK_ERROR)
		link_fail(l, "SELECT %u is refused", l->o.db);
}

static void
send_rest(struct link *l)
{
	char name[64];

	/* AUTH is over. */
	secrets_fini(&l->handshake.secrets);
	l->handshake.secrets = (struct secrets){.items = NULL};
	snprintf(name, sizeof(name), "bloomgate-%s", l->o.purpose);
	for (char *c = name; *c != '\0'; c++) {
		if (!isgraph((unsigned char)*c))
			*c = '-';
	}
	wire_begin(&l->wire, 3);
	wire_str(&l->wire, "CLIENT");
	wire_str(&l->wire, "SETNAME");
	wire_str(&l->wire, name);
	step(l, on_named);
	if (l->o.db != 0) {
		wire_begin(&l->wire, 2);
		wire_str(&l->wire, "SELECT");
		wire_number(&l->wire, l->o.db);
		step(l, on_selected);
	}
	send_info(l, "server");
	send_info(l, "replication");
	send_info(l, "persistence");
}

/* --- AUTH ------------------------------------------------------------------*/

static bool
starts_with(const struct redisReply *r, const char *text)
{
	struct slice s = link_reply_text(r);
	size_t len = strlen(text);

	return s.len >= len && memcmp(s.data, text, len) == 0;
}

static void
on_auth(struct link *l, const struct redisReply *reply, void *arg)
{
	struct handshake *h = &l->handshake;

	(void)arg;
	if (ended(l, reply))
		return;
	if (link_reply_type(reply) == LINK_STATUS) {
		send_rest(l);
	} else if (link_reply_is_error(reply, "WRONGPASS") ||
	    starts_with(reply, "ERR invalid password")) {
		if (++h->secret < h->secrets.count)
			send_auth(l);
		else
			link_fail(l,
			    "redis refuses every secret of the "
			    "password file");
	} else if (starts_with(reply, "ERR AUTH <password> called without") ||
	    starts_with(reply, "ERR Client sent AUTH, but no password")) {
		log_warn("redis_no_password", LOG_STR("purpose", l->o.purpose),
		    LOG_STR("address", l->o.endpoint->address.text));
		send_rest(l);
	} else {
		link_fail(l, "AUTH is refused");
	}
}

static void
send_auth(struct link *l)
{
	const struct handshake *h = &l->handshake;
	const char *user = l->o.endpoint->username;
	bool named = user != NULL && user[0] != '\0';

	wire_begin(&l->wire, named ? 3 : 2);
	wire_str(&l->wire, "AUTH");
	if (named)
		wire_str(&l->wire, user);
	wire_str(&l->wire,
	    h->secret < h->secrets.count ? h->secrets.items[h->secret] : "");
	step(l, on_auth);
	wire_wipe(&l->wire);
}

void
handshake_start(struct link *l)
{
	const struct endpoint *e = l->o.endpoint;
	const char *file = e->password_file != NULL ? e->password_file : "";
	bool named = e->username != NULL && e->username[0] != '\0';
	struct err err;

	handshake_fini(l);
	if (secrets_load(&l->handshake.secrets, file, &err) != 0) {
		l->handshake.secrets = (struct secrets){.items = NULL};
		link_fail(l, "%s", err.text);
		return;
	}
	/* A user that needs no password still has to say its name. */
	if (l->handshake.secrets.count > 0 || named)
		send_auth(l);
	else
		send_rest(l);
}
