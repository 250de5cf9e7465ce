/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one table of options: what each is called, holds, defaults to and means.
 * The loader, the dump, the manual and the sample file all follow it. Constant
 * data; any thread.
 */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/buf.h"

enum option_type {
	OPTION_SECTION,   /* holds the options whose path begins with its own */
	OPTION_FILTERS,   /* the list of filters */
	OPTION_BOOL,      /* bool */
	OPTION_UNSIGNED,  /* unsigned */
	OPTION_WHOLE,     /* uint64_t */
	OPTION_REAL,      /* double */
	OPTION_SIZE,      /* uint64_t bytes */
	OPTION_DURATION,  /* uint64_t milliseconds */
	OPTION_STRING,    /* char * */
	OPTION_PATH,      /* char *: absolute, or empty */
	OPTION_ADDRESS,   /* struct address; empty is ADDRESS_NONE */
	OPTION_ADDRESSES, /* settings->listen: one or a list */
	OPTION_STRINGS,   /* struct string_list */
	OPTION_WORD,      /* an enum: index in words */
	OPTION_SCHEDULE,  /* struct schedule */
	OPTION_ABSENT,    /* filter->absent and absent_text */
	OPTION_VALUES,    /* filter->null_values */
};

enum option_scope {
	SCOPE_SETTINGS, /* offset in struct settings */
	SCOPE_FILTER,   /* offset in struct filter_settings */
};

enum option_flag {
	OPTION_REQUIRED = 1 << 0,  /* has no default */
	OPTION_FILLED = 1 << 1,    /* may not be empty when given */
	OPTION_COMPUTED = 1 << 2,  /* default follows from other options */
	OPTION_ABOVE_MIN = 1 << 3, /* the smallest value itself is too small */
	OPTION_OR_ZERO = 1 << 4,   /* 0 too, below min */
	OPTION_RESTART = 1 << 5,   /* a reload does not apply it */
	/*
	 * The feature comes later: a remark when the file gives the option a
	 * value other than .idle (a value at which nothing is missed).
	 */
	OPTION_LATER = 1 << 6,
	OPTION_LISTENS = 1 << 7, /* address: port 0 is fine */
};

struct option {
	const char *path; /* within its scope: "limits.memory" */
	enum option_scope scope;
	enum option_type type;
	size_t offset;
	const char *fallback; /* default as in the file; "" is empty */
	double min, max;      /* of numbers; max 0: no range */
	const char *words;    /* OPTION_WORD: separated by spaces */
	unsigned flags;       /* enum option_flag */
	/* OPTION_LATER: as option_print writes it; NULL: any value counts. */
	const char *idle;
	const char *help; /* a sentence or two */
};

extern const struct option option_table[];
extern const size_t option_count;

/* The option called path (len bytes), or NULL. */
const struct option *option_find(
    enum option_scope scope, const char *path, size_t len);
/* The key itself: what stands after the last dot of the path. */
const char *option_key(const struct option *o);
/* How many sections it lies in: the number of dots. */
unsigned option_depth(const struct option *o);
/* True when o lies directly in section (NULL: at the top of scope). */
bool option_is_in(const struct option *o, enum option_scope scope,
    const struct option *section);

/*
 * The known name nearest to key in section, or the path of an option of that
 * name elsewhere; NULL when nothing is near. Returned; freed with free().
 */
char *option_suggest(
    enum option_scope scope, const struct option *section, const char *key);

/* "1 to 256", "32KiB", a list of words: what is allowed; "" without a range. */
void option_print_range(struct buf *out, const struct option *o);
/* A number of the option's type. */
void option_print_number(struct buf *out, const struct option *o, double v);

/*
 * The table for people: path, type, default and help of each option, the text
 * of the manual's list. Returned; freed with free().
 */
char *settings_help(void);

#endif
