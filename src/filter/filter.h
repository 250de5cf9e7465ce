/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the threads share about one configured filter, and the only place that
 * may say "absent".
 *
 * control publishes views (immutable but for the lease); workers hold a
 * reference while they use one. A verdict is given only for a view that is
 * still the published one, in state FILTER_SERVING, with the lease of this
 * bloomgate running, from bits and tag read together on a connection to the run
 * of Redis that the view trusts (DESIGN.md: laws 1 and 2, model rules 1 and 2); or
 * from the view's mirror, as long as control holds it for close enough to Redis.
 *
 * States (who moves: control):
 *
 *   UNKNOWN   nothing read yet, or the store is unreachable
 *   MISSING   no meta, or no generation serves
 *   SUSPECT   meta's run id is not that of the Redis we reach
 *   LOST      a shard or tag of active is missing or wrong
 *   FOREIGN   layout, scheme or key fingerprint not ours: everything is maybe
 *   SERVING   active is sealed and in order
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "filter/meta.h"
#include "filter/mirror.h"

enum verdict {
	VERDICT_MAYBE,
	VERDICT_ABSENT,
};

enum filter_state {
	FILTER_UNKNOWN,
	FILTER_MISSING,
	FILTER_SUSPECT,
	FILTER_LOST,
	FILTER_FOREIGN,
	FILTER_SERVING,
};
/* Same order as enum setting_mode of config. */
enum filter_mode {
	FILTER_ENFORCE,
	FILTER_OBSERVE,
	FILTER_OFF,
};
/* For status and readiness: unknown missing suspect lost foreign serving. */
const char *filter_state_name(enum filter_state s);
const char *filter_mode_name(enum filter_mode m);

struct filter;

struct view {
	_Atomic unsigned references; /* partner: view_ref/unref, acq_rel */
	enum filter_state state;
	struct meta meta;
	/*
	 * CLOCK_BOOTTIME ns until which absent may be said from this view; 0
	 * none. Stored by control (release), loaded by workers (acquire).
	 */
	_Atomic uint64_t lease_until_ns;
	/* Of the active generation, referenced; NULL none. Set by control before
	 * the view is published, and not changed afterwards. */
	struct mirror *mirror;

	/* private: whose view it is, and the version it was published as, 0 not
	 * yet. Stored by filter_publish (release), loaded by filter_ready and
	 * filter_judge (acquire). */
	const struct filter *filter;
	_Atomic uint64_t published;
};

/* What a rebuild tells about itself; written by the rebuild thread. */
struct rebuild_progress {
	_Atomic int phase; /* enum rebuild_phase */
	_Atomic uint64_t elements;
	_Atomic uint64_t expected; /* elements expected, 0 unknown */
	_Atomic uint64_t bytes_read, bytes_total;   /* of a file source */
	_Atomic uint64_t chunks_done, chunks_total; /* merge and make */
	_Atomic uint64_t began_ns;                  /* CLOCK_BOOTTIME */
};
enum rebuild_phase {
	PHASE_IDLE,
	PHASE_QUEUED,
	PHASE_BEGIN,
	PHASE_MAKE,
	PHASE_PEERS,
	PHASE_READ,
	PHASE_MERGE,
	PHASE_VERIFY,
	PHASE_SEAL,
	PHASE_COMMIT,
	PHASE_RETIRE,
};
const char *rebuild_phase_name(enum rebuild_phase p);

struct filter {
	/* constant after filter_new */
	size_t index; /* in settings->filters and in metrics */
	char *name;
	char *redis_key;
	unsigned db;
	bool has_key; /* scheme keyed */
	struct scheme_key key;

	_Atomic int mode; /* enum filter_mode; relaxed */
	/* A meta was found in Redis at some time; set by control and rebuild,
	 * read by rebuild (a source that is not fresh), relaxed. */
	_Atomic bool seen_meta;
	struct rebuild_progress progress;

	/* private: the published view, under the mutex; its count of changes is
	 * read without (acquire) to see whether a held view is still it. */
	pthread_mutex_t mutex;
	struct view *view;
	_Atomic uint64_t version;
	char last_error[256]; /* why the last rebuild failed or was refused */
	char last_result[16]; /* ok refused failed aborted, "" none yet */
	int64_t last_ended_us;
};

/* key: NULL unless the scheme is keyed; copied. Returned; filter_free. */
struct filter *filter_new(size_t index, const char *name, const char *redis_key,
    unsigned db, const struct scheme_key *key);
void filter_free(struct filter *f);

/*
 * A new view without a lease, with one reference; m is copied. state is decided
 * here: UNKNOWN when m is NULL; MISSING when there is no meta; FOREIGN where this
 * program or key does not fit (layout, active, building); MISSING without an
 * active; SUSPECT when m->run_id is not run_id (that of the connection it was
 * read on; "" or NULL never is); LOST when active is; MISSING when active is not
 * sealed; else SERVING. A damaged active is FOREIGN too.
 */
struct view *view_new(
    const struct filter *f, const struct meta *m, const char *run_id);
/*
 * True when this program, with this filter's key, can compute the positions of g:
 * an add that g must get cannot be acknowledged otherwise.
 */
bool filter_fits(const struct filter *f, const struct generation *g);
struct view *view_ref(struct view *v);
void view_unref(struct view *v);

/* Publishes v (reference taken). control's thread only. */
void filter_publish(struct filter *f, struct view *v);
/* The published view with a reference; never NULL. Any thread. */
struct view *filter_view(struct filter *f);
/* Counts up at each publish: cheap way to see that a held view is stale. */
uint64_t filter_version(const struct filter *f);

/* True while a verdict could be given: view current, serving, lease running. */
bool filter_ready(const struct filter *f, const struct view *v,
    uint64_t version, uint64_t now_ns);

/*
 * The verdict of a remote check. view and version: those at sending. values: the
 * reply of BITFIELD_RO shard GET u1 p0 .. GET u1 pk-1 GET i64 <tag>, in order;
 * count of them. link_run_id: of the connection that answered. now_ns: after the
 * answer was read. Anything that does not fit is MAYBE. *wrong_tag (may be
 * NULL) is set when the tag differs: read the meta again.
 */
enum verdict filter_judge(const struct filter *f, const struct view *view,
    uint64_t version, const char *link_run_id, const int64_t *values,
    size_t count, uint64_t now_ns, bool *wrong_tag);

enum mirror_verdict {
	MIRROR_UNKNOWN, /* it cannot tell: ask Redis */
	MIRROR_ABSENT,
	MIRROR_MAYBE,
};
/*
 * The verdict of the view's mirror. view and version: the present ones; p: of the
 * element under the active generation. now_ns: read after the request's bytes.
 * Absent needs what filter_ready needs, and a mirror that is in step (its
 * until_ns). "Unknown" is not "maybe": a remote check may still say absent.
 */
enum mirror_verdict filter_judge_mirror(const struct filter *f,
    const struct view *view, uint64_t version, const struct positions *p,
    uint64_t now_ns);
/*
 * Puts an element into the published view's mirror, if there is one: before the
 * add is acknowledged to whoever may read through this bloomgate next. Any
 * thread.
 */
void filter_mirror_add(struct filter *f, struct slice element);
/* The generation that serves in v, borrowed from it; NULL when none does. */
const struct generation *filter_serving(const struct view *v);

void filter_set_result(
    struct filter *f, const char *result, const char *error, int64_t ended_us);

#endif
