/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UTF-8 to UTF-16 units, strictly: what Java could not have encoded is refused,
 * since an element read differently from the application's would have other
 * positions. Pure. Any thread.
 */
#include "config.h"

#include "filter/utf.h"

int
utf_next(struct slice *s, uint16_t units[2])
{
	uint32_t c, least;
	size_t len;

	if (s->len == 0)
		return 0;
	c = s->data[0];
	if (c < 0x80) {
		len = 1;
		least = 0;
	} else if (c >= 0xc0 && c < 0xe0) {
		len = 2;
		least = 0x80;
		c &= 0x1f;
	} else if (c >= 0xe0 && c < 0xf0) {
		len = 3;
		least = 0x800;
		c &= 0x0f;
	} else if (c >= 0xf0 && c < 0xf8) {
		len = 4;
		least = 0x10000;
		c &= 0x07;
	} else
		return -1;
	if (s->len < len)
		return -1;
	for (size_t i = 1; i < len; i++) {
		if ((s->data[i] & 0xc0) != 0x80)
			return -1;
		c = c << 6 | (s->data[i] & 0x3f);
	}
	if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return -1;
	s->data += len;
	s->len -= len;
	if (c < 0x10000) {
		units[0] = (uint16_t)c;
		return 1;
	}
	c -= 0x10000;
	units[0] = (uint16_t)(0xd800 + (c >> 10));
	units[1] = (uint16_t)(0xdc00 + (c & 0x3ff));
	return 2;
}
