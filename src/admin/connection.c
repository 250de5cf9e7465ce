/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw events and two buffers. A connection reads only while it has nothing to
 * answer: at most one request and one reply are held, whatever is pipelined.
 *
 *   reading   waits for a whole request; the stall timer runs once it has begun
 *   waiting   a CHECK or ADD is under way; nothing is read
 *   writing   the reply has not left; the stall timer runs, nothing is read
 *
 * Functions mark a connection dead; settle() frees it, last thing before control
 * goes back to the loop.
 */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/commands.h"
#include "admin/connection.h"
#include "admin/private.h"
#include "core/check.h"
#include "core/mem.h"
#include "resp/encode.h"

#define READ_BYTES 16384
/* Replies are ours (a status, the configuration), never a peer's size. */
#define OUT_MAX ((size_t)512 << 20)

static void settle(struct connection *c);

/* --- replies ---------------------------------------------------------------- */

void
connection_status(struct connection *c, const char *text)
{
	check(encode_status(&c->out, text) == 0);
}

void
connection_error(struct connection *c, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	check(encode_error(&c->out, text) == 0);
}

void
connection_bulk(struct connection *c, char *text)
{
	check(encode_bulk(&c->out, slice_str(text)) == 0);
	free(text);
}

struct admin_request *
connection_wait(struct connection *c, size_t count)
{
	struct admin_request *r = mem_alloc(sizeof(*r));

	check(c->waiting == NULL);
	*r = (struct admin_request){.connection = c, .count = count};
	c->waiting = r;
	return r;
}

void
admin_answer(struct admin_request *request, const int *values, size_t count,
    const char *error)
{
	struct connection *c = request->connection;
	size_t i;

	check(values == NULL || count == request->count);
	free(request);
	if (c == NULL)
		return;
	c->waiting = NULL;
	if (values == NULL) {
		connection_error(
		    c, "ERR bloomgate: %s", error != NULL ? error : "failed");
	} else {
		check(encode_array(&c->out, count) == 0);
		for (i = 0; i < count; i++)
			check(encode_integer(&c->out, values[i]) == 0);
	}
	if (!c->running)
		settle(c);
}

/* --- requests ----------------------------------------------------------------- */

static void
execute(struct connection *c)
{
	struct slice *argv;
	size_t i;

	argv = mem_zalloc(c->request.argc, sizeof(*argv));
	for (i = 0; i < c->request.argc; i++)
		argv[i] = request_arg(&c->request, buf_head(&c->in), i);
	c->running = true;
	commands_run(c, argv, c->request.argc);
	c->running = false;
	free(argv);
}

/* Takes one request. False when there is none to take. */
static bool
take_request(struct connection *c)
{
	if (buf_len(&c->in) == 0)
		return false;
	switch (request_parse(&c->request, buf_head(&c->in), buf_len(&c->in))) {
	case PARSE_MORE:
		return false;
	case PARSE_BAD:
		check(encode_error(&c->out, c->request.error) == 0);
		c->closing = true;
		return true;
	case PARSE_READY:
		break;
	}
	if (!c->request.empty)
		execute(c);
	buf_consume(&c->in, (size_t)c->request.size);
	buf_trim(&c->in);
	request_reset(&c->request);
	return true;
}

static void
flush(struct connection *c)
{
	ssize_t n;

	while (buf_len(&c->out) > 0) {
		n = send(
		    c->fd, buf_head(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
		if (n >= 0) {
			buf_consume(&c->out, (size_t)n);
		} else if (errno != EINTR) {
			c->dead = errno != EAGAIN;
			return;
		}
	}
	buf_trim(&c->out);
}

static void
set_stall(struct connection *c, bool runs)
{
	struct timeval tv = {.tv_sec = ADMIN_STALL_MS / 1000};

	if (runs == c->stall_runs)
		return;
	c->stall_runs = runs;
	if (runs)
		evtimer_add(c->stall, &tv);
	else
		evtimer_del(c->stall);
}

/* Goes on as far as possible, then waits for the right thing, or frees. */
static void
settle(struct connection *c)
{
	bool writing, reading;

	flush(c);
	while (!c->dead && !c->closing && c->waiting == NULL &&
	    buf_len(&c->out) == 0 && take_request(c)) {
		set_stall(c, false);
		flush(c);
	}
	writing = buf_len(&c->out) > 0;
	/* At EOF what was sent completely has been answered by now. */
	if (c->dead ||
	    (!writing && c->waiting == NULL && (c->closing || c->eof))) {
		connection_free(c);
		return;
	}
	reading = !writing && c->waiting == NULL && !c->eof;
	if (writing)
		event_add(c->writable, NULL);
	else
		event_del(c->writable);
	if (reading)
		event_add(c->readable, NULL);
	else
		event_del(c->readable);
	set_stall(c, writing || (reading && buf_len(&c->in) > 0));
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	uint8_t *room;
	ssize_t n;

	(void)what;
	/* The parser refuses a request before the buffer could be full. */
	room = buf_reserve(&c->in, READ_BYTES);
	check(room != NULL);
	n = read(fd, room, READ_BYTES);
	if (n > 0)
		buf_commit(&c->in, (size_t)n);
	else if (n == 0)
		c->eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		c->dead = true;
	TAILQ_REMOVE(&c->admin->connections, c, entry);
	TAILQ_INSERT_TAIL(&c->admin->connections, c, entry);
	settle(c);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	settle(arg);
}

static void
on_stall(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	connection_free(arg);
}

/* --- life ----------------------------------------------------------------------- */

void
connection_new(struct admin *a, int fd)
{
	struct request_limits limits = {
	    .bulk_bytes = ADMIN_BULK_MAX,
	    .request_bytes = ADMIN_REQUEST_MAX,
	};
	struct connection *c = mem_zalloc(1, sizeof(*c));
	struct event_base *base = a->options.base;

	c->admin = a;
	c->fd = fd;
	buf_init(&c->in, ADMIN_REQUEST_MAX + 2 * READ_BYTES);
	buf_init(&c->out, OUT_MAX);
	request_init(&c->request, &limits);
	c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(
	    base, fd, EV_WRITE | EV_PERSIST, on_writable, c);
	c->stall = evtimer_new(base, on_stall, c);
	check(c->readable != NULL && c->writable != NULL && c->stall != NULL);
	event_add(c->readable, NULL);
	TAILQ_INSERT_TAIL(&a->connections, c, entry);
	a->count++;
}

void
connection_free(struct connection *c)
{
	if (c->waiting != NULL)
		c->waiting->connection = NULL;
	TAILQ_REMOVE(&c->admin->connections, c, entry);
	c->admin->count--;
	event_free(c->readable);
	event_free(c->writable);
	event_free(c->stall);
	close(c->fd);
	request_fini(&c->request);
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
}
