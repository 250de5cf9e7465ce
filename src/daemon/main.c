/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's entry: the command line, the configuration, and then run or
 * build. Exit status: 0 done, 1 failed or a configuration with errors, 2 a bad
 * command line, 3 (--build) someone else builds.
 */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/settings.h"
#include "core/err.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/run.h"
#include "filter/geometry.h"

#define EXIT_USAGE 2

enum action {
	ACTION_SERVE,
	ACTION_TEST,
	ACTION_DUMP,
	ACTION_BUILD,
};

static void
usage(FILE *to)
{
	fputs(
	    "usage: bloomgate [-c FILE] [-t | -T | --build FILTER]\n"
	    "       bloomgate -V | -h\n"
	    "\n"
	    "  -c, --config FILE   the configuration "
	    "(" SYSCONFDIR "/bloomgate/bloomgate.yaml)\n"
	    "  -t, --test          check the configuration and exit\n"
	    "  -T, --dump          print the whole effective configuration\n"
	    "      --build FILTER  build FILTER once and exit: 0 built,\n"
	    "                      1 refused or failed, 3 someone else builds\n"
	    "  -V, --version       print the version\n"
	    "  -h, --help          print this\n",
	    to);
}

static void
print_report(const char *path, const struct settings_report *report)
{
	const struct settings_issue *i;
	size_t n;

	for (n = 0; n < report->count; n++) {
		i = &report->items[n];
		if (i->line == 0)
			fprintf(stderr, "%s: %s%s\n", path,
			    i->fatal ? "" : "remark: ", i->text);
		else
			fprintf(stderr, "%s:%u:%u: %s%s\n", path, i->line,
			    i->column, i->fatal ? "" : "remark: ", i->text);
	}
}

/* What the filters' bits take here: a copy of each, two while one replaces the
 * other, and one more array while one is rebuilt. */
static void
print_memory(const struct settings *settings)
{
	uint64_t mirrors = 0, largest = 0;
	const double mib = 1024 * 1024;

	for (size_t i = 0; i < settings->filter_count; i++) {
		const struct filter_settings *f = &settings->filters[i];
		struct geometry g;
		struct err err;
		uint64_t bytes;

		if (geometry_plan(&g, f->capacity, f->error_rate,
			(enum scheme)f->scheme, f->layout == SETTING_SINGLE,
			&err) != 0)
			continue; /* the rebuild says why */
		bytes = geometry_total_bytes(&g);
		mirrors += bytes;
		if (f->rebuild.here && f->rebuild.source != SOURCE_NONE &&
		    bytes > largest)
			largest = bytes;
	}
	if (mirrors > 0)
		printf("memory for filters: %.1f MiB; %.1f MiB while all are "
		       "replaced and one is rebuilt\n",
		    (double)mirrors / mib,
		    (double)(2 * mirrors + largest) / mib);
}

static int
dump(const struct settings *settings)
{
	char *text = settings_dump(settings);
	int bad;

	bad = fputs(text, stdout) == EOF || fflush(stdout) == EOF;
	free(text);
	if (bad)
		perror("bloomgate: standard output");
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The log is one event a line from its first line on: remarks are events too. */
static void
log_remarks(const struct settings_report *report)
{
	size_t n;

	for (n = 0; n < report->count; n++)
		log_warn("config_remark",
		    LOG_INT("line", report->items[n].line),
		    LOG_INT("column", report->items[n].column),
		    LOG_STR("remark", report->items[n].text));
}

/* Takes the reference settings. */
static int
run(struct settings *settings, const struct settings_report *report,
    enum action action, const char *filter)
{
	struct run r;
	struct err err;
	int status;

	if (run_init(&r, settings, &err) != 0) {
		fprintf(stderr, "bloomgate: %s\n", err.text);
		status = EXIT_FAILURE;
	} else {
		log_remarks(report);
		status = action == ACTION_BUILD ? build_once(&r, filter)
						: run_serve(&r);
	}
	run_fini(&r);
	return status;
}

static int
act(const char *path, enum action action, const char *filter)
{
	struct settings_report report;
	struct settings *settings;
	int status;

	settings = settings_load(path, &report);
	if (settings == NULL || action == ACTION_TEST)
		print_report(path, &report);
	if (settings == NULL) {
		status = EXIT_FAILURE;
	} else if (action == ACTION_TEST) {
		print_memory(settings);
		settings_unref(settings);
		status = EXIT_SUCCESS;
	} else if (action == ACTION_DUMP) {
		status = dump(settings);
		settings_unref(settings);
	} else {
		status = run(settings, &report, action, filter);
	}
	settings_report_fini(&report);
	return status;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"config", required_argument, NULL, 'c'},
	    {"test", no_argument, NULL, 't'},
	    {"dump", no_argument, NULL, 'T'},
	    {"build", required_argument, NULL, 'B'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	const char *path = SYSCONFDIR "/bloomgate/bloomgate.yaml";
	const char *filter = NULL;
	enum action action = ACTION_SERVE;
	int c, actions = 0;

	mem_init();
	while ((c = getopt_long(argc, argv, "c:tTVh", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			path = optarg;
			break;
		case 't':
			action = ACTION_TEST;
			actions++;
			break;
		case 'T':
			action = ACTION_DUMP;
			actions++;
			break;
		case 'B':
			action = ACTION_BUILD;
			filter = optarg;
			actions++;
			break;
		case 'V':
			puts("bloomgate " PACKAGE_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind != argc || actions > 1) {
		usage(stderr);
		return EXIT_USAGE;
	}
	return act(path, action, filter);
}
