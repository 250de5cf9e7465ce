/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short commands: one request, one answer, a line about it.
 */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ctl/online.h"

/* Elements sent in one command: the daemon takes 1000. */
#define ITEMS_AT_ONCE 500

struct client *
online_connect(const struct ctl *ctl)
{
	struct client *c;
	struct err err;

	c = client_connect(ctl->socket, &err);
	if (c == NULL)
		fprintf(stderr, "bloomgatectl: %s\n", err.text);
	return c;
}

int
online_ask(struct client *c, const char *const *words, size_t count,
    struct client_reply *reply)
{
	struct slice *argv = mem_zalloc(count, sizeof(*argv));
	struct err err;
	const char *why;
	size_t i;
	int rc;

	for (i = 0; i < count; i++)
		argv[i] = slice_str(words[i]);
	rc = client_call(c, argv, count, reply, &err);
	free(argv);
	if (rc != 0) {
		fprintf(stderr, "bloomgatectl: %s\n", err.text);
		return CTL_UNREACHABLE;
	}
	if (reply->type != '-')
		return CTL_DONE;
	why = reply->text;
	if (strncmp(why, "ERR ", 4) == 0)
		why += 4;
	if (strncmp(why, "bloomgate: ", 11) == 0)
		why += 11;
	fprintf(stderr, "bloomgatectl: %s\n", why);
	client_reply_fini(reply);
	return CTL_FAILED;
}

int
online_get_state(
    struct client *c, const char *filter, struct online_state *state)
{
	const char *words[] = {"STATUS", filter};
	struct client_reply reply;
	struct err err;
	int rc;

	*state = (struct online_state){0};
	rc = online_ask(c, words, filter != NULL ? 2 : 1, &reply);
	if (rc != CTL_DONE)
		return rc;
	state->text = mem_strdup(reply.text != NULL ? reply.text : "");
	client_reply_fini(&reply);
	if (tree_parse(&state->tree, slice_str(state->text), &err) != 0) {
		fprintf(stderr, "bloomgatectl: the daemon's status: %s\n",
		    err.text);
		online_state_fini(state);
		return CTL_FAILED;
	}
	return CTL_DONE;
}

void
online_state_fini(struct online_state *s)
{
	tree_fini(&s->tree);
	free(s->text);
	s->text = NULL;
}

/* Sends words and, where all went well, prints done or the text answered. */
static int
simple(const struct ctl *ctl, const char *const *words, size_t count,
    const char *done)
{
	struct client_reply reply;
	struct client *c = online_connect(ctl);
	int rc;

	if (c == NULL)
		return CTL_UNREACHABLE;
	rc = online_ask(c, words, count, &reply);
	client_free(c);
	if (rc != CTL_DONE)
		return rc;
	if (ctl->json && done != NULL)
		puts("{\"ok\":true}");
	else
		fputs(done != NULL ? done : reply.text, stdout);
	client_reply_fini(&reply);
	return CTL_DONE;
}

int
online_abort(const struct ctl *ctl, int argc, char **argv)
{
	const char *words[] = {"ABORT", argc == 2 ? argv[1] : NULL};

	if (argc != 2)
		return ctl_usage("abort");
	return simple(ctl, words, 2, "rebuild is being aborted\n");
}

int
online_mode(const struct ctl *ctl, int argc, char **argv)
{
	const char *words[3] = {"MODE"};

	if (argc != 3)
		return ctl_usage("mode");
	words[1] = argv[1];
	words[2] = argv[2];
	return simple(ctl, words, 3, "mode changed until the next start\n");
}

int
online_drain(const struct ctl *ctl, int argc, char **argv)
{
	const char *words[] = {"DRAIN"};

	(void)argv;
	if (argc != 1)
		return ctl_usage("drain");
	return simple(ctl, words, 1, "draining\n");
}

/* A text as a JSON string; what is not ASCII goes out as it is. */
static void
print_quoted(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

int
online_clients(const struct ctl *ctl, int argc, char **argv)
{
	const char *words[] = {"CLIENTS"};
	struct client_reply reply;
	struct client *c;
	char *line, *rest;
	int rc;

	(void)argv;
	if (argc != 1)
		return ctl_usage("clients");
	if (!ctl->json)
		return simple(ctl, words, 1, NULL);
	c = online_connect(ctl);
	if (c == NULL)
		return CTL_UNREACHABLE;
	rc = online_ask(c, words, 1, &reply);
	client_free(c);
	if (rc != CTL_DONE)
		return rc;
	putchar('[');
	rest = reply.text;
	while ((line = strsep(&rest, "\n")) != NULL && rest != NULL) {
		print_quoted(line);
		if (*rest != '\0')
			putchar(',');
	}
	puts("]");
	client_reply_fini(&reply);
	return CTL_DONE;
}

/* --- check and add -------------------------------------------------------------- */

struct items {
	const char *command;  /* CHECK or ADD */
	const char *words[2]; /* for 0 and 1 */
};

static int
print_items(const struct ctl *ctl, const struct items *what, char *const *items,
    const struct client_reply *reply, bool first)
{
	size_t i;

	for (i = 0; i < reply->count; i++) {
		const struct client_reply *r = &reply->items[i];

		if (r->type != ':' || r->integer < 0 || r->integer > 1) {
			fputs("bloomgatectl: an answer of an unknown form\n",
			    stderr);
			return CTL_FAILED;
		}
		if (!ctl->json) {
			printf("%s %s\n", items[i], what->words[r->integer]);
			continue;
		}
		if (!first || i > 0)
			putchar(',');
		fputs("{\"element\":", stdout);
		print_quoted(items[i]);
		printf(",\"result\":\"%s\"}", what->words[r->integer]);
	}
	return CTL_DONE;
}

static int
ask_items(const struct ctl *ctl, struct client *c, const struct items *what,
    const char *filter, char *const *items, size_t count)
{
	const char *words[ITEMS_AT_ONCE + 2] = {what->command, filter};
	struct client_reply reply;
	size_t from, n;
	int rc = CTL_DONE;

	for (from = 0; from < count && rc == CTL_DONE; from += n) {
		n = count - from < ITEMS_AT_ONCE ? count - from : ITEMS_AT_ONCE;
		memcpy(words + 2, items + from, n * sizeof(*words));
		rc = online_ask(c, words, n + 2, &reply);
		if (rc != CTL_DONE)
			return rc;
		if (reply.type != '*' || reply.count != n) {
			fputs("bloomgatectl: an answer of an unknown form\n",
			    stderr);
			rc = CTL_FAILED;
		} else {
			rc = print_items(
			    ctl, what, items + from, &reply, from == 0);
		}
		client_reply_fini(&reply);
	}
	return rc;
}

static int
run_items(
    const struct ctl *ctl, int argc, char **argv, const struct items *what)
{
	struct client *c = online_connect(ctl);
	int rc;

	if (c == NULL)
		return CTL_UNREACHABLE;
	if (ctl->json)
		putchar('[');
	rc = ask_items(ctl, c, what, argv[1], argv + 2, (size_t)(argc - 2));
	if (ctl->json)
		puts("]");
	client_free(c);
	return rc;
}

int
online_check(const struct ctl *ctl, int argc, char **argv)
{
	static const struct items what = {"CHECK", {"absent", "maybe"}};

	return argc < 3 ? ctl_usage("check")
			: run_items(ctl, argc, argv, &what);
}

int
online_add(const struct ctl *ctl, int argc, char **argv)
{
	static const struct items what = {"ADD", {"known", "new"}};

	return argc < 3 ? ctl_usage("add") : run_items(ctl, argc, argv, &what);
}
