/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subscriptions of a link: messages go to link_options.on_message. hiredis keeps
 * what is subscribed with the connection, so nothing is left of it when that is
 * lost. Redis refuses a SUBSCRIBE by ending the connection here (hiredis takes an
 * error in a subscribed context for the end).
 */
#include "config.h"

#include <hiredis/async.h>

#include "redis/link_private.h"

static void
on_reply(struct redisAsyncContext *ac, void *r, void *arg)
{
	struct link *l = ac->data;
	const struct redisReply *reply = r, *payload;
	struct slice kind;

	(void)arg;
	/* NULL: the connection ends, which link.c sees by itself. */
	if (reply == NULL || l == NULL || l->ac != ac ||
	    l->state != LINK_STATE_UP || link_reply_count(reply) != 3)
		return;
	kind = link_reply_text(link_reply_at(reply, 0));
	payload = link_reply_at(reply, 2);
	l->in_callback++;
	if (slice_is(kind, "subscribe"))
		l->o.on_message(l, link_reply_text(link_reply_at(reply, 1)),
		    slice_of(NULL, 0), l->o.arg);
	else if (slice_is(kind, "message") &&
	    link_reply_type(payload) == LINK_STRING)
		l->o.on_message(l, link_reply_text(link_reply_at(reply, 1)),
		    link_reply_text(payload), l->o.arg);
	l->in_callback--;
}

int
link_subscribe(struct link *l, struct slice channel)
{
	if (l->state != LINK_STATE_UP || l->ac == NULL)
		return -1;
	wire_begin(&l->wire, 2);
	wire_str(&l->wire, "SUBSCRIBE");
	wire_arg(&l->wire, channel);
	return redisAsyncFormattedCommand(
		   l->ac, on_reply, NULL, l->wire.data, l->wire.len) == REDIS_OK
	    ? 0
	    : -1;
}
