/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to src/control: what control holds about its links and about each
 * filter. Everything belongs to control's loop but the fields marked "any
 * thread".
 *
 * One filter has at most one request on the link, so the steps come in order:
 *
 *	 idle --timer, refresh, link up--> META       (nothing read yet, or told)
 *	 META --reply--> view published --> HEARTBEAT
 *	 HEARTBEAT --same epoch--> lease --> idle
 *	 HEARTBEAT --other epoch, other run id, generations lost--> META
 *	 META --epoch below one seen before--> SUSPECT published -> DISTRUST
 *	 DISTRUST --reply--> META
 *	 all --no reply--> idle (the timer, or the next link up)
 */
#ifndef CONTROL_TRACKED_H
#define CONTROL_TRACKED_H

#include <stdatomic.h>

#include <event2/event.h>

#include "config/settings.h"
#include "control/control.h"
#include "control/follow.h"
#include "core/mailbox.h"
#include "filter/filter.h"
#include "redis/link.h"

#define CONTROL_TICK_MS 1000
/* Refreshes asked for by workers are at least this far apart. */
#define CONTROL_REFRESH_MS 5
#define CONTROL_REPLY_MS   5000
/* That many changed epochs in a row are followed at once, then in steps. */
#define CONTROL_REREADS   5
#define CONTROL_REREAD_MS 50
/* A peer field is written when it changes and this often. */
#define CONTROL_PEER_MS 4000
/*
 * How much longer than the lease a peer field holds: the time until it is written
 * again, one late tick and the reply's way back. A builder that sees it ended may
 * be sure that the lease has, too.
 */
#define CONTROL_PEER_SLACK_MS 7000
#define CONTROL_TAGS          16    /* shards whose tags one heartbeat reads */
#define CONTROL_WANT_MAX_MS   60000 /* between wishes for a failing rebuild */
#define CONTROL_RETIRE_MS     5000
#define CONTROL_PEER_NAME_MAX 320

/* The link for the filters of one database. */
struct control_group {
	struct control *control; /* borrowed: the owner */
	unsigned db;
	struct link *link; /* owned */
	/* Any thread; relaxed: a hint, nothing is ordered by it. */
	_Atomic bool up;
};

enum tracked_step {
	STEP_IDLE,
	STEP_META,
	STEP_HEARTBEAT,
	STEP_DISTRUST,
};

struct tracked {
	struct control *control; /* borrowed: the owner */
	struct control_group *group;
	struct filter *filter;                  /* borrowed */
	const struct filter_settings *settings; /* borrowed */
	struct event *timer;                    /* owned */
	uint64_t tick_ms;  /* between heartbeats: a mirror may need more */
	struct view *view; /* referenced: the published one; never NULL */
	char run_id[RUN_ID_LEN + 1]; /* of the link that view was read on */
	enum tracked_step step;
	bool read_meta; /* the next step is META */
	/*
	 * The largest epoch ever read. A smaller one means that the data are of
	 * an earlier moment (swapped back, reloaded, restored) and may lack
	 * acknowledged adds under a right tag.
	 */
	int64_t epoch_seen;
	unsigned rereads; /* in a row, because the epoch had changed */
	bool logged;      /* a state was logged since the start */
	enum filter_state logged_state;
	char logged_generation[GENERATION_NAME_MAX];

	/* the heartbeat under way */
	uint64_t sent_ns;
	bool wrote_peer;
	uint64_t turn; /* counts shards asked about, over all generations */

	/* Redis TIME as of the last heartbeat; 0 before the first on a link */
	int64_t redis_us;
	uint64_t redis_us_at_ns; /* when that heartbeat was sent */
	int64_t lock_until_us;   /* of the builder's lock as of then; 0 free */
	/* what our peer field says, once Redis confirmed it */
	char peer_epoch[EPOCH_TEXT_MAX];
	bool peer_known;
	uint64_t peer_at_ns;
	int64_t peers; /* live bloomgates, this one included; 0 not known */

	struct follow follow; /* the mirror */

	/* wishes */
	uint64_t want_after_ns, want_pause_ms;
	int64_t want_seen_us; /* filter's last_ended_us as last noted */
	uint64_t retire_after_ns;

	/* Any thread. Partner: control_refresh and the timer, acq_rel. */
	_Atomic bool refresh;
	_Atomic int64_t refresh_shard; /* -1 none; relaxed, a hint */
};

struct control {
	uint32_t magic;
	struct control_options options;
	struct mailbox *mailbox; /* owned */
	struct control_group *groups;
	size_t group_count;
	struct link *events;        /* owned; NULL: no mirrors */
	uint64_t events_refused_ns; /* when SUBSCRIBE was refused; 0 not */
	struct tracked *tracked;
	size_t count;
	size_t farewells; /* removals of peer fields without an answer */
	bool stopping;
	char peer[CONTROL_PEER_NAME_MAX];
};

/* tracked.c: the steps. */
void tracked_init(struct tracked *t, struct control *c, size_t index);
void tracked_fini(struct tracked *t);
void tracked_link_up(struct tracked *t);
void tracked_link_down(struct tracked *t);
/* The timer in at most delay_ms. */
void tracked_kick(struct tracked *t, uint64_t delay_ms);

/* heartbeat.c */
void tracked_heartbeat(struct tracked *t);
/* Removes the peer field; done is called once, when Redis has answered or will
 * not. Returns false when nothing was sent. */
bool tracked_farewell(struct tracked *t, void (*done)(struct control *c));

/* tracked.c, for heartbeat.c: what a heartbeat found. seq: meta's, as of then. */
void tracked_alive(struct tracked *t, uint64_t seq);
/* Redis refused it: it may be no master any more, and have other data. */
void tracked_refused(struct tracked *t);
void tracked_reread(struct tracked *t);
void tracked_idle(struct tracked *t);

/* probe.c: what bloomgate's own user may not do, as log lines. */
void probe_start(struct control_group *g);

/* report.c: logs, metrics, wishes. */
void report_state(struct tracked *t);
void report_metrics(struct tracked *t);
void report_wishes(struct tracked *t);

#endif
