/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds: elements of one filter that arrive in one loop turn go to Redis in one
 * call of add.lua (at most 700 positions). An add carries the epoch it was made
 * for; refused, it is made again for the meta that came back. It fails after 5 s
 * without an answer, at once when Redis refuses it or has been down for 5 s.
 * Worker's thread.
 */
#ifndef PROXY_ADD_H
#define PROXY_ADD_H

#include "core/metrics.h"
#include "core/slice.h"
#include "proxy/worker.h"

#define ADD_TIMEOUT_MS 5000

struct adder; /* of one filter in one worker */

struct adder *adder_new(struct worker *w, size_t index);
/* Fails what waits. */
void adder_free(struct adder *a);
/* The store's link is up again, or down. */
void adder_link_changed(struct adder *a);

/* result: 1 new, 0 known before, -1 failed (error says why; else NULL). */
typedef void (*add_fn)(
    int result, const char *error, void *owner, void *what, size_t n);

/*
 * Queues element (copied). done is called later, never within the call. 0, or
 * -1 when the element cannot be in a filter at all (too long; then done is not
 * called).
 */
int add_start(struct worker *w, size_t index, struct slice element,
    enum metric_add source, add_fn done, void *owner, void *what, size_t n)
    __attribute__((warn_unused_result));

#endif
