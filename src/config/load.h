/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the loader hands to the checks: the settings being made, and where the
 * file said what. One owner, one thread.
 */
#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "config/document.h"
#include "config/issues.h"
#include "config/keypattern.h"
#include "config/options.h"

/* One option in one mapping of the file. */
struct given {
	const struct node *key;   /* NULL: the file does not give it */
	const struct node *value; /* borrowed, like key */
	bool bad; /* reported already: say nothing that follows from it */
};

/* The top of the file, or one filter. */
struct scope {
	void *base;            /* struct settings or filter_settings */
	struct given *given;   /* owned; by index in option_table */
	const struct node *at; /* the mapping; NULL: the file is empty */
	/* A filter: its keys, owned; prefix NULL where one is malformed. */
	struct keypattern *patterns;
	size_t pattern_count;
};

struct load {
	struct issues *issues; /* borrowed */
	struct settings *settings;
	struct scope top;
	struct scope *filters; /* owned; by index in settings->filters */
};

/* What the file says of the option at path; never NULL. */
const struct given *load_given(
    const struct scope *sc, enum option_scope scope, const char *path);

/*
 * Where to complain about an option: its value, or else the mapping that does
 * not give it. NULL: of the file as a whole.
 */
const struct node *load_place(
    const struct scope *sc, enum option_scope scope, const char *path);
/* An error there; "PATH: " goes before the text. */
void load_error(struct load *load, const struct scope *sc,
    enum option_scope scope, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/*
 * Checks between options, and the defaults that follow from others. Everything
 * is reported to load->issues.
 */
void checks_run(struct load *load);
/* Of one filter, and between filters (filterchecks.c). */
void checks_filter(struct load *load, size_t index);
void checks_filter_pairs(struct load *load);
/* 0 when strftime makes good generation names of text, or -1 (suffix.c). */
int suffix_check(const char *text, struct err *err)
    __attribute__((warn_unused_result));

#endif
