/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operator tool's entry: finds the command and lets it work. Exit status: 0
 * done, 1 refused or failed (the reason on stderr), 2 a bad command line, 3 the
 * daemon cannot be reached.
 */
#include "config.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

#define DEFAULT_SOCKET "/run/bloomgate/admin.sock"

struct command {
	const char *name;
	int (*run)(const struct ctl *ctl, int argc, char **argv);
	const char *arguments;
	const char *help;
};

static const struct command commands[] = {
    {"status", online_status, "[FILTER]", "state, size and rates of filters"},
    {"rebuild", online_rebuild, "FILTER [--force] [--wait]",
	"build a filter anew from its source"},
    {"abort", online_abort, "FILTER", "stop the rebuild queued or running"},
    {"mode", online_mode, "FILTER enforce|observe|off",
	"change a filter's mode until the next start"},
    {"check", online_check, "FILTER ELEMENT...",
	"ask whether elements can be in the set"},
    {"add", online_add, "FILTER ELEMENT...", "add elements"},
    {"clients", online_clients, "", "a line a client"},
    {"drain", online_drain, "", "stop accepting, finish, exit"},
    {"plan", offline_plan, "--capacity N --error-rate P",
	"size of a filter (works without the daemon)"},
    {"positions", offline_positions,
	"--scheme S --bits M --hashes K\n"
	"            [--shards N] [--key-file F] [--hex] ELEMENT...",
	"bit positions of elements (without the daemon)"},
    {"config-check", offline_config_check, "FILE",
	"check a configuration (without the daemon)"},
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void
usage(FILE *to)
{
	size_t i;

	fputs("usage: bloomgatectl [-s SOCKET] [--json] COMMAND\n"
	      "\n"
	      "  -s, --socket SOCKET  the daemon's admin socket: a path or\n"
	      "                       host:port (" DEFAULT_SOCKET ")\n"
	      "      --json           answers for programs\n"
	      "  -V, --version        print the version\n"
	      "  -h, --help           print this\n"
	      "\n",
	    to);
	for (i = 0; i < COMMANDS; i++)
		fprintf(to, "  %s %s\n            %s\n", commands[i].name,
		    commands[i].arguments, commands[i].help);
}

int
ctl_usage(const char *command)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (strcmp(command, commands[i].name) == 0)
			fprintf(stderr, "usage: bloomgatectl %s %s\n",
			    commands[i].name, commands[i].arguments);
	return CTL_USAGE;
}

static int
run(const struct ctl *ctl, int argc, char **argv)
{
	size_t i;
	int status;

	for (i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		/* Commands that read options of their own start afresh. */
		optind = 0;
		status = commands[i].run(ctl, argc, argv);
		if (fflush(stdout) != 0 || ferror(stdout)) {
			perror("bloomgatectl: standard output");
			return CTL_FAILED;
		}
		return status;
	}
	fprintf(stderr, "bloomgatectl: no command \"%s\"\n", argv[0]);
	usage(stderr);
	return CTL_USAGE;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"socket", required_argument, NULL, 's'},
	    {"json", no_argument, NULL, 'j'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	struct ctl ctl = {.socket = DEFAULT_SOCKET};
	int c;

	signal(SIGPIPE, SIG_IGN);
	/* "+": options behind the command are the command's. */
	while ((c = getopt_long(argc, argv, "+s:Vh", options, NULL)) != -1) {
		switch (c) {
		case 's':
			ctl.socket = optarg;
			break;
		case 'j':
			ctl.json = true;
			break;
		case 'V':
			puts("bloomgatectl " PACKAGE_VERSION);
			return CTL_DONE;
		case 'h':
			usage(stdout);
			return CTL_DONE;
		default:
			usage(stderr);
			return CTL_USAGE;
		}
	}
	if (optind == argc) {
		usage(stderr);
		return CTL_USAGE;
	}
	ctl.terminal = isatty(STDOUT_FILENO) == 1;
	ctl.colour = ctl.terminal &&
	    (no_colour == NULL || *no_colour == '\0') &&
	    (term == NULL || strcmp(term, "dumb") != 0);
	return run(&ctl, argc - optind, argv + optind);
}
