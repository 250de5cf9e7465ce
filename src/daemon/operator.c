/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the operator's commands do: each is handed on to the folder that can do
 * it. CHECK and ADD are answered on a worker's thread and come back to the
 * admin socket through the mailbox.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/run.h"
#include "daemon/status.h"
#include "proxy/proxy.h"
#include "rebuild/rebuild.h"

/* A CHECK or ADD on its way back. */
struct pending {
	struct mailbox *mailbox; /* borrowed: run's */
	struct admin_request *request;
	int *values; /* owned; NULL: error */
	size_t count;
	char *error; /* owned */
};

static char *
on_status(long index, void *arg)
{
	return status_json(arg, index);
}

static int
on_rebuild(size_t index, bool force, struct err *err, void *arg)
{
	struct run *r = arg;

	if (r->draining)
		return err_set(err, "bloomgate is stopping");
	if (!r->settings->filters[index].rebuild.here)
		return err_set(err,
		    "rebuild.here is false for this filter: build it where it "
		    "is true");
	if (rebuild_request(r->rebuild, index, force, "operator") != 0)
		return err_set(err, "a rebuild is queued or runs already");
	log_info("rebuild_requested",
	    LOG_STR("filter", r->filters[index]->name),
	    LOG_STR("reason", "operator"), LOG_INT("force", force));
	return 0;
}

static int
on_abort(size_t index, struct err *err, void *arg)
{
	struct run *r = arg;

	if (rebuild_abort(r->rebuild, index) != 0)
		return err_set(err, "no rebuild is queued or runs here");
	log_info("rebuild_abort", LOG_STR("filter", r->filters[index]->name));
	return 0;
}

static int
on_mode(size_t index, int mode, struct err *err, void *arg)
{
	struct run *r = arg;
	struct filter *f = r->filters[index];

	(void)err;
	atomic_store_explicit(&f->mode, mode, memory_order_relaxed);
	log_info("mode_changed", LOG_STR("filter", f->name),
	    LOG_STR("mode", filter_mode_name(mode)));
	return 0;
}

static void
on_answer(void *arg)
{
	struct pending *p = arg;

	admin_answer(p->request, p->values, p->count, p->error);
	free(p->values);
	free(p->error);
	free(p);
}

/* On a worker's thread. */
static void
on_done(const int *values, size_t count, const char *error, void *arg)
{
	struct pending *p = arg;

	if (values != NULL) {
		p->values = mem_dup(values, count * sizeof(*values));
		p->count = count;
	} else {
		p->error = mem_strdup(error != NULL ? error : "failed");
	}
	mailbox_post(p->mailbox, on_answer, p);
}

static struct pending *
pending_new(struct run *r, struct admin_request *request)
{
	struct pending *p = mem_zalloc(1, sizeof(*p));

	p->mailbox = r->mailbox;
	p->request = request;
	return p;
}

static void
on_check(size_t index, const struct slice *items, size_t count,
    struct admin_request *request, void *arg)
{
	struct run *r = arg;

	proxy_check(
	    r->proxy, index, items, count, on_done, pending_new(r, request));
}

static void
on_add(size_t index, const struct slice *items, size_t count,
    struct admin_request *request, void *arg)
{
	struct run *r = arg;

	proxy_add(
	    r->proxy, index, items, count, on_done, pending_new(r, request));
}

static char *
on_config(void *arg)
{
	struct run *r = arg;

	return settings_dump(r->settings);
}

static char *
on_clients(void *arg)
{
	struct run *r = arg;

	return proxy_clients(r->proxy);
}

static void
on_drain(void *arg)
{
	run_drain(arg);
}

struct admin *
operator_new(struct run *r, struct err *err)
{
	struct admin_options o = {
	    .base = r->base,
	    .listen = &r->settings->admin_listen,
	    .settings = r->settings,
	    .calls =
		{
		    .status_json = on_status,
		    .rebuild = on_rebuild,
		    .abort = on_abort,
		    .mode = on_mode,
		    .check = on_check,
		    .add = on_add,
		    .config_yaml = on_config,
		    .clients_text = on_clients,
		    .drain = on_drain,
		},
	    .arg = r,
	};

	return admin_new(&o, err);
}
