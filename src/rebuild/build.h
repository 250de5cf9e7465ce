/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to src/rebuild: one build of one filter, from begin to commit. It
 * belongs to the rebuild thread; other threads only set *cancel.
 *
 * Steps return 0, or -1 after build_fail or build_refuse has noted why; then
 * build_run aborts in Redis whatever was begun there.
 */
#ifndef REBUILD_BUILD_H
#define REBUILD_BUILD_H

#include <stdatomic.h>

#include "config/keytemplate.h"
#include "config/settings.h"
#include "core/err.h"
#include "filter/bits.h"
#include "filter/filter.h"
#include "rebuild/pace.h"
#include "rebuild/rebuild.h"
#include "rebuild/sample.h"
#include "redis/link.h"

#define BUILD_TOKEN_LEN 32
/* Why a build ended that found another's lock: no fault, control asks again. */
#define BUILD_ELSEWHERE "another bloomgate builds it"

struct event_base;

struct build {
	/* given */
	const struct rebuild_options *options;  /* borrowed */
	const struct filter_settings *settings; /* borrowed */
	struct filter *filter;                  /* borrowed */
	bool force;
	const char *reason;         /* borrowed */
	const _Atomic bool *cancel; /* borrowed; set by others */

	/* the connection; a build lives and dies with one run id */
	struct event_base *base;     /* owned */
	struct link *link;           /* owned */
	char run_id[RUN_ID_LEN + 1]; /* "" before the first call */
	uint64_t retry_until_ms;     /* 0, or no call goes on after it */

	/* keys */
	char meta_key[NAME_MAX_BYTES], channel[NAME_MAX_BYTES];
	char t0_key[NAME_MAX_BYTES], t1_key[NAME_MAX_BYTES];

	/* what Redis had when the build began */
	struct meta *meta; /* owned */

	/* the generation that is being built */
	char token[BUILD_TOKEN_LEN + 1];
	char name[GENERATION_NAME_MAX];
	bool begun;   /* in Redis there is something to abort */
	bool created; /* begin had to make the meta */
	bool first;   /* no meta was ever seen here before */
	struct geometry geometry;
	uint8_t tag[TAG_BYTES];
	uint64_t capacity;
	char epoch[EPOCH_TEXT_MAX]; /* after open */
	int64_t opened_us;          /* wall clock when step 2 ended */
	uint64_t renewed_ns;        /* when the lock was last renewed */

	/* the source */
	struct keytemplate template; /* owned */
	struct bits bits;            /* owned */
	struct sample sample;        /* owned */
	uint64_t elements;           /* lines with an element in them */
	uint64_t empty_lines;
	bool counting; /* too many for the capacity: only counted now */
	bool carried;
	const struct generation *carry; /* from meta; NULL: nothing carried */

	/* merge and verify */
	struct pace pace;
	uint64_t bits_set;

	/* progress */
	uint64_t began_ns, logged_ns, counted;
	enum metric_rebuild result;
	struct err err;
};

/* build.c. The whole build; b->result and b->err say how it ended. */
struct build_job {
	const struct rebuild_options *options;
	size_t index;
	bool force;
	const char *reason;
	const _Atomic bool *cancel;
	/* Ms of CLOCK_BOOTTIME by which even the abort must end; 0 none. */
	const _Atomic uint64_t *stop_ms;
};
enum metric_rebuild build_run(const struct build_job *job, struct err *err);
/* Unlinks the generations listed as retiring. 0, or -1 (logged). */
int build_retire_only(const struct build_job *job);

/* Notes the reason; always -1. The first reason stays. */
int build_fail(struct build *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int build_refuse(struct build *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool build_cancelled(const struct build *b);
/* Waits; -1 (noted) when cancelled meanwhile. */
int build_sleep(struct build *b, uint64_t ns)
    __attribute__((warn_unused_result));
/* To be called often: cancels, renews the lock, shows progress. */
int build_tick(struct build *b) __attribute__((warn_unused_result));

/* The epoch changed by our doing: tells whoever asked to know. */
void build_changed(struct build *b);

/* begin.c */
int begin_all(struct build *b) __attribute__((warn_unused_result));
/* Retires or aborts a generation with all its shards. */
int begin_retire(struct build *b, const char *name, const char *token,
    uint32_t shards) __attribute__((warn_unused_result));
/* All that meta lists as retiring. */
int begin_retire_listed(struct build *b) __attribute__((warn_unused_result));

/* progress.c */
void progress_phase(struct build *b, enum rebuild_phase phase);
void progress_show(struct build *b);
void progress_end(struct build *b);

/* peers.c: step 2. */
int peers_wait(struct build *b) __attribute__((warn_unused_result));

/* fresh.c: may the source be taken, and must active's bits be carried? */
int fresh_decide(struct build *b, int64_t written_us, bool trust)
    __attribute__((warn_unused_result));
/* Before anything is begun: refuses a file that would be refused later. */
int fresh_foresee(struct build *b) __attribute__((warn_unused_result));

/* merge.c */
int merge_carried(struct build *b) __attribute__((warn_unused_result));
int merge_all(struct build *b) __attribute__((warn_unused_result));

/* verify.c */
int verify_all(struct build *b) __attribute__((warn_unused_result));

/* source_file.c, source_command.c: read all of it, line by line. */
int source_file(struct build *b) __attribute__((warn_unused_result));
int source_command(struct build *b) __attribute__((warn_unused_result));

/* name.c: the generation's name for a moment, from a strftime format. 0, or -1
 * where it makes no usable name. */
int name_of_time(char out[GENERATION_NAME_MAX], const char *suffix,
    int64_t wall_us, struct err *err) __attribute__((warn_unused_result));

#endif
