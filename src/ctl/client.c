/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocking socket I/O. What the daemon sends is checked like anything from
 * outside: the socket's path may lead to some other program.
 */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/settings.h"
#include "core/buf.h"
#include "core/mem.h"
#include "ctl/client.h"
#include "resp/encode.h"

#define TIMEOUT_S   30 /* of one read or write */
#define REQUEST_MAX ((size_t)8 << 20)
#define READ_BYTES  16384

struct client {
	int fd;
	struct buf in;
};

static int
open_unix(const char *path, struct err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(err, "the socket path %s is too long", path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		err_set(err, "cannot reach the daemon at %s: %s", path,
		    strerror(errno));
		if (fd != -1)
			close(fd);
		return -1;
	}
	return fd;
}

static int
open_tcp(const struct address *a, struct err *err)
{
	struct addrinfo hints = {
	    .ai_family = AF_UNSPEC,
	    .ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list, *i;
	char port[8];
	int fd = -1, rc, error = 0;

	snprintf(port, sizeof(port), "%u", a->port);
	rc = getaddrinfo(a->host, port, &hints, &list);
	if (rc != 0)
		return err_set(
		    err, "cannot resolve %s: %s", a->host, gai_strerror(rc));
	for (i = list; i != NULL && fd == -1; i = i->ai_next) {
		fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC,
		    i->ai_protocol);
		if (fd != -1 && connect(fd, i->ai_addr, i->ai_addrlen) != 0) {
			error = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd == -1)
		return err_set(err, "cannot reach the daemon at %s: %s",
		    a->text, strerror(error));
	return fd;
}

struct client *
client_connect(const char *address, struct err *err)
{
	struct timeval tv = {.tv_sec = TIMEOUT_S};
	struct client *c;
	struct address a;
	int fd;

	if (strncmp(address, "unix:", 5) != 0 && strchr(address, '/') != NULL) {
		fd = open_unix(address, err);
	} else {
		if (address_parse(&a, address, err) != 0)
			return NULL;
		fd = a.kind == ADDRESS_UNIX ? open_unix(a.path, err)
					    : open_tcp(&a, err);
		address_fini(&a);
	}
	if (fd == -1)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	c = mem_zalloc(1, sizeof(*c));
	c->fd = fd;
	buf_init(&c->in, CLIENT_REPLY_MAX + READ_BYTES);
	return c;
}

void
client_free(struct client *c)
{
	close(c->fd);
	buf_fini(&c->in);
	free(c);
}

static int
send_all(struct client *c, struct buf *out, struct err *err)
{
	ssize_t n;

	while (buf_len(out) > 0) {
		n = send(c->fd, buf_head(out), buf_len(out), MSG_NOSIGNAL);
		if (n >= 0)
			buf_consume(out, (size_t)n);
		else if (errno != EINTR)
			return err_set(err, "cannot write to the daemon: %s",
			    strerror(errno));
	}
	return 0;
}

/* Reads what there is, waiting for at least a byte. */
static int
fill(struct client *c, struct err *err)
{
	uint8_t *room = buf_reserve(&c->in, READ_BYTES);
	ssize_t n;

	if (room == NULL)
		return err_set(err, "the daemon's answer is too long");
	do {
		n = read(c->fd, room, READ_BYTES);
	} while (n == -1 && errno == EINTR);
	if (n == 0)
		return err_set(err, "the daemon closed the connection");
	if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return err_set(
		    err, "no answer from the daemon in %d s", TIMEOUT_S);
	if (n == -1)
		return err_set(
		    err, "cannot read from the daemon: %s", strerror(errno));
	buf_commit(&c->in, (size_t)n);
	return 0;
}

/* A line without its CRLF, as a string; returned, free(). NULL with why. */
static char *
read_line(struct client *c, struct err *err)
{
	const uint8_t *end;
	size_t len;
	char *line;

	for (;;) {
		end = buf_len(&c->in) > 0
		    ? memchr(buf_head(&c->in), '\n', buf_len(&c->in))
		    : NULL;
		if (end != NULL)
			break;
		if (fill(c, err) != 0)
			return NULL;
	}
	len = (size_t)(end - buf_head(&c->in));
	line = mem_alloc(len + 1);
	memcpy(line, buf_head(&c->in), len);
	line[len] = '\0';
	if (len > 0 && line[len - 1] == '\r')
		line[len - 1] = '\0';
	buf_consume(&c->in, len + 1);
	return line;
}

static int
read_bulk(struct client *c, struct client_reply *r, size_t len, struct err *err)
{
	while (buf_len(&c->in) < len + 2)
		if (fill(c, err) != 0)
			return -1;
	r->text = mem_alloc(len + 1);
	memcpy(r->text, buf_head(&c->in), len);
	r->text[len] = '\0';
	r->len = len;
	buf_consume(&c->in, len + 2);
	return 0;
}

/* One value; an array's items are left to the caller. */
static int
read_value(struct client *c, struct client_reply *r, struct err *err)
{
	char *line = read_line(c, err);
	int rc = 0;

	*r = (struct client_reply){0};
	if (line == NULL)
		return -1;
	r->type = line[0];
	if (r->type == '+' || r->type == '-') {
		r->text = mem_strdup(line + 1);
		r->len = strlen(r->text);
	} else if ((r->type != ':' && r->type != '$' && r->type != '*') ||
	    slice_to_int64(slice_str(line + 1), &r->integer) != 0) {
		rc = err_set(err, "what answers there is not bloomgate");
	} else if (r->type == '$') {
		rc = r->integer >= 0 && r->integer <= (int64_t)CLIENT_REPLY_MAX
		    ? read_bulk(c, r, (size_t)r->integer, err)
		    : err_set(err, "the daemon's answer is too long");
	}
	free(line);
	return rc;
}

static int
read_reply(struct client *c, struct client_reply *r, struct err *err)
{
	size_t i;

	if (read_value(c, r, err) != 0)
		return -1;
	if (r->type != '*')
		return 0;
	if (r->integer < 0 || r->integer > CLIENT_ELEMENTS_MAX)
		return err_set(err, "the daemon's answer is too long");
	r->count = (size_t)r->integer;
	r->items = mem_zalloc(r->count + 1, sizeof(*r->items));
	for (i = 0; i < r->count; i++) {
		if (read_value(c, &r->items[i], err) != 0)
			return -1;
		if (r->items[i].type == '*')
			return err_set(err, "an answer of an unknown form");
	}
	return 0;
}

int
client_call(struct client *c, const struct slice *argv, size_t argc,
    struct client_reply *reply, struct err *err)
{
	struct buf out;
	int rc;

	*reply = (struct client_reply){0};
	buf_init(&out, REQUEST_MAX);
	rc = encode_request(&out, argv, argc) != 0
	    ? err_set(err, "the command is too long")
	    : send_all(c, &out, err);
	buf_fini(&out);
	if (rc == 0)
		rc = read_reply(c, reply, err);
	if (rc != 0)
		client_reply_fini(reply);
	return rc;
}

void
client_reply_fini(struct client_reply *r)
{
	size_t i;

	for (i = 0; r->items != NULL && i < r->count; i++)
		free(r->items[i].text);
	free(r->items);
	free(r->text);
	*r = (struct client_reply){0};
}
