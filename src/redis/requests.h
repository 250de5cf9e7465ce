/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that a link has out, for their deadlines: hiredis keeps their
 * order. One timer; requests of one timeout are in one list, which is in order
 * of their deadlines by itself. One owner, one thread.
 */
#ifndef REDIS_REQUESTS_H
#define REDIS_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "redis/link.h"

struct event;

#define REQUEST_CLASSES    8
#define REQUEST_OVERDUE_NS UINT64_C(5000000000)

struct request {
	TAILQ_ENTRY(request) next; /* of its class's list, or of late */
	struct link *link;
	link_reply_fn fn;
	void *arg;
	uint64_t deadline_ns; /* CLOCK_BOOTTIME; 0 none */
	uint8_t class;        /* index of its list */
	bool late;            /* answered with NULL: the reply is dropped */
};
TAILQ_HEAD(request_list, request);

struct request_class {
	uint64_t timeout_ms;
	struct request_list list;
};

struct requests {
	struct request_class classes[REQUEST_CLASSES];
	unsigned count;           /* classes in use */
	struct request_list late; /* in order of giving up */
	size_t outstanding;       /* every request without its reply */
	struct event *timer;
	uint64_t timer_ns; /* when it fires; 0 not armed */
	uint64_t grace_ns; /* expired ones wait until then; 0 they do not */
	bool stalled;      /* ... because the timer came late */
};

void requests_init(struct requests *r, struct link *l);
/* All were answered before. */
void requests_fini(struct requests *r);

/* A new request that was handed to hiredis. */
struct request *requests_add(struct requests *r, struct link *l,
    uint64_t timeout_ms, link_reply_fn fn, void *arg);
/* Answers it (unless that was done) and frees it. */
void requests_answer(
    struct requests *r, struct request *q, const struct redisReply *reply);
/* Its owner is gone: nobody is told, a late reply is dropped. */
void requests_abandon(struct requests *r, struct request *q);
/* It never left: freed without an answer. */
void requests_remove(struct requests *r, struct request *q);

#endif
