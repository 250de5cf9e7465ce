/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds. An element is in one of two lists: waiting (to be sent at the end of
 * this loop turn, or when the link is up) or in the batch that was sent with it.
 * Several batches may be out at once; each is answered on its own.
 *
 *   waiting -> batch -> done
 *	 ^--------'  other epoch, link lost, LOADING and the like
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "core/broken.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/add.h"
#include "proxy/add_call.h"
#include "redis/script.h"

#define BATCHES_MAX 16 /* out at once: bounds what Redis is asked at a time */
/* The longest that an element waits behind others that are taken. */
#define ADD_LINE_MS 60000
#define RETRY_MS    20

struct addition {
	STAILQ_ENTRY(addition) next;
	uint8_t *element; /* owned */
	size_t len;
	uint64_t queued_ms; /* clock_boot_ms */
	enum metric_add source;
	add_fn done;
	void *owner, *what;
	size_t n;
};
STAILQ_HEAD(additions, addition);

struct adder {
	struct worker *worker;
	size_t index;
	struct additions waiting;
	struct view *newer;  /* from a refused add, until control reads again */
	uint64_t newer_than; /* filter_version that newer goes before */
	unsigned batches;    /* out */
	uint64_t
	    progress_ms; /* clock_boot_ms of the last batch that was taken */
	struct event *flush; /* at the end of the turn */
	struct event *timer; /* deadlines and retries, while anything waits */
	bool flush_due;
	uint64_t down_ms; /* clock_boot_ms since when the link is down; 0 up */
};

struct batch {
	struct adder *adder;
	struct additions members;
	uint64_t sent_ns;
};

static void flush(struct adder *a);

static void
finish(struct adder *a, struct addition *d, int result, const char *error)
{
	struct metrics *m = a->worker->metrics;

	if (result < 0)
		metric_add(m, METRIC_FILTER_ADD_FAILURES_TOTAL, a->index, 0, 1);
	else
		metric_add(m, METRIC_FILTER_ADDS_TOTAL, a->index, d->source, 1);
	d->done(result, error, d->owner, d->what, d->n);
	free(d->element);
	free(d);
}

static void
arm_timer(struct adder *a)
{
	struct timeval tv = {.tv_usec = RETRY_MS * 1000};

	if (!STAILQ_EMPTY(&a->waiting) && !evtimer_pending(a->timer, NULL))
		check(evtimer_add(a->timer, &tv) == 0);
}

static void
request_flush(struct adder *a)
{
	if (a->flush_due)
		return;
	a->flush_due = true;
	event_active(a->flush, EV_TIMEOUT, 0);
}

/* Fails those whose time is over, without having been answered: their own, or that
 * of a store that has been down as long. */
static void
expire(struct adder *a)
{
	uint64_t now = clock_boot_ms();
	uint64_t stuck_ms = a->progress_ms + ADD_TIMEOUT_MS;
	bool down = a->down_ms != 0 && now >= a->down_ms + ADD_TIMEOUT_MS;
	struct additions late = STAILQ_HEAD_INITIALIZER(late);
	struct addition *d;

	/* Oldest first. While others are being taken a long line moves on. */
	while ((d = STAILQ_FIRST(&a->waiting)) != NULL &&
	    (down ||
		(now >= d->queued_ms + ADD_TIMEOUT_MS &&
		    (now >= stuck_ms || now >= d->queued_ms + ADD_LINE_MS)))) {
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		STAILQ_INSERT_TAIL(&late, d, next);
	}
	while ((d = STAILQ_FIRST(&late)) != NULL) {
		STAILQ_REMOVE_HEAD(&late, next);
		finish(a, d, -1,
		    a->down_ms != 0
			? "the filter's store is not reachable"
			: "the filter's store did not take the id within 5 s");
	}
}

static void
on_flush(evutil_socket_t fd, short events, void *arg)
{
	struct adder *a = arg;

	(void)fd;
	(void)events;
	a->flush_due = false;
	expire(a);
	flush(a);
}

static void
on_timer(evutil_socket_t fd, short events, void *arg)
{
	struct adder *a = arg;

	(void)fd;
	(void)events;
	expire(a);
	flush(a);
	arm_timer(a);
}

struct adder *
adder_new(struct worker *w, size_t index)
{
	struct adder *a = mem_zalloc(1, sizeof(*a));

	a->worker = w;
	a->index = index;
	a->down_ms = clock_boot_ms(); /* not up yet */
	STAILQ_INIT(&a->waiting);
	a->flush = event_new(w->base, -1, 0, on_flush, a);
	a->timer = evtimer_new(w->base, on_timer, a);
	check(a->flush != NULL && a->timer != NULL);
	return a;
}

void
adder_free(struct adder *a)
{
	struct addition *d;

	check(a->batches == 0);
	while ((d = STAILQ_FIRST(&a->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		finish(a, d, -1, "bloomgate is stopping");
	}
	event_free(a->flush);
	event_free(a->timer);
	if (a->newer != NULL)
		view_unref(a->newer);
	free(a);
}

void
adder_link_changed(struct adder *a)
{
	a->down_ms = link_is_up(worker_store(a->worker, a->index))
	    ? 0
	    : clock_boot_ms();
	if (!STAILQ_EMPTY(&a->waiting))
		request_flush(a);
}

/* The view to add by, with a reference: control's, unless a refused add brought
 * a newer meta that control has not read yet. */
static struct view *
current_view(struct adder *a)
{
	struct filter *f = a->worker->filters[a->index];

	/* Not the larger epoch: an old snapshot brings a smaller one. */
	if (a->newer != NULL && filter_version(f) != a->newer_than) {
		view_unref(a->newer);
		a->newer = NULL;
	}
	return a->newer != NULL ? view_ref(a->newer) : filter_view(f);
}

/*
 * Moves waiting elements into the batch as long as they fit one call. Those that
 * cannot be in the filter at all fail here.
 */
static void
fill(struct adder *a, struct batch *b, struct add_call *call)
{
	struct addition *d;

	while ((d = STAILQ_FIRST(&a->waiting)) != NULL) {
		const char *error = NULL;
		enum add_fit fit = add_call_take(call,
		    slice_of(d->element, d->len), d->source == ADD_LEARN,
		    &error);

		if (fit == ADD_FULL)
			return;
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		if (fit == ADD_NEVER)
			finish(a, d, -1, error);
		else
			STAILQ_INSERT_TAIL(&b->members, d, next);
	}
}

/* Back to the front of the line, to be tried again. */
static void
requeue(struct batch *b)
{
	STAILQ_CONCAT(&b->members, &b->adder->waiting);
	STAILQ_CONCAT(&b->adder->waiting, &b->members);
}

/* Broken law 5: the new epoch, for the generations of before. */
static void
keep_generations(struct adder *a, struct meta *meta)
{
	struct view *before = current_view(a);
	char epoch[EPOCH_TEXT_MAX];

	memcpy(epoch, meta->epoch, sizeof(epoch));
	*meta = before->meta;
	memcpy(meta->epoch, epoch, sizeof(epoch));
	view_unref(before);
}

/* False when the meta that came back is none: the same call would fail again. */
static bool
on_refused_epoch(
    struct adder *a, struct link *link, const struct redisReply *reply)
{
	size_t n = link_reply_count(reply), i;
	struct slice *fields = mem_zalloc(n, sizeof(*fields));
	struct filter *f = a->worker->filters[a->index];
	struct meta *meta = mem_alloc(sizeof(*meta));
	struct err err;
	bool readable;

	for (i = 2; i < n; i++)
		fields[i - 2] = link_reply_text(link_reply_at(reply, i));
	readable = meta_parse(meta, fields, n >= 2 ? n - 2 : 0, &err) == 0;
	if (readable) {
		if (BROKEN_LAW(5))
			keep_generations(a, meta);
		if (a->newer != NULL)
			view_unref(a->newer);
		a->newer_than = filter_version(f);
		a->newer = view_new(f, meta, link_run_id(link));
	} else {
		log_debug("meta_unreadable", LOG_STR("filter", f->name),
		    LOG_STR("error", err.text));
	}
	worker_refresh(a->worker, a->index, -1);
	free(meta);
	free(fields);
	return readable;
}

static void
fail_batch(struct batch *b, struct slice why)
{
	struct addition *d;
	char text[256];

	snprintf(text, sizeof(text), "the filter's store refused the id: %.*s",
	    (int)(why.len < 160 ? why.len : 160), (const char *)why.data);
	while ((d = STAILQ_FIRST(&b->members)) != NULL) {
		STAILQ_REMOVE_HEAD(&b->members, next);
		finish(b->adder, d, -1, text);
	}
}

/* Errors after which the same call may succeed a moment later. */
static bool
is_passing(const struct redisReply *reply)
{
	static const char *const codes[] = {"LOADING", "BUSY", "READONLY",
	    "MASTERDOWN", "NOSCRIPT", "TRYAGAIN", "UNKILLABLE"};
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (link_reply_is_error(reply, codes[i]))
			return true;
	return false;
}

static void
on_added(struct link *link, const struct redisReply *reply, void *arg)
{
	struct batch *b = arg;
	struct adder *a = b->adder;
	struct addition *d;
	size_t i = 3;
	bool at_once = true;

	a->batches--;
	metric_observe(a->worker->metrics, METRIC_SCRIPT_DURATION,
	    metric_script_index("add"), clock_boot_ns() - b->sent_ns, 1);
	if (reply == NULL || is_passing(reply)) {
		requeue(b);
		at_once = false;
	} else if (link_reply_type(reply) != LINK_ARRAY) {
		fail_batch(b, link_reply_text(reply));
	} else if (link_reply_integer(link_reply_at(reply, 0)) != 1) {
		at_once = on_refused_epoch(a, link, reply);
		requeue(b);
		expire(a);
	} else {
		struct slice epoch = link_reply_text(link_reply_at(reply, 1));
		struct view *v = filter_view(a->worker->filters[a->index]);

		a->progress_ms = clock_boot_ms();
		/* The call itself may have changed the epoch. */
		if (!slice_is(epoch, v->meta.epoch))
			worker_refresh(a->worker, a->index, -1);
		view_unref(v);
		while ((d = STAILQ_FIRST(&b->members)) != NULL) {
			STAILQ_REMOVE_HEAD(&b->members, next);
			filter_mirror_add(a->worker->filters[a->index],
			    slice_of(d->element, d->len));
			finish(a, d,
			    link_reply_integer(link_reply_at(reply, i++)) != 0,
			    NULL);
		}
	}
	free(b);
	if (!STAILQ_EMPTY(&a->waiting) && at_once)
		request_flush(a);
	arm_timer(a);
}

/* Sends one call with what fits. False when nothing was sent. */
static bool
send_batch(struct adder *a, struct link *link)
{
	struct view *view = current_view(a);
	struct add_call *call = add_call_new(
	    a->worker->filters[a->index], &view->meta);
	struct batch *b = mem_zalloc(1, sizeof(*b));
	const struct slice *argv;
	size_t argc, nkeys;
	bool sent = false;

	b->adder = a;
	STAILQ_INIT(&b->members);
	fill(a, b, call);
	if (!STAILQ_EMPTY(&b->members)) {
		argv = add_call_argv(call, &argc, &nkeys);
		b->sent_ns = clock_boot_ns();
		sent = script_run(link, SCRIPT_ADD, ADD_TIMEOUT_MS, on_added, b,
			   nkeys, argv, argc) == 0;
		if (sent)
			a->batches++;
		else
			requeue(b);
	}
	if (!sent)
		free(b);
	add_call_free(call);
	view_unref(view);
	return sent;
}

static void
flush(struct adder *a)
{
	struct link *link = worker_store(a->worker, a->index);

	while (!STAILQ_EMPTY(&a->waiting) && a->batches < BATCHES_MAX &&
	    link_is_up(link))
		if (!send_batch(a, link))
			break;
	arm_timer(a);
}

int
add_start(struct worker *w, size_t index, struct slice element,
    enum metric_add source, add_fn done, void *owner, void *what, size_t n)
{
	struct adder *a = w->adders[index];
	struct addition *d;

	if (element.data == NULL || element.len > ELEMENT_MAX)
		return -1;
	d = mem_zalloc(1, sizeof(*d));
	d->element = mem_dup(element.data, element.len);
	d->len = element.len;
	d->queued_ms = clock_boot_ms();
	d->source = source;
	d->done = done;
	d->owner = owner;
	d->what = what;
	d->n = n;
	STAILQ_INSERT_TAIL(&a->waiting, d, next);
	request_flush(a);
	return 0;
}
