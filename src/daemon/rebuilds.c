/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between control, which sees that a rebuild is due, and the rebuild thread,
 * which does it: spaces the attempts out when they come to nothing. The source
 * is somebody's database; asking it again each second would be an attack.
 */
#include "config.h"

#include <stdlib.h>

#include "control/control.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/random.h"
#include "daemon/run.h"
#include "rebuild/rebuild.h"

#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS   60000

/* An ended build on its way to the main thread. */
struct ended {
	struct run *run;
	size_t index;
	enum metric_rebuild result;
};

/* 1 s doubling to 60 s, and up to a quarter more: many bloomgates that failed
 * in the same moment should not come back in the same moment. */
static uint64_t
retry_delay_ms(unsigned failures)
{
	uint64_t delay = RETRY_MAX_MS;

	if (failures <= 6)
		delay = (uint64_t)RETRY_FIRST_MS << (failures - 1);
	if (delay > RETRY_MAX_MS)
		delay = RETRY_MAX_MS;
	return delay + random_below(delay / 4);
}

void
rebuilds_want(size_t index, const char *reason, void *run)
{
	struct run *r = run;

	if (r->draining || !r->settings->filters[index].rebuild.here)
		return;
	if (clock_boot_ms() < r->retry[index].not_before_ms)
		return;
	if (rebuild_request(r->rebuild, index, false, reason) == 0)
		log_info("rebuild_requested",
		    LOG_STR("filter", r->filters[index]->name),
		    LOG_STR("reason", reason));
}

void
rebuilds_want_retire(size_t index, void *run)
{
	struct run *r = run;

	if (!r->draining && r->settings->filters[index].rebuild.here)
		rebuild_retire(r->rebuild, index);
}

void
rebuilds_changed(size_t index, void *run)
{
	struct run *r = run;

	control_refresh(r->control, index, -1);
}

static void
on_ended(void *arg)
{
	struct ended *e = arg;
	struct run_retry *retry = &e->run->retry[e->index];
	uint64_t delay_ms;

	if (e->result == REBUILD_OK) {
		*retry = (struct run_retry){0};
	} else {
		/* An operator who aborts wants peace, not the next attempt. */
		retry->failures = e->result == REBUILD_ABORTED
		    ? 7
		    : retry->failures + (retry->failures < 7);
		delay_ms = retry_delay_ms(retry->failures);
		retry->not_before_ms = clock_boot_ms() + delay_ms;
		log_info("rebuild_backoff",
		    LOG_STR("filter", e->run->filters[e->index]->name),
		    LOG_INT("failures", retry->failures),
		    LOG_INT("delay_ms", delay_ms));
	}
	control_refresh(e->run->control, e->index, -1);
	free(e);
}

void
rebuilds_ended(size_t index, enum metric_rebuild result, void *run)
{
	struct run *r = run;
	struct ended *e = mem_alloc(sizeof(*e));

	*e = (struct ended){.run = r, .index = index, .result = result};
	mailbox_post(r->mailbox, on_ended, e);
}
