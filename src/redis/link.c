/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link's life: resolve, connect, (handshake.c), up, lost, back-off. States
 * and rules: link_private.h. It does not know what the commands mean.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <event2/event.h>
#include <hiredis/async.h>
#include <hiredis/adapters/libevent.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mailbox.h"
#include "core/mem.h"
#include "core/random.h"
#include "redis/link_private.h"

#define BACKOFF_MIN_MS     50
#define BACKOFF_MAX_MS     2000
#define STEADY_NS          UINT64_C(1000000000) /* up that long: no back-off */
#define CONNECT_DEFAULT_MS 1000

static void link_connect(struct link *l);
static void link_resolve(struct link *l);

static void
arm_ms(struct event *e, uint64_t ms)
{
	struct timeval tv = {.tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	event_add(e, &tv);
}

void
link_fail(struct link *l, const char *fmt, ...)
{
	va_list ap;

	if (l->state == LINK_STATE_IDLE || l->state == LINK_STATE_FAILING ||
	    l->state == LINK_STATE_WAITING)
		return;
	va_start(ap, fmt);
	vsnprintf(l->reason, sizeof(l->reason), fmt, ap);
	va_end(ap);
	l->state = LINK_STATE_FAILING;
	l->run_id[0] = '\0';
	event_active(l->turn, EV_TIMEOUT, 0);
}

/* Frees the connection, which answers everything outstanding with NULL. */
static void
link_close(struct link *l)
{
	struct redisAsyncContext *ac = l->ac;

	check(l->in_callback == 0);
	l->ac = NULL;
	if (ac != NULL)
		redisAsyncFree(ac);
	check(l->requests.outstanding == 0);
	handshake_fini(l);
}

static void
link_wait(struct link *l)
{
	uint64_t ms = BACKOFF_MIN_MS;

	for (unsigned i = 0; i < l->failures && ms < BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	l->failures++;
	l->state = LINK_STATE_WAITING;
	arm_ms(l->timer, ms / 2 + random_below(ms / 2 + 1));
}

static void
log_down(struct link *l)
{
	/* A Redis that stays away is one line, not one an attempt. */
	if (strcmp(l->reason, l->logged) == 0)
		return;
	memcpy(l->logged, l->reason, sizeof(l->logged));
	log_warn("redis_down", LOG_STR("purpose", l->o.purpose),
	    LOG_STR("address", l->o.endpoint->address.text),
	    LOG_STR("reason", l->reason));
}

/* FAILING ends here, outside of every callback of hiredis. */
static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;
	bool was_up = l->was_up;

	(void)fd;
	(void)what;
	check(l->magic == LINK_MAGIC && l->state == LINK_STATE_FAILING);
	event_del(l->timer);
	link_close(l);
	log_down(l);
	if (!was_up && ++l->address < l->addresses.count) {
		link_connect(l);
		return;
	}
	if (was_up && clock_boot_ns() - l->up_since_ns >= STEADY_NS)
		l->failures = 0;
	link_wait(l);
	l->was_up = false;
	if (was_up && l->o.on_down != NULL)
		l->o.on_down(l, l->reason, l->o.arg);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;

	(void)fd;
	(void)what;
	if (l->state == LINK_STATE_WAITING)
		link_resolve(l);
	else if (l->state == LINK_STATE_CONNECTING)
		link_fail(l, "connect timed out");
	else if (l->state == LINK_STATE_HANDSHAKE)
		link_fail(l, "connected, but no answer in time");
}

/* --- hiredis ---------------------------------------------------------------*/

static void
on_connected(const struct redisAsyncContext *ac, int status)
{
	struct link *l = ac->data;

	if (l == NULL || l->ac != ac)
		return;
	l->in_callback++;
	if (status != REDIS_OK) {
		l->ac = NULL; /* hiredis frees it after this call */
		link_fail(l, "%s", ac->c.errstr);
	} else if (l->state == LINK_STATE_CONNECTING) {
		l->state = LINK_STATE_HANDSHAKE;
		handshake_start(l);
	}
	l->in_callback--;
}

static void
on_disconnected(const struct redisAsyncContext *ac, int status)
{
	struct link *l = ac->data;

	(void)status;
	if (l == NULL || l->ac != ac)
		return; /* link_close did it */
	l->ac = NULL;   /* hiredis frees it after this call */
	link_fail(l, "%s", ac->errstr != NULL ? ac->errstr : "closed");
}

/* What says that this is not, or no longer, a master that can be used. */
static bool
is_dropping(const struct redisReply *r)
{
	return link_reply_is_error(r, "READONLY") ||
	    link_reply_is_error(r, "LOADING") ||
	    link_reply_is_error(r, "MASTERDOWN") ||
	    link_reply_is_error(r, "UNBLOCKED");
}

static void
on_reply(struct redisAsyncContext *ac, void *r, void *arg)
{
	struct request *q = arg;
	struct link *l = q->link;
	struct redisReply *reply = r;
	char why[64] = "";

	if (reply == NULL && l->ac != NULL)
		link_fail(l, "%s", ac->errstr != NULL ? ac->errstr : "closed");
	if (reply != NULL && reply->type == REDIS_REPLY_ERROR &&
	    is_dropping(reply))
		snprintf(why, sizeof(why), "%s", reply->str);
	l->in_callback++;
	requests_answer(&l->requests, q, reply);
	l->in_callback--;
	if (why[0] != '\0')
		link_fail(l, "redis answers: %s", why);
}

struct request *
link_send(struct link *l, uint64_t timeout_ms, link_reply_fn fn, void *arg)
{
	struct request *q;

	if (l->ac == NULL || l->state == LINK_STATE_FAILING)
		return NULL;
	q = requests_add(&l->requests, l, timeout_ms, fn, arg);
	if (redisAsyncFormattedCommand(
		l->ac, on_reply, q, l->wire.data, l->wire.len) != REDIS_OK) {
		requests_remove(&l->requests, q);
		return NULL;
	}
	return q;
}

/* --- resolve and connect ---------------------------------------------------*/

static void
set_option(int fd, int level, int name, int value)
{
	/* Refused: the connection works without it. */
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

static void
socket_options(struct link *l)
{
	int fd = l->ac->c.fd;

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (l->o.endpoint->address.kind != ADDRESS_TCP)
		return;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

static void
link_connect(struct link *l)
{
	const struct address *a = &l->o.endpoint->address;
	struct redisAsyncContext *ac;

	l->state = LINK_STATE_CONNECTING;
	arm_ms(l->timer,
	    l->o.connect_timeout_ms > 0 ? l->o.connect_timeout_ms
					: CONNECT_DEFAULT_MS);
	if (a->kind == ADDRESS_UNIX) {
		/* hiredis would cut it. */
		if (strlen(a->path) >=
		    sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
			link_fail(l, "path of the socket is too long");
			return;
		}
		ac = redisAsyncConnectUnix(a->path);
	} else {
		ac = redisAsyncConnect(
		    l->addresses.ip[l->address], (int)a->port);
	}
	if (ac == NULL || ac->err != 0) {
		/* No callback runs for this one. */
		link_fail(l, "%s", ac != NULL ? ac->errstr : "no memory");
		if (ac != NULL)
			redisAsyncFree(ac);
		return;
	}
	ac->data = l;
	l->ac = ac;
	socket_options(l);
	check(redisLibeventAttach(ac, l->o.base) == REDIS_OK);
	redisAsyncSetConnectCallback(ac, on_connected);
	redisAsyncSetDisconnectCallback(ac, on_disconnected);
}

static void
on_addresses(const struct addresses *a, void *arg)
{
	struct link *l = arg;

	l->resolve = NULL;
	if (a->count == 0) {
		link_fail(l, "%s", a->error);
		return;
	}
	l->addresses = *a;
	link_connect(l);
}

static void
link_resolve(struct link *l)
{
	const struct address *a = &l->o.endpoint->address;

	l->state = LINK_STATE_RESOLVING;
	l->address = 0;
	l->addresses.count = 0;
	if (a->kind == ADDRESS_UNIX ||
	    resolve_numeric(&l->addresses, a->host) == 0) {
		link_connect(l);
		return;
	}
	if (l->mailbox == NULL)
		l->mailbox = mailbox_new(l->o.base);
	l->resolve = resolve_start(l->mailbox, a->host, on_addresses, l);
	if (l->resolve == NULL)
		link_fail(l, "name lookup: no thread");
}

void
link_up(struct link *l)
{
	event_del(l->timer);
	l->state = LINK_STATE_UP;
	l->was_up = true;
	l->up_since_ns = clock_boot_ns();
	l->logged[0] = '\0';
	memcpy(l->run_id, l->handshake.run_id, sizeof(l->run_id));
	handshake_fini(l);
	log_info("redis_up", LOG_STR("purpose", l->o.purpose),
	    LOG_STR("address", l->o.endpoint->address.text),
	    LOG_STR("run-id", l->run_id));
	if (l->o.on_up != NULL)
		l->o.on_up(l, l->o.arg);
}

/* --- for the owner ---------------------------------------------------------*/

struct link *
link_new(const struct link_options *o)
{
	struct link *l = mem_zalloc(1, sizeof(*l));

	check(o->endpoint->address.kind != ADDRESS_NONE);
	l->magic = LINK_MAGIC;
	l->o = *o;
	if (l->o.purpose == NULL)
		l->o.purpose = "redis";
	wire_init(&l->wire);
	requests_init(&l->requests, l);
	l->turn = event_new(o->base, -1, 0, on_turn, l);
	l->timer = event_new(o->base, -1, 0, on_timer, l);
	check(l->turn != NULL && l->timer != NULL);
	return l;
}

void
link_start(struct link *l)
{
	check(l->magic == LINK_MAGIC && l->state == LINK_STATE_IDLE);
	link_resolve(l);
}

void
link_free(struct link *l)
{
	if (l == NULL)
		return;
	check(l->magic == LINK_MAGIC && l->in_callback == 0);
	l->state = LINK_STATE_FAILING; /* nothing can be sent any more */
	l->run_id[0] = '\0';
	link_close(l);
	if (l->resolve != NULL)
		resolve_cancel(l->resolve);
	mailbox_free(l->mailbox);
	requests_fini(&l->requests);
	event_free(l->turn);
	event_free(l->timer);
	if (l->tick != NULL)
		event_free(l->tick);
	wire_fini(&l->wire);
	l->magic = 0;
	free(l);
}

bool
link_is_up(const struct link *l)
{
	return l->state == LINK_STATE_UP;
}

const char *
link_run_id(const struct link *l)
{
	return l->run_id;
}

void
link_drop(struct link *l, const char *reason)
{
	if (l->resolve != NULL) {
		resolve_cancel(l->resolve);
		l->resolve = NULL;
	}
	link_fail(l, "%s", reason);
}

int
link_command(struct link *l, uint64_t timeout_ms, link_reply_fn fn, void *arg,
    const struct slice *argv, size_t argc)
{
	if (l->state != LINK_STATE_UP)
		return -1;
	wire_begin(&l->wire, argc);
	for (size_t i = 0; i < argc; i++)
		wire_arg(&l->wire, argv[i]);
	return link_send(l, timeout_ms, fn, arg) != NULL ? 0 : -1;
}
