/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the session mode share: requests written as words, replies
 * fed as bytes, and a mode as a line of text.
 */
#ifndef TESTS_MODE_FIXTURE_H
#define TESTS_MODE_FIXTURE_H

#include "policy/mode.h"

/*
 * Asks about a request (words between single blanks; '' is the empty word) and
 * fails unless the answer is wish. Returns the change, or NULL. Its name must be
 * lower case unless the table is told its case by Redis.
 */
struct change *fixture_ask(
    struct mode *m, const char *words, enum mode_wish wish);

/* Splits words at blanks into argv, which borrows them; how many. */
#define FIXTURE_ARGS 64
size_t fixture_split(const char *words, struct slice *argv);
const struct command *fixture_command(struct slice name);

/*
 * Feeds every reply in bytes, a byte at a time, as answers to c. Each but the
 * last must leave the request unanswered and the last must answer it; what is
 * out of band is passed over. Returns how many were out of band.
 */
unsigned fixture_answer(struct mode *m, struct change *c, const char *bytes);

/* Both of the above: an ordinary request's reply is only framed. */
void fixture_do(struct mode *m, const char *words, const char *bytes);

/*
 * Everything about m that is not as in a new session, "; " between:
 * "forward; db=3; user=u:secret; watched; stateful". Valid until the next call.
 */
const char *fixture_text(const struct mode *m);

#endif
