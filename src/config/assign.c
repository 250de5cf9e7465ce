/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of options: see assign.h. Scalars come as text and get their type from
 * the table; whether they were quoted makes no difference, but for an empty
 * plain scalar, which is YAML's way of leaving a value out.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/assign.h"
#include "config/value.h"
#include "core/check.h"
#include "core/mem.h"

#define TEXT_MAX       4095  /* a text or path */
#define VALUE_MAX      65536 /* absent-reply value, each null value */
#define ERROR_TEXT_MAX 512
#define ITEMS_MAX      1000 /* of a list */

static void *
field(const struct option *o, void *base)
{
	return (char *)base + o->offset;
}

static int
out_of_range(const struct option *o, const char *text, struct err *err)
{
	struct buf range;
	char *allowed, *shown = issues_quote(text, strlen(text));

	value_text_start(&range);
	option_print_range(&range, o);
	allowed = value_text_end(&range);
	err_set(err, "must be %s, not '%s'", allowed, shown);
	free(allowed);
	free(shown);
	return -1;
}

static bool
in_range(const struct option *o, double v)
{
	if (o->max <= 0)
		return true;
	if ((o->flags & OPTION_OR_ZERO) && v <= 0)
		return true;
	if ((o->flags & OPTION_ABOVE_MIN) && v <= o->min)
		return false;
	return v >= o->min && v <= o->max;
}

/* unsigned, uint64_t and double fields. */
static int
assign_number(
    const struct option *o, void *to, const char *text, struct err *err)
{
	uint64_t whole = 0;
	double real = 0;
	int r;

	if (o->type == OPTION_REAL)
		r = value_parse_real(text, &real, err);
	else if (o->type == OPTION_SIZE)
		r = value_parse_size(text, &whole, err);
	else if (o->type == OPTION_DURATION)
		r = value_parse_duration(text, &whole, err);
	else
		r = value_parse_whole(text, &whole, err);
	if (r != 0)
		return -1;
	if (!in_range(o, o->type == OPTION_REAL ? real : (double)whole))
		return out_of_range(o, text, err);
	if (o->type == OPTION_REAL)
		*(double *)to = real;
	else if (o->type == OPTION_UNSIGNED)
		*(unsigned *)to = (unsigned)whole;
	else
		*(uint64_t *)to = whole;
	return 0;
}

static bool
has_control(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static int
assign_string(
    const struct option *o, char **to, const char *text, struct err *err)
{
	if (text[0] == '\0' && (o->flags & OPTION_FILLED))
		return err_set(err, "must not be empty");
	if (strlen(text) > TEXT_MAX)
		return err_set(err, "must be at most %d bytes", TEXT_MAX);
	if (has_control(text))
		return err_set(err, "must not hold control characters");
	if (o->type == OPTION_PATH && text[0] != '\0' && text[0] != '/')
		return err_set(err, "must be an absolute path");
	free(*to);
	*to = mem_strdup(text);
	return 0;
}

static int
parse_address(const struct option *o, struct address *out, const char *text,
    struct err *err)
{
	if (address_parse(out, text, err) != 0)
		return -1;
	if (out->kind == ADDRESS_TCP && out->port == 0 &&
	    !(o->flags & OPTION_LISTENS)) {
		address_fini(out);
		return err_set(err, "port must be 1 to 65535, not '0'");
	}
	return 0;
}

static int
assign_address(const struct option *o, struct address *to, const char *text,
    struct err *err)
{
	struct address a = {.kind = ADDRESS_NONE};

	if (text[0] == '\0' && (o->flags & OPTION_FILLED))
		return err_set(err, "must not be empty");
	if (text[0] != '\0' && parse_address(o, &a, text, err) != 0)
		return -1;
	address_fini(to);
	*to = a;
	return 0;
}

static int
assign_word(const struct option *o, void *to, const char *text, struct err *err)
{
	unsigned index;

	if (value_parse_word(text, o->words, &index, err) != 0)
		return -1;
	/* Every enum of settings.h starts at 0 and is as wide as unsigned. */
	memcpy(to, &index, sizeof(index));
	return 0;
}

static int
assign_text(
    const struct option *o, void *base, const char *text, struct err *err)
{
	void *to = field(o, base);

	switch (o->type) {
	case OPTION_BOOL:
		return value_parse_bool(text, to, err);
	case OPTION_UNSIGNED:
	case OPTION_WHOLE:
	case OPTION_REAL:
	case OPTION_SIZE:
	case OPTION_DURATION:
		return assign_number(o, to, text, err);
	case OPTION_STRING:
	case OPTION_PATH:
		return assign_string(o, to, text, err);
	case OPTION_ADDRESS:
		return assign_address(o, to, text, err);
	case OPTION_WORD:
		return assign_word(o, to, text, err);
	case OPTION_SCHEDULE:
		return value_parse_schedule(text, to, err);
	default:
		return err_set(err, "must be a list or a mapping");
	}
}

static int
complain(const struct option *o, const struct node *n, struct issues *issues,
    const char *what)
{
	issues_error(issues, n->line, n->column, "%s: %s", o->path, what);
	return -1;
}

/* 0 when n is a list of scalars of at most ITEMS_MAX; the rest is reported. */
static int
check_list(const struct option *o, const struct node *n, struct issues *issues)
{
	size_t i;
	int r = 0;

	if (n->kind == NODE_SCALAR && n->plain && n->len == 0 &&
	    !(o->flags & OPTION_FILLED))
		return 0;
	if (n->kind != NODE_SEQUENCE)
		return complain(o, n, issues, "must be a list: [a, b]");
	if (n->count == 0 && (o->flags & OPTION_FILLED))
		return complain(o, n, issues, "must not be an empty list");
	if (n->count > ITEMS_MAX)
		return complain(o, n, issues, "has more than 1000 items");
	for (i = 0; i < n->count; i++) {
		if (n->items[i]->kind == NODE_BROKEN)
			r = -1;
		else if (n->items[i]->kind != NODE_SCALAR)
			r = complain(
			    o, n->items[i], issues, "an item must be a text");
	}
	return r;
}

static void
free_strings(struct string_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct string_list){0};
}

static int
assign_strings(const struct option *o, struct string_list *to,
    const struct node *n, struct issues *issues)
{
	size_t i;

	if (check_list(o, n, issues) != 0)
		return -1;
	free_strings(to);
	to->items = mem_zalloc(n->count + 1, sizeof(*to->items));
	for (i = 0; i < n->count; i++)
		to->items[to->count++] = mem_strdup(n->items[i]->text);
	return 0;
}

static void
free_values(struct filter_settings *f)
{
	size_t i;

	for (i = 0; i < f->null_value_count; i++)
		free(f->null_values[i].data);
	free(f->null_values);
	f->null_values = NULL;
	f->null_value_count = 0;
}

static int
assign_values(const struct option *o, struct filter_settings *f,
    const struct node *n, struct issues *issues)
{
	size_t i;

	if (check_list(o, n, issues) != 0)
		return -1;
	for (i = 0; i < n->count; i++)
		if (n->items[i]->len > VALUE_MAX)
			return complain(o, n->items[i], issues,
			    "must be at most 65536 bytes");
	free_values(f);
	f->null_values = mem_zalloc(n->count + 1, sizeof(*f->null_values));
	for (i = 0; i < n->count; i++)
		f->null_values[f->null_value_count++] = (struct bytes){
		    .data = mem_dup(n->items[i]->text, n->items[i]->len + 1),
		    .len = n->items[i]->len};
	return 0;
}

static void
free_addresses(struct settings *s)
{
	size_t i;

	for (i = 0; i < s->listen_count; i++)
		address_fini(&s->listen[i]);
	free(s->listen);
	s->listen = NULL;
	s->listen_count = 0;
}

static void
add_address(struct settings *s, struct address a)
{
	s->listen = mem_realloc(
	    s->listen, (s->listen_count + 1) * sizeof(*s->listen));
	s->listen[s->listen_count++] = a;
}

static int
assign_addresses(const struct option *o, struct settings *s,
    const struct node *n, struct issues *issues)
{
	struct node *const *items = n->items;
	const struct node *one[1] = {n};
	size_t count = n->count, i;
	struct address a;
	struct err err;
	int r = 0;

	if (n->kind == NODE_SEQUENCE) {
		if (count == 0)
			return complain(
			    o, n, issues, "must not be an empty list");
		if (check_list(o, n, issues) != 0)
			r = -1;
	} else if (n->kind != NODE_SCALAR)
		return complain(
		    o, n, issues, "must be an address or a list of addresses");
	else
		count = 1;
	free_addresses(s);
	for (i = 0; i < count; i++) {
		const struct node *item = n->kind == NODE_SEQUENCE ? items[i]
								   : one[0];

		if (item->kind != NODE_SCALAR)
			continue;
		if (parse_address(o, &a, item->text, &err) != 0)
			r = complain(o, item, issues, err.text);
		else
			add_address(s, a);
	}
	return r;
}

static void
set_absent(struct filter_settings *f, enum setting_absent kind,
    const char *text, size_t len)
{
	free(f->absent_text.data);
	f->absent = kind;
	f->absent_text = (struct bytes){0};
	if (kind != SETTING_ABSENT_NIL)
		f->absent_text = (struct bytes){
		    .data = mem_dup(text, len + 1), .len = len};
}

static int
assign_absent_pair(const struct option *o, struct filter_settings *f,
    const struct node *key, const struct node *v, struct issues *issues)
{
	if (key->kind == NODE_BROKEN || v->kind == NODE_BROKEN)
		return -1;
	if (key->kind != NODE_SCALAR ||
	    (strcmp(key->text, "value") != 0 &&
		strcmp(key->text, "error") != 0))
		return complain(
		    o, key, issues, "must be nil, {value: V} or {error: TEXT}");
	if (v->kind != NODE_SCALAR)
		return complain(o, v, issues, "must be a text");
	if (v->plain && v->len == 0)
		return complain(
		    o, v, issues, "a text is missing (\"\" is an empty value)");
	if (strcmp(key->text, "value") == 0) {
		if (v->len > VALUE_MAX)
			return complain(
			    o, v, issues, "must be at most 65536 bytes");
		set_absent(f, SETTING_ABSENT_VALUE, v->text, v->len);
		return 0;
	}
	if (v->len == 0 || v->len > ERROR_TEXT_MAX || has_control(v->text))
		return complain(o, v, issues,
		    "the error must be one line of 1 to 512 bytes");
	set_absent(f, SETTING_ABSENT_ERROR, v->text, v->len);
	return 0;
}

static int
assign_absent(const struct option *o, struct filter_settings *f,
    const struct node *n, struct issues *issues)
{
	if (n->kind == NODE_SCALAR && strcmp(n->text, "nil") == 0) {
		set_absent(f, SETTING_ABSENT_NIL, NULL, 0);
		return 0;
	}
	if (n->kind != NODE_MAPPING || n->count != 2)
		return complain(
		    o, n, issues, "must be nil, {value: V} or {error: TEXT}");
	return assign_absent_pair(o, f, n->items[0], n->items[1], issues);
}

int
option_assign(const struct option *o, void *base, const struct node *n,
    struct issues *issues)
{
	struct err err;

	if (n->kind == NODE_BROKEN)
		return -1;
	switch (o->type) {
	case OPTION_ADDRESSES:
		return assign_addresses(o, base, n, issues);
	case OPTION_STRINGS:
		return assign_strings(o, field(o, base), n, issues);
	case OPTION_ABSENT:
		return assign_absent(o, base, n, issues);
	case OPTION_VALUES:
		return assign_values(o, base, n, issues);
	default:
		break;
	}
	if (n->kind != NODE_SCALAR)
		return complain(o, n, issues, "must be a single value");
	if (assign_text(o, base, n->text, &err) != 0)
		return complain(o, n, issues, err.text);
	return 0;
}

void
option_set_default(const struct option *o, void *base)
{
	struct err err;
	struct address a;

	switch (o->type) {
	case OPTION_SECTION:
	case OPTION_FILTERS:
	case OPTION_STRINGS: /* none */
	case OPTION_ABSENT:  /* SETTING_ABSENT_NIL is zero */
	case OPTION_VALUES:
		return;
	case OPTION_ADDRESSES:
		check(address_parse(&a, o->fallback, &err) == 0);
		add_address(base, a);
		return;
	case OPTION_STRING:
	case OPTION_PATH:
		*(char **)field(o, base) = mem_strdup(o->fallback);
		return;
	default:
		if (!(o->flags & OPTION_REQUIRED))
			check(assign_text(o, base, o->fallback, &err) == 0);
	}
}

void
option_free(const struct option *o, void *base)
{
	struct filter_settings *f = base;

	switch (o->type) {
	case OPTION_STRING:
	case OPTION_PATH:
		free(*(char **)field(o, base));
		break;
	case OPTION_ADDRESS:
		address_fini(field(o, base));
		break;
	case OPTION_ADDRESSES:
		free_addresses(base);
		break;
	case OPTION_STRINGS:
		free_strings(field(o, base));
		break;
	case OPTION_ABSENT:
		free(f->absent_text.data);
		break;
	case OPTION_VALUES:
		free_values(f);
		break;
	default:
		break;
	}
}
