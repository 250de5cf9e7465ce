/* SPDX-License-Identifier: BSD-2-Clause */
/* How the operator tool writes numbers and texts. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "ctl/format.h"

void
format_count(char *out, size_t size, double value)
{
	char digits[FORMAT_MAX];
	size_t len, i, to = 0;

	snprintf(digits, sizeof(digits), "%.0f", value);
	len = strlen(digits);
	for (i = 0; i < len && to + 2 < size; i++) {
		out[to++] = digits[i];
		if (len - i > 1 && (len - i - 1) % 3 == 0 && digits[i] != '-')
			out[to++] = ',';
	}
	out[to] = '\0';
}

void
format_share(char *out, size_t size, double value)
{
	if (value < 0)
		snprintf(out, size, "-");
	else if (value > 0 && value < 0.001)
		snprintf(out, size, "%.2g %%", value * 100);
	else
		snprintf(out, size, "%.2f %%", value * 100);
}

void
format_span(char *out, size_t size, double seconds)
{
	uint64_t s = seconds > 0 ? (uint64_t)llround(seconds) : 0;
	unsigned long long u = s;

	if (s < 60)
		snprintf(out, size, "%llu s", u);
	else if (s < 3600)
		snprintf(out, size, "%llu min %llu s", u / 60, u % 60);
	else if (s < 86400)
		snprintf(out, size, "%llu h %llu min", u / 3600, u % 3600 / 60);
	else
		snprintf(
		    out, size, "%llu d %llu h", u / 86400, u % 86400 / 3600);
}

void
format_bytes(char *out, size_t size, double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;

	while (bytes >= 1024 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(
	    out, size, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

int
format_width(const char *text)
{
	int width = 0;

	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void
format_value(FILE *to, const char *text)
{
	if (*text != '\0' && strpbrk(text, " \t\"=\\") == NULL) {
		fputs(text, to);
		return;
	}
	putc('"', to);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', to);
		putc(*text, to);
	}
	putc('"', to);
}
