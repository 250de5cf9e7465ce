/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See resolve.h. The job is shared by the loop and the thread, one reference
 * each. The thread posts under the job's mutex and only while it is not
 * cancelled, so the mailbox may go as soon as resolve_cancel returns.
 */
#include "config.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/mailbox.h"
#include "core/mem.h"
#include "redis/resolve.h"

struct resolve {
	pthread_mutex_t mutex;       /* guards cancelled */
	_Atomic unsigned references; /* partner: resolve_unref, acq_rel */
	bool cancelled;
	struct mailbox *mailbox; /* borrowed until cancelled or answered */
	char *host;
	resolve_fn fn; /* on the owner's loop only */
	void *arg;
	struct addresses result; /* the thread's until it posts */
};

static void
resolve_unref(struct resolve *r)
{
	if (atomic_fetch_sub_explicit(
		&r->references, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&r->mutex);
	free(r->host);
	free(r);
}

/* Fills out from getaddrinfo; flags as for it. The code of getaddrinfo. */
static int
lookup(struct addresses *out, const char *host, int flags)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
	    .ai_socktype = SOCK_STREAM,
	    .ai_flags = flags};
	struct addrinfo *list = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = getaddrinfo(host, NULL, &hints, &list);
	if (rc != 0)
		return rc;
	for (struct addrinfo *a = list; a != NULL; a = a->ai_next) {
		if (out->count == RESOLVE_MAX)
			break;
		if (getnameinfo(a->ai_addr, a->ai_addrlen, out->ip[out->count],
			RESOLVE_IP_MAX, NULL, 0, NI_NUMERICHOST) == 0)
			out->count++;
	}
	freeaddrinfo(list);
	return 0;
}

int
resolve_numeric(struct addresses *out, const char *host)
{
	if (lookup(out, host, AI_NUMERICHOST) != 0 || out->count == 0)
		return -1;
	return 0;
}

/* On the owner's loop. */
static void
on_resolved(void *arg)
{
	struct resolve *r = arg;

	/* Only this thread cancels: no lock is needed to see it. */
	if (!r->cancelled) {
		r->cancelled = true;
		r->fn(&r->result, r->arg);
		resolve_unref(r); /* the loop's */
	}
	resolve_unref(r); /* the message's */
}

static void *
resolve_thread(void *arg)
{
	struct resolve *r = arg;
	int rc = lookup(&r->result, r->host, AI_ADDRCONFIG);

	if (rc != 0)
		snprintf(r->result.error, sizeof(r->result.error),
		    "name lookup: %s", gai_strerror(rc));
	else if (r->result.count == 0)
		snprintf(r->result.error, sizeof(r->result.error),
		    "name lookup: no address");
	pthread_mutex_lock(&r->mutex);
	if (!r->cancelled) {
		atomic_fetch_add_explicit(
		    &r->references, 1, memory_order_relaxed);
		mailbox_post(r->mailbox, on_resolved, r);
	}
	pthread_mutex_unlock(&r->mutex);
	resolve_unref(r);
	return NULL;
}

struct resolve *
resolve_start(struct mailbox *m, const char *host, resolve_fn fn, void *arg)
{
	struct resolve *r = mem_zalloc(1, sizeof(*r));
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int rc;

	pthread_mutex_init(&r->mutex, NULL);
	atomic_init(&r->references, 2);
	r->mailbox = m;
	r->host = mem_strdup(host);
	r->fn = fn;
	r->arg = arg;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Signals are for the threads that wait for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, resolve_thread, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		resolve_unref(r);
		resolve_unref(r);
		return NULL;
	}
	return r;
}

void
resolve_cancel(struct resolve *r)
{
	pthread_mutex_lock(&r->mutex);
	r->cancelled = true;
	pthread_mutex_unlock(&r->mutex);
	resolve_unref(r);
}
