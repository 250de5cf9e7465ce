/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the single values of the meta hash. It judges each value alone; what
 * they mean together is for meta.c. No locale, no limit but those given here.
 * Pure. Any thread.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "filter/meta_field.h"

static const char *const field_names[FIELD_COUNT] = {
    [FIELD_STATE] = "state",
    [FIELD_SHARDS] = "shards",
    [FIELD_BITS] = "bits",
    [FIELD_K] = "k",
    [FIELD_SCHEME] = "scheme",
    [FIELD_SINGLE] = "single",
    [FIELD_KEY] = "key",
    [FIELD_TAG] = "tag",
    [FIELD_CAPACITY] = "capacity",
    [FIELD_ERROR_RATE] = "error-rate",
    [FIELD_ELEMENTS] = "elements",
    [FIELD_BEGAN] = "began",
    [FIELD_ENDED] = "ended",
    [FIELD_SEALED] = "sealed",
    [FIELD_CARRIED] = "carried",
    [FIELD_SET] = "set",
};

static const char *const state_names[GENERATION_UNKNOWN] = {
    [GENERATION_MAKING] = "making",
    [GENERATION_BUILDING] = "building",
    [GENERATION_SEALED] = "sealed",
    [GENERATION_LOST] = "lost",
};

static int
lookup(struct slice name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (slice_is(name, names[i]))
			return i;
	return -1;
}

int
meta_field_lookup(struct slice name)
{
	return lookup(name, field_names, FIELD_COUNT);
}

const char *
meta_field_name(enum generation_field f)
{
	return field_names[f];
}

int
meta_field_unsigned(struct slice s, uint64_t max, uint64_t *out)
{
	int64_t v;

	if (slice_to_int64(s, &v) == -1 || v < 0 || (uint64_t)v > max)
		return -1;
	*out = (uint64_t)v;
	return 0;
}

static int
read_u32(struct slice s, uint32_t *out)
{
	uint64_t v;

	if (meta_field_unsigned(s, UINT32_MAX, &v) == -1)
		return -1;
	*out = (uint32_t)v;
	return 0;
}

static int
read_flag(struct slice s, bool *out)
{
	if (!slice_is(s, "0") && !slice_is(s, "1"))
		return -1;
	*out = s.data[0] == '1';
	return 0;
}

int
meta_field_text(struct slice s, char *out, size_t size)
{
	if (s.len >= size || (s.len > 0 && memchr(s.data, '\0', s.len) != NULL))
		return -1;
	if (s.len > 0)
		memcpy(out, s.data, s.len);
	out[s.len] = '\0';
	return 0;
}

/*
 * Digits, perhaps a point and digits, perhaps an exponent: what "%.17g" writes
 * for a rate, whatever the locale (strtod would follow it). Above 0, below 1;
 * exact where the digits fit a double, as all sensible rates do.
 */
static int
read_rate(struct slice s, double *out)
{
	uint64_t digits = 0, exponent;
	int scale = 0, count = 0;
	bool point = false, negative = false;
	size_t i;

	for (i = 0; i < s.len; i++) {
		uint8_t c = s.data[i];

		if (c == '.' && !point && count > 0) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		if (++count > 40)
			return -1;
		if (digits > (UINT64_MAX - 9) / 10) {
			scale += point ? 0 : 1; /* digits beyond a double's */
			continue;
		}
		digits = digits * 10 + (c - '0');
		scale -= point ? 1 : 0;
	}
	if (count == 0 || s.data[i - 1] == '.')
		return -1;
	if (i < s.len) {
		if (s.data[i] != 'e' && s.data[i] != 'E')
			return -1;
		i++;
		if (i < s.len && (s.data[i] == '-' || s.data[i] == '+'))
			negative = s.data[i++] == '-';
		while (i + 1 < s.len && s.data[i] == '0')
			i++; /* "1e-09" */
		if (meta_field_unsigned(
			slice_of(s.data + i, s.len - i), 60, &exponent) == -1)
			return -1;
		scale += negative ? -(int)exponent : (int)exponent;
	}
	*out = scale < 0 ? (double)digits / pow(10, -scale)
			 : (double)digits * pow(10, scale);
	return *out > 0 && *out < 1 ? 0 : -1;
}

static int
read_state(struct slice s, enum generation_state *out)
{
	int i = lookup(s, state_names, GENERATION_UNKNOWN);

	*out = i == -1 ? GENERATION_UNKNOWN : (enum generation_state)i;
	return i == -1 ? -1 : 0;
}

static int
read_tag(struct slice s, uint8_t tag[TAG_BYTES])
{
	static const uint8_t none[TAG_BYTES];

	/* Zero is what a shard holds that is not sealed. */
	if (s.len != TAG_BYTES || memcmp(s.data, none, TAG_BYTES) == 0)
		return -1;
	memcpy(tag, s.data, TAG_BYTES);
	return 0;
}

int
meta_field_time(struct slice s, int64_t *out)
{
	uint64_t v;

	if (meta_field_unsigned(s, INT64_MAX, &v) == -1)
		return -1;
	*out = (int64_t)v;
	return 0;
}

int
meta_field_read(
    struct generation *g, enum generation_field field, struct slice v)
{
	switch (field) {
	case FIELD_STATE:
		return read_state(v, &g->state);
	case FIELD_SHARDS:
		return read_u32(v, &g->geometry.shards);
	case FIELD_BITS:
		return meta_field_unsigned(v, UINT64_MAX, &g->geometry.bits);
	case FIELD_K:
		return read_u32(v, &g->geometry.hashes);
	case FIELD_SCHEME:
		return scheme_parse(v, &g->geometry.scheme);
	case FIELD_SINGLE:
		return read_flag(v, &g->geometry.single);
	case FIELD_KEY:
		return meta_field_text(
		    v, g->key_fingerprint, sizeof(g->key_fingerprint));
	case FIELD_TAG:
		return read_tag(v, g->tag);
	case FIELD_CAPACITY:
		return meta_field_unsigned(v, UINT64_MAX, &g->capacity);
	case FIELD_ERROR_RATE:
		return read_rate(v, &g->error_rate);
	case FIELD_ELEMENTS:
		return meta_field_unsigned(v, UINT64_MAX, &g->elements);
	case FIELD_BEGAN:
		return meta_field_time(v, &g->began_us);
	case FIELD_ENDED:
		return meta_field_time(v, &g->ended_us);
	case FIELD_SEALED:
		return read_u32(v, &g->sealed);
	case FIELD_CARRIED:
		return read_flag(v, &g->carried);
	case FIELD_SET:
		return meta_field_unsigned(v, UINT64_MAX, &g->bits_set);
	case FIELD_COUNT:
	default:
		return -1;
	}
}
