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

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "core/buf.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/add.h"
#include "redis/script.h"

#define POSITIONS_MAX 700 /* a call; DESIGN.md, Scripts */
#define BATCHES_MAX   16 /* out at once: bounds what Redis is asked at a time */
#define RETRY_MS      20

struct addition {
	STAILQ_ENTRY(addition) next;
	uint8_t *element; /* owned */
	size_t len;
	uint64_t deadline_ms; /* clock_boot_ms */
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
	struct view *newer;  /* from a refused add, until control has it too */
	unsigned batches;    /* out */
	struct event *flush; /* at the end of the turn */
	struct event *timer; /* deadlines and retries, while anything waits */
	bool flush_due;
};

struct batch {
	struct adder *adder;
	struct additions members;
	uint64_t sent_ns;
};

/* The call being built; everything in it is borrowed or lies in text. */
struct call {
	struct slice *argv;
	size_t argc, cap;
	struct buf
	    text; /* numbers and names; offsets are resolved at the end */
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

/* Fails those whose time is over, without having been answered. */
static void
expire(struct adder *a)
{
	uint64_t now = clock_boot_ms();
	struct additions late = STAILQ_HEAD_INITIALIZER(late);
	struct additions rest = STAILQ_HEAD_INITIALIZER(rest);
	struct addition *d;

	while ((d = STAILQ_FIRST(&a->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		if (now >= d->deadline_ms)
			STAILQ_INSERT_TAIL(&late, d, next);
		else
			STAILQ_INSERT_TAIL(&rest, d, next);
	}
	STAILQ_CONCAT(&a->waiting, &rest);
	while ((d = STAILQ_FIRST(&late)) != NULL) {
		STAILQ_REMOVE_HEAD(&late, next);
		finish(a, d, -1,
		    "the filter's store did not take the id within 5 s");
	}
}

static void
on_flush(evutil_socket_t fd, short events, void *arg)
{
	struct adder *a = arg;

	(void)fd;
	(void)events;
	a->flush_due = false;
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
	if (!STAILQ_EMPTY(&a->waiting))
		request_flush(a);
}

/* The view to add by, with a reference: control's, unless a refused add brought
 * a newer meta that control has not read yet. */
static struct view *
current_view(struct adder *a)
{
	struct view *v = filter_view(a->worker->filters[a->index]);
	int64_t mine, theirs;

	if (a->newer == NULL)
		return v;
	if (v->meta.exists &&
	    slice_to_int64(slice_str(v->meta.epoch), &theirs) == 0 &&
	    slice_to_int64(slice_str(a->newer->meta.epoch), &mine) == 0 &&
	    theirs >= mine) {
		view_unref(a->newer);
		a->newer = NULL;
		return v;
	}
	view_unref(v);
	return view_ref(a->newer);
}

static bool
takes_adds(const struct generation *g)
{
	return g->state != GENERATION_MAKING;
}

static void
put(struct call *c, struct slice s)
{
	if (c->argc == c->cap) {
		c->cap = c->cap != 0 ? c->cap * 2 : 256;
		c->argv = mem_realloc(c->argv, c->cap * sizeof(*c->argv));
	}
	c->argv[c->argc++] = s;
}

/*
 * Text that the call keeps: data is NULL until resolve, len holds the length and
 * the bytes follow each other in c->text.
 */
static void
put_text(struct call *c, const char *s, size_t len)
{
	check(buf_append(&c->text, s, len) == 0);
	put(c, slice_of(NULL, len));
}

static void
put_number(struct call *c, uint64_t v)
{
	char text[24];

	put_text(c, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, v));
}

static void
resolve(struct call *c)
{
	const uint8_t *at = buf_head(&c->text);
	size_t i;

	for (i = 0; i < c->argc; i++) {
		if (c->argv[i].data == NULL && c->argv[i].len != 0) {
			c->argv[i].data = at;
			at += c->argv[i].len;
		}
	}
}

/* A shard that the call touches. */
struct touched {
	uint8_t generation; /* index in meta */
	uint32_t shard;
};

struct touched_list {
	struct touched items[POSITIONS_MAX];
	size_t count;
};

/* 1-based index of the shard among the touched, added when new. */
static size_t
touch(struct touched_list *t, uint8_t generation, uint32_t shard)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		if (t->items[i].generation == generation &&
		    t->items[i].shard == shard)
			return i + 1;
	check(t->count < POSITIONS_MAX);
	t->items[t->count++] = (struct touched){
	    .generation = generation, .shard = shard};
	return t->count;
}

/*
 * The positions of one element in every generation that takes adds. Returns how
 * many positions they are, or -1 when one of them cannot be computed: *error
 * says why.
 */
static int
locate(const struct filter *f, const struct meta *m, const struct addition *d,
    struct positions *out, const char **error)
{
	int total = 0;
	size_t g;

	if (m->exists && m->layout != META_LAYOUT) {
		*error = "the filter's data are of a layout that this version "
			 "does not know";
		return -1;
	}
	for (g = 0; g < m->generation_count; g++) {
		const struct generation *gen = &m->generations[g];

		out[g].count = 0;
		if (!takes_adds(gen))
			continue;
		if (!filter_fits(f, gen)) {
			*error = "a generation of the filter is of a kind or "
				 "key that this bloomgate does not have";
			return -1;
		}
		if (scheme_positions(&gen->geometry,
			f->has_key ? &f->key : NULL,
			slice_of(d->element, d->len), &out[g]) != 0) {
			*error = "the id is not UTF-8, which the filter's "
				 "scheme needs";
			return -1;
		}
		total += (int)out[g].count;
	}
	return total;
}

/* Moves waiting elements into the batch as long as they fit one call; writes
 * their part of the arguments to elements. */
static void
fill(struct adder *a, const struct meta *m, struct batch *b,
    struct call *elements, struct touched_list *touched, size_t *count)
{
	struct filter *f = a->worker->filters[a->index];
	struct positions at[META_GENERATIONS_MAX];
	struct addition *d;
	int used = 0;
	size_t g;
	uint32_t i;

	while ((d = STAILQ_FIRST(&a->waiting)) != NULL) {
		const char *error = NULL;
		int need = locate(f, m, d, at, &error);
		size_t refs = 0;

		if (need < 0) {
			STAILQ_REMOVE_HEAD(&a->waiting, next);
			finish(a, d, -1, error);
			continue;
		}
		if (*count != 0 &&
		    (used + need > POSITIONS_MAX || *count >= 200))
			return;
		used += need;
		STAILQ_REMOVE_HEAD(&a->waiting, next);
		STAILQ_INSERT_TAIL(&b->members, d, next);
		++*count;
		put(elements, slice_of(d->element, d->len));
		for (g = 0; g < m->generation_count; g++)
			refs += at[g].count != 0;
		put_number(elements, refs);
		for (g = 0; g < m->generation_count; g++) {
			if (at[g].count == 0)
				continue;
			put_number(
			    elements, touch(touched, (uint8_t)g, at[g].shard));
			put_number(elements, at[g].count);
			for (i = 0; i < at[g].count; i++)
				put_number(elements, at[g].bit[i]);
		}
	}
}

static void
put_keys(struct call *c, const struct filter *f, const struct meta *m,
    const struct touched_list *touched)
{
	char name[NAME_MAX_BYTES];
	size_t i;

	put_text(c, name, name_other(name, sizeof(name), f->redis_key, "meta"));
	for (i = 0; i < touched->count; i++)
		put_text(c, name,
		    name_shard(name, sizeof(name), f->redis_key,
			m->generations[touched->items[i].generation].name,
			touched->items[i].shard));
}

static void
put_shards(struct call *c, const struct filter *f, const struct meta *m,
    const struct touched_list *touched)
{
	char name[NAME_MAX_BYTES];
	size_t i;

	put(c, slice_str(m->exists ? m->epoch : ""));
	put_text(
	    c, name, name_other(name, sizeof(name), f->redis_key, "events"));
	put_number(c, touched->count);
	for (i = 0; i < touched->count; i++) {
		const struct generation *g =
		    &m->generations[touched->items[i].generation];

		put(c, slice_str(g->name));
		put(c, slice_of(g->tag, TAG_BYTES));
		put_number(c, geometry_tag_offset(&g->geometry));
	}
}

/* Back to the front of the line, to be tried again. */
static void
requeue(struct batch *b)
{
	STAILQ_CONCAT(&b->members, &b->adder->waiting);
	STAILQ_CONCAT(&b->adder->waiting, &b->members);
}

static void
on_refused_epoch(
    struct adder *a, struct link *link, const struct redisReply *reply)
{
	size_t n = link_reply_count(reply), i;
	struct slice *fields = mem_zalloc(n, sizeof(*fields));
	struct filter *f = a->worker->filters[a->index];
	struct meta *meta = mem_alloc(sizeof(*meta));
	struct err err;

	for (i = 2; i < n; i++)
		fields[i - 2] = link_reply_text(link_reply_at(reply, i));
	if (meta_parse(meta, fields, n >= 2 ? n - 2 : 0, &err) == 0) {
		if (a->newer != NULL)
			view_unref(a->newer);
		a->newer = view_new(f, meta, link_run_id(link));
	} else {
		log_warn("meta_unreadable", LOG_STR("filter", f->name),
		    LOG_STR("error", err.text));
	}
	worker_refresh(a->worker, a->index, -1);
	free(meta);
	free(fields);
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
	    metric_script_index("add"), clock_boot_ns() - b->sent_ns);
	if (reply == NULL || is_passing(reply)) {
		requeue(b);
		at_once = false;
	} else if (link_reply_type(reply) != LINK_ARRAY) {
		fail_batch(b, link_reply_text(reply));
	} else if (link_reply_integer(link_reply_at(reply, 0)) != 1) {
		on_refused_epoch(a, link, reply);
		requeue(b);
	} else {
		struct slice epoch = link_reply_text(link_reply_at(reply, 1));
		struct view *v = filter_view(a->worker->filters[a->index]);

		/* The call itself may have changed the epoch. */
		if (!slice_is(epoch, v->meta.epoch))
			worker_refresh(a->worker, a->index, -1);
		view_unref(v);
		while ((d = STAILQ_FIRST(&b->members)) != NULL) {
			STAILQ_REMOVE_HEAD(&b->members, next);
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
	struct filter *f = a->worker->filters[a->index];
	struct view *view = current_view(a);
	struct touched_list *touched = mem_alloc(sizeof(*touched));
	struct call keys = {0}, elements = {0};
	struct batch *b = mem_zalloc(1, sizeof(*b));
	size_t count = 0, nkeys, i;
	bool sent = false;

	touched->count = 0;
	buf_init(&keys.text, SIZE_MAX / 4);
	buf_init(&elements.text, SIZE_MAX / 4);
	b->adder = a;
	STAILQ_INIT(&b->members);
	fill(a, &view->meta, b, &elements, touched, &count);
	if (count == 0) {
		free(b);
		goto out;
	}
	put_keys(&keys, f, &view->meta, touched);
	nkeys = keys.argc;
	put_shards(&keys, f, &view->meta, touched);
	put_number(&keys, count);
	resolve(&keys);
	resolve(&elements);
	for (i = 0; i < elements.argc; i++)
		put(&keys, elements.argv[i]);
	b->sent_ns = clock_boot_ns();
	if (script_run(link, SCRIPT_ADD, ADD_TIMEOUT_MS, on_added, b, nkeys,
		keys.argv, keys.argc) == 0) {
		a->batches++;
		sent = true;
	} else {
		requeue(b);
		free(b);
	}
out:
	free(keys.argv);
	free(elements.argv);
	buf_fini(&keys.text);
	buf_fini(&elements.text);
	free(touched);
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
	d->deadline_ms = clock_boot_ms() + ADD_TIMEOUT_MS;
	d->source = source;
	d->done = done;
	d->owner = owner;
	d->what = what;
	d->n = n;
	STAILQ_INSERT_TAIL(&a->waiting, d, next);
	request_flush(a);
	return 0;
}
