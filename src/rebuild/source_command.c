/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source `command`: a program (argv, no shell) whose standard output is one
 * line an element. It runs in a process group of its own, which is killed when
 * the time is over, when the build is cancelled, and, for what it left behind, in
 * the end. Only exit status 0 counts as a whole list. Rebuild thread.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/broken.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "rebuild/lines.h"

#define COMMAND_BLOCK   (64 * 1024)
#define COMMAND_STDERR  512
#define COMMAND_POLL_MS 50
#define COMMAND_TERM_MS 500 /* between SIGTERM and SIGKILL */

extern char **environ;

struct command {
	struct build *build;       /* borrowed */
	pid_t pid;                 /* also its process group; 0 not running */
	int out, err;              /* our ends; -1 closed */
	uint64_t until_ms;         /* when its time is over */
	char tail[COMMAND_STDERR]; /* last bytes of its stderr */
	size_t tail_len;
	struct lines lines;
	uint8_t block[COMMAND_BLOCK];
};

static int
spawn(struct command *c, int out, int err)
{
	struct build *b = c->build;
	char **argv = b->settings->rebuild.command.items;
	size_t argc = b->settings->rebuild.command.count;
	char **copy = mem_zalloc(argc + 1, sizeof(*copy));
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	memcpy(copy, argv, argc * sizeof(*copy));
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(
	    &actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	posix_spawnattr_init(&attr);
	/* The daemon ignores SIGPIPE and blocks others: not so the command. */
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr,
	    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
		POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawnp(&c->pid, copy[0], &actions, &attr, copy, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		c->pid = 0;
		build_fail(b, "command %s: %s", copy[0], strerror(rc));
	}
	free(copy);
	return rc == 0 ? 0 : -1;
}

static int
start(struct command *c)
{
	int out[2], err[2];
	int rc;

	if (pipe2(out, O_CLOEXEC) != 0)
		return build_fail(c->build, "pipe: %s", strerror(errno));
	if (pipe2(err, O_CLOEXEC) != 0) {
		build_fail(c->build, "pipe: %s", strerror(errno));
		close(out[0]);
		close(out[1]);
		return -1;
	}
	rc = spawn(c, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	c->out = out[0];
	c->err = err[0];
	fcntl(c->out, F_SETFL, O_NONBLOCK);
	fcntl(c->err, F_SETFL, O_NONBLOCK);
	return rc;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Keeps the last bytes. */
static void
read_stderr(struct command *c)
{
	char buf[COMMAND_STDERR];
	ssize_t n;
	size_t drop;

	if (c->err < 0)
		return;
	while ((n = read(c->err, buf, sizeof(buf))) > 0) {
		drop = c->tail_len + (size_t)n > sizeof(c->tail)
		    ? c->tail_len + (size_t)n - sizeof(c->tail)
		    : 0;
		memmove(c->tail, c->tail + drop, c->tail_len - drop);
		c->tail_len -= drop;
		memcpy(c->tail + c->tail_len, buf, (size_t)n);
		c->tail_len += (size_t)n;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_fd(&c->err);
}

/* One block; the rest waits for the next turn, so that ticks come between. */
static int
read_stdout(struct command *c)
{
	ssize_t n = read(c->out, c->block, sizeof(c->block));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return build_fail(
		    c->build, "reading from the command: %s", strerror(errno));
	if (n == 0) {
		close_fd(&c->out);
		return 0;
	}
	return lines_feed(&c->lines, c->block, (size_t)n);
}

static int
out_of_time(struct command *c)
{
	if (clock_boot_ms() < c->until_ms)
		return 0;
	return build_fail(c->build,
	    "the command did not end within %" PRIu64 " s",
	    c->build->settings->rebuild.timeout_ms / 1000);
}

static int
read_output(struct command *c)
{
	while (c->out >= 0) {
		struct pollfd fds[2] = {{.fd = c->out, .events = POLLIN},
		    {.fd = c->err, .events = POLLIN}};

		if (poll(fds, 2, COMMAND_POLL_MS) > 0) {
			if (fds[1].revents != 0)
				read_stderr(c);
			if (fds[0].revents != 0 && read_stdout(c) != 0)
				return -1;
		}
		if (build_tick(c->build) != 0 || out_of_time(c) != 0)
			return -1;
	}
	return 0;
}

/* True once it has ended; it stays a zombie, so that its group keeps its id. */
static bool
has_ended(const struct command *c)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)c->pid, &info,
		   WEXITED | WNOHANG | WNOWAIT) != 0 ||
	    info.si_pid == c->pid;
}

/* Its output has ended; the program itself may linger. */
static int
await_exit(struct command *c)
{
	while (!has_ended(c)) {
		struct pollfd fd = {.fd = c->err, .events = POLLIN};

		if (poll(&fd, 1, c->err >= 0 ? COMMAND_POLL_MS : 5) > 0)
			read_stderr(c);
		if (build_tick(c->build) != 0 || out_of_time(c) != 0)
			return -1;
	}
	return 0;
}

/* Ends the whole group and reaps the leader; its wait status. */
static int
end_group(struct command *c)
{
	uint64_t until_ms = clock_boot_ms() + COMMAND_TERM_MS;
	int status = 0;

	if (!has_ended(c))
		kill(-c->pid, SIGTERM);
	while (!has_ended(c) && clock_boot_ms() < until_ms)
		poll(NULL, 0, 5);
	kill(-c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return status;
}

/* Control bytes of the program's words, for the log line and the status. */
static void
clean_tail(struct command *c)
{
	while (c->tail_len > 0 && c->tail[c->tail_len - 1] == '\n')
		c->tail_len--;
	for (size_t i = 0; i < c->tail_len; i++) {
		if ((unsigned char)c->tail[i] < ' ')
			c->tail[i] = ' ';
	}
}

static int
judge(struct command *c, int status)
{
	read_stderr(c);
	clean_tail(c);
	if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || BROKEN_LAW(8))
		return lines_end(&c->lines);
	if (WIFSIGNALED(status))
		return build_fail(c->build,
		    "the command was ended by signal %d: %.*s",
		    WTERMSIG(status), (int)c->tail_len, c->tail);
	return build_fail(c->build, "the command exited with status %d: %.*s",
	    WEXITSTATUS(status), (int)c->tail_len, c->tail);
}

int
source_command(struct build *b)
{
	struct command *c = mem_zalloc(1, sizeof(*c));
	int status, rc;

	c->build = b;
	c->out = c->err = -1;
	c->until_ms = clock_boot_ms() + b->settings->rebuild.timeout_ms;
	lines_init(&c->lines, b);
	rc = start(c);
	if (rc == 0)
		rc = read_output(c);
	if (rc == 0)
		rc = await_exit(c);
	if (c->pid != 0) {
		status = end_group(c);
		if (rc == 0)
			rc = judge(c, status);
	}
	close_fd(&c->out);
	close_fd(&c->err);
	free(c);
	return rc;
}
