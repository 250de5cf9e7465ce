/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lean load generator: one thread, one epoll, N connections, each with up to P
 * requests in flight, sent in one write and sent anew once all are answered. It
 * costs so little per request that the server is what is measured. It does not
 * look at what is answered but to count it. See README.md.
 */
#include "config.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "latency.h"
#include "reply.h"
#include "request.h"

#define PIDS_MAX  16
#define CONNS_MAX 20000
#define DEPTH_MAX 10000
#define NS_PER_S  UINT64_C(1000000000)
#define DRAIN_NS  (5 * NS_PER_S)

struct conn {
	int fd;
	unsigned in_flight; /* replies that are due */
	uint64_t sent_ns;   /* when the batch left */
	char *out;          /* owned; the batch */
	size_t out_len, out_sent;
	bool want_write; /* EPOLLOUT is armed */
	struct reply_state reply;
};

struct load {
	/* options */
	const char *address;
	unsigned connections, depth;
	uint64_t requests, seconds;
	long pids[PIDS_MAX];
	size_t pid_count;

	struct request request;

	int epoll;
	struct conn *conns; /* owned */
	uint64_t sent, done;
	unsigned busy; /* connections with requests in flight */
	uint64_t began_ns, ended_ns, deadline_ns;
	struct reply_totals totals;
	struct latency latency;
};

static void
die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The server is to blame. */
static void
give_up(const char *why)
{
	fprintf(stderr, "load: %s\n", why);
	exit(1);
}

static void
refuse(const char *why)
{
	fprintf(stderr, "load: %s\n", why);
	exit(2);
}

static int
connect_unix(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	int fd;

	if (len >= sizeof(sa.sun_path))
		refuse("the path of the socket is too long");
	memcpy(sa.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1)
		die(path);
	return fd;
}

/* Resolves once and keeps the answer for the next connections. */
static int
connect_tcp(const char *address)
{
	static struct addrinfo *found;
	int fd, one = 1;

	if (found == NULL) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
		const char *colon = strrchr(address, ':');
		char *host;
		int r;

		if (colon == NULL || colon == address)
			refuse("an address is host:port, [v6]:port or "
			       "unix:/path");
		if (address[0] == '[' && colon[-1] == ']')
			host = mem_printf(
			    "%.*s", (int)(colon - address - 2), address + 1);
		else
			host = mem_printf(
			    "%.*s", (int)(colon - address), address);
		r = getaddrinfo(host, colon + 1, &hints, &found);
		free(host);
		if (r != 0)
			give_up(gai_strerror(r));
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, found->ai_addr, found->ai_addrlen) == -1 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == -1)
		die(address);
	return fd;
}

static void
conn_start(struct load *l, struct conn *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

	c->fd = strncmp(l->address, "unix:", 5) == 0
	    ? connect_unix(l->address + 5)
	    : connect_tcp(l->address);
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) == -1 ||
	    epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev) == -1)
		die("a new connection");
	c->out = mem_alloc(l->request.max * l->depth);
}

static void
conn_want_write(struct load *l, struct conn *c, bool want)
{
	struct epoll_event ev = {
	    .events = EPOLLIN | (want ? EPOLLOUT : 0U), .data.ptr = c};

	if (c->want_write == want)
		return;
	c->want_write = want;
	if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, c->fd, &ev) == -1)
		die("epoll_ctl");
}

static void
conn_write(struct load *l, struct conn *c)
{
	while (c->out_sent < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_sent,
		    c->out_len - c->out_sent, MSG_NOSIGNAL);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n == -1)
			die("write");
		c->out_sent += (size_t)n;
	}
	conn_want_write(l, c, c->out_sent < c->out_len);
}

/* Sends the next batch, if any is left to send. */
static void
conn_batch(struct load *l, struct conn *c, uint64_t now)
{
	uint64_t n = l->requests - l->sent;
	char *out = c->out;

	if (n == 0 || now >= l->deadline_ns)
		return;
	if (n > l->depth)
		n = l->depth;
	for (uint64_t i = 0; i < n; i++)
		out = request_put(&l->request, out);
	l->sent += n;
	l->busy++;
	c->in_flight = (unsigned)n;
	c->out_len = (size_t)(out - c->out);
	c->out_sent = 0;
	c->sent_ns = now;
	conn_write(l, c);
}

static void
conn_read(struct load *l, struct conn *c)
{
	static char data[65536];
	ssize_t n = read(c->fd, data, sizeof(data));
	uint64_t now;
	int done;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1)
		die("read");
	if (n == 0)
		give_up("the server closed a connection");
	now = clock_boot_ns();
	done = reply_count(&c->reply, &l->totals, data, (size_t)n);
	if (done < 0)
		give_up("the server's bytes are not RESP");
	if (done == 0)
		return;
	if ((unsigned)done > c->in_flight)
		give_up("more replies than requests");
	latency_add(&l->latency, now - c->sent_ns, (uint64_t)done);
	l->done += (uint64_t)done;
	c->in_flight -= (unsigned)done;
	if (c->in_flight == 0) {
		l->busy--;
		conn_batch(l, c, now);
	}
}

static void
run(struct load *l)
{
	struct epoll_event events[1024];

	l->began_ns = clock_boot_ns();
	l->deadline_ns = l->began_ns + l->seconds * NS_PER_S;
	for (unsigned i = 0; i < l->connections; i++)
		conn_batch(l, &l->conns[i], l->began_ns);
	while (l->busy > 0) {
		int n = epoll_wait(l->epoll, events, 1024, 1000);

		if (n == -1 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (events[i].events & EPOLLOUT)
				conn_write(l, c);
			if (events[i].events & ~(uint32_t)EPOLLOUT)
				conn_read(l, c);
		}
		if (n <= 0 && clock_boot_ns() > l->deadline_ns + DRAIN_NS)
			give_up("replies are missing");
	}
	l->ended_ns = clock_boot_ns();
}

/* --- CPU time ------------------------------------------------------------- */

static double
own_cpu_s(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) == -1)
		die("getrusage");
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* utime + stime of a process, all its threads. */
static double
process_cpu_s(long pid)
{
	char *path = mem_printf("/proc/%ld/stat", pid), text[1024];
	FILE *file = fopen(path, "re");
	const char *fields;
	unsigned long long user, system;
	size_t n;

	if (file == NULL)
		die(path);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	free(path);
	/* The second field, in parentheses, may hold anything. */
	fields = strrchr(text, ')');
	if (fields == NULL ||
	    sscanf(fields + 1,
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
		&system) != 2)
		give_up("/proc says nothing of the process");
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void
report(const struct load *l, double own_s, const double *pid_s)
{
	double wall_s = (double)(l->ended_ns - l->began_ns) / 1e9;
	double done = (double)l->done;

	printf("requests %" PRIu64 "\n", l->done);
	printf("seconds %.3f\n", wall_s);
	printf("requests_per_second %.0f\n", done / wall_s);
	printf("latency_p50_us %.1f\n",
	    (double)latency_quantile(&l->latency, 0.5) / 1e3);
	printf("latency_p99_us %.1f\n",
	    (double)latency_quantile(&l->latency, 0.99) / 1e3);
	printf("latency_p999_us %.1f\n",
	    (double)latency_quantile(&l->latency, 0.999) / 1e3);
	printf("latency_max_us %.1f\n", (double)l->latency.max_ns / 1e3);
	printf("load_us_per_request %.2f\n", own_s * 1e6 / done);
	for (size_t i = 0; i < l->pid_count; i++)
		printf("pid_%ld_us_per_request %.2f\n", l->pids[i],
		    pid_s[i] * 1e6 / done);
	printf("nils %" PRIu64 "\n", l->totals.nils);
	printf("errors %" PRIu64 "\n", l->totals.errors);
	if (l->totals.errors > 0)
		fprintf(
		    stderr, "load: first error: %s\n", l->totals.first_error);
	if (l->done < l->requests)
		fprintf(stderr,
		    "load: time is up after %" PRIu64 " of %" PRIu64
		    " requests\n",
		    l->done, l->requests);
}

/* --- command line --------------------------------------------------------- */

static void
usage(void)
{
	fprintf(stderr,
	    "usage: load [-a ADDRESS] [-c CONNECTIONS] [-P DEPTH] "
	    "[-n REQUESTS]\n"
	    "            [-t SECONDS] [-i LOW-HIGH] [-s SEED] [-p PID]... "
	    "[COMMAND...]\n"
	    "ADDRESS: host:port, [v6]:port or unix:/path. COMMAND: by default "
	    "GET user:{id}\n");
	exit(2);
}

/* A decimal number up to max; *end is where it ends. */
static uint64_t
number(const char *text, uint64_t max, const char **end)
{
	uint64_t n = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (n > (UINT64_MAX - 9) / 10)
			usage();
		n = n * 10 + (uint64_t)(*p - '0');
	}
	if (p == text || n > max || (end == NULL && *p != '\0'))
		usage();
	if (end != NULL)
		*end = p;
	return n;
}

static void
read_option(struct load *l, int option, const char *arg)
{
	const char *rest;

	switch (option) {
	case 'a':
		l->address = arg;
		break;
	case 'c':
		l->connections = (unsigned)number(arg, CONNS_MAX, NULL);
		break;
	case 'P':
		l->depth = (unsigned)number(arg, DEPTH_MAX, NULL);
		break;
	case 'n':
		l->requests = number(arg, UINT64_MAX, NULL);
		break;
	case 't':
		l->seconds = number(arg, 86400, NULL);
		break;
	case 'i':
		l->request.low = number(arg, UINT64_MAX, &rest);
		if (*rest != '-')
			usage();
		l->request.high = number(rest + 1, UINT64_MAX, NULL);
		break;
	case 's':
		l->request.random = number(arg, UINT64_MAX, NULL);
		break;
	case 'p':
		if (l->pid_count == PIDS_MAX)
			usage();
		l->pids[l->pid_count++] = (long)number(arg, INT32_MAX, NULL);
		break;
	default:
		usage();
	}
}

int
main(int argc, char **argv)
{
	static struct load l = {.address = "127.0.0.1:6379",
	    .connections = 50,
	    .depth = 1,
	    .requests = 1000000,
	    .seconds = 60,
	    .request = {.low = 0, .high = 999999, .random = 1}};
	static char get[] = "GET", key[] = "user:{id}";
	char *const command[] = {get, key};
	double own_s, pid_s[PIDS_MAX];
	int option;

	/* "+": options of the command are its own. */
	while ((option = getopt(argc, argv, "+a:c:P:n:t:i:s:p:")) != -1)
		read_option(&l, option, optarg);
	if (l.connections == 0 || l.depth == 0 || l.requests == 0 ||
	    l.seconds == 0 || l.request.low > l.request.high)
		usage();
	if (optind < argc)
		request_compile(&l.request, argv + optind, argc - optind);
	else
		request_compile(&l.request, command, 2);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l.epoll == -1)
		die("epoll_create1");
	l.conns = mem_zalloc(l.connections, sizeof(*l.conns));
	for (unsigned i = 0; i < l.connections; i++)
		conn_start(&l, &l.conns[i]);
	for (size_t i = 0; i < l.pid_count; i++)
		pid_s[i] = process_cpu_s(l.pids[i]);
	own_s = own_cpu_s();
	run(&l);
	own_s = own_cpu_s() - own_s;
	for (size_t i = 0; i < l.pid_count; i++)
		pid_s[i] = process_cpu_s(l.pids[i]) - pid_s[i];
	report(&l, own_s, pid_s);
	for (unsigned i = 0; i < l.connections; i++) {
		close(l.conns[i].fd);
		free(l.conns[i].out);
	}
	free(l.conns);
	request_fini(&l.request);
	close(l.epoll);
	return l.totals.errors > 0 || l.done < l.requests ? 1 : 0;
}
