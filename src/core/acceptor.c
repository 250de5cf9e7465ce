/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listening socket. Connections are handed over; what they say is the
 * owner's business.
 */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/check.h"
#include "core/acceptor.h"
#include "core/log.h"
#include "core/mem.h"

#define ACCEPTOR_BACKLOG  64
#define ACCEPTOR_A_TURN   16 /* accepted before others get their turn */
#define ACCEPTOR_PAUSE_MS 100

struct acceptor {
	int fd;
	const char *name;     /* borrowed */
	char *address;        /* owned */
	char *path;           /* owned; NULL on TCP */
	dev_t device;         /* of the socket file as we made it */
	ino_t inode;          /* the same */
	struct event *event;  /* owned: fd is readable */
	struct event *resume; /* owned: the pause is over */
	void (*on_accept)(int fd, void *arg);
	void *arg;
};

/* --- accepting -------------------------------------------------------------- */

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct acceptor *l = arg;
	struct timeval pause = {.tv_usec = ACCEPTOR_PAUSE_MS * 1000};
	int i, peer;

	(void)what;
	for (i = 0; i < ACCEPTOR_A_TURN; i++) {
		peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (peer != -1) {
			l->on_accept(peer, l->arg);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		log_warn("accept_failed", LOG_STR("listener", l->name),
		    LOG_STR("error", strerror(errno)));
		event_del(l->event);
		evtimer_add(l->resume, &pause);
		return;
	}
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct acceptor *l = arg;

	(void)fd;
	(void)what;
	event_add(l->event, NULL);
}

/* --- Unix ------------------------------------------------------------------- */

/* The folder of path, one level: a deeper lack is somebody's typing mistake. */
static int
make_folder(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *folder;
	int rc = 0;

	if (slash == NULL || slash == path)
		return 0;
	folder = mem_dup(path, (size_t)(slash - path) + 1);
	folder[slash - path] = '\0';
	if (mkdir(folder, 0755) != 0 && errno != EEXIST)
		rc = err_set(err, "cannot make the folder %s: %s", folder,
		    strerror(errno));
	free(folder);
	return rc;
}

/* Removes the socket file of a process that is gone; refuses any other file. */
static int
remove_stale(const struct sockaddr_un *at, struct err *err)
{
	struct stat st;
	int fd, rc, error;

	if (lstat(at->sun_path, &st) != 0)
		return errno == ENOENT
		    ? 0
		    : err_set(err, "%s: %s", at->sun_path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(
		    err, "%s is there and is no socket", at->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return err_set(err, "socket: %s", strerror(errno));
	rc = connect(fd, (const struct sockaddr *)at, sizeof(*at));
	error = errno;
	close(fd);
	/* Anything but a refusal may be a living server with a full queue. */
	if (rc == 0 || error != ECONNREFUSED)
		return err_set(
		    err, "%s is in use by another process", at->sun_path);
	if (unlink(at->sun_path) != 0 && errno != ENOENT)
		return err_set(err, "cannot remove the stale socket %s: %s",
		    at->sun_path, strerror(errno));
	return 0;
}

static int
bind_unix(struct acceptor *l, const char *path, mode_t mode, struct err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct stat st;
	mode_t before;
	int rc, error;

	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(err,
		    "the socket path %s is too long (%zu at most)", path,
		    sizeof(at.sun_path) - 1);
	memcpy(at.sun_path, path, strlen(path) + 1);
	if (make_folder(path, err) != 0 || remove_stale(&at, err) != 0)
		return -1;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd == -1)
		return err_set(err, "socket: %s", strerror(errno));
	/* So that it never exists with more rights than it shall have. */
	before = umask(~mode & 0777);
	rc = bind(l->fd, (const struct sockaddr *)&at, sizeof(at));
	error = errno;
	umask(before);
	if (rc != 0)
		return err_set(
		    err, "cannot bind %s: %s", path, strerror(error));
	l->path = mem_strdup(path);
	if (lstat(path, &st) == 0) {
		l->device = st.st_dev;
		l->inode = st.st_ino;
	}
	l->address = mem_printf("unix:%s", path);
	return 0;
}

/* Our own file only: a successor may have put its own in its place. */
static void
remove_own(const struct acceptor *l)
{
	struct stat st;

	if (lstat(l->path, &st) == 0 && st.st_dev == l->device &&
	    st.st_ino == l->inode)
		unlink(l->path);
}

/* --- TCP -------------------------------------------------------------------- */

static int
bind_one(const struct addrinfo *a)
{
	int fd, on = 1;

	fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    a->ai_protocol);
	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, a->ai_addr, a->ai_addrlen) != 0) {
		on = errno;
		close(fd);
		errno = on;
		return -1;
	}
	return fd;
}

/* The bound address as text: the port may be one that the system picked. */
static char *
address_text(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getsockname(fd, (struct sockaddr *)&at, &len) != 0 ||
	    getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port,
		sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return mem_strdup("?");
	if (at.ss_family == AF_INET6)
		return mem_printf("[%s]:%s", host, port);
	return mem_printf("%s:%s", host, port);
}

static int
bind_tcp(struct acceptor *l, const char *host, uint16_t port, struct err *err)
{
	struct addrinfo hints = {
	    .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	    .ai_family = AF_UNSPEC,
	    .ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list, *a;
	char service[8];
	int rc, error = 0;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		return err_set(
		    err, "cannot resolve %s: %s", host, gai_strerror(rc));
	for (a = list; a != NULL && l->fd == -1; a = a->ai_next) {
		l->fd = bind_one(a);
		if (l->fd == -1)
			error = errno;
	}
	freeaddrinfo(list);
	if (l->fd == -1)
		return err_set(err, "cannot bind %s port %u: %s", host, port,
		    strerror(error));
	l->address = address_text(l->fd);
	return 0;
}

/* --- the object ------------------------------------------------------------- */

struct acceptor *
acceptor_new(const struct acceptor_options *o, struct err *err)
{
	struct acceptor *l = mem_zalloc(1, sizeof(*l));
	int rc;

	l->fd = -1;
	l->name = o->name;
	l->on_accept = o->on_accept;
	l->arg = o->arg;
	rc = o->path != NULL ? bind_unix(l, o->path, o->mode, err)
			     : bind_tcp(l, o->host, o->port, err);
	if (rc == 0 && listen(l->fd, ACCEPTOR_BACKLOG) != 0)
		rc = err_set(err, "cannot listen on %s: %s", l->address,
		    strerror(errno));
	if (rc != 0) {
		acceptor_free(l);
		return NULL;
	}
	l->event = event_new(
	    o->base, l->fd, EV_READ | EV_PERSIST, on_readable, l);
	l->resume = evtimer_new(o->base, on_resume, l);
	check(l->event != NULL && l->resume != NULL);
	event_add(l->event, NULL);
	return l;
}

void
acceptor_free(struct acceptor *l)
{
	if (l->event != NULL)
		event_free(l->event);
	if (l->resume != NULL)
		event_free(l->resume);
	if (l->path != NULL)
		remove_own(l);
	if (l->fd != -1)
		close(l->fd);
	free(l->path);
	free(l->address);
	free(l);
}

const char *
acceptor_address(const struct acceptor *l)
{
	return l->address;
}
