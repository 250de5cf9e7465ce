/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sizing formulas, and the bounds on a geometry that somebody else has
 * written down. Pure. Any thread.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "core/check.h"
#include "filter/geometry.h"

#define CAPACITY_MAX   UINT64_C(10000000000)
#define ERROR_RATE_MIN 1e-9
#define ERROR_RATE_MAX 0.25

/*
 * All bits together: what CAPACITY_MAX at ERROR_RATE_MIN needs is 4.3e11; more
 * than this in a meta is nobody's filter.
 */
#define TOTAL_BITS_MAX (UINT64_C(1) << 39)

static uint64_t
round_up_64(uint64_t bits)
{
	return (bits + 63) / 64 * 64;
}

/* m and k before any rounding up: trunc(-n ln p / (ln 2)^2), round(m/n ln 2). */
static void
plan_formula(uint64_t n, double p, uint64_t *m, uint32_t *k)
{
	double bits = -(double)n * log(p) / (M_LN2 * M_LN2);
	double hashes;

	*m = bits < 1 ? 1 : (uint64_t)bits;
	hashes = floor((double)*m / (double)n * M_LN2 + 0.5);
	*k = hashes < 1 ? 1 : (uint32_t)hashes;
}

static int
plan_single(struct geometry *out, uint64_t m, struct err *err)
{
	out->shards = 1;
	/* Guava's own array has whole words and takes its size from them. */
	out->bits = out->scheme == SCHEME_GUAVA ? round_up_64(m) : m;
	if (out->bits > SINGLE_BITS_MAX)
		return err_set(err,
		    "layout single holds at most %" PRIu64 " bits, %" PRIu64
		    " are needed: use layout sharded, a smaller capacity or a "
		    "larger error-rate",
		    SINGLE_BITS_MAX, out->bits);
	return 0;
}

int
geometry_plan(struct geometry *out, uint64_t capacity, double error_rate,
    enum scheme scheme, bool single, struct err *err)
{
	uint64_t m, shards;

	if (capacity < 1 || capacity > CAPACITY_MAX)
		return err_set(err,
		    "capacity %" PRIu64 " is not between 1 and %" PRIu64,
		    capacity, CAPACITY_MAX);
	if (!(error_rate >= ERROR_RATE_MIN && error_rate <= ERROR_RATE_MAX))
		return err_set(err, "error-rate %g is not between %g and %g",
		    error_rate, ERROR_RATE_MIN, ERROR_RATE_MAX);
	if (scheme_name(scheme) == NULL)
		return err_set(err, "unknown scheme %d", (int)scheme);

	*out = (struct geometry){.scheme = scheme, .single = single};
	if (scheme == SCHEME_POLY) {
		if (!single)
			return err_set(err, "scheme poly needs layout single");
		out->shards = 1;
		out->bits = POLY_BITS;
		out->hashes = POLY_HASHES;
		return 0;
	}
	plan_formula(capacity, error_rate, &m, &out->hashes);
	check(out->hashes <= HASHES_MAX);
	if (single)
		return plan_single(out, m, err);
	shards = (m + SHARD_BITS_MAX - 1) / SHARD_BITS_MAX;
	check(shards >= 1 && shards <= UINT32_MAX);
	out->shards = (uint32_t)shards;
	out->bits = round_up_64((m + shards - 1) / shards);
	check(out->bits <= SHARD_BITS_MAX);
	return 0;
}

uint64_t
geometry_total_bits(const struct geometry *g)
{
	return g->bits * g->shards;
}

uint64_t
geometry_total_bytes(const struct geometry *g)
{
	return geometry_shard_bytes(g) * g->shards;
}

/*
 * Redisson's positions H1, H1+H2, 2H1+H2, 2H1+2H2, ... hang together: every
 * second one is a multiple of H1+H2, so that an element which meets another's
 * H1+H2 meets several of its bits at once, and more so in an array of even
 * length. So many times more false positives than fill^k, by half of k, at a
 * fill of 0.35 and of 0.5: counted once each, at even k and 192,064 bits, with
 * two to twenty million lookups. An odd length has somewhat fewer.
 */
static const double redisson_excess[][2] = {
    {1, 1},
    {1, 1},
    {1.401, 1.268},
    {1.604, 1.329},
    {3.528, 2.292},
    {4.104, 2.415},
    {9.655, 4.242},
    {13.41, 4.771},
};
#define EXCESS_ROWS (sizeof(redisson_excess) / sizeof(redisson_excess[0]))

static double
redisson_rate(uint32_t k, double fill)
{
	uint32_t half = k / 2, row = half;
	double sparse, even, excess;

	if (half == 0 || fill <= 0 || fill >= 1)
		return pow(fill, k);
	/* Beyond what was counted they go on growing, each second row. */
	if (row >= EXCESS_ROWS)
		row = EXCESS_ROWS - 2 + half % 2;
	sparse = log(redisson_excess[row][0]) + (half - row) / 2.0 * log(3);
	even = log(redisson_excess[row][1]) + (half - row) / 2.0 * log(2);
	if (fill < 0.5)
		excess = even + (sparse - even) * (0.5 - fill) / 0.15;
	else
		excess = even * (1 - fill) / 0.5;
	/* The multiples of H1+H2 count for one at least. */
	return fmin(pow(fill, k) * exp(excess), pow(fill, k - half + 1));
}

double
geometry_rate_of_fill(const struct geometry *g, double fill)
{
	if (g->scheme == SCHEME_REDISSON)
		return redisson_rate(g->hashes, fill);
	return pow(fill, g->hashes);
}

double
geometry_rate_of_count(const struct geometry *g, double n)
{
	double thrown, fill;

	if (n <= 0)
		return 0;
	/* Bits still 0 after so many throws into a shard: (1 - 1/m)^thrown. */
	thrown = g->hashes * n / g->shards;
	fill = -expm1(thrown * log1p(-1.0 / (double)g->bits));
	return geometry_rate_of_fill(g, fill);
}

bool
geometry_valid(const struct geometry *g)
{
	if (scheme_name(g->scheme) == NULL || g->shards < 1 || g->bits < 1 ||
	    g->hashes < 1 || g->hashes > HASHES_MAX)
		return false;
	/* The tag follows the bits and Redis addresses bits below 2^32. */
	if (g->bits > SINGLE_BITS_MAX)
		return false;
	if (g->bits > TOTAL_BITS_MAX / g->shards)
		return false;
	if (g->single ? g->shards != 1 : g->bits % 64 != 0)
		return false;
	if (g->scheme == SCHEME_POLY)
		return g->single && g->bits == POLY_BITS &&
		    g->hashes == POLY_HASHES;
	return true;
}
