/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bloomgatectl rebuild: asks for it and, with --wait, watches it: a bar on a
 * terminal, a line a phase elsewhere. The build goes on in the daemon whatever
 * becomes of this program.
 */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/mem.h"
#include "ctl/format.h"
#include "ctl/online.h"

#define POLL_MS      200
#define BAR_COLUMNS  30
#define LINE_EVERY_S 5 /* without a terminal, within a phase */

struct watch {
	const struct ctl *ctl;
	struct client *client;
	const char *filter;
	double ended_before; /* last_ended_us before we asked */
	char *phase;         /* owned: the one printed last */
	unsigned polls;      /* since the last line */
	bool drawn;          /* a bar stands on the terminal's line */
};

/* The rebuild object of the one filter in s, or -1. */
static long
rebuild_of(const struct online_state *s)
{
	long filters = tree_find(&s->tree, 0, "filters");

	return tree_find(&s->tree, tree_child(&s->tree, filters), "rebuild");
}

static void
draw_bar(struct watch *w, const struct tree *t, long r, const char *phase)
{
	double percent = tree_number(t, r, "percent", -1);
	double left = tree_number(t, r, "seconds_left", -1);
	char elements[FORMAT_MAX], rate[FORMAT_MAX], span[FORMAT_MAX];
	int full, i;

	format_count(
	    elements, sizeof(elements), tree_number(t, r, "elements", 0));
	format_count(rate, sizeof(rate), tree_number(t, r, "rate", 0));
	full = percent > 0 ? (int)(percent * BAR_COLUMNS / 100) : 0;
	fputs("\r\033[K[", stdout);
	for (i = 0; i < BAR_COLUMNS; i++)
		putchar(i < full ? '#' : '.');
	if (percent >= 0)
		printf("] %3.0f %%  %s  %s elements, %s/s", percent, phase,
		    elements, rate);
	else
		printf("]   -    %s  %s elements, %s/s", phase, elements, rate);
	if (left >= 0) {
		format_span(span, sizeof(span), left);
		printf(", %s left", span);
	}
	fflush(stdout);
	w->drawn = true;
}

static void
print_line(struct watch *w, const struct tree *t, long r, const char *phase)
{
	double percent = tree_number(t, r, "percent", -1);
	double left = tree_number(t, r, "seconds_left", -1);

	if (w->phase != NULL && strcmp(w->phase, phase) == 0 &&
	    ++w->polls < LINE_EVERY_S * 1000 / POLL_MS)
		return;
	w->polls = 0;
	free(w->phase);
	w->phase = mem_strdup(phase);
	printf("phase=%s elements=%.0f rate=%.0f", phase,
	    tree_number(t, r, "elements", 0), tree_number(t, r, "rate", 0));
	if (percent >= 0)
		printf(" percent=%.1f", percent);
	if (left >= 0)
		printf(" seconds_left=%.0f", left);
	putchar('\n');
	fflush(stdout);
}

static int
print_end(struct watch *w, const struct tree *t, long r)
{
	char *result = tree_string(t, r, "last_result");
	char *error = tree_string(t, r, "last_error");
	int rc = strcmp(result, "ok") == 0 ? CTL_DONE : CTL_FAILED;

	if (w->drawn)
		fputs("\r\033[K", stdout);
	if (rc == CTL_DONE)
		puts(w->ctl->json ? "{\"ok\":true}" : "built");
	else
		fprintf(stderr, "bloomgatectl: the rebuild %s%s%s%s\n",
		    strcmp(result, "failed") == 0 ? "" : "was ", result,
		    *error != '\0' ? ": " : "", error);
	free(result);
	free(error);
	return rc;
}

/* CTL_DONE with *ended false: go on. */
static int
look(struct watch *w, bool *ended)
{
	struct online_state s;
	char *phase;
	long r;
	int rc = online_get_state(w->client, w->filter, &s);

	if (rc != CTL_DONE)
		return rc;
	r = rebuild_of(&s);
	*ended = tree_number(&s.tree, r, "last_ended_us", 0) != w->ended_before;
	if (*ended) {
		rc = print_end(w, &s.tree, r);
	} else if (!w->ctl->json) {
		phase = tree_string(&s.tree, r, "phase");
		if (w->ctl->terminal)
			draw_bar(w, &s.tree, r, phase);
		else
			print_line(w, &s.tree, r, phase);
		free(phase);
	}
	online_state_fini(&s);
	return rc;
}

static int
wait_for_end(struct watch *w)
{
	struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
	bool ended = false;
	int rc = look(w, &ended);

	while (rc == CTL_DONE && !ended) {
		nanosleep(&pause, NULL);
		rc = look(w, &ended);
	}
	free(w->phase);
	return rc;
}

static int
rebuild(const struct ctl *ctl, const char *filter, bool force, bool wait)
{
	const char *words[] = {"REBUILD", filter, "FORCE"};
	struct watch w = {.ctl = ctl, .filter = filter};
	struct online_state before;
	struct client_reply reply;
	int rc;

	w.client = online_connect(ctl);
	if (w.client == NULL)
		return CTL_UNREACHABLE;
	rc = online_get_state(w.client, filter, &before);
	if (rc == CTL_DONE) {
		w.ended_before = tree_number(
		    &before.tree, rebuild_of(&before), "last_ended_us", 0);
		online_state_fini(&before);
		rc = online_ask(w.client, words, force ? 3 : 2, &reply);
	}
	if (rc == CTL_DONE) {
		client_reply_fini(&reply);
		if (wait)
			rc = wait_for_end(&w);
		else
			puts(ctl->json ? "{\"ok\":true}" : "rebuild requested");
	}
	client_free(w.client);
	return rc;
}

int
online_rebuild(const struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
	    {"force", no_argument, NULL, 'f'},
	    {"wait", no_argument, NULL, 'w'},
	    {NULL, 0, NULL, 0},
	};
	bool force = false, wait = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'f')
			force = true;
		else if (c == 'w')
			wait = true;
		else
			return ctl_usage("rebuild");
	}
	if (optind + 1 != argc)
		return ctl_usage("rebuild");
	return rebuild(ctl, argv[optind], force, wait);
}
