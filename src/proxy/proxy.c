/* SPDX-License-Identifier: BSD-2-Clause */
/* The client side as one object: see proxy.h. The daemon's thread. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/add.h"
#include "proxy/check.h"
#include "proxy/listener.h"
#include "proxy/session.h"
#include "proxy/worker.h"

/* What bloomgate's own user lacks is logged once in this time. */
#define LACK_SAID_MS 60000

struct proxy {
	struct proxy_options options;
	struct worker **workers;
	size_t worker_count;
	char **addresses;
	bool started;
	/* Set and read by any thread; relaxed: each stands for itself. */
	_Atomic bool lacks[LACKS];
	_Atomic uint64_t
	    said_ms[LACKS]; /* clock_boot_ms of the last log line */
};

const struct proxy_options *
proxy_options_of(const struct proxy *p)
{
	return &p->options;
}

static const struct {
	const char *rule;
	const char *text;
} lacks[LACKS] = {
    [LACK_GETUSER] = {"+acl|getuser",
	"bloomgate's own user lacks +acl|getuser: what users may read is not "
	"known, so reads of absent keys are forwarded and BF commands "
	"refused"},
    [LACK_DRYRUN] = {"+acl|dryrun",
	"bloomgate's own user lacks +acl|dryrun (or Redis is older than 7): "
	"for users who may not run every command, reads of absent keys are "
	"forwarded and BF commands refused"},
};

const char *
proxy_lack_rule(enum proxy_lack lack)
{
	return lacks[lack].rule;
}

const char *
proxy_lack_text(enum proxy_lack lack)
{
	return lacks[lack].text;
}

bool
proxy_lacks(const struct proxy *p, enum proxy_lack lack)
{
	return atomic_load_explicit(&p->lacks[lack], memory_order_relaxed);
}

void
worker_lacks(
    struct worker *w, enum proxy_lack lack, bool lacking, struct slice error)
{
	struct proxy *p = w->proxy;
	const char *user = w->settings->upstream.username;
	uint64_t now_ms = clock_boot_ms();
	uint64_t said_ms = atomic_load_explicit(
	    &p->said_ms[lack], memory_order_relaxed);
	char *remedy;

	atomic_store_explicit(&p->lacks[lack], lacking, memory_order_relaxed);
	if (!lacking || (said_ms != 0 && now_ms - said_ms < LACK_SAID_MS) ||
	    !atomic_compare_exchange_strong_explicit(&p->said_ms[lack],
		&said_ms, now_ms, memory_order_relaxed, memory_order_relaxed))
		return;
	remedy = mem_printf("ACL SETUSER %s %s",
	    *user != '\0' ? user : "default", lacks[lack].rule);
	log_warn("permission_unknown", LOG_STR("lacks", lacks[lack].rule),
	    LOG_SLICE("error", error), LOG_STR("problem", lacks[lack].text),
	    LOG_STR("remedy", remedy));
	free(remedy);
}

/* The sockets of the i-th listen address, one a worker. */
static int
bind_address(struct proxy *p, size_t i, struct err *err)
{
	const struct address *a = &p->options.settings->listen[i];
	unsigned port = 0;
	int fd = -1;
	size_t k;

	for (k = 0; k < p->worker_count; k++) {
		struct worker *w = p->workers[k];
		struct listener *l = listener_new(w, a, port, fd, err);

		if (l == NULL)
			return -1;
		w->listeners[w->listener_count++] = l;
		port = listener_port(l);
		if (a->kind == ADDRESS_UNIX && k == 0)
			fd = listener_fd(l);
		if (k == 0)
			p->addresses[i] = mem_strdup(listener_address(l));
	}
	return 0;
}

struct proxy *
proxy_new(const struct proxy_options *o, struct err *err)
{
	struct proxy *p = mem_zalloc(1, sizeof(*p));
	size_t i;

	p->options = *o;
	settings_ref(o->settings);
	p->addresses = mem_zalloc(
	    o->settings->listen_count + 1, sizeof(*p->addresses));
	p->workers = mem_zalloc(o->settings->workers, sizeof(*p->workers));
	for (i = 0; i < o->settings->workers; i++)
		p->workers[p->worker_count++] = worker_new(p, i);
	for (i = 0; i < o->settings->listen_count; i++) {
		if (bind_address(p, i, err) != 0) {
			proxy_free(p);
			return NULL;
		}
	}
	return p;
}

void
proxy_start(struct proxy *p)
{
	size_t i;

	p->started = true;
	for (i = 0; i < p->worker_count; i++)
		worker_start(p->workers[i]);
}

static void
on_drain(void *arg)
{
	worker_drain(arg);
}

void
proxy_drain(struct proxy *p)
{
	size_t i;

	for (i = 0; i < p->worker_count; i++)
		mailbox_post(p->workers[i]->mailbox, on_drain, p->workers[i]);
}

size_t
proxy_sessions(const struct proxy *p)
{
	size_t i, n = 0;

	for (i = 0; i < p->worker_count; i++)
		n += atomic_load_explicit(
		    &p->workers[i]->session_count, memory_order_relaxed);
	return n;
}

void
proxy_stop(struct proxy *p)
{
	size_t i;

	if (!p->started)
		return;
	p->started = false;
	for (i = 0; i < p->worker_count; i++)
		worker_stop(p->workers[i]);
}

void
proxy_free(struct proxy *p)
{
	size_t i;

	if (p == NULL)
		return;
	proxy_stop(p);
	for (i = 0; i < p->worker_count; i++)
		worker_free(p->workers[i]);
	for (i = 0; i < p->options.settings->listen_count; i++)
		free(p->addresses[i]);
	free(p->addresses);
	free(p->workers);
	settings_unref(p->options.settings);
	free(p);
}

const char *
proxy_address(const struct proxy *p, size_t i)
{
	return i < p->options.settings->listen_count ? p->addresses[i] : NULL;
}

/* An operator's check or add, run on the first worker. */
struct operation {
	struct worker *worker;
	size_t index; /* of the filter */
	bool add;
	uint8_t **items; /* owned copies */
	size_t *lens;
	size_t count;
	int *values;
	size_t pending;
	char *error; /* owned */
	proxy_done_fn done;
	void *arg;
};

static void
operation_end(struct operation *op)
{
	size_t i;

	op->done(op->error == NULL ? op->values : NULL, op->count, op->error,
	    op->arg);
	for (i = 0; i < op->count; i++)
		free(op->items[i]);
	free(op->items);
	free(op->lens);
	free(op->values);
	free(op->error);
	free(op);
}

static void
on_operation_check(
    enum verdict verdict, bool answered, void *owner, void *what, size_t n)
{
	struct operation *op = owner;

	(void)answered;
	(void)what;
	op->values[n] = verdict == VERDICT_MAYBE;
	if (--op->pending == 0)
		operation_end(op);
}

static void
on_operation_add(
    int result, const char *error, void *owner, void *what, size_t n)
{
	struct operation *op = owner;

	(void)what;
	op->values[n] = result > 0;
	if (result < 0 && op->error == NULL)
		op->error = mem_strdup(error);
	if (--op->pending == 0)
		operation_end(op);
}

static void
on_operation(void *arg)
{
	struct operation *op = arg;
	struct worker *w = op->worker;
	uint8_t scratch[ELEMENT_MAX];
	size_t i;

	op->pending = 1; /* until all are started */
	for (i = 0; i < op->count; i++) {
		struct slice element = pattern_element(w->patterns, op->index,
		    slice_of(op->items[i], op->lens[i]), scratch);

		op->values[i] = 1;
		if (op->add) {
			if (add_start(w, op->index, element, ADD_ADMIN,
				on_operation_add, op, NULL, i) == 0)
				op->pending++;
			else if (op->error == NULL)
				op->error = mem_strdup(
				    "an element is longer than 4096 bytes");
		} else if (element.data != NULL) {
			enum check_start started = check_start(w, op->index,
			    element, on_operation_check, op, NULL, i);

			op->pending += started == CHECK_STARTED;
			op->values[i] = started != CHECK_ABSENT;
		}
	}
	if (--op->pending == 0)
		operation_end(op);
}

static void
post_operation(struct proxy *p, size_t index, bool add,
    const struct slice *items, size_t count, proxy_done_fn done, void *arg)
{
	struct operation *op;
	size_t i;

	if (!p->started) {
		/* No worker runs: none may be asked, for they are going. */
		done(NULL, count, "bloomgate is stopping", arg);
		return;
	}
	op = mem_zalloc(1, sizeof(*op));
	op->worker = p->workers[0];
	op->index = index;
	op->add = add;
	op->count = count;
	op->items = mem_zalloc(count + 1, sizeof(*op->items));
	op->lens = mem_zalloc(count + 1, sizeof(*op->lens));
	op->values = mem_zalloc(count + 1, sizeof(*op->values));
	op->done = done;
	op->arg = arg;
	for (i = 0; i < count; i++) {
		op->items[i] = mem_dup(items[i].data, items[i].len);
		op->lens[i] = items[i].len;
	}
	mailbox_post(op->worker->mailbox, on_operation, op);
}

void
proxy_check(struct proxy *p, size_t index, const struct slice *items,
    size_t count, proxy_done_fn done, void *arg)
{
	post_operation(p, index, false, items, count, done, arg);
}

void
proxy_add(struct proxy *p, size_t index, const struct slice *items,
    size_t count, proxy_done_fn done, void *arg)
{
	post_operation(p, index, true, items, count, done, arg);
}

/* The workers write their clients one after the other; the caller waits. */
struct census {
	pthread_mutex_t mutex; /* guards the rest */
	pthread_cond_t done;
	struct buf text;
	size_t left;
};
struct census_letter {
	struct census *census;
	struct worker *worker;
};

static void
on_census(void *arg)
{
	struct census_letter *letter = arg;
	struct census *c = letter->census;
	struct session *s;

	pthread_mutex_lock(&c->mutex);
	TAILQ_FOREACH (s, &letter->worker->sessions, next)
		session_describe(s, &c->text);
	if (--c->left == 0)
		pthread_cond_signal(&c->done);
	pthread_mutex_unlock(&c->mutex);
	free(letter);
}

char *
proxy_clients(struct proxy *p)
{
	struct census c = {.left = p->worker_count};
	size_t i;

	check(pthread_mutex_init(&c.mutex, NULL) == 0);
	check(pthread_cond_init(&c.done, NULL) == 0);
	buf_init(&c.text, 64 << 20);
	for (i = 0; i < p->worker_count && p->started; i++) {
		struct census_letter *letter = mem_alloc(sizeof(*letter));

		*letter = (struct census_letter){
		    .census = &c, .worker = p->workers[i]};
		mailbox_post(p->workers[i]->mailbox, on_census, letter);
	}
	pthread_mutex_lock(&c.mutex);
	while (p->started && c.left != 0)
		pthread_cond_wait(&c.done, &c.mutex);
	pthread_mutex_unlock(&c.mutex);
	pthread_cond_destroy(&c.done);
	pthread_mutex_destroy(&c.mutex);
	check(buf_append(&c.text, "", 1) == 0);
	return (char *)c.text.data;
}
