/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON reader: a state machine over the text, with the open containers on a
 * small stack.
 *
 *   VALUE	  a value must come		     (after [ , :)
 *   FIRST_VALUE  a value or ]			     (after [)
 *   FIRST_KEY	  a key or }			     (after {)
 *   KEY	  a key must come		     (after , in an object)
 *   AFTER	  , or the closing bracket, or the end at the top
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ctl/tree.h"

enum state {
	STATE_VALUE,
	STATE_FIRST_VALUE,
	STATE_FIRST_KEY,
	STATE_KEY,
	STATE_AFTER,
};

struct parser {
	struct tree *d;
	const uint8_t *at, *end;
	struct slice key;          /* of the value to come */
	long open[TREE_DEPTH_MAX]; /* containers, outermost first */
	long last[TREE_DEPTH_MAX]; /* their last child so far, or -1 */
	size_t depth;
	enum state state;
};

static void
skip_space(struct parser *p)
{
	while (p->at < p->end &&
	    (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' ||
		*p->at == '\r'))
		p->at++;
}

static long
add_node(struct parser *p, enum tree_type type, struct slice text)
{
	struct tree *d = p->d;
	long index = (long)d->count;

	if (d->count == TREE_NODES_MAX)
		return -1;
	if (d->count == d->cap) {
		d->cap = d->cap > 0 ? d->cap * 2 : 64;
		d->nodes = mem_realloc(d->nodes, d->cap * sizeof(*d->nodes));
	}
	d->nodes[d->count++] = (struct tree_node){
	    .type = type,
	    .key = p->key,
	    .text = text,
	    .child = -1,
	    .next = -1,
	};
	p->key = slice_of(NULL, 0);
	if (p->depth > 0) {
		if (p->last[p->depth - 1] >= 0)
			d->nodes[p->last[p->depth - 1]].next = index;
		else
			d->nodes[p->open[p->depth - 1]].child = index;
		p->last[p->depth - 1] = index;
	}
	return index;
}

/* The raw inside of the string that begins at p->at. 0, or -1. */
static int
take_string(struct parser *p, struct slice *out)
{
	const uint8_t *from;

	if (p->at == p->end || *p->at != '"')
		return -1;
	from = ++p->at;
	while (p->at < p->end && *p->at != '"') {
		if (*p->at < 0x20)
			return -1;
		if (*p->at == '\\' && ++p->at == p->end)
			return -1;
		p->at++;
	}
	if (p->at == p->end)
		return -1;
	*out = slice_of(from, (size_t)(p->at - from));
	p->at++;
	return 0;
}

static int
take_word(struct parser *p, const char *word, enum tree_type type)
{
	size_t len = strlen(word);

	if ((size_t)(p->end - p->at) < len || memcmp(p->at, word, len) != 0)
		return -1;
	p->at += len;
	return add_node(p, type, slice_of(p->at - len, len)) < 0 ? -1 : 0;
}

static size_t
digits(struct parser *p)
{
	size_t n = 0;

	while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
		p->at++;
		n++;
	}
	return n;
}

static int
take_number(struct parser *p)
{
	const uint8_t *from = p->at;
	bool zero;

	if (p->at < p->end && *p->at == '-')
		p->at++;
	zero = p->at < p->end && *p->at == '0';
	if (zero)
		p->at++;
	else if (digits(p) == 0)
		return -1;
	if (p->at < p->end && *p->at == '.') {
		p->at++;
		if (digits(p) == 0)
			return -1;
	}
	if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
		p->at++;
		if (p->at < p->end && (*p->at == '+' || *p->at == '-'))
			p->at++;
		if (digits(p) == 0)
			return -1;
	}
	return add_node(
		   p, TREE_NUMBER, slice_of(from, (size_t)(p->at - from))) < 0
	    ? -1
	    : 0;
}

static int
take_open(struct parser *p, enum tree_type type)
{
	long node = add_node(p, type, slice_of(NULL, 0));

	if (node < 0 || p->depth == TREE_DEPTH_MAX)
		return -1;
	p->at++;
	p->open[p->depth] = node;
	p->last[p->depth] = -1;
	p->depth++;
	p->state = type == TREE_OBJECT ? STATE_FIRST_KEY : STATE_FIRST_VALUE;
	return 0;
}

static int
take_close(struct parser *p)
{
	enum tree_type type;

	if (p->depth == 0)
		return -1;
	type = p->d->nodes[p->open[p->depth - 1]].type;
	if (*p->at != (type == TREE_OBJECT ? '}' : ']'))
		return -1;
	p->at++;
	p->depth--;
	p->state = STATE_AFTER;
	return 0;
}

static int
take_value(struct parser *p)
{
	struct slice text;

	switch (*p->at) {
	case '{':
		return take_open(p, TREE_OBJECT);
	case '[':
		return take_open(p, TREE_ARRAY);
	case ']':
		return p->state == STATE_FIRST_VALUE ? take_close(p) : -1;
	default:
		break;
	}
	p->state = STATE_AFTER;
	switch (*p->at) {
	case '"':
		return take_string(p, &text) != 0 ||
			add_node(p, TREE_STRING, text) < 0
		    ? -1
		    : 0;
	case 't':
		return take_word(p, "true", TREE_BOOL);
	case 'f':
		return take_word(p, "false", TREE_BOOL);
	case 'n':
		return take_word(p, "null", TREE_NULL);
	default:
		return take_number(p);
	}
}

static int
take_key(struct parser *p)
{
	if (*p->at == '}')
		return p->state == STATE_FIRST_KEY ? take_close(p) : -1;
	if (take_string(p, &p->key) != 0)
		return -1;
	skip_space(p);
	if (p->at == p->end || *p->at != ':')
		return -1;
	p->at++;
	p->state = STATE_VALUE;
	return 0;
}

static int
take_after(struct parser *p)
{
	if (*p->at != ',')
		return take_close(p);
	if (p->depth == 0)
		return -1;
	p->at++;
	p->state = p->d->nodes[p->open[p->depth - 1]].type == TREE_OBJECT
	    ? STATE_KEY
	    : STATE_VALUE;
	return 0;
}

int
tree_parse(struct tree *d, struct slice text, struct err *err)
{
	struct parser p = {
	    .d = d,
	    .at = text.data,
	    .end = text.data + text.len,
	    .state = STATE_VALUE,
	};
	int rc = 0;

	*d = (struct tree){0};
	skip_space(&p);
	while (rc == 0 && p.at < p.end) {
		if (p.state == STATE_VALUE || p.state == STATE_FIRST_VALUE)
			rc = take_value(&p);
		else if (p.state == STATE_AFTER)
			rc = take_after(&p);
		else
			rc = take_key(&p);
		skip_space(&p);
	}
	if (rc != 0 || p.depth != 0 || p.state != STATE_AFTER)
		return err_set(
		    err, "not JSON at byte %zu", (size_t)(p.at - text.data));
	return 0;
}

void
tree_fini(struct tree *d)
{
	free(d->nodes);
	*d = (struct tree){0};
}

long
tree_child(const struct tree *d, long at)
{
	return at < 0 ? -1 : d->nodes[at].child;
}

long
tree_next(const struct tree *d, long at)
{
	return at < 0 ? -1 : d->nodes[at].next;
}

long
tree_find(const struct tree *d, long at, const char *key)
{
	long i;

	if (at < 0 || d->nodes[at].type != TREE_OBJECT)
		return -1;
	for (i = d->nodes[at].child; i >= 0; i = d->nodes[i].next)
		if (slice_is(d->nodes[i].key, key))
			return i;
	return -1;
}

double
tree_number(const struct tree *d, long at, const char *key, double otherwise)
{
	char text[64];
	long i = tree_find(d, at, key);
	struct slice s;

	if (i < 0 || d->nodes[i].type != TREE_NUMBER)
		return otherwise;
	s = d->nodes[i].text;
	if (s.len >= sizeof(text))
		return otherwise;
	memcpy(text, s.data, s.len);
	text[s.len] = '\0';
	return strtod(text, NULL);
}

bool
tree_bool(const struct tree *d, long at, const char *key)
{
	long i = tree_find(d, at, key);

	return i >= 0 && d->nodes[i].type == TREE_BOOL &&
	    slice_is(d->nodes[i].text, "true");
}

/* The code unit of four hex digits, or -1. */
static long
hex4(const uint8_t *s, size_t left)
{
	long value = 0;
	int i, c;

	if (left < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		c = s[i];
		if (c >= '0' && c <= '9')
			c -= '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			c = (c | 32) - 'a' + 10;
		else
			return -1;
		value = value * 16 + c;
	}
	return value;
}

/* C0, DEL and C1: what a terminal might obey. */
static bool
is_control(long unit)
{
	return unit < 0x20 || (unit >= 0x7f && unit < 0xa0);
}

/* One unit of the basic plane as UTF-8; halves of pairs become U+FFFD. */
static size_t
put_unit(char *out, long unit)
{
	if (unit < 0 || (unit >= 0xd800 && unit <= 0xdfff))
		unit = 0xfffd;
	if (unit < 0x80 || is_control(unit)) {
		out[0] = is_control(unit) ? '?' : (char)unit;
		return 1;
	}
	if (unit < 0x800) {
		out[0] = (char)(0xc0 | unit >> 6);
		out[1] = (char)(0x80 | (unit & 0x3f));
		return 2;
	}
	out[0] = (char)(0xe0 | unit >> 12);
	out[1] = (char)(0x80 | (unit >> 6 & 0x3f));
	out[2] = (char)(0x80 | (unit & 0x3f));
	return 3;
}

char *
tree_string(const struct tree *d, long at, const char *key)
{
	long i = tree_find(d, at, key);
	struct slice s;
	size_t from, to = 0;
	char *out;

	if (i < 0 || d->nodes[i].type != TREE_STRING)
		return mem_strdup("");
	s = d->nodes[i].text;
	/* No escape is shorter than what it stands for. */
	out = mem_alloc(s.len + 1);
	for (from = 0; from < s.len; from++) {
		if (s.data[from] != '\\') {
			/* C1 is two bytes in UTF-8: C2 and the code. */
			if (s.data[from] == 0xc2 && from + 1 < s.len &&
			    is_control(s.data[from + 1])) {
				out[to++] = '?';
				from++;
			} else {
				out[to++] = s.data[from] == 0x7f
				    ? '?'
				    : (char)s.data[from];
			}
			continue;
		}
		if (++from == s.len)
			break;
		if (s.data[from] == 'u') {
			to += put_unit(out + to,
			    hex4(s.data + from + 1, s.len - from - 1));
			from += s.len - from - 1 < 4 ? s.len - from - 1 : 4;
		} else {
			out[to++] = strchr("\"\\/", s.data[from]) != NULL
			    ? (char)s.data[from]
			    : '?';
		}
	}
	out[to] = '\0';
	return out;
}
