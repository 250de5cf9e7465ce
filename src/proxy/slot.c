/* SPDX-License-Identifier: BSD-2-Clause */
/* Reply slots: see slot.h. */
#include "config.h"

#include <stdlib.h>

#include "core/check.h"
#include "core/mem.h"
#include "proxy/slot.h"
#include "resp/encode.h"

struct slot *
slot_new(uint64_t now_ns)
{
	struct slot *t = mem_alloc(sizeof(*t));

	*t = (struct slot){.state = SLOT_HELD,
	    .count = 1,
	    .source = SOURCE_UPSTREAM,
	    .began_ns = now_ns};
	return t;
}

void
slot_free(struct slot *t)
{
	check(t->change == NULL);
	check(t->pending == 0);
	free(t->keys);
	free(t->answer);
	free(t->values);
	free(t->failure);
	free(t);
}

bool
slot_only_passes(const struct slot *t)
{
	return t->state == SLOT_READY && t->send == SEND_RAW &&
	    t->shape == SHAPE_RELAY && t->change == NULL && t->keys == NULL &&
	    t->values == NULL && t->failure == NULL && !t->blocking &&
	    !t->quit && !t->protocol_end && !t->streaming && t->pending == 0;
}

void
slot_set_command(struct slot *t, const struct command *c)
{
	t->blocking = (c->flags & COMMAND_BLOCKING) != 0;
	t->unknown = c->effect == EFFECT_UNKNOWN;
}

void
slot_answer(struct slot *t, struct buf *b)
{
	free(t->answer);
	t->answer_len = buf_len(b);
	t->answer = mem_dup(buf_head(b), t->answer_len);
	buf_consume(b, t->answer_len);
	t->state = SLOT_ANSWERED;
}

void
slot_answer_error(struct slot *t, const char *text)
{
	struct buf b;

	buf_init(&b, 4096);
	check(encode_error(&b, text) == 0);
	slot_answer(t, &b);
	buf_fini(&b);
	t->source = SOURCE_LOCAL;
}

size_t
slot_absent_count(const struct slot *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->key_count; i++)
		n += t->keys[i].verdict == KEY_ABSENT;
	return n;
}
