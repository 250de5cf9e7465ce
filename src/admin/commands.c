/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command table and one small function a command. Arguments are checked
 * here, errors read like those of Redis.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/commands.h"
#include "admin/private.h"
#include "core/check.h"
#include "resp/encode.h"

#define NAME_SHOWN_MAX 128 /* bytes of a client's word repeated in an error */

struct command {
	const char *name; /* upper case */
	size_t min_args;  /* the name included */
	size_t max_args;  /* 0: any number */
	void (*run)(
	    struct connection *c, const struct slice *argv, size_t argc);
	const char *usage; /* NULL: not listed by HELP */
	const char *help;
};

static int
shown(struct slice s)
{
	return (int)(s.len < NAME_SHOWN_MAX ? s.len : NAME_SHOWN_MAX);
}

static const struct admin_calls *
calls(const struct connection *c)
{
	return &c->admin->options.calls;
}

/* The filter called name, or -1 with the error written. */
static long
find_filter(struct connection *c, struct slice name)
{
	const struct settings *s = c->admin->options.settings;
	size_t i;

	for (i = 0; i < s->filter_count; i++)
		if (slice_is(name, s->filters[i].name))
			return (long)i;
	connection_error(c, "ERR bloomgate: no filter is called '%.*s'",
	    shown(name), (const char *)name.data);
	return -1;
}

static void
reply(struct connection *c, int rc, const struct err *err)
{
	if (rc == 0)
		connection_status(c, "OK");
	else
		connection_error(c, "ERR bloomgate: %s", err->text);
}

/* --- commands ----------------------------------------------------------------- */

static void
run_status(struct connection *c, const struct slice *argv, size_t argc)
{
	long index = -1;

	if (argc == 2 && (index = find_filter(c, argv[1])) < 0)
		return;
	connection_bulk(c, calls(c)->status_json(index, c->admin->options.arg));
}

static void
run_rebuild(struct connection *c, const struct slice *argv, size_t argc)
{
	struct err err = {""};
	long index;

	if (argc == 3 && !slice_is_nocase(argv[2], "FORCE")) {
		connection_error(c, "ERR syntax error");
		return;
	}
	index = find_filter(c, argv[1]);
	if (index >= 0)
		reply(c,
		    calls(c)->rebuild(
			(size_t)index, argc == 3, &err, c->admin->options.arg),
		    &err);
}

static void
run_abort(struct connection *c, const struct slice *argv, size_t argc)
{
	struct err err = {""};
	long index = find_filter(c, argv[1]);

	(void)argc;
	if (index >= 0)
		reply(c,
		    calls(c)->abort((size_t)index, &err, c->admin->options.arg),
		    &err);
}

static void
run_mode(struct connection *c, const struct slice *argv, size_t argc)
{
	/* In the order of enum setting_mode. */
	static const char *const modes[] = {"enforce", "observe", "off"};
	struct err err = {""};
	long index;
	int mode = 0;

	(void)argc;
	while (mode < 3 && !slice_is_nocase(argv[2], modes[mode]))
		mode++;
	if (mode == 3) {
		connection_error(
		    c, "ERR bloomgate: a mode is enforce, observe or off");
		return;
	}
	index = find_filter(c, argv[1]);
	if (index >= 0)
		reply(c,
		    calls(c)->mode(
			(size_t)index, mode, &err, c->admin->options.arg),
		    &err);
}

typedef void (*items_fn)(size_t index, const struct slice *items, size_t count,
    struct admin_request *request, void *arg);

static void
run_items(
    struct connection *c, const struct slice *argv, size_t argc, items_fn fn)
{
	long index = find_filter(c, argv[1]);
	size_t count = argc - 2;

	if (index < 0)
		return;
	if (count > COMMANDS_ITEMS_MAX) {
		connection_error(c,
		    "ERR bloomgate: at most %d elements at a time",
		    COMMANDS_ITEMS_MAX);
		return;
	}
	fn((size_t)index, argv + 2, count, connection_wait(c, count),
	    c->admin->options.arg);
}

static void
run_check(struct connection *c, const struct slice *argv, size_t argc)
{
	run_items(c, argv, argc, calls(c)->check);
}

static void
run_add(struct connection *c, const struct slice *argv, size_t argc)
{
	run_items(c, argv, argc, calls(c)->add);
}

static void
run_clients(struct connection *c, const struct slice *argv, size_t argc)
{
	(void)argv;
	(void)argc;
	connection_bulk(c, calls(c)->clients_text(c->admin->options.arg));
}

static void
run_config(struct connection *c, const struct slice *argv, size_t argc)
{
	(void)argv;
	(void)argc;
	connection_bulk(c, calls(c)->config_yaml(c->admin->options.arg));
}

static void
run_drain(struct connection *c, const struct slice *argv, size_t argc)
{
	(void)argv;
	(void)argc;
	connection_status(c, "OK");
	calls(c)->drain(c->admin->options.arg);
}

static void
run_ping(struct connection *c, const struct slice *argv, size_t argc)
{
	if (argc == 1)
		connection_status(c, "PONG");
	else
		check(encode_bulk(&c->out, argv[1]) == 0);
}

/* redis-cli asks COMMAND DOCS when it starts; it is content with nothing. */
static void
run_command(struct connection *c, const struct slice *argv, size_t argc)
{
	(void)argv;
	(void)argc;
	check(encode_array(&c->out, 0) == 0);
}

static void
run_quit(struct connection *c, const struct slice *argv, size_t argc)
{
	(void)argv;
	(void)argc;
	connection_status(c, "OK");
	c->closing = true;
}

static void
run_later(struct connection *c, const struct slice *argv, size_t argc)
{
	char name[16] = "";
	size_t i;

	(void)argc;
	for (i = 0; i < argv[0].len && i < sizeof(name) - 1; i++)
		name[i] = (char)toupper(argv[0].data[i]);
	connection_error(
	    c, "ERR bloomgate: %s is not available in this version", name);
}

static void run_help(
    struct connection *c, const struct slice *argv, size_t argc);

static const struct command commands[] = {
    {"STATUS", 1, 2, run_status, "STATUS [name]",
	"the state of every filter, or of one, as JSON"},
    {"REBUILD", 2, 3, run_rebuild, "REBUILD name [FORCE]",
	"build the filter anew from its source"},
    {"ABORT", 2, 2, run_abort, "ABORT name",
	"stop the rebuild that is queued or runs"},
    {"MODE", 3, 3, run_mode, "MODE name enforce|observe|off",
	"how the filter's verdicts are used, until the next start"},
    {"CHECK", 3, 0, run_check, "CHECK name element...", "0 absent, 1 maybe"},
    {"ADD", 3, 0, run_add, "ADD name element...", "1 new, 0 known"},
    {"CLIENTS", 1, 1, run_clients, "CLIENTS", "a line a client"},
    {"CONFIG", 1, 1, run_config, "CONFIG",
	"the effective configuration as YAML"},
    {"DRAIN", 1, 1, run_drain, "DRAIN",
	"stop accepting, finish what is in flight, exit"},
    {"HELP", 1, 1, run_help, "HELP", "this list"},
    {"PING", 1, 2, run_ping, "PING", "PONG"},
    {"QUIT", 1, 0, run_quit, "QUIT", "close the connection"},
    {"COMMAND", 1, 0, run_command, NULL, NULL},
    {"ROLLBACK", 1, 0, run_later, NULL, NULL},
    {"LOAD", 1, 0, run_later, NULL, NULL},
    {"SEAL", 1, 0, run_later, NULL, NULL},
    {"DROP", 1, 0, run_later, NULL, NULL},
    {"DOCTOR", 1, 0, run_later, NULL, NULL},
    {"RELOAD", 1, 0, run_later, NULL, NULL},
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void
run_help(struct connection *c, const struct slice *argv, size_t argc)
{
	char line[160];
	size_t i, listed = 0;

	(void)argv;
	(void)argc;
	for (i = 0; i < COMMANDS; i++)
		listed += commands[i].usage != NULL;
	check(encode_array(&c->out, listed) == 0);
	for (i = 0; i < COMMANDS; i++) {
		if (commands[i].usage == NULL)
			continue;
		snprintf(line, sizeof(line), "%s -- %s", commands[i].usage,
		    commands[i].help);
		check(encode_bulk(&c->out, slice_str(line)) == 0);
	}
}

/* --- dispatch ------------------------------------------------------------------- */

/* As Redis words it, arguments cut at 128 bytes together. */
static void
unknown(struct connection *c, const struct slice *argv, size_t argc)
{
	char args[NAME_SHOWN_MAX + 8];
	size_t i, len = 0;
	int n, room;

	for (i = 1; i < argc && len < NAME_SHOWN_MAX; i++) {
		room = (int)(NAME_SHOWN_MAX - len);
		n = argv[i].len < (size_t)room ? (int)argv[i].len : room;
		len += (size_t)snprintf(args + len, sizeof(args) - len,
		    "'%.*s' ", n, (const char *)argv[i].data);
		/* A NUL in the argument ends what snprintf took of it. */
		if (len >= sizeof(args))
			len = sizeof(args) - 1;
	}
	args[len] = '\0';
	connection_error(c,
	    "ERR unknown command '%.*s', with args beginning with: %s",
	    shown(argv[0]), (const char *)argv[0].data, args);
}

void
commands_run(struct connection *c, const struct slice *argv, size_t argc)
{
	const struct command *command;
	char name[16];
	size_t i;

	/* A web page that was made to talk to us: as Redis, hang up. */
	if (slice_is_nocase(argv[0], "POST") ||
	    slice_is_nocase(argv[0], "Host:")) {
		c->dead = true;
		return;
	}
	for (i = 0; i < COMMANDS; i++)
		if (slice_is_nocase(argv[0], commands[i].name))
			break;
	if (i == COMMANDS) {
		unknown(c, argv, argc);
		return;
	}
	command = &commands[i];
	if (argc < command->min_args ||
	    (command->max_args != 0 && argc > command->max_args)) {
		for (i = 0; command->name[i] != '\0'; i++)
			name[i] = (char)tolower(command->name[i]);
		name[i] = '\0';
		connection_error(
		    c, "ERR wrong number of arguments for '%s' command", name);
		return;
	}
	command->run(c, argv, argc);
}
