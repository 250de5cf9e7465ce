/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between answer.c, which frames the upstream's replies and hands each to the slot
 * at the head, and replace.c, which puts others in their place. Private to them.
 */
#ifndef PROXY_ANSWER_H
#define PROXY_ANSWER_H

#include "proxy/session.h"

/* Bytes of the reply being framed that go on as they are. */
void answer_relay(struct session *s, const uint8_t *data, size_t len);
/* An error line of bloomgate's own. */
void answer_put_error(struct session *s, struct slice text);
/* The framed reply is complete; t is the slot at the head. */
void answer_complete(struct session *s, struct slot *t);
/* What came is not RESP, or not what was asked for: the session ends. */
void answer_bad_reply(struct session *s);

/*
 * Each takes bytes of the reply to t and returns how many of them it used; t is
 * complete where the reply is.
 *
 *   missing	a read of one absent key: as long as the reply is like the one
 *		for a missing key it is kept back, for the absent reply may take
 *		its place
 *   count	EXISTS with an absent key whose filter answers with an error
 *   elements	MGET with absent keys
 */
size_t replace_missing(
    struct session *s, struct slot *t, const uint8_t *data, size_t len);
size_t replace_count(
    struct session *s, struct slot *t, const uint8_t *data, size_t len);
size_t replace_elements(
    struct session *s, struct slot *t, const uint8_t *data, size_t len);

#endif
