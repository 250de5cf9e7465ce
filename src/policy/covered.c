/* SPDX-License-Identifier: BSD-2-Clause */
/* The reads that may be answered here: see covered.h. */
#include "config.h"

#include <string.h>

#include "core/check.h"
#include "policy/covered.h"
#include "resp/encode.h"

/* GETBIT takes offsets below 8 * proto-max-bulk-len, whose least value this is. */
#define BIT_OFFSETS (8 * 1048576)

static const struct covered_read rows[] = {
    {"get", NULL, ARGS_NONE, MISSING_NIL, true, true},
    {"mget", NULL, ARGS_KEYS, MISSING_NILS, true, false},
    {"strlen", NULL, ARGS_NONE, MISSING_ZERO, false, false},
    {"getrange", NULL, ARGS_RANGE, MISSING_EMPTY_STRING, false, false},
    {"substr", NULL, ARGS_RANGE, MISSING_EMPTY_STRING, false, false},
    {"exists", NULL, ARGS_KEYS, MISSING_ZERO, false, false},
    {"ttl", NULL, ARGS_NONE, MISSING_TTL, false, true},
    {"pttl", NULL, ARGS_NONE, MISSING_TTL, false, true},
    {"expiretime", NULL, ARGS_NONE, MISSING_TTL, false, true},
    {"pexpiretime", NULL, ARGS_NONE, MISSING_TTL, false, true},
    {"type", NULL, ARGS_NONE, MISSING_NONE, false, true},
    {"hget", NULL, ARGS_FIELD, MISSING_NIL, false, false},
    {"hmget", NULL, ARGS_FIELDS, MISSING_NILS, false, false},
    {"hgetall", NULL, ARGS_NONE, MISSING_EMPTY_MAP, false, true},
    {"hexists", NULL, ARGS_FIELD, MISSING_ZERO, false, false},
    {"hlen", NULL, ARGS_NONE, MISSING_ZERO, false, true},
    {"hkeys", NULL, ARGS_NONE, MISSING_EMPTY_ARRAY, false, true},
    {"hvals", NULL, ARGS_NONE, MISSING_EMPTY_ARRAY, false, true},
    {"hstrlen", NULL, ARGS_FIELD, MISSING_ZERO, false, false},
    {"smembers", NULL, ARGS_NONE, MISSING_EMPTY_SET, false, true},
    {"sismember", NULL, ARGS_FIELD, MISSING_ZERO, false, false},
    {"smismember", NULL, ARGS_FIELDS, MISSING_ZEROS, false, false},
    {"scard", NULL, ARGS_NONE, MISSING_ZERO, false, true},
    {"lrange", NULL, ARGS_RANGE, MISSING_EMPTY_ARRAY, false, false},
    {"llen", NULL, ARGS_NONE, MISSING_ZERO, false, true},
    {"lindex", NULL, ARGS_INTEGER, MISSING_NIL, false, false},
    {"zrange", NULL, ARGS_RANGE, MISSING_EMPTY_ARRAY, false, false},
    {"zscore", NULL, ARGS_FIELD, MISSING_NIL, false, false},
    {"zmscore", NULL, ARGS_FIELDS, MISSING_NILS, false, false},
    {"zcard", NULL, ARGS_NONE, MISSING_ZERO, false, true},
    {"zrank", NULL, ARGS_FIELD, MISSING_NIL, false, false},
    {"getbit", NULL, ARGS_BIT, MISSING_ZERO, false, false},
    {"bitcount", NULL, ARGS_NONE, MISSING_ZERO, false, false},
    {"dump", NULL, ARGS_NONE, MISSING_NIL, false, true},
    {"object", "encoding", ARGS_NONE, MISSING_NIL, false, true},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

const struct covered_read *
covered_find(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

size_t
covered_count(void)
{
	return ROWS;
}

const struct covered_read *
covered_at(size_t index)
{
	check(index < ROWS);
	return &rows[index];
}

size_t
covered_index(const struct covered_read *r)
{
	check(r >= rows && r < rows + ROWS);
	return (size_t)(r - rows);
}

/* The fewest arguments of the plain form, the name included. */
static size_t
least(const struct covered_read *r)
{
	size_t with_key = covered_first_key(r) + 1;

	switch (r->args) {
	case ARGS_NONE:
	case ARGS_KEYS:
		return with_key;
	case ARGS_FIELD:
	case ARGS_FIELDS:
	case ARGS_INTEGER:
	case ARGS_BIT:
		return with_key + 1;
	case ARGS_RANGE:
		return with_key + 2;
	}
	check(false);
	return 0;
}

static bool
is_variadic(const struct covered_read *r)
{
	return r->args == ARGS_KEYS || r->args == ARGS_FIELDS;
}

bool
covered_fits(const struct covered_read *r, int arity)
{
	if (arity < 0)
		return (size_t) - (int64_t)arity <= least(r);
	return !is_variadic(r) && (size_t)arity == least(r);
}

static bool
is_integer(struct slice s)
{
	int64_t n;

	return slice_to_int64(s, &n) == 0;
}

static bool
is_bit_offset(struct slice s)
{
	int64_t n;

	return slice_to_int64(s, &n) == 0 && n >= 0 && n < BIT_OFFSETS;
}

bool
covered_is_plain(
    const struct covered_read *r, const struct slice *argv, size_t argc)
{
	if (argc < least(r) || (argc > least(r) && !is_variadic(r)))
		return false;
	if (r->sub != NULL && !slice_is_nocase(argv[1], r->sub))
		return false;
	switch (r->args) {
	case ARGS_INTEGER:
		return is_integer(argv[argc - 1]);
	case ARGS_RANGE:
		return is_integer(argv[argc - 2]) && is_integer(argv[argc - 1]);
	case ARGS_BIT:
		return is_bit_offset(argv[argc - 1]);
	case ARGS_NONE:
	case ARGS_KEYS:
	case ARGS_FIELD:
	case ARGS_FIELDS:
		break;
	}
	return true;
}

bool
covered_is_only_key(const struct covered_read *r)
{
	return r->args == ARGS_NONE && r->sub == NULL;
}

size_t
covered_first_key(const struct covered_read *r)
{
	return r->sub != NULL ? 2 : 1;
}

size_t
covered_key_count(const struct covered_read *r, size_t argc)
{
	return r->args == ARGS_KEYS ? argc - covered_first_key(r) : 1;
}

size_t
covered_element_count(const struct covered_read *r, size_t argc)
{
	size_t keys = covered_key_count(r, argc);

	return r->args == ARGS_FIELDS ? argc - covered_first_key(r) - keys
				      : keys;
}

static int
put_each(struct buf *out, int proto, size_t count, bool zero)
{
	if (encode_array(out, count) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if ((zero ? encode_integer(out, 0) : encode_nil(out, proto)) !=
		    0)
			return -1;
	return 0;
}

int
covered_put_missing(
    const struct covered_read *r, int proto, size_t count, struct buf *out)
{
	switch (r->missing) {
	case MISSING_NIL:
		return encode_nil(out, proto);
	case MISSING_NILS:
		return put_each(out, proto, count, false);
	case MISSING_ZERO:
		return encode_integer(out, 0);
	case MISSING_ZEROS:
		return put_each(out, proto, count, true);
	case MISSING_TTL:
		return encode_integer(out, -2);
	case MISSING_NONE:
		return encode_status(out, "none");
	case MISSING_EMPTY_STRING:
		return encode_bulk(out, slice_str(""));
	case MISSING_EMPTY_ARRAY:
		return encode_array(out, 0);
	case MISSING_EMPTY_MAP:
		return encode_map(out, proto, 0);
	case MISSING_EMPTY_SET:
		return encode_set(out, proto, 0);
	}
	check(false);
	return -1;
}

size_t
covered_sample(const struct covered_read *r, struct slice key,
    struct slice argv[COVERED_SAMPLE_MAX])
{
	size_t n = 0;

	argv[n++] = slice_str(r->name);
	if (r->sub != NULL)
		argv[n++] = slice_str(r->sub);
	argv[n++] = key;
	while (n < least(r))
		argv[n++] = slice_str("0"); /* a field, an integer, an offset */
	return n;
}
