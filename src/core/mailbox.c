/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mailbox: a locked list and an eventfd that wakes the owner's loop. The
 * list is taken whole and run without the lock, so a letter may post another.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "core/check.h"
#include "core/mailbox.h"
#include "core/mem.h"

struct letter {
	STAILQ_ENTRY(letter) next;
	mailbox_fn fn;
	void *arg; /* taken by fn */
};
STAILQ_HEAD(letters, letter);

struct mailbox {
	pthread_mutex_t mutex; /* guards letters and woken */
	struct letters letters;
	bool woken; /* the eventfd was written and not yet read */
	int fd;
	struct event *event; /* owner's thread */
};

static void
run_letters(struct mailbox *m)
{
	struct letters mine = STAILQ_HEAD_INITIALIZER(mine);
	struct letter *l;

	pthread_mutex_lock(&m->mutex);
	STAILQ_CONCAT(&mine, &m->letters);
	m->woken = false;
	pthread_mutex_unlock(&m->mutex);
	while ((l = STAILQ_FIRST(&mine)) != NULL) {
		STAILQ_REMOVE_HEAD(&mine, next);
		l->fn(l->arg);
		free(l);
	}
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	uint64_t count;

	(void)what;
	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	run_letters(arg);
}

struct mailbox *
mailbox_new(struct event_base *base)
{
	struct mailbox *m = mem_zalloc(1, sizeof(*m));

	check(pthread_mutex_init(&m->mutex, NULL) == 0);
	STAILQ_INIT(&m->letters);
	m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check(m->fd >= 0);
	m->event = event_new(base, m->fd, EV_READ | EV_PERSIST, on_wake, m);
	check(m->event != NULL && event_add(m->event, NULL) == 0);
	return m;
}

void
mailbox_free(struct mailbox *m)
{
	if (m == NULL)
		return;
	while (!STAILQ_EMPTY(&m->letters))
		run_letters(m);
	event_free(m->event);
	close(m->fd);
	pthread_mutex_destroy(&m->mutex);
	free(m);
}

void
mailbox_post(struct mailbox *m, mailbox_fn fn, void *arg)
{
	struct letter *l = mem_alloc(sizeof(*l));
	uint64_t one = 1;
	bool wake;

	l->fn = fn;
	l->arg = arg;
	pthread_mutex_lock(&m->mutex);
	STAILQ_INSERT_TAIL(&m->letters, l, next);
	wake = !m->woken;
	m->woken = true;
	/* Written under the lock: the owner may free the mailbox once it has
	 * run the last letter. */
	if (wake)
		while (write(m->fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	pthread_mutex_unlock(&m->mutex);
}
