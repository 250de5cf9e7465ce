/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of "<redis-key>:events", as scripts publish them: u8 version (1), u8
 * kind, u64 epoch, u64 seq, u32 count, then count elements, each u32 length and
 * bytes; all big-endian. Pure. Any thread.
 */
#ifndef CONTROL_EVENTS_H
#define CONTROL_EVENTS_H

#include <stdint.h>

#include "core/slice.h"

enum event_kind {
	EVENT_ADDED =
	    1, /* elements got new bits; seq is one more than before */
	EVENT_EPOCH = 2, /* the epoch is another; seq is what it was */
};

/* A message that was found to be whole. */
struct filter_event {
	enum event_kind kind;
	uint64_t epoch, seq;
	uint32_t count; /* elements still to be taken */
	struct slice rest;
};

/* 0 and *e (borrowing message), or -1: another version, an unknown kind, or
 * lengths that do not fit the message to the byte. */
int event_parse(struct filter_event *e, struct slice message)
    __attribute__((warn_unused_result));
/* The next element, borrowed from the message; only while e->count is not 0. */
struct slice event_next(struct filter_event *e);

#endif
