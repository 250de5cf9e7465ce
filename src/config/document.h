/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A YAML file as a tree of nodes with their places, and nothing else: scalars
 * stay text (the option table gives them types), and what a configuration does
 * not need (anchors, aliases, tags, several documents) is an error. One owner,
 * one thread.
 */
#ifndef CONFIG_DOCUMENT_H
#define CONFIG_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/issues.h"

#define DOCUMENT_BYTES_MAX (1024 * 1024)
#define DOCUMENT_DEPTH_MAX 16

enum node_kind {
	NODE_SCALAR,
	NODE_SEQUENCE,
	NODE_MAPPING,
	NODE_BROKEN, /* already reported; nothing more is said about it */
};

struct node {
	enum node_kind kind;
	bool plain;      /* scalar: written without quotes */
	bool cut;        /* the file broke off inside; more may be missing */
	unsigned line;   /* from 1 */
	unsigned column; /* from 1, in characters */
	char *text;      /* scalar: owned, NUL-terminated, holds no NUL */
	size_t len;      /* bytes of text */
	struct node **items; /* sequence: items; mapping: key, value, ... */
	size_t count;        /* of items; even in a mapping */
};

struct document {
	struct node *root;   /* owned by nodes; NULL: the file holds nothing */
	bool cut;            /* the parser gave up somewhere */
	struct node **nodes; /* owned: every node */
	size_t node_count;
};

/*
 * Reads data, reporting what is wrong with it; the tree holds what could be
 * read. Freed with document_fini in every case.
 */
void document_parse(
    struct document *doc, const char *data, size_t len, struct issues *issues);
void document_fini(struct document *doc);

/*
 * Replaces every byte that is not allowed (NUL and other controls, what is not
 * UTF-8) by '?', reporting each run of them and muting its line. text is
 * changed in place; a BOM is not counted in columns.
 */
void document_clean(char *text, size_t len, struct issues *issues);

#endif
