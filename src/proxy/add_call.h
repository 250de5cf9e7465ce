/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds one call of add.lua (redis/script.h) for some elements, under one meta.
 * A worker's thread.
 */
#ifndef PROXY_ADD_CALL_H
#define PROXY_ADD_CALL_H

#include "core/slice.h"
#include "filter/filter.h"

/* Positions and elements of one call (DESIGN.md, Scripts). */
#define ADD_POSITIONS_MAX 700
#define ADD_ELEMENTS_MAX  200

struct add_call;

/* f and m: borrowed until add_call_free. Returned; freed with add_call_free. */
struct add_call *add_call_new(const struct filter *f, const struct meta *m);
void add_call_free(struct add_call *c);

enum add_fit {
	ADD_TAKEN,
	ADD_FULL,  /* not in this call */
	ADD_NEVER, /* not in this filter: *error says why (a constant text) */
};
/*
 * Adds element (borrowed until add_call_free) to the call. learned: of a write
 * that goes on all the same; a generation whose scheme cannot hold the element
 * is left out then, for it is never absent there.
 */
enum add_fit add_call_take(
    struct add_call *c, struct slice element, bool learned, const char **error);

/* Keys and arguments, borrowed from c; nothing is taken after this. */
const struct slice *add_call_argv(
    struct add_call *c, size_t *argc, size_t *nkeys);

#endif
