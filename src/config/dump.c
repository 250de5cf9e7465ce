/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A settings object as YAML that settings_load takes: every option of the table
 * in its order, one a line, texts always quoted so that no value depends on
 * what YAML would make of it.
 */
#include "config.h"

#include <string.h>

#include "config/assign.h"
#include "config/value.h"

static void
print_list(struct buf *out, size_t i)
{
	value_printf(out, "%s", i == 0 ? "[" : ", ");
}

static void
print_strings(struct buf *out, const struct string_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++) {
		print_list(out, i);
		value_print_string(out, list->items[i], strlen(list->items[i]));
	}
	value_printf(out, "%s]", i == 0 ? "[" : "");
}

static void
print_values(struct buf *out, const struct filter_settings *f)
{
	size_t i;

	for (i = 0; i < f->null_value_count; i++) {
		print_list(out, i);
		value_print_string(
		    out, f->null_values[i].data, f->null_values[i].len);
	}
	value_printf(out, "%s]", i == 0 ? "[" : "");
}

static void
print_addresses(struct buf *out, const struct settings *s)
{
	size_t i;

	for (i = 0; i < s->listen_count; i++) {
		print_list(out, i);
		value_print_string(
		    out, s->listen[i].text, strlen(s->listen[i].text));
	}
	value_printf(out, "]");
}

static void
print_absent(struct buf *out, const struct filter_settings *f)
{
	if (f->absent == SETTING_ABSENT_NIL) {
		value_printf(out, "nil");
		return;
	}
	value_printf(out,
	    "{%s: ", f->absent == SETTING_ABSENT_VALUE ? "value" : "error");
	value_print_string(out, f->absent_text.data, f->absent_text.len);
	value_printf(out, "}");
}

static void
print_word(const struct option *o, const void *from, struct buf *out)
{
	unsigned index;

	memcpy(&index, from, sizeof(index));
	value_print_word(out, o->words, index);
}

void
option_print(const struct option *o, const void *base, struct buf *out)
{
	const void *from = (const char *)base + o->offset;
	const char *text;

	switch (o->type) {
	case OPTION_SECTION:
	case OPTION_FILTERS:
		break;
	case OPTION_BOOL:
		value_printf(out, "%s", *(const bool *)from ? "true" : "false");
		break;
	case OPTION_UNSIGNED:
		value_printf(out, "%u", *(const unsigned *)from);
		break;
	case OPTION_WHOLE:
		value_printf(
		    out, "%llu", (unsigned long long)*(const uint64_t *)from);
		break;
	case OPTION_REAL:
		value_print_real(out, *(const double *)from);
		break;
	case OPTION_SIZE:
		value_print_size(out, *(const uint64_t *)from);
		break;
	case OPTION_DURATION:
		value_print_duration(out, *(const uint64_t *)from);
		break;
	case OPTION_STRING:
	case OPTION_PATH:
		text = *(char *const *)from;
		value_print_string(out, text, strlen(text));
		break;
	case OPTION_ADDRESS:
		text = ((const struct address *)from)->text;
		value_print_string(
		    out, text != NULL ? text : "", text ? strlen(text) : 0);
		break;
	case OPTION_ADDRESSES:
		print_addresses(out, base);
		break;
	case OPTION_STRINGS:
		print_strings(out, from);
		break;
	case OPTION_WORD:
		print_word(o, from, out);
		break;
	case OPTION_SCHEDULE:
		value_print_schedule(out, from);
		break;
	case OPTION_ABSENT:
		print_absent(out, base);
		break;
	case OPTION_VALUES:
		print_values(out, base);
		break;
	}
}

static void
dump_filter(struct buf *out, const struct filter_settings *f)
{
	bool first = true;
	size_t i;

	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (o->scope != SCOPE_FILTER)
			continue;
		value_printf(out, "%s%*s%s:", first ? "  - " : "    ",
		    (int)option_depth(o) * 2, "", option_key(o));
		first = false;
		if (o->type != OPTION_SECTION) {
			value_printf(out, " ");
			option_print(o, f, out);
		}
		value_printf(out, "\n");
	}
}

static void
dump_filters(struct buf *out, const struct settings *s)
{
	size_t i;

	value_printf(out, "%s\n", s->filter_count == 0 ? " []" : "");
	for (i = 0; i < s->filter_count; i++)
		dump_filter(out, &s->filters[i]);
}

char *
settings_dump(const struct settings *s)
{
	struct buf out;
	size_t i;

	value_text_start(&out);
	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (o->scope != SCOPE_SETTINGS)
			continue;
		value_printf(&out, "%*s%s:", (int)option_depth(o) * 2, "",
		    option_key(o));
		if (o->type == OPTION_FILTERS) {
			dump_filters(&out, s);
			continue;
		}
		if (o->type != OPTION_SECTION) {
			value_printf(&out, " ");
			option_print(o, s, &out);
		}
		value_printf(&out, "\n");
	}
	return value_text_end(&out);
}
