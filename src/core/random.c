/* SPDX-License-Identifier: BSD-2-Clause */
/* Random bytes from the kernel. Any thread. */
#include "config.h"

#include <errno.h>
#include <sys/random.h>

#include "core/check.h"
#include "core/random.h"

void
random_bytes(void *out, size_t len)
{
	uint8_t *to = out;

	while (len > 0) {
		ssize_t n = getrandom(to, len, 0);

		if (n < 0) {
			check(errno == EINTR);
			continue;
		}
		to += n;
		len -= (size_t)n;
	}
}

uint64_t
random_u64(void)
{
	uint64_t v;

	random_bytes(&v, sizeof(v));
	return v;
}

uint64_t
random_below(uint64_t bound)
{
	uint64_t limit, v;

	check(bound > 0);
	/* The last, incomplete run of multiples would favour small values. */
	limit = UINT64_MAX - UINT64_MAX % bound;
	do {
		v = random_u64();
	} while (v >= limit);
	return v % bound;
}
