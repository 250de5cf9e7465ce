/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reply slots: one per request of a session, in request order. What is due at
 * the head leaves first; what is not yet forwarded lies behind what is. Requests
 * that came together, lie side by side and only pass share one: a run. No I/O
 * here. Owner: the session; its worker's thread.
 *
 *   HELD      not decided: something must be known first (at most one, the last)
 *   PENDING   waits for checks or adds
 *   READY     may be forwarded when all before it are
 *   SENT      forwarded, its reply is due
 *   ANSWERED  its reply is known: answer (for each of count), or all are absent
 *
 *   HELD -> PENDING | READY | ANSWERED;  PENDING -> READY | ANSWERED;
 *   READY -> SENT;  SENT -> (freed) | ANSWERED (the upstream was lost) | PENDING
 *   (replied, while its adds are out)
 */
#ifndef PROXY_SLOT_H
#define PROXY_SLOT_H

#include <sys/queue.h>

#include "core/buf.h"
#include "core/metrics.h"
#include "policy/mode.h"

enum slot_state {
	SLOT_HELD,
	SLOT_PENDING,
	SLOT_READY,
	SLOT_SENT,
	SLOT_ANSWERED,
};

/* How the upstream's reply becomes the client's. */
enum slot_shape {
	SHAPE_RELAY,    /* as it is */
	SHAPE_ELEMENTS, /* MGET: local elements come in between, or replace */
	SHAPE_MISSING, /* the absent reply, where it says that the key is not */
	SHAPE_COUNT,   /* EXISTS: the absent error takes the place */
	SHAPE_EXECABORT, /* DISCARD was sent in place of EXEC */
	SHAPE_SWALLOW,   /* of our own replay: errors close the session */
};

/* What is sent upstream for the slot. */
enum slot_send {
	SEND_RAW,     /* the request's bytes */
	SEND_SPLIT,   /* the command with the keys that are not absent */
	SEND_DISCARD, /* DISCARD */
	SEND_NOTHING, /* answered here */
};

enum slot_verdict {
	KEY_UNCOVERED, /* no filter covers it */
	KEY_WAITING,   /* a check is out */
	KEY_MAYBE,
	KEY_ABSENT,
};

struct slot_key {
	uint32_t offset, len; /* of its bytes, from the request's first */
	uint32_t filter;      /* index; valid unless KEY_UNCOVERED */
	uint8_t verdict;      /* enum slot_verdict */
};

struct slot {
	TAILQ_ENTRY(slot) next;
	enum slot_state state;
	enum slot_shape shape;
	enum slot_send send;
	const struct covered_read *covered; /* of covered reads; else NULL */
	bool permitted;    /* absent may be said without asking Redis */
	bool blocking;     /* its reply may take for ever */
	bool unknown;      /* not known to COMMAND: it may block */
	bool quit;         /* QUIT: the session ends with its reply */
	bool protocol_end; /* the reply ends the session (protocol error) */
	bool streaming;    /* its last bytes are not forwarded yet */
	bool replied;      /* its reply has left while its adds were out */
	unsigned pending;  /* checks or adds out */
	unsigned count;    /* replies due; above 1 for a run */
	unsigned answered; /* replies that have left and are in no metric yet */
	size_t raw_len;    /* bytes in the input buffer, until forwarded */
	size_t command;    /* metric_command_index */
	enum metric_source source;
	uint64_t began_ns;
	struct change *change; /* what its reply may change; owned or NULL */
	struct slot_key *keys; /* covered reads; owned */
	size_t key_count;
	size_t elements; /* covered reads: of an array for each key or field */
	/* SHAPE_ELEMENTS: next key to write out; SHAPE_MISSING: bytes of the
	 * reply that are like those of answer */
	size_t position;
	bool element_out; /* SHAPE_ELEMENTS: a part of the element has left */
	bool absent;      /* ANSWERED: all keys are, and there is no answer */
	/* ANSWERED: the reply; SHAPE_MISSING: what Redis says of a missing key,
	 * once its reply begins; owned */
	uint8_t *answer;
	size_t answer_len;
	int *values; /* BF.*: a result per item; owned */
	size_t value_count;
	char *failure; /* an add failed: why; owned */
};
TAILQ_HEAD(slots, slot);

struct slot *slot_new(uint64_t now_ns);
/* change must have been given back to the mode before. */
void slot_free(struct slot *t);
/* Forwarded as it is when its turn comes, and its reply likewise; nothing else. */
bool slot_only_passes(const struct slot *t);
/*
 * True where a request that only passes, of the same command and read at now_ns,
 * whose bytes follow those of t, may be made a part of it: t does no more, and is
 * not forwarded.
 */
static inline bool
slot_is_run(const struct slot *t, uint64_t now_ns)
{
	return t->state == SLOT_READY && t->began_ns == now_ns &&
	    (t->count > 1 || slot_only_passes(t));
}
/* Makes such a request of size bytes a part of run. */
static inline void
slot_extend(struct slot *run, size_t size)
{
	run->count++;
	run->raw_len += size;
}
/* What its command says of how long its reply may take. */
void slot_set_command(struct slot *t, const struct command *c);
/* Makes it ANSWERED with a copy of b's bytes; b is emptied. */
void slot_answer(struct slot *t, struct buf *b);
/* The same with an error line ("ERR bloomgate: ..."). */
void slot_answer_error(struct slot *t, const char *text);
size_t slot_absent_count(const struct slot *t);

#endif
