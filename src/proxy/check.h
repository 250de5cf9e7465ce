/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of elements: from the view's mirror where it can tell, else remote, one
 * BITFIELD_RO per element, answered within 100 ms or maybe. Worker's thread.
 */
#ifndef PROXY_CHECK_H
#define PROXY_CHECK_H

#include "core/slice.h"
#include "filter/filter.h"
#include "proxy/worker.h"

#ifndef CHECK_TIMEOUT_MS
#define CHECK_TIMEOUT_MS 100
#endif
/* Out at once, a worker; above it, maybe. Bounds memory and Redis's work. */
#define CHECKS_MAX 50000

enum check_start {
	CHECK_STARTED,   /* done will be called, later */
	CHECK_ABSENT,    /* known at once; done is not called, as below */
	CHECK_MAYBE,     /* known at once */
	CHECK_NOT_READY, /* nothing may be said: maybe */
	CHECK_NO_STORE,  /* the link is down: maybe */
};

/* answered: false when the store gave no answer in time. */
typedef void (*check_fn)(
    enum verdict verdict, bool answered, void *owner, void *what, size_t n);

/* element is borrowed for the call. */
enum check_start check_start(struct worker *w, size_t index,
    struct slice element, check_fn done, void *owner, void *what, size_t n);

#endif
