/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection's life:
 *
 *   READING	headers are not complete	-> WRITING, or closed at EOF
 *   WRITING	the answer is on its way	-> LINGERING
 *   LINGERING	our side is shut; what still arrives is dropped, so that the
 *		answer is not lost to a reset	-> closed at EOF
 *
 * In every state the total timer closes it.
 */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/check.h"
#include "core/acceptor.h"
#include "core/mem.h"
#include "stats/http.h"

#define HTTP_SOCKET_MODE 0666 /* a Unix socket: who may enter its folder */
#define HTTP_ANSWER_MAX  ((size_t)1 << 30)

enum state {
	STATE_READING,
	STATE_WRITING,
	STATE_LINGERING,
};

struct connection {
	TAILQ_ENTRY(connection) entry; /* in h->connections, oldest first */
	struct http *http;             /* borrowed */
	int fd;
	enum state state;
	struct event *event; /* owned: readable, or writable while WRITING */
	struct event *timer; /* owned: the total time */
	struct buf in;
	struct buf out;
};

struct http {
	struct http_options options;
	struct acceptor *acceptor; /* owned */
	TAILQ_HEAD(connections, connection) connections;
	size_t count;
};

struct line {
	struct slice method;
	struct slice target;
	struct slice version;
};

static void on_event(evutil_socket_t fd, short what, void *arg);

static void
connection_free(struct connection *c)
{
	TAILQ_REMOVE(&c->http->connections, c, entry);
	c->http->count--;
	event_free(c->event);
	event_free(c->timer);
	close(c->fd);
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
}

static void
wait_for(struct connection *c, short what)
{
	event_del(c->event);
	check(event_assign(c->event, c->http->options.base, c->fd,
		  what | EV_PERSIST, on_event, c) == 0);
	event_add(c->event, NULL);
}

/* --- the answer --------------------------------------------------------------- */

static const char *
reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Error";
	}
}

static void
answer(struct connection *c, const struct http_response *r, bool head)
{
	check(buf_printf(&c->out,
		  "HTTP/1.1 %d %s\r\n"
		  "Content-Type: %s\r\n"
		  "Content-Length: %zu\r\n"
		  "Cache-Control: no-store\r\n"
		  "X-Content-Type-Options: nosniff\r\n"
		  "Connection: close\r\n"
		  "%s\r\n",
		  r->status, reason_of(r->status), r->type, r->body_len,
		  r->extra != NULL ? r->extra : "") == 0);
	if (!head)
		check(buf_append(&c->out, r->body, r->body_len) == 0);
	free(r->owned);
	c->state = STATE_WRITING;
	wait_for(c, EV_WRITE);
}

static void
answer_error(struct connection *c, int status, bool head)
{
	struct http_response r = {
	    .status = status,
	    .type = "text/plain; charset=utf-8",
	    .extra = status == 405 ? "Allow: GET, HEAD\r\n" : NULL,
	};
	char *text = mem_printf("%s\n", reason_of(status));

	r.body = text;
	r.body_len = strlen(text);
	r.owned = text;
	answer(c, &r, head);
}

/* --- the request -------------------------------------------------------------- */

/* Offset past the blank line that ends the headers, or 0. */
static size_t
headers_end(const uint8_t *data, size_t len)
{
	size_t i;

	for (i = 0; i + 1 < len; i++) {
		if (data[i] != '\n')
			continue;
		if (data[i + 1] == '\n')
			return i + 2;
		if (i + 2 < len && data[i + 1] == '\r' && data[i + 2] == '\n')
			return i + 3;
	}
	return 0;
}

static bool
is_token(struct slice s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (s.data[i] <= 0x20 || s.data[i] >= 0x7f)
			return false;
	return s.len > 0;
}

static struct slice
next_word(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *from = *at;
	const uint8_t *space = memchr(from, ' ', (size_t)(end - from));

	if (space == NULL)
		space = end;
	*at = space < end ? space + 1 : end;
	return slice_of(from, (size_t)(space - from));
}

/* METHOD SP TARGET SP VERSION; RFC 9112, 3. 0, or -1 where it is not that. */
static int
parse_line(struct line *line, const uint8_t *data, size_t len)
{
	const uint8_t *at = data;
	const uint8_t *end = memchr(data, '\n', len);

	check(end != NULL);
	if (end > data && end[-1] == '\r')
		end--;
	line->method = next_word(&at, end);
	line->target = next_word(&at, end);
	line->version = slice_of(at, (size_t)(end - at));
	if (!is_token(line->method) || !is_token(line->target) ||
	    !is_token(line->version))
		return -1;
	if (line->version.len != 8 ||
	    memcmp(line->version.data, "HTTP/", 5) != 0)
		return -1;
	return line->target.data[0] == '/' ? 0 : -1;
}

/* The target without its query, as a string. */
static char *
path_of(struct slice target)
{
	const uint8_t *query = memchr(target.data, '?', target.len);
	size_t len = query != NULL ? (size_t)(query - target.data) : target.len;
	char *path = mem_alloc(len + 1);

	memcpy(path, target.data, len);
	path[len] = '\0';
	return path;
}

static void
handle(struct connection *c, size_t len)
{
	struct http_response r = {.status = 500};
	struct line line;
	bool head;
	char *path;

	if (parse_line(&line, buf_head(&c->in), len) != 0) {
		answer_error(c, 400, false);
		return;
	}
	head = slice_is(line.method, "HEAD");
	if (!slice_is(line.version, "HTTP/1.1") &&
	    !slice_is(line.version, "HTTP/1.0")) {
		answer_error(c, 505, head);
		return;
	}
	if (!head && !slice_is(line.method, "GET")) {
		answer_error(c, 405, false);
		return;
	}
	path = path_of(line.target);
	c->http->options.handler(path, &r, c->http->options.arg);
	free(path);
	answer(c, &r, head);
}

/* Blank lines before a request are skipped, as RFC 9112, 2.2 wants. */
static void
skip_blank(struct buf *in)
{
	while (
	    buf_len(in) > 0 && (*buf_head(in) == '\r' || *buf_head(in) == '\n'))
		buf_consume(in, 1);
}

static void
on_read(struct connection *c)
{
	uint8_t *room;
	size_t end, left = HTTP_REQUEST_MAX - buf_len(&c->in);
	ssize_t n;

	room = buf_reserve(&c->in, left);
	check(room != NULL);
	n = read(c->fd, room, left);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_free(c);
		return;
	}
	buf_commit(&c->in, (size_t)n);
	skip_blank(&c->in);
	end = headers_end(buf_head(&c->in), buf_len(&c->in));
	if (end > 0)
		handle(c, end);
	else if (buf_len(&c->in) == HTTP_REQUEST_MAX)
		answer_error(c,
		    memchr(buf_head(&c->in), '\n', HTTP_REQUEST_MAX) != NULL
			? 431
			: 414,
		    false);
}

static void
on_write(struct connection *c)
{
	ssize_t n;

	n = send(c->fd, buf_head(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
	if (n == -1) {
		if (errno != EAGAIN && errno != EINTR)
			connection_free(c);
		return;
	}
	buf_consume(&c->out, (size_t)n);
	if (buf_len(&c->out) > 0)
		return;
	buf_trim(&c->out);
	shutdown(c->fd, SHUT_WR);
	c->state = STATE_LINGERING;
	wait_for(c, EV_READ);
}

static void
on_linger(struct connection *c)
{
	uint8_t dropped[4096];
	ssize_t n;

	n = read(c->fd, dropped, sizeof(dropped));
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		connection_free(c);
}

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	(void)fd;
	(void)what;
	switch (c->state) {
	case STATE_READING:
		on_read(c);
		return;
	case STATE_WRITING:
		on_write(c);
		return;
	case STATE_LINGERING:
		on_linger(c);
		return;
	}
}

static void
on_time_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	connection_free(arg);
}

/* --- the server ----------------------------------------------------------------- */

/* Makes room for one more. False when all of them are being answered. */
static bool
give_way(struct http *h)
{
	struct connection *c;

	TAILQ_FOREACH (c, &h->connections, entry) {
		if (c->state != STATE_WRITING) {
			connection_free(c);
			return true;
		}
	}
	return false;
}

static void
on_accept(int fd, void *arg)
{
	struct http *h = arg;
	struct connection *c;
	struct timeval tv = {
	    .tv_sec = (time_t)(h->options.total_ms / 1000),
	    .tv_usec = (suseconds_t)(h->options.total_ms % 1000 * 1000),
	};

	if (h->count >= HTTP_CONNECTIONS_MAX && !give_way(h)) {
		close(fd);
		return;
	}
	c = mem_zalloc(1, sizeof(*c));
	c->http = h;
	c->fd = fd;
	buf_init(&c->in, HTTP_REQUEST_MAX);
	buf_init(&c->out, HTTP_ANSWER_MAX);
	c->event = event_new(
	    h->options.base, fd, EV_READ | EV_PERSIST, on_event, c);
	c->timer = evtimer_new(h->options.base, on_time_over, c);
	check(c->event != NULL && c->timer != NULL);
	event_add(c->event, NULL);
	evtimer_add(c->timer, &tv);
	TAILQ_INSERT_TAIL(&h->connections, c, entry);
	h->count++;
}

struct http *
http_new(const struct http_options *o, struct err *err)
{
	struct http *h = mem_zalloc(1, sizeof(*h));
	struct acceptor_options lo = {
	    .base = o->base,
	    .name = "stats",
	    .path = o->listen->kind == ADDRESS_UNIX ? o->listen->path : NULL,
	    .mode = HTTP_SOCKET_MODE,
	    .host = o->listen->host,
	    .port = o->listen->port,
	    .on_accept = on_accept,
	    .arg = h,
	};

	h->options = *o;
	h->options.listen = NULL;
	TAILQ_INIT(&h->connections);
	h->acceptor = acceptor_new(&lo, err);
	if (h->acceptor == NULL) {
		free(h);
		return NULL;
	}
	return h;
}

void
http_free(struct http *h)
{
	struct connection *c;

	while ((c = TAILQ_FIRST(&h->connections)) != NULL)
		connection_free(c);
	acceptor_free(h->acceptor);
	free(h);
}

const char *
http_address(const struct http *h)
{
	return acceptor_address(h->acceptor);
}

size_t
http_connections(const struct http *h)
{
	return h->count;
}
