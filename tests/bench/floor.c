/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least that a relay on libevent can cost: for each client a connection of
 * its own to the server, each read one write, events added once and changed only
 * when a socket is full. It knows no protocol. What bloomgate takes above it is
 * what parsing, deciding and framing cost. One thread; ends with SIGTERM.
 *
 *	floor LISTEN-PORT SERVER-PORT	(both 127.0.0.1)
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/check.h"
#include "core/mem.h"

struct side {
	struct side *other;
	struct event *read, *write;
	int fd;
	size_t start, end; /* of held: read from other, not yet written */
	uint8_t held[65536];
};

static struct event_base *base;
static struct sockaddr_in server;
static uint8_t bytes[65536];

static void
side_free(struct side *s)
{
	event_free(s->read);
	event_free(s->write);
	close(s->fd);
	free(s);
}

static void
on_read(evutil_socket_t fd, short what, void *arg)
{
	struct side *s = arg, *to = s->other;
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0), sent;

	(void)what;
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN) {
			side_free(to);
			side_free(s);
		}
		return;
	}
	sent = send(to->fd, bytes, (size_t)n, MSG_NOSIGNAL);
	if (sent == n)
		return;
	to->start = 0;
	to->end = (size_t)(n - (sent > 0 ? sent : 0));
	memcpy(to->held, bytes + n - to->end, to->end);
	event_add(to->write, NULL);
	event_del(s->read);
}

static void
on_write(evutil_socket_t fd, short what, void *arg)
{
	struct side *s = arg;
	ssize_t n = send(
	    fd, s->held + s->start, s->end - s->start, MSG_NOSIGNAL);

	(void)what;
	s->start += n > 0 ? (size_t)n : 0;
	if (s->start < s->end && (n > 0 || errno == EAGAIN))
		return;
	event_del(s->write);
	event_add(s->other->read, NULL);
}

static struct side *
side_new(int fd)
{
	struct side *s = mem_zalloc(1, sizeof(*s));
	int one = 1;

	check(fd >= 0 && evutil_make_socket_nonblocking(fd) == 0);
	check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
	s->fd = fd;
	s->read = event_new(base, fd, EV_READ | EV_PERSIST, on_read, s);
	s->write = event_new(base, fd, EV_WRITE | EV_PERSIST, on_write, s);
	return s;
}

static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	int up = socket(AF_INET, SOCK_STREAM, 0);
	struct side *a, *b;

	(void)what;
	(void)arg;
	check(connect(up, (struct sockaddr *)&server, sizeof(server)) == 0);
	a = side_new(accept(fd, NULL, NULL));
	b = side_new(up);
	a->other = b;
	b->other = a;
	event_add(a->read, NULL);
	event_add(b->read, NULL);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in here = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct event *e;

	check(argc == 3);
	server = here;
	here.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	server.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0);
	check(listen(fd, 128) == 0);
	base = event_base_new();
	e = event_new(base, fd, EV_READ | EV_PERSIST, on_accept, NULL);
	check(e != NULL && event_add(e, NULL) == 0);
	return event_base_dispatch(base) == 0 ? 0 : 1;
}
