/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a strftime format good for naming generations? It is read for conversions
 * that exist, and tried at many times of a year: a name is not empty, fits, and
 * holds none of the bytes that separate names in Redis keys and in meta.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "config/load.h"

/* A generation's name, ".2" and the like after it, has at most 63 bytes. */
#define SUFFIX_MAX 48

/*
 * strftime under a name without its format attribute: here the format is what
 * is being checked.
 */
static size_t (*const format_time)(
    char *, size_t, const char *, const struct tm *) = strftime;

/* Flags, width and E or O may stand between '%' and the letter. */
static int
check_conversions(const char *text, struct err *err)
{
	static const char known[] = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyYzZ%";

	while ((text = strchr(text, '%')) != NULL) {
		text++;
		text += strspn(text, "_-0^#");
		text += strspn(text, "0123456789");
		text += strspn(text, "EO");
		if (*text == '\0')
			return err_set(err, "ends inside a conversion");
		if (strchr(known, *text) == NULL)
			return err_set(
			    err, "strftime has no conversion '%%%c'", *text);
		text++;
	}
	return 0;
}

static int
check_name(const char *name, struct err *err)
{
	const char *p;

	if (name[0] == '\0')
		return err_set(err,
		    "must make a name of 1 to %d bytes at any time",
		    SUFFIX_MAX);
	for (p = name; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '/' ||
		    *p == ':' || *p == '{' || *p == '}')
			return err_set(err,
			    "makes a name such as '%s', which holds %s%.1s%s",
			    name, *p <= ' ' ? "a space or control" : "'",
			    *p <= ' ' ? "" : p, *p <= ' ' ? "" : "'");
	return 0;
}

int
suffix_check(const char *text, struct err *err)
{
	char name[SUFFIX_MAX + 1];
	/* 2024, a leap year, every 25 hours: each day and each hour comes. */
	time_t at = 1704067200;
	struct tm tm;
	int i;

	if (check_conversions(text, err) != 0)
		return -1;
	for (i = 0; i < 400; i++, at += 90000) {
		if (gmtime_r(&at, &tm) == NULL)
			return err_set(err, "cannot be tried");
		if (format_time(name, sizeof(name), text, &tm) == 0)
			name[0] = '\0';
		if (check_name(name, err) != 0)
			return -1;
	}
	return 0;
}
