/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bloomgatectl status: a table for people, a line of key=value a filter where
 * the output goes into a pipe, the daemon's own JSON with --json.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ctl/format.h"
#include "ctl/online.h"

#define COLUMNS 11

static const char *const titles[COLUMNS] = {"FILTER", "STATE", "MODE",
    "GENERATION", "ELEMENTS", "CAPACITY", "FILL", "TARGET", "MEASURED",
    "ABSENT", "REBUILD"};

/* Columns that hold numbers stand to the right. */
static const bool right[COLUMNS] = {
    [4] = true, [5] = true, [6] = true, [7] = true, [8] = true, [9] = true};

struct row {
	char *cells[COLUMNS]; /* owned */
	const char *colour;   /* of the state */
};

static char *
rebuild_cell(const struct tree *t, long rebuild)
{
	double percent = tree_number(t, rebuild, "percent", -1);
	double left = tree_number(t, rebuild, "seconds_left", -1);
	char *phase = tree_string(t, rebuild, "phase");
	char *last = tree_string(t, rebuild, "last_result");
	char span[FORMAT_MAX], *cell;

	if (!tree_bool(t, rebuild, "running")) {
		cell = mem_strdup(*last != '\0' ? last : "-");
	} else if (percent < 0) {
		cell = mem_printf("%s, %.0f elements", phase,
		    tree_number(t, rebuild, "elements", 0));
	} else if (left < 0) {
		cell = mem_printf("%s %.0f %%", phase, percent);
	} else {
		format_span(span, sizeof(span), left);
		cell = mem_printf("%s %.0f %%, %s left", phase, percent, span);
	}
	free(phase);
	free(last);
	return cell;
}

static const char *
colour_of(const char *state)
{
	if (strcmp(state, "serving") == 0)
		return FORMAT_GREEN;
	if (strcmp(state, "suspect") == 0 || strcmp(state, "lost") == 0 ||
	    strcmp(state, "foreign") == 0)
		return FORMAT_RED;
	return FORMAT_YELLOW;
}

static char *
count_cell(const struct tree *t, long filter, const char *key)
{
	char text[FORMAT_MAX];

	format_count(text, sizeof(text), tree_number(t, filter, key, 0));
	return mem_strdup(text);
}

static char *
share_cell(const struct tree *t, long filter, const char *key)
{
	char text[FORMAT_MAX];

	format_share(text, sizeof(text), tree_number(t, filter, key, -1));
	return mem_strdup(text);
}

static struct row
row_of(const struct tree *t, long filter)
{
	struct row r;

	r.cells[0] = tree_string(t, filter, "name");
	r.cells[1] = tree_string(t, filter, "state");
	r.cells[2] = tree_string(t, filter, "mode");
	r.cells[3] = tree_string(t, filter, "generation");
	r.cells[4] = count_cell(t, filter, "elements");
	r.cells[5] = count_cell(t, filter, "capacity");
	r.cells[6] = share_cell(t, filter, "fill");
	r.cells[7] = share_cell(t, filter, "error_rate");
	r.cells[8] = share_cell(t, filter, "measured_error_rate");
	r.cells[9] = share_cell(t, filter, "absent_share");
	r.cells[10] = rebuild_cell(t, tree_find(t, filter, "rebuild"));
	r.colour = colour_of(r.cells[1]);
	return r;
}

static void
print_cells(const struct ctl *ctl, const struct row *row, const int *widths)
{
	bool colour;
	int i, pad;

	for (i = 0; i < COLUMNS; i++) {
		pad = widths[i] - format_width(row->cells[i]);
		colour = ctl->colour && i == 1 && row->colour != NULL;
		printf("%s%*s%s%s%s", i > 0 ? "  " : "", right[i] ? pad : 0, "",
		    colour ? row->colour : "", row->cells[i],
		    colour ? FORMAT_PLAIN : "");
		/* No blanks at the end of the line. */
		if (!right[i] && i < COLUMNS - 1)
			printf("%*s", pad, "");
	}
	putchar('\n');
}

static void
print_table(const struct ctl *ctl, const struct tree *t, long filters)
{
	struct row *rows = NULL, head = {.colour = NULL};
	int widths[COLUMNS], width, i;
	size_t count = 0, n;
	long f;

	for (i = 0; i < COLUMNS; i++) {
		head.cells[i] = mem_strdup(titles[i]);
		widths[i] = format_width(titles[i]);
	}
	for (f = tree_child(t, filters); f >= 0; f = tree_next(t, f)) {
		rows = mem_realloc(rows, (count + 1) * sizeof(*rows));
		rows[count] = row_of(t, f);
		for (i = 0; i < COLUMNS; i++) {
			width = format_width(rows[count].cells[i]);
			widths[i] = width > widths[i] ? width : widths[i];
		}
		count++;
	}
	print_cells(ctl, &head, widths);
	for (n = 0; n < count; n++)
		print_cells(ctl, &rows[n], widths);
	for (i = 0; i < COLUMNS; i++) {
		free(head.cells[i]);
		for (n = 0; n < count; n++)
			free(rows[n].cells[i]);
	}
	free(rows);
}

static void
print_head(const struct tree *t)
{
	char *version = tree_string(t, 0, "version");
	char *state = tree_string(t, 0, "state");
	char *upstream = tree_string(t, 0, "upstream");
	char up[FORMAT_MAX];
	long clients = tree_find(t, 0, "clients");

	format_span(up, sizeof(up), tree_number(t, 0, "uptime_seconds", 0));
	printf("bloomgate %s, %s, up %s, %.0f sessions, upstream %s %s\n\n",
	    version, state, up, tree_number(t, clients, "sessions", 0),
	    upstream, tree_bool(t, 0, "upstream_up") ? "up" : "down");
	free(version);
	free(state);
	free(upstream);
}

/* What of one filter does not fit into a line. */
static void
print_details(const struct tree *t, long filter)
{
	static const struct {
		const char *title;
		const char *key;
	} texts[] = {
	    {"redis key", "redis_key"},
	    {"scheme", "scheme"},
	    {"epoch", "epoch"},
	    {"mirror", "mirror"},
	};
	static const struct {
		const char *title;
		const char *key;
	} numbers[] = {
	    {"bits", "bits"},
	    {"shards", "shards"},
	    {"hashes", "hashes"},
	    {"peers", "peers"},
	    {"false positives", "false_positives"},
	    {"verified false negatives", "verified_false_negatives"},
	    {"failed adds", "add_failures"},
	};
	long rebuild = tree_find(t, filter, "rebuild");
	char *text, number[FORMAT_MAX];
	size_t i;

	putchar('\n');
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		text = tree_string(t, filter, texts[i].key);
		printf("%-25s %s\n", texts[i].title, text);
		free(text);
	}
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		format_count(number, sizeof(number),
		    tree_number(t, filter, numbers[i].key, 0));
		printf("%-25s %s\n", numbers[i].title, number);
	}
	text = tree_string(t, rebuild, "last_error");
	if (*text != '\0')
		printf("%-25s %s\n", "last rebuild", text);
	free(text);
}

/* --- for pipes ------------------------------------------------------------------ */

static void
print_pair(const struct tree *t, long at, const char *key, const char *shown)
{
	long i = tree_find(t, at, key);
	char *text;

	if (i < 0)
		return;
	if (t->nodes[i].type == TREE_STRING) {
		text = tree_string(t, at, key);
		printf(" %s=", shown);
		format_value(stdout, text);
		free(text);
	} else if (t->nodes[i].type != TREE_NULL) {
		printf(" %s=%.*s", shown, (int)t->nodes[i].text.len,
		    (const char *)t->nodes[i].text.data);
	}
}

static void
print_lines(const struct tree *t, long filters)
{
	static const char *const keys[] = {"state", "readiness", "mode",
	    "generation", "epoch", "elements", "capacity", "bits", "shards",
	    "hashes", "scheme", "fill", "error_rate", "measured_error_rate",
	    "absent_share", "mirror", "peers", "false_positives",
	    "verified_false_negatives"};
	long f, rebuild;
	char *name;
	size_t i;

	for (f = tree_child(t, filters); f >= 0; f = tree_next(t, f)) {
		name = tree_string(t, f, "name");
		fputs("filter=", stdout);
		format_value(stdout, name);
		free(name);
		for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			print_pair(t, f, keys[i], keys[i]);
		rebuild = tree_find(t, f, "rebuild");
		print_pair(t, rebuild, "phase", "rebuild");
		print_pair(t, rebuild, "percent", "rebuild_percent");
		print_pair(t, rebuild, "last_result", "last_result");
		putchar('\n');
	}
}

/* A line each, after the filters. */
static void
print_problems(const struct ctl *ctl, const struct tree *t)
{
	long p = tree_child(t, tree_find(t, 0, "problems"));
	char *text;

	if (ctl->terminal && p >= 0)
		putchar('\n');
	for (; p >= 0; p = tree_next(t, p)) {
		text = tree_string(t, p, "text");
		if (ctl->terminal) {
			printf("%sproblem:%s %s\n",
			    ctl->colour ? FORMAT_RED : "",
			    ctl->colour ? FORMAT_PLAIN : "", text);
		} else {
			fputs("problem=", stdout);
			format_value(stdout, text);
			putchar('\n');
		}
		free(text);
	}
}

int
online_status(const struct ctl *ctl, int argc, char **argv)
{
	struct online_state s;
	struct client *c;
	long filters;
	int rc;

	if (argc > 2)
		return ctl_usage("status");
	c = online_connect(ctl);
	if (c == NULL)
		return CTL_UNREACHABLE;
	rc = online_get_state(c, argc == 2 ? argv[1] : NULL, &s);
	client_free(c);
	if (rc != CTL_DONE)
		return rc;
	filters = tree_find(&s.tree, 0, "filters");
	if (ctl->json) {
		puts(s.text);
	} else if (!ctl->terminal) {
		print_lines(&s.tree, filters);
	} else {
		print_head(&s.tree);
		print_table(ctl, &s.tree, filters);
		if (argc == 2)
			print_details(&s.tree, tree_child(&s.tree, filters));
	}
	if (!ctl->json)
		print_problems(ctl, &s.tree);
	online_state_fini(&s);
	return CTL_DONE;
}
