/* SPDX-License-Identifier: BSD-2-Clause */
/* What does not fit the header of slices: reading numbers. Any thread. */
#include "config.h"

#include "core/slice.h"

int
slice_to_int64(struct slice s, int64_t *out)
{
	size_t i = 0;
	bool negative = false;
	uint64_t v = 0, limit = INT64_MAX;

	if (s.len > 0 && s.data[0] == '-') {
		negative = true;
		limit++;
		i = 1;
	}
	if (i == s.len)
		return -1;
	if (s.data[i] == '0') {
		if (negative || s.len != 1)
			return -1;
		*out = 0;
		return 0;
	}
	for (; i < s.len; i++) {
		uint64_t digit = (uint64_t)s.data[i] - '0';

		if (digit > 9 || v > (limit - digit) / 10)
			return -1;
		v = v * 10 + digit;
	}
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}
