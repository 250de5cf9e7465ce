/* SPDX-License-Identifier: BSD-2-Clause */
/* See redis_server.h. */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "core/clock.h"
#include "redis_server.h"

#define START_MS 20000

static uint16_t
free_port(void)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

void
redis_server_init(struct redis_server *s, bool tcp, const char *const *args)
{
	const char *tmp = getenv("TMPDIR");
	size_t n = 0;

	memset(s, 0, sizeof(*s));
	snprintf(s->dir, sizeof(s->dir), "%.40s/bgr-XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/redis.sock", s->dir);
	if (tcp)
		s->port = free_port();
	while (args != NULL && args[n] != NULL) {
		ck_assert_uint_lt(n, REDIS_SERVER_ARGS);
		s->args[n] = args[n];
		n++;
	}
	s->unix_endpoint = (struct endpoint){
	    .address = {.kind = ADDRESS_UNIX, .text = s->path, .path = s->path},
	    .username = (char *)"",
	    .password_file = (char *)"",
	};
	s->tcp_endpoint = (struct endpoint){
	    .address = {.kind = ADDRESS_TCP,
		.text = (char *)"127.0.0.1",
		.host = (char *)"127.0.0.1",
		.port = s->port},
	    .username = (char *)"",
	    .password_file = (char *)"",
	};
}

static void
run(struct redis_server *s)
{
	const char *argv[16 + REDIS_SERVER_ARGS + 1];
	size_t n = 0;
	char port[8], log[96];
	int fd;

	snprintf(port, sizeof(port), "%u", s->port);
	snprintf(log, sizeof(log), "%s/log", s->dir);
	argv[n++] = "redis-server";
	argv[n++] = "--port";
	argv[n++] = port;
	argv[n++] = "--unixsocket";
	argv[n++] = s->path;
	argv[n++] = "--dir";
	argv[n++] = s->dir;
	argv[n++] = "--save";
	argv[n++] = "";
	argv[n++] = "--appendonly";
	argv[n++] = "no";
	argv[n++] = "--enable-debug-command";
	argv[n++] = "yes";
	for (size_t i = 0; s->args[i] != NULL; i++)
		argv[n++] = s->args[i];
	argv[n] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

int
redis_server_line(
    struct redis_server *s, const char *line, char *out, size_t size)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct pollfd p = {.events = POLLIN};
	size_t len = 0;
	int rc = -1;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", s->path);
	p.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(p.fd, 0);
	if (connect(p.fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
	    dprintf(p.fd, "%s\r\n", line) < 0)
		goto out;
	while (len + 1 < size && poll(&p, 1, 10000) == 1) {
		ssize_t n = read(p.fd, out + len, 1);

		if (n <= 0)
			goto out;
		if (out[len] == '\n') {
			out[len > 0 && out[len - 1] == '\r' ? len - 1 : len] =
			    '\0';
			rc = 0;
			goto out;
		}
		len++;
	}
out:
	close(p.fd);
	return rc;
}

void
redis_server_want(struct redis_server *s, const char *line, const char *want)
{
	char out[512];

	ck_assert_int_eq(redis_server_line(s, line, out, sizeof(out)), 0);
	ck_assert_msg(strncmp(out, want, strlen(want)) == 0,
	    "%s: answers %s, not %s", line, out, want);
}

void
redis_server_start(struct redis_server *s)
{
	uint64_t end_ms = clock_boot_ms() + START_MS;
	char out[512];

	ck_assert_int_eq(s->pid, 0);
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid == 0)
		run(s);
	/* NOAUTH is an answer too. */
	while (redis_server_line(s, "PING", out, sizeof(out)) != 0) {
		ck_assert_int_eq(waitpid(s->pid, NULL, WNOHANG), 0);
		ck_assert_msg(
		    clock_boot_ms() < end_ms, "redis-server does not start");
		poll(NULL, 0, 5);
	}
}

void
redis_server_kill(struct redis_server *s)
{
	if (s->pid == 0)
		return;
	kill(s->pid, SIGKILL);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

void
redis_server_fini(struct redis_server *s)
{
	struct dirent *e;
	DIR *dir;

	redis_server_kill(s);
	dir = opendir(s->dir);
	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	ck_assert_int_eq(rmdir(s->dir), 0);
}
