/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast half of reading a RESP header line: plain digits, all of them
 * already here. Whatever is unusual (a sign, a leading zero, a line cut in two)
 * is left to the slow path of the caller, which also tells the errors apart.
 * Private to src/resp. Any thread.
 */
#ifndef RESP_DIGITS_H
#define RESP_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_FAST_MAX 18 /* so many never overflow an int64 */

/*
 * Reads 1 to DIGITS_FAST_MAX digits without leading zeros from p, then CR and
 * one more byte, unchecked. Returns the place after that byte, or NULL.
 */
static inline const uint8_t *
digits_line(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
	const uint8_t *stop;
	uint64_t n;
	unsigned int digit;

	if (end - p < 3)
		return NULL;
	n = (unsigned int)*p - '0';
	if (n > 9)
		return NULL;
	p++;
	if (*p != '\r') {
		if (n == 0)
			return NULL;
		stop = end - p < DIGITS_FAST_MAX ? end
						 : p + DIGITS_FAST_MAX - 1;
		while (p < stop && (digit = (unsigned int)*p - '0') <= 9) {
			n = n * 10 + digit;
			p++;
		}
		if (p == end || *p != '\r')
			return NULL;
	}
	if (end - p < 2)
		return NULL;
	*out = n;
	return p + 2;
}

#endif
