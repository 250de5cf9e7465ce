/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How threads speak: a queue of calls that run, in order, on the loop that owns
 * the mailbox. Posting is safe from any thread; the rest belongs to the owner's
 * thread.
 */
#ifndef CORE_MAILBOX_H
#define CORE_MAILBOX_H

struct event_base;
struct mailbox;

typedef void (*mailbox_fn)(void *arg);

/* Returned; freed with mailbox_free on the owner's thread. */
struct mailbox *mailbox_new(struct event_base *base);
/* Runs what is still queued, then frees. Nobody may post any more. */
void mailbox_free(struct mailbox *m);

/* Queues fn(arg); arg is taken by fn. Any thread. */
void mailbox_post(struct mailbox *m, mailbox_fn fn, void *arg);

#endif
