/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bloomgatectl's parts: the options that all commands share, and the commands.
 * One thread, blocking I/O with timeouts; whatever is allocated for one command
 * may live until the program ends, which is soon.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>

#define CTL_DONE        0
#define CTL_FAILED      1
#define CTL_USAGE       2
#define CTL_UNREACHABLE 3

struct ctl {
	const char *socket; /* path, "unix:path" or "host:port" */
	bool json;          /* --json */
	bool terminal;      /* standard output is one */
	bool colour;        /* and NO_COLOR is not set */
};

/*
 * Each takes its own arguments, its name first, as main does, and returns the
 * exit status. What is wrong is on stderr by then.
 */
int online_status(const struct ctl *ctl, int argc, char **argv);
int online_rebuild(const struct ctl *ctl, int argc, char **argv);
int online_abort(const struct ctl *ctl, int argc, char **argv);
int online_mode(const struct ctl *ctl, int argc, char **argv);
int online_check(const struct ctl *ctl, int argc, char **argv);
int online_add(const struct ctl *ctl, int argc, char **argv);
int online_clients(const struct ctl *ctl, int argc, char **argv);
int online_drain(const struct ctl *ctl, int argc, char **argv);
int offline_plan(const struct ctl *ctl, int argc, char **argv);
int offline_positions(const struct ctl *ctl, int argc, char **argv);
int offline_config_check(const struct ctl *ctl, int argc, char **argv);

/* Says how the command of this name is called, on stderr; CTL_USAGE. */
int ctl_usage(const char *command);

#endif
