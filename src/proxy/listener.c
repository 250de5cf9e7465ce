/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets and accepting: see listener.h. A worker's thread, once
 * started. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/check.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/listener.h"
#include "proxy/permission.h"
#include "proxy/session.h"
#include "proxy/socket.h"

#define BACKLOG        1024
#define STALE_TRIES    25 /* at a socket that somebody listens on */
#define STALE_PAUSE_MS 20
#define ACCEPTS_MAX    64  /* a turn, so that sessions get theirs */
#define EXHAUSTED_MS   100 /* pause when descriptors run out */

struct listener {
	struct worker *worker;
	int fd;
	struct event *event;
	struct event *retry; /* after a pause for want of descriptors */
	char text[300];
	unsigned port;
	char *unlink_path; /* a Unix socket that we made */
};

static void
refuse(struct worker *w, int fd, enum metric_reject reason, const char *text)
{
	metric_add(w->metrics, METRIC_CLIENT_REJECTED_TOTAL, reason, 0, 1);
	/* Best effort: the client may not even be reading. */
	(void)send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static bool
is_loopback(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *four = (const struct sockaddr_in *)ss;

	if (ss->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	if (ss->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
		    (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) &&
			six->sin6_addr.s6_addr[12] == 127);
	return true;
}

static void
describe(const struct sockaddr_storage *ss, socklen_t len, int fd, char *out,
    size_t size)
{
	char host[48], port[8];

	if (ss->ss_family == AF_UNIX ||
	    getnameinfo((const struct sockaddr *)ss, len, host, sizeof(host),
		port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "unix:%d", fd);
	else
		snprintf(out, size,
		    ss->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
		    port);
}

static void
admit(
    struct worker *w, int fd, const struct sockaddr_storage *ss, socklen_t len)
{
	char peer[64];

	if (proxy_sessions(w->proxy) >= w->settings->max_clients) {
		refuse(w, fd, REJECT_MAX_CLIENTS,
		    "-ERR max number of clients reached\r\n");
		log_warn(
		    "max_clients", LOG_INT("limit", w->settings->max_clients));
		return;
	}
	if (w->settings->protected && !is_loopback(ss) &&
	    !permission_default_closed(w->permissions)) {
		refuse(w, fd, REJECT_PROTECTED,
		    "-DENIED bloomgate: the Redis behind admits sessions "
		    "without a password, so only clients of this host are let "
		    "in. Give its default user a password, or set protected: "
		    "false\r\n");
		log_warn("protected",
		    LOG_STR("remedy",
			"give Redis's default user a password, or set "
			"protected: "
			"false"));
		return;
	}
	socket_options(fd, ss->ss_family, w->settings->tcp_keepalive_ms);
	describe(ss, len, fd, peer, sizeof(peer));
	session_new(w, fd, peer);
}

/* No descriptors: level-triggered readiness would spin, so the listener sleeps a
 * little. Sessions go on. */
static void
pause_accepting(struct listener *l, int error)
{
	struct timeval tv = {.tv_usec = EXHAUSTED_MS * 1000};

	log_error("accept_failed", LOG_STR("error", strerror(error)),
	    LOG_STR("remedy", "raise LimitNOFILE or lower max-clients"));
	event_del(l->event);
	check(evtimer_add(l->retry, &tv) == 0);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	check(event_add(l->event, NULL) == 0);
}

static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;
	int i;

	(void)what;
	for (i = 0; i < ACCEPTS_MAX; i++) {
		struct sockaddr_storage ss = {0};
		socklen_t len = sizeof(ss);
		int client = accept4(fd, (struct sockaddr *)&ss, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client >= 0) {
			admit(l->worker, client, &ss, len);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM) {
			pause_accepting(l, errno);
			return;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		/* ECONNABORTED and the like concern that client alone. */
	}
}

/* True when somebody listens at sun; -1 with the reason. */
static int
is_listening(const struct sockaddr_un *sun, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool alive;

	if (fd < 0)
		return err_set(err, "socket: %s", strerror(errno));
	alive = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0;
	close(fd);
	return alive;
}

/*
 * A socket file that nobody answers on is left over from a killed daemon. One
 * killed while it started a source command lives on in that for a moment, until
 * the command is loaded.
 */
static int
clear_stale(const char *path, const struct sockaddr_un *sun, struct err *err)
{
	const struct timespec pause = {.tv_nsec = STALE_PAUSE_MS * 1000000L};
	struct stat st;
	int alive = 0;

	if (lstat(path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, "%s exists and is not a socket", path);
	for (int i = 0; i < STALE_TRIES; i++) {
		alive = is_listening(sun, err);
		if (alive < 0)
			return -1;
		if (alive == 0)
			break;
		nanosleep(&pause, NULL);
	}
	if (alive)
		return err_set(err, "another program listens on %s", path);
	if (unlink(path) != 0)
		return err_set(err, "cannot remove the stale socket %s: %s",
		    path, strerror(errno));
	return 0;
}

static int
bind_unix(struct listener *l, const struct address *a, struct err *err)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	if (strlen(a->path) >= sizeof(sun.sun_path))
		return err_set(err, "the path %s is longer than %zu bytes",
		    a->path, sizeof(sun.sun_path) - 1);
	memcpy(sun.sun_path, a->path, strlen(a->path));
	if (clear_stale(a->path, &sun, err) != 0)
		return -1;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return err_set(err, "socket: %s", strerror(errno));
	if (bind(l->fd, (struct sockaddr *)&sun, sizeof(sun)) != 0 ||
	    listen(l->fd, BACKLOG) != 0)
		return err_set(
		    err, "cannot listen on %s: %s", a->text, strerror(errno));
	l->unlink_path = mem_strdup(a->path);
	return 0;
}

static int
bind_one(struct listener *l, const struct addrinfo *ai)
{
	int one = 1;

	l->fd = socket(ai->ai_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, ai->ai_protocol);
	if (l->fd < 0)
		return -1;
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (l->worker->settings->workers > 1 &&
	    setsockopt(l->fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0)
		return -1;
	if (ai->ai_family == AF_INET6)
		(void)setsockopt(
		    l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(l->fd, ai->ai_addr, ai->ai_addrlen) != 0)
		return -1;
	return listen(l->fd, BACKLOG);
}

static int
bind_tcp(
    struct listener *l, const struct address *a, unsigned port, struct err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list = NULL, *ai;
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	char text[8], host[256];
	int error, result = -1;

	snprintf(text, sizeof(text), "%u", port != 0 ? port : a->port);
	error = getaddrinfo(a->host, text, &hints, &list);
	if (error != 0)
		return err_set(
		    err, "cannot resolve %s: %s", a->text, gai_strerror(error));
	for (ai = list; ai != NULL && result != 0; ai = ai->ai_next) {
		result = bind_one(l, ai);
		if (result != 0) {
			err_set(err, "cannot listen on %s: %s", a->text,
			    strerror(errno));
			if (l->fd >= 0)
				close(l->fd);
			l->fd = -1;
		}
	}
	freeaddrinfo(list);
	if (result != 0)
		return -1;
	check(getsockname(l->fd, (struct sockaddr *)&ss, &len) == 0);
	check(getnameinfo((struct sockaddr *)&ss, len, host, sizeof(host), text,
		  sizeof(text), NI_NUMERICHOST | NI_NUMERICSERV) == 0);
	l->port = (unsigned)strtoul(text, NULL, 10);
	snprintf(l->text, sizeof(l->text),
	    ss.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, l->port);
	return 0;
}

struct listener *
listener_new(struct worker *w, const struct address *a, unsigned port,
    int shared_fd, struct err *err)
{
	struct listener *l = mem_zalloc(1, sizeof(*l));
	int result;

	l->worker = w;
	l->fd = -1;
	if (a->kind == ADDRESS_UNIX) {
		snprintf(l->text, sizeof(l->text), "%s", a->text);
		if (shared_fd >= 0) {
			l->fd = fcntl(shared_fd, F_DUPFD_CLOEXEC, 0);
			result = l->fd >= 0
			    ? 0
			    : err_set(err, "dup: %s", strerror(errno));
		} else {
			result = bind_unix(l, a, err);
		}
	} else {
		result = bind_tcp(l, a, port, err);
	}
	if (result != 0) {
		listener_free(l);
		return NULL;
	}
	l->event = event_new(
	    w->base, l->fd, EV_READ | EV_PERSIST, on_accept, l);
	l->retry = evtimer_new(w->base, on_retry, l);
	check(l->event != NULL && l->retry != NULL);
	return l;
}

void
listener_start(struct listener *l)
{
	check(event_add(l->event, NULL) == 0);
}

void
listener_free(struct listener *l)
{
	if (l == NULL)
		return;
	if (l->event != NULL)
		event_free(l->event);
	if (l->retry != NULL)
		event_free(l->retry);
	if (l->fd >= 0)
		close(l->fd);
	if (l->unlink_path != NULL)
		unlink(l->unlink_path);
	free(l->unlink_path);
	free(l);
}

const char *
listener_address(const struct listener *l)
{
	return l->text;
}

unsigned
listener_port(const struct listener *l)
{
	return l->port;
}

int
listener_fd(const struct listener *l)
{
	return l->fd;
}
