/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long an element takes: its positions under each scheme, and setting its
 * bits. Prints CPU time of this thread per element; compare within one run
 * only. Usage: bench_filter [ELEMENTS] (for the schemes; 1000000).
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/mem.h"
#include "filter/bits.h"

static const struct scheme_key key = {{1, 2, 3, 4}};

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Decimal ids of equal length, side by side. */
#define ID_BYTES 10

static char *
make_ids(size_t n)
{
	char *ids = mem_alloc(n * ID_BYTES);

	for (size_t i = 0; i < n; i++) {
		size_t rest = i;

		for (int j = ID_BYTES; j-- > 0; rest /= 10)
			ids[i * ID_BYTES + (size_t)j] = (char)('0' + rest % 10);
	}
	return ids;
}

static void
bench_positions(const char *ids, size_t n, enum scheme scheme, bool single)
{
	struct geometry g;
	struct positions p;
	struct err err;
	uint64_t sum = 0;
	double began;

	if (geometry_plan(&g, n, 0.01, scheme, single, &err) == -1) {
		fprintf(stderr, "%s: %s\n", scheme_name(scheme), err.text);
		exit(1);
	}
	began = cpu_seconds();
	for (size_t i = 0; i < n; i++) {
		if (scheme_positions(&g, &key,
			slice_of(ids + i * ID_BYTES, ID_BYTES), &p) == -1)
			exit(1);
		sum += p.bit[p.count - 1] + p.shard;
	}
	printf("positions %-14s %-7s k %2" PRIu32
	       ": %6.1f ns an element (%016" PRIx64 ")\n",
	    scheme_name(scheme), single ? "single" : "sharded", g.hashes,
	    (cpu_seconds() - began) * 1e9 / (double)n, sum);
}

static void
bench_bits(size_t n, bool single)
{
	struct geometry g;
	struct positions *p;
	struct bits b;
	struct err err;
	size_t new = 0, batch = 256, left; /* fits the first caches */
	char id[24];
	double spent = 0, began;
	uint64_t set;

	if (geometry_plan(&g, n, 0.01, SCHEME_GUAVA, single, &err) == -1 ||
	    bits_init(&b, &g) == -1)
		exit(1);
	p = mem_alloc(batch * sizeof(*p));
	for (size_t i = 0; i < n; i += left) {
		left = n - i < batch ? n - i : batch;
		for (size_t j = 0; j < left; j++) {
			int len = snprintf(id, sizeof(id), "%zu", i + j);

			if (scheme_positions(&g, NULL,
				slice_of(id, (size_t)len), &p[j]) == -1)
				exit(1);
		}
		began = cpu_seconds();
		for (size_t j = 0; j < left; j++)
			new += bits_add(&b, &p[j]);
		spent += cpu_seconds() - began;
	}
	printf("bits_add %9zu %-7s: %6.1f ns an element, %.3f s (%zu new)\n", n,
	    single ? "single" : "sharded", spent * 1e9 / (double)n, spent, new);
	began = cpu_seconds();
	set = bits_count_all(&b);
	printf("bits_count_all          : %6.3f ms, fill %.4f\n",
	    (cpu_seconds() - began) * 1e3,
	    (double)set / (double)geometry_total_bits(&g));
	free(p);
	bits_fini(&b);
}

int
main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	char *ids;

	if (n == 0) {
		fprintf(stderr, "usage: bench_filter [ELEMENTS]\n");
		return 2;
	}
	ids = make_ids(n);
	for (unsigned s = 0; s < SCHEME_COUNT; s++) {
		if (s != SCHEME_POLY)
			bench_positions(ids, n, (enum scheme)s, false);
		bench_positions(ids, n, (enum scheme)s, true);
	}
	free(ids);
	bench_bits(1000000, false);
	bench_bits(10000000, false);
	bench_bits(10000000, true);
	return 0;
}
