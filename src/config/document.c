/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libyaml's events as a tree. The nesting is kept on a stack of our own, so a
 * deep file costs memory only; a syntax error ends the reading, and what was
 * open then is marked as cut so that nothing is called missing in it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/document.h"
#include "core/check.h"
#include "core/mem.h"

struct builder {
	struct document *doc;
	struct issues *issues;
	const char *data;
	size_t len;
	struct node *open[DOCUMENT_DEPTH_MAX];
	size_t depth;
	unsigned documents;
	bool stop; /* read no further: reported, not a syntax error */
};

static unsigned
line_of(yaml_mark_t mark)
{
	return (unsigned)mark.line + 1;
}

static unsigned
column_of(yaml_mark_t mark)
{
	return (unsigned)mark.column + 1;
}

static struct node *
node_new(struct builder *b, enum node_kind kind, yaml_mark_t mark)
{
	struct document *doc = b->doc;
	struct node *n = mem_zalloc(1, sizeof(*n));

	n->kind = kind;
	n->line = line_of(mark);
	n->column = column_of(mark);
	/* Grown by doubling: the count is a power of two when it is full. */
	if ((doc->node_count & (doc->node_count - 1)) == 0)
		doc->nodes = mem_realloc(doc->nodes,
		    (doc->node_count ? doc->node_count * 2 : 1) *
			sizeof(struct node *));
	doc->nodes[doc->node_count++] = n;
	return n;
}

static void
append(struct node *parent, struct node *n)
{
	if ((parent->count & (parent->count - 1)) == 0)
		parent->items = mem_realloc(parent->items,
		    (parent->count ? parent->count * 2 : 1) *
			sizeof(struct node *));
	parent->items[parent->count++] = n;
}

/* Puts n where it belongs: the innermost open node, or the root. */
static void
place(struct builder *b, struct node *n)
{
	if (b->depth > 0)
		append(b->open[b->depth - 1], n);
	else
		b->doc->root = n;
}

static void
open_node(struct builder *b, struct node *n)
{
	place(b, n);
	if (b->depth == DOCUMENT_DEPTH_MAX) {
		issues_error(b->issues, n->line, n->column,
		    "nested more than %d deep", DOCUMENT_DEPTH_MAX);
		n->kind = NODE_BROKEN;
		b->stop = true;
		return;
	}
	b->open[b->depth++] = n;
}

static void
refuse_marks(struct builder *b, const yaml_event_t *e,
    const yaml_char_t *anchor, const yaml_char_t *tag)
{
	unsigned line = line_of(e->start_mark);
	unsigned column = column_of(e->start_mark);
	char *name;

	if (anchor != NULL) {
		name = issues_quote(
		    (const char *)anchor, strlen((const char *)anchor));
		issues_error(b->issues, line, column,
		    "anchors are not allowed (&%s)", name);
		free(name);
	}
	if (tag != NULL) {
		name = issues_quote(
		    (const char *)tag, strlen((const char *)tag));
		issues_error(
		    b->issues, line, column, "tags are not allowed (%s)", name);
		free(name);
	}
}

static void
on_scalar(struct builder *b, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;
	struct node *n = node_new(b, NODE_SCALAR, e->start_mark);

	refuse_marks(b, e, e->data.scalar.anchor, e->data.scalar.tag);
	n->len = e->data.scalar.length;
	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (memchr(text, '\0', n->len) != NULL) {
		issues_error(b->issues, n->line, n->column,
		    "a value may not hold a NUL byte");
		n->kind = NODE_BROKEN;
	} else {
		n->text = mem_alloc(n->len + 1);
		memcpy(n->text, text, n->len);
		n->text[n->len] = '\0';
	}
	place(b, n);
}

static void
on_alias(struct builder *b, const yaml_event_t *e)
{
	struct node *n = node_new(b, NODE_BROKEN, e->start_mark);
	const char *anchor = (const char *)e->data.alias.anchor;
	char *name = issues_quote(anchor, strlen(anchor));

	issues_error(b->issues, n->line, n->column,
	    "aliases are not allowed (*%s)", name);
	free(name);
	place(b, n);
}

static void
on_event(struct builder *b, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++b->documents > 1) {
			issues_error(b->issues, line_of(e->start_mark),
			    column_of(e->start_mark),
			    "a second document: the file must hold one");
			b->stop = true;
		}
		break;
	case YAML_SCALAR_EVENT:
		on_scalar(b, e);
		break;
	case YAML_ALIAS_EVENT:
		on_alias(b, e);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_marks(b, e, e->data.sequence_start.anchor,
		    e->data.sequence_start.tag);
		open_node(b, node_new(b, NODE_SEQUENCE, e->start_mark));
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_marks(b, e, e->data.mapping_start.anchor,
		    e->data.mapping_start.tag);
		open_node(b, node_new(b, NODE_MAPPING, e->start_mark));
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		check(b->depth > 0);
		b->depth--;
		break;
	default:
		break;
	}
}

/* True when the character that libyaml stopped at is a tab. */
static bool
stopped_at_tab(const struct builder *b, size_t index)
{
	size_t i;

	for (i = 0; i < b->len; i++) {
		if (((unsigned char)b->data[i] & 0xc0) == 0x80)
			continue;
		if (index-- == 0)
			return b->data[i] == '\t';
	}
	return false;
}

static void
on_syntax_error(struct builder *b, const yaml_parser_t *parser)
{
	const char *problem = parser->problem ? parser->problem : "not YAML";
	bool tab = stopped_at_tab(b, parser->problem_mark.index) &&
	    strstr(problem, "tab") == NULL;

	issues_error(b->issues, line_of(parser->problem_mark),
	    column_of(parser->problem_mark), "%s%s%s%s%s", problem,
	    tab ? " (a tab: YAML is indented with spaces)" : "",
	    parser->context ? " (" : "", parser->context ? parser->context : "",
	    parser->context ? ")" : "");
}

/* What is still open was not read to its end. */
static void
mark_cut(struct builder *b)
{
	size_t i;

	b->doc->cut = true;
	for (i = 0; i < b->depth; i++) {
		struct node *n = b->open[i];

		n->cut = true;
		if (n->kind == NODE_MAPPING && n->count % 2 != 0)
			n->count--;
	}
}

void
document_parse(
    struct document *doc, const char *data, size_t len, struct issues *issues)
{
	struct builder b = {.doc = doc, .issues = issues};
	yaml_parser_t parser;
	yaml_event_t event;
	bool done = false;

	*doc = (struct document){0};
	if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
		data += 3;
		len -= 3;
	}
	b.data = data;
	b.len = len;
	check(yaml_parser_initialize(&parser));
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
	while (!done && !b.stop) {
		if (!yaml_parser_parse(&parser, &event)) {
			on_syntax_error(&b, &parser);
			b.stop = true;
			break;
		}
		on_event(&b, &event);
		done = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	if (b.stop)
		mark_cut(&b);
	yaml_parser_delete(&parser);
}

void
document_fini(struct document *doc)
{
	size_t i;

	for (i = 0; i < doc->node_count; i++) {
		free(doc->nodes[i]->text);
		free(doc->nodes[i]->items);
		free(doc->nodes[i]);
	}
	free(doc->nodes);
	*doc = (struct document){0};
}

/*
 * Length of the well-formed UTF-8 sequence at s (RFC 3629), 0 if there is none;
 * *rune is what it stands for.
 */
static size_t
decode(const unsigned char *s, size_t len, uint32_t *rune)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t need, i;
	uint32_t r;

	if (s[0] < 0x80) {
		*rune = s[0];
		return 1;
	}
	if ((s[0] & 0xe0) == 0xc0) {
		need = 2;
		r = s[0] & 0x1f;
	} else if ((s[0] & 0xf0) == 0xe0) {
		need = 3;
		r = s[0] & 0x0f;
	} else if ((s[0] & 0xf8) == 0xf0) {
		need = 4;
		r = s[0] & 0x07;
	} else
		return 0;
	if (need > len)
		return 0;
	for (i = 1; i < need; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		r = r << 6 | (s[i] & 0x3f);
	}
	if (r < least[need] || r > 0x10ffff || (r >= 0xd800 && r <= 0xdfff))
		return 0;
	*rune = r;
	return need;
}

/* What YAML lets stand in a file; libyaml refuses the rest without a place. */
static bool
is_printable(uint32_t r)
{
	return r == '\t' || r == '\n' || r == '\r' || (r >= 0x20 && r < 0x7f) ||
	    r == 0x85 || (r >= 0xa0 && r < 0xd800) ||
	    (r >= 0xe000 && r <= 0xfffd && r != 0xfeff) || r >= 0x10000;
}

static bool
is_break(uint32_t r)
{
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 ||
	    r == 0x2029;
}

static void
report_bad(struct issues *issues, unsigned line, unsigned column, size_t width,
    uint32_t rune)
{
	if (width == 0)
		issues_error(issues, line, column, "not UTF-8");
	else if (rune == 0)
		issues_error(issues, line, column, "a NUL byte");
	else
		issues_error(issues, line, column,
		    "a control character (U+%04X) is not allowed", rune);
}

void
document_clean(char *text, size_t len, struct issues *issues)
{
	unsigned char *s = (unsigned char *)text;
	unsigned line = 1, column = 1;
	size_t i = 0, width;
	uint32_t rune;
	bool in_run = false, bad_line = false, bad;

	if (len >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
		i = 3;
	while (i < len) {
		width = decode(s + i, len - i, &rune);
		bad = width == 0 || !is_printable(rune);
		if (bad) {
			if (!in_run)
				report_bad(issues, line, column, width, rune);
			bad_line = true;
			memset(s + i, '?', width ? width : 1);
		}
		in_run = bad;
		column += width > 1 && bad ? (unsigned)width : 1;
		i += width ? width : 1;
		if (bad || !is_break(rune))
			continue;
		if (rune == '\r' && i < len && s[i] == '\n')
			continue;
		if (bad_line)
			issues_mute(issues, line);
		bad_line = false;
		line++;
		column = 1;
	}
	if (bad_line)
		issues_mute(issues, line);
}
