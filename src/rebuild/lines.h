/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source bytes to elements: lines end with LF or CRLF, the last one may lack it,
 * empty ones are skipped and counted. A line is what the filter's placeholder
 * captures; the template makes the element of it. Rebuild thread.
 */
#ifndef REBUILD_LINES_H
#define REBUILD_LINES_H

#include "rebuild/build.h"

struct lines {
	struct build *build;           /* borrowed */
	uint64_t number;               /* lines ended so far */
	size_t held;                   /* bytes of a line that has not ended */
	uint8_t line[ELEMENT_MAX + 1]; /* and its CR */
	uint8_t element[ELEMENT_MAX];  /* scratch of the template */
};

void lines_init(struct lines *l, struct build *b);
/* 0, or -1 with the reason (and the line) noted in the build. */
int lines_feed(struct lines *l, const uint8_t *data, size_t len)
    __attribute__((warn_unused_result));
/* The end of the source. */
int lines_end(struct lines *l) __attribute__((warn_unused_result));

#endif
