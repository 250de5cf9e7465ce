/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads JSON into a flat array of nodes. Strict (RFC 8259), without recursion,
 * at most TREE_DEPTH_MAX deep. The text stays the caller's and must live as
 * long as the tree.
 */
#ifndef CTL_TREE_H
#define CTL_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/slice.h"

#define TREE_DEPTH_MAX 32
#define TREE_NODES_MAX 1000000

enum tree_type {
	TREE_OBJECT,
	TREE_ARRAY,
	TREE_STRING,
	TREE_NUMBER,
	TREE_BOOL,
	TREE_NULL,
};

struct tree_node {
	enum tree_type type;
	struct slice key;  /* raw, in an object; else data NULL */
	struct slice text; /* raw, without quotes; of simple types */
	long child;        /* first child, or -1 */
	long next;         /* next sibling, or -1 */
};

struct tree {
	struct tree_node *nodes; /* owned; [0] is the top */
	size_t count, cap;
};

/* 0, or -1 with the reason; tree_fini either way. */
int tree_parse(struct tree *d, struct slice text, struct err *err)
    __attribute__((warn_unused_result));
void tree_fini(struct tree *d);

/* The member of object at called key, or -1 (also where at is -1). */
long tree_find(const struct tree *d, long at, const char *key);
/* First child, next sibling; -1 past the end. */
long tree_child(const struct tree *d, long at);
long tree_next(const struct tree *d, long at);

/* Values of the member key of at; the default where it is none of the type. */
double tree_number(
    const struct tree *d, long at, const char *key, double otherwise);
bool tree_bool(const struct tree *d, long at, const char *key);
/*
 * Decoded; control characters become '?', so that it is fit for a terminal.
 * Returned, "" where there is none; freed with free().
 */
char *tree_string(const struct tree *d, long at, const char *key);

#endif
