/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to src/control: how a filter's mirror is kept in step with Redis. All on
 * control's loop.
 *
 * Events carry a chain: seq counts up by one with each message that has elements,
 * and the epoch moves with messages of their own. The chain begins (base) with a
 * heartbeat that was sent after the subscription was confirmed; whatever does not
 * follow it is a gap, after which the mirror is loaded again:
 *
 *	 CUT ----subscribed----> SUBSCRIBED --heartbeat--> BASED
 *	 BASED --due--> loading --pieces in, heartbeat of the same epoch--> loaded
 *	 loaded: in step as of a heartbeat once the chain has its epoch and seq
 *	 any gap, a failed load -> SUBSCRIBED; the events link lost -> CUT
 *
 * A view of another generation begins a new mirror; one of the same takes it over,
 * and says absent from it again with its own first heartbeat.
 */
#ifndef CONTROL_FOLLOW_H
#define CONTROL_FOLLOW_H

#include "control/load.h"
#include "filter/filter.h"

struct control;
struct tracked;

/* Loads of several bloomgates lie in it; the test of the chaos has less time. */
#ifndef FOLLOW_SPREAD_MS
#define FOLLOW_SPREAD_MS 10000
#endif
#define FOLLOW_BEHIND_MS  5000 /* that long behind: a message was lost */
#define FOLLOW_RETRY_MS   1000 /* after a load that failed, doubling */
#define FOLLOW_RETRY_MAX  30000
#define FOLLOW_REFUSED_MS 30000 /* after a SUBSCRIBE that was refused */

enum follow_chain {
	CHAIN_CUT,
	CHAIN_SUBSCRIBED,
	CHAIN_BASED,
};

struct follow {
	enum follow_chain chain;
	uint64_t chain_ns;   /* since when it is CUT or SUBSCRIBED */
	uint64_t epoch, seq; /* BASED: of the chain; else of what was heard */
	bool heard;          /* SUBSCRIBED: a message has come */
	uint64_t heard_from; /* all messages from that seq on were heard */
	uint64_t base_seq;   /* seq at the chain's begin */
	struct load load;
	uint64_t load_after_ns; /* when a load is due; 0 not drawn */
	unsigned load_failures; /* in a row */
	uint64_t load_epoch;    /* as of the begin of the load */
	bool loaded;            /* a heartbeat has shown that the load counts */
	uint64_t loaded_ns;
	/* the last heartbeat under the view's epoch; beat_ns 0: none */
	uint64_t beat_ns, beat_seq;
	uint64_t behind_since_ns; /* 0: the chain has all that beats told */
	uint64_t in_step_ns;      /* sending of the last beat in step with; 0 */
};

/* Control's link for events, one for all filters. */
void follow_link_init(struct control *c);
/* Each tick of a filter: subscribes again what was refused. */
void follow_tick(struct tracked *t);

void follow_init(struct tracked *t);
void follow_fini(struct tracked *t);
/* Gives v, which is not published yet, its mirror. */
void follow_view(struct tracked *t, struct view *v);
/* A heartbeat under the view's epoch has found seq. */
void follow_alive(struct tracked *t, uint64_t seq);
/* The number of peers became known. */
void follow_peers(struct tracked *t);
/* What a person reads in status: "in step", "loading", "waiting", "behind", "cut",
 * "none". */
const char *follow_word(const struct tracked *t);
/* Seconds since the mirror was last in step; NaN without. */
double follow_staleness(const struct tracked *t, uint64_t now_ns);

#endif
