/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between control, which sees that a rebuild is due and spaces the attempts out
 * (control/report.c), and the rebuild thread, which does it.
 */
#include "config.h"

#include <stdlib.h>

#include "control/control.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/run.h"
#include "rebuild/rebuild.h"

/* An ended build on its way to the main thread. */
struct ended {
	struct run *run;
	size_t index;
	enum metric_rebuild result;
};

void
rebuilds_want(size_t index, const char *reason, void *run)
{
	struct run *r = run;

	if (r->draining || !r->settings->filters[index].rebuild.here)
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
	unsigned *failures = &e->run->failures[e->index];

	*failures = e->result == REBUILD_OK ? 0 : *failures + 1;
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
