/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Start and stop. The order of the start:
 *
 *   log, limits, time zone, metrics, filters, loop
 *   rebuild, control, proxy (binds), stats, admin: made, nothing runs yet
 *   control, rebuild, proxy: started; READY=1
 *
 * and of the stop, after the loop has ended:
 *
 *   proxy      no session left, its threads joined: nobody asks control,
 *		rebuild or the mailbox any more from there
 *   rebuild    cancels its build while control still holds the lease
 *   control    takes the leases and peer fields away
 *   admin, stats, mailbox (runs what was still queued), the rest
 *
 * The first SIGTERM or SIGINT drains: /readyz says 503, sessions finish what
 *they were sent, up to drain-timeout. The second one ends the loop at once;
 *from there on the signals have their default action again.
 */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "admin/admin.h"
#include "control/control.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/notify.h"
#include "daemon/run.h"
#include "daemon/status.h"
#include "proxy/proxy.h"
#include "rebuild/rebuild.h"
#include "stats/stats.h"

#define DRAIN_POLL_MS   50
#define REBUILD_STOP_MS 2000
#define CONTROL_STOP_MS 1000
/* After a second signal: time for one round trip, so that peers need not wait
 * for our lease to run out. */
#define AT_ONCE_MS 250

/* --- before any thread runs ----------------------------------------------- */

static void
raise_file_limit(void)
{
	struct rlimit limit;
	rlim_t before;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	before = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	if (before != limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) != 0) {
		log_warn("file_limit", LOG_STR("error", strerror(errno)),
		    LOG_INT("files", before));
		return;
	}
	log_info("file_limit", LOG_INT("files", limit.rlim_cur));
}

static int
load_filter(struct run *r, size_t i, struct err *err)
{
	const struct filter_settings *s = &r->settings->filters[i];
	struct scheme_key key;
	bool keyed = s->scheme == SETTING_KEYED;
	struct err why;

	if (keyed && scheme_key_load(&key, s->key_file, &why) != 0)
		return err_set(err, "filter %s: %s", s->name, why.text);
	r->filters[i] = filter_new(
	    i, s->name, s->redis_key, s->db, keyed ? &key : NULL);
	if (keyed)
		mem_wipe(&key, sizeof(key));
	atomic_store_explicit(
	    &r->filters[i]->mode, (int)s->mode, memory_order_relaxed);
	return 0;
}

int
run_init(struct run *r, struct settings *settings, struct err *err)
{
	const char **names;
	size_t i, n = settings->filter_count;

	*r = (struct run){.settings = settings, .began_ms = clock_boot_ms()};
	r->filters = mem_zalloc(n + 1, sizeof(struct filter *));
	r->failures = mem_zalloc(n + 1, sizeof(*r->failures));
	if (log_setup(settings->log_level, settings->log_format,
		settings->log_file) != 0)
		return err_set(err, "cannot open the log %s: %s",
		    settings->log_file, strerror(errno));
	log_capture_libevent();
	raise_file_limit();
	signal(SIGPIPE, SIG_IGN);
	/* Read by strftime in every thread, so written before there is one. */
	setenv("TZ", settings->timezone, 1);
	tzset();

	names = mem_zalloc(n + 1, sizeof(*names));
	for (i = 0; i < n; i++)
		names[i] = settings->filters[i].name;
	r->metrics = metrics_new(names, n, PACKAGE_VERSION);
	free(names);
	metric_set(r->metrics, METRIC_CONFIG_RELOAD_SUCCESS, 0, 0, 1);
	metric_set(r->metrics, METRIC_CONFIG_RELOAD_TIME, 0, 0,
	    (double)clock_wall_us() / 1e6);
	for (i = 0; i < n; i++)
		if (load_filter(r, i, err) != 0)
			return -1;
	r->base = event_base_new();
	if (r->base == NULL)
		return err_set(err, "cannot make an event loop");
	r->mailbox = mailbox_new(r->base);
	return 0;
}

void
run_fini(struct run *r)
{
	size_t i;

	if (r->mailbox != NULL)
		mailbox_free(r->mailbox);
	if (r->base != NULL)
		event_base_free(r->base);
	for (i = 0; i < r->settings->filter_count; i++)
		if (r->filters[i] != NULL)
			filter_free(r->filters[i]);
	free(r->filters);
	free(r->failures);
	if (r->metrics != NULL)
		metrics_free(r->metrics);
	settings_unref(r->settings);
}

/* --- signals and drain ------------------------------------------------------
 */

static void
on_drain_poll(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;
	struct timeval tv = {.tv_usec = DRAIN_POLL_MS * 1000};
	size_t left = proxy_sessions(r->proxy);

	(void)fd;
	(void)what;
	if (left == 0) {
		log_info("drained", LOG_INT("sessions", 0));
		event_base_loopbreak(r->base);
	} else if (clock_boot_ms() >= r->drain_until_ms) {
		log_warn("drain_timeout", LOG_INT("sessions", left));
		event_base_loopbreak(r->base);
	} else {
		evtimer_add(r->drain_timer, &tv);
	}
}

void
run_drain(struct run *r)
{
	struct timeval now = {0};

	if (r->draining)
		return;
	r->draining = true;
	r->drain_until_ms = clock_boot_ms() + r->settings->drain_timeout_ms;
	log_info("draining", LOG_INT("sessions", proxy_sessions(r->proxy)),
	    LOG_INT("timeout_ms", r->settings->drain_timeout_ms));
	notify_send("STOPPING=1\nSTATUS=Draining");
	proxy_drain(r->proxy);
	/* From the loop, so that the answer to an operator's DRAIN leaves. */
	evtimer_add(r->drain_timer, &now);
}

static void
on_stop_signal(evutil_socket_t number, short what, void *arg)
{
	struct run *r = arg;

	(void)what;
	log_info("signal", LOG_STR("name", strsignal((int)number)));
	if (r->draining) {
		r->at_once = true;
		event_base_loopbreak(r->base);
		return;
	}
	run_drain(r);
}

static void
reopen_log(const struct run *r)
{
	if (log_reopen() != 0)
		log_error(
		    "log_reopen_failed", LOG_STR("error", strerror(errno)));
	else
		log_info(
		    "log_reopened", LOG_STR("file", r->settings->log_file));
}

static void
on_hangup(evutil_socket_t number, short what, void *arg)
{
	(void)number;
	(void)what;
	reopen_log(arg);
	log_warn("reload_unavailable",
	    LOG_STR("action", "restart to apply a changed configuration"));
}

static void
on_reopen(evutil_socket_t number, short what, void *arg)
{
	(void)number;
	(void)what;
	reopen_log(arg);
}

static void
signals_add(struct run *r)
{
	static const struct {
		int number;
		event_callback_fn fn;
	} list[] = {
	    {SIGTERM, on_stop_signal},
	    {SIGINT, on_stop_signal},
	    {SIGHUP, on_hangup},
	    {SIGUSR1, on_reopen},
	};
	size_t i;

	for (i = 0; i < sizeof(list) / sizeof(*list); i++) {
		r->signals[i] = evsignal_new(
		    r->base, list[i].number, list[i].fn, r);
		if (r->signals[i] == NULL ||
		    evsignal_add(r->signals[i], NULL) != 0)
			log_error("signal_setup_failed",
			    LOG_INT("signal", list[i].number));
	}
	r->drain_timer = evtimer_new(r->base, on_drain_poll, r);
}

static void
signals_remove(struct run *r)
{
	size_t i;

	for (i = 0; i < sizeof(r->signals) / sizeof(*r->signals); i++)
		if (r->signals[i] != NULL)
			event_free(r->signals[i]);
	if (r->drain_timer != NULL)
		event_free(r->drain_timer);
}

/* --- making, starting, stopping ---------------------------------------------
 */

static char *
on_status_json(void *arg)
{
	return status_json(arg, -1);
}

static char *
on_readiness(bool *ready, void *arg)
{
	return status_readiness(arg, ready);
}

static void
on_refresh_metrics(void *arg)
{
	status_refresh(arg);
}

/* A worker saw something new in Redis. On its thread. */
static void
on_refresh(size_t index, int64_t shard, void *arg)
{
	struct run *r = arg;

	control_refresh(r->control, index, shard);
}

static struct stats *
make_stats(struct run *r, struct err *err)
{
	struct stats_options o = {
	    .base = r->base,
	    .listen = &r->settings->stats_listen,
	    .metrics = r->metrics,
	    .status_json = on_status_json,
	    .readiness = on_readiness,
	    .refresh = on_refresh_metrics,
	    .arg = r,
	};

	return stats_new(&o, err);
}

/* Everything that can fail for lack of an address or a right. */
static int
make(struct run *r, struct err *err)
{
	struct rebuild_options ro = {
	    .settings = r->settings,
	    .filters = r->filters,
	    .metrics = r->metrics,
	    .changed = rebuilds_changed,
	    .ended = rebuilds_ended,
	    .arg = r,
	};
	struct control_options co = {
	    .base = r->base,
	    .settings = r->settings,
	    .filters = r->filters,
	    .metrics = r->metrics,
	    .mirrors = true,
	    .want_rebuild = rebuilds_want,
	    .want_retire = rebuilds_want_retire,
	    .arg = r,
	};
	struct proxy_options po = {
	    .settings = r->settings,
	    .filters = r->filters,
	    .metrics = r->metrics,
	    .refresh = on_refresh,
	    .arg = r,
	};

	r->rebuild = rebuild_new(&ro);
	r->control = control_new(&co);
	r->proxy = proxy_new(&po, err);
	if (r->proxy == NULL)
		return -1;
	if (r->settings->stats_listen.kind != ADDRESS_NONE) {
		r->stats = make_stats(r, err);
		if (r->stats == NULL)
			return -1;
	}
	if (r->settings->admin_listen.kind != ADDRESS_NONE) {
		r->admin = operator_new(r, err);
		if (r->admin == NULL)
			return -1;
	}
	return 0;
}

static void
start(struct run *r)
{
	const char *address;
	size_t i;

	signals_add(r);
	control_start(r->control);
	rebuild_start(r->rebuild);
	proxy_start(r->proxy);
	r->listening = true;
	for (i = 0; (address = proxy_address(r->proxy, i)) != NULL; i++)
		log_info("listening", LOG_STR("address", address));
	if (r->stats != NULL)
		log_info("stats_listening",
		    LOG_STR("address", stats_address(r->stats)));
	if (r->admin != NULL)
		log_info("admin_listening",
		    LOG_STR("address", admin_address(r->admin)));
	notify_send("READY=1\nSTATUS=Running");
}

static void
stop(struct run *r)
{
	r->listening = false;
	/* A further signal ends the process whatever is still going on. */
	signals_remove(r);
	proxy_stop(r->proxy);
	rebuild_stop(r->rebuild, r->at_once ? AT_ONCE_MS : REBUILD_STOP_MS);
	control_stop(r->control, r->at_once ? AT_ONCE_MS : CONTROL_STOP_MS);
}

static void
unmake(struct run *r)
{
	if (r->admin != NULL)
		admin_free(r->admin);
	if (r->stats != NULL)
		stats_free(r->stats);
	/* Answers the operator's checks and adds that are out: by mailbox. */
	if (r->proxy != NULL)
		proxy_free(r->proxy);
	r->proxy = NULL;
	/* What workers and the rebuild thread posted last still needs these. */
	mailbox_free(r->mailbox);
	r->mailbox = NULL;
	rebuild_free(r->rebuild);
	control_free(r->control);
}

int
run_serve(struct run *r)
{
	struct err err;

	log_info("starting", LOG_STR("version", PACKAGE_VERSION),
	    LOG_STR("config", r->settings->path),
	    LOG_INT("filters", r->settings->filter_count));
	if (make(r, &err) != 0) {
		log_error("start_failed", LOG_STR("error", err.text));
		unmake(r);
		return 1;
	}
	start(r);
	event_base_dispatch(r->base);
	stop(r);
	unmake(r);
	log_info(
	    "stopped", LOG_INT("uptime_ms", clock_boot_ms() - r->began_ms));
	return 0;
}
