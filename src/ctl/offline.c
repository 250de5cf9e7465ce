/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that need no daemon: what a filter would cost, where an element's
 * bits lie, whether a configuration is in order.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "core/mem.h"
#include "ctl/ctl.h"
#include "ctl/format.h"
#include "filter/geometry.h"
#include "filter/scheme.h"

#define CAPACITY_MAX 10000000000ULL
#define ERROR_MIN    1e-9
#define ERROR_MAX    0.25

/* The whole of text as a number in [min, max]. 0, or -1 with the reason said. */
static int
take_number(const char *option, const char *text, uint64_t min, uint64_t max,
    uint64_t *out)
{
	int64_t value;

	if (slice_to_int64(slice_str(text), &value) != 0 || value < 0 ||
	    (uint64_t)value < min || (uint64_t)value > max) {
		fprintf(stderr,
		    "bloomgatectl: --%s takes a number from %" PRIu64
		    " to %" PRIu64 "\n",
		    option, min, max);
		return -1;
	}
	*out = (uint64_t)value;
	return 0;
}

static int
take_rate(const char *text, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !(*out >= ERROR_MIN) ||
	    !(*out <= ERROR_MAX)) {
		fprintf(stderr,
		    "bloomgatectl: --error-rate takes a number from 1e-9 to "
		    "0.25\n");
		return -1;
	}
	return 0;
}

/* --- plan ------------------------------------------------------------------- */

static void
print_rates(uint64_t capacity, double rate)
{
	static const double factors[] = {10, 2, 1, 0.5, 0.1, 0.01};
	struct geometry g;
	struct err err;
	char size[FORMAT_MAX];
	double p;
	size_t i;

	printf("\n%12s  %10s  %7s  %s\n", "error rate", "bytes", "hashes",
	    "bits an element");
	for (i = 0; i < sizeof(factors) / sizeof(*factors); i++) {
		p = rate * factors[i];
		if (p < ERROR_MIN || p > ERROR_MAX ||
		    geometry_plan(&g, capacity, p, SCHEME_GUAVA, false, &err) !=
			0)
			continue;
		format_bytes(
		    size, sizeof(size), (double)geometry_total_bytes(&g));
		printf("%12.4g  %10s  %7" PRIu32 "  %.1f%s\n", p, size,
		    g.hashes,
		    (double)geometry_total_bits(&g) / (double)capacity,
		    factors[i] == 1 ? "  <- asked for" : "");
	}
}

static void
print_overfill(const struct geometry *g, uint64_t capacity)
{
	static const double shares[] = {0.25, 0.5, 1, 1.5, 2, 3, 5};
	char count[FORMAT_MAX];
	size_t i;
	double n;

	printf("\n%15s  %s\n", "elements in it", "error rate to expect");
	for (i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		n = (double)capacity * shares[i];
		format_count(count, sizeof(count), n);
		printf("%15s  %.3g%s\n", count, geometry_rate_of_count(g, n),
		    shares[i] == 1 ? "  <- capacity" : "");
	}
}

static int
plan(const struct ctl *ctl, uint64_t capacity, double rate)
{
	uint64_t bits, bytes;
	struct geometry g;
	struct err err;
	char count[FORMAT_MAX], size[FORMAT_MAX];

	if (geometry_plan(&g, capacity, rate, SCHEME_GUAVA, false, &err) != 0) {
		fprintf(stderr, "bloomgatectl: %s\n", err.text);
		return CTL_FAILED;
	}
	bits = geometry_total_bits(&g);
	bytes = geometry_total_bytes(&g);
	if (ctl->json) {
		printf("{\"capacity\":%" PRIu64 ",\"error_rate\":%.17g"
		       ",\"bits\":%" PRIu64 ",\"hashes\":%" PRIu32
		       ",\"bytes\":%" PRIu64 ",\"shards\":%" PRIu32
		       ",\"bits_per_shard\":%" PRIu64 "}\n",
		    capacity, rate, bits, g.hashes, bytes, g.shards, g.bits);
		return CTL_DONE;
	}
	format_count(count, sizeof(count), (double)capacity);
	format_bytes(size, sizeof(size), (double)bytes);
	printf("capacity    %s elements\nerror rate  %g\n", count, rate);
	/* DESIGN.md, Sizing: the m before any rounding up. */
	printf("bits (m)    %.0f\nhashes (k)  %" PRIu32 "\n",
	    floor(-(double)capacity * log(rate) / (M_LN2 * M_LN2)), g.hashes);
	printf(
	    "shards      %" PRIu32 " of %" PRIu64 " bits\n", g.shards, g.bits);
	printf("bytes       %" PRIu64 " (%s) in Redis, the same again while a\n"
	       "            rebuild runs or the previous generation is kept\n",
	    bytes, size);
	print_rates(capacity, rate);
	print_overfill(&g, capacity);
	return CTL_DONE;
}

int
offline_plan(const struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
	    {"capacity", required_argument, NULL, 'c'},
	    {"error-rate", required_argument, NULL, 'e'},
	    {NULL, 0, NULL, 0},
	};
	uint64_t capacity = 0;
	double rate = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c') {
			if (take_number("capacity", optarg, 1, CAPACITY_MAX,
				&capacity) != 0)
				return CTL_USAGE;
		} else if (c == 'e') {
			if (take_rate(optarg, &rate) != 0)
				return CTL_USAGE;
		} else {
			return ctl_usage("plan");
		}
	}
	if (optind != argc || capacity == 0 || rate == 0)
		return ctl_usage("plan");
	return plan(ctl, capacity, rate);
}

/* --- positions ---------------------------------------------------------------- */

struct positions_options {
	struct geometry geometry;
	bool has_scheme;
	bool has_shards;
	bool hex; /* elements are given as hexadecimal */
	const char *key_file;
};

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* text's bytes (owned by the caller), or NULL where it is no hexadecimal. */
static uint8_t *
from_hex(const char *text, size_t *len)
{
	size_t i, digits = strlen(text);
	uint8_t *out = mem_alloc(digits / 2 + 1);
	int high, low;

	*len = digits / 2;
	for (i = 0; i < *len; i++) {
		high = hex_digit(text[2 * i]);
		low = hex_digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			break;
		out[i] = (uint8_t)(high << 4 | low);
	}
	if (i < *len || digits % 2 != 0) {
		free(out);
		return NULL;
	}
	return out;
}

static int
print_positions(const struct positions_options *o, const struct scheme_key *key,
    const char *element)
{
	struct positions p;
	uint8_t *bytes = NULL;
	size_t len = strlen(element);
	uint32_t i;
	int rc;

	if (o->hex && (bytes = from_hex(element, &len)) == NULL) {
		fprintf(stderr, "bloomgatectl: \"%s\" is not hexadecimal\n",
		    element);
		return CTL_FAILED;
	}
	rc = scheme_positions(&o->geometry, key,
	    slice_of(bytes != NULL ? (const void *)bytes : element, len), &p);
	free(bytes);
	if (rc != 0) {
		fprintf(stderr,
		    "bloomgatectl: \"%s\" has no positions: longer than %d "
		    "bytes, or not UTF-8 where the scheme needs that\n",
		    element, ELEMENT_MAX);
		return CTL_FAILED;
	}
	if (o->has_shards)
		printf("%" PRIu32 ":", p.shard);
	for (i = 0; i < p.count; i++)
		printf("%s%" PRIu64, i > 0 ? "," : "", p.bit[i]);
	putchar('\n');
	return CTL_DONE;
}

static int
take_position_option(struct positions_options *o, int c)
{
	struct geometry *g = &o->geometry;
	uint64_t n;

	switch (c) {
	case 's':
		if (scheme_parse(slice_str(optarg), &g->scheme) != 0) {
			fprintf(
			    stderr, "bloomgatectl: no scheme \"%s\"\n", optarg);
			return -1;
		}
		o->has_scheme = true;
		return 0;
	case 'b':
		return take_number("bits", optarg, 1, INT64_MAX, &g->bits);
	case 'k':
		if (take_number("hashes", optarg, 1, HASHES_MAX, &n) != 0)
			return -1;
		g->hashes = (uint32_t)n;
		return 0;
	case 'n':
		if (take_number("shards", optarg, 1, UINT32_MAX, &n) != 0)
			return -1;
		g->shards = (uint32_t)n;
		o->has_shards = true;
		return 0;
	case 'f':
		o->key_file = optarg;
		return 0;
	case 'x':
		o->hex = true;
		return 0;
	default:
		ctl_usage("positions");
		return -1;
	}
}

static int
run_positions(struct positions_options *o, int count, char **elements)
{
	bool keyed = o->geometry.scheme == SCHEME_KEYED;
	struct scheme_key key;
	struct err err;
	int i, rc = CTL_DONE;

	if (keyed != (o->key_file != NULL)) {
		fputs(
		    "bloomgatectl: --key-file goes with the scheme keyed, and "
		    "only with it\n",
		    stderr);
		return CTL_USAGE;
	}
	if (keyed && scheme_key_load(&key, o->key_file, &err) != 0) {
		fprintf(stderr, "bloomgatectl: %s\n", err.text);
		return CTL_FAILED;
	}
	o->geometry.single = !o->has_shards;
	for (i = 0; i < count && rc == CTL_DONE; i++)
		rc = print_positions(o, keyed ? &key : NULL, elements[i]);
	if (keyed)
		mem_wipe(&key, sizeof(key));
	return rc;
}

int
offline_positions(const struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
	    {"scheme", required_argument, NULL, 's'},
	    {"bits", required_argument, NULL, 'b'},
	    {"hashes", required_argument, NULL, 'k'},
	    {"shards", required_argument, NULL, 'n'},
	    {"key-file", required_argument, NULL, 'f'},
	    {"hex", no_argument, NULL, 'x'},
	    {NULL, 0, NULL, 0},
	};
	struct positions_options o = {.geometry = {.shards = 1}};
	int c;

	(void)ctl;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (take_position_option(&o, c) != 0)
			return CTL_USAGE;
	if (!o.has_scheme || o.geometry.bits == 0 || o.geometry.hashes == 0 ||
	    optind == argc)
		return ctl_usage("positions");
	return run_positions(&o, argc - optind, argv + optind);
}

/* --- config-check --------------------------------------------------------------- */

/* The lines of bloomgate -t. */
int
offline_config_check(const struct ctl *ctl, int argc, char **argv)
{
	struct settings_report report;
	struct settings *s;
	const struct settings_issue *i;
	size_t n;

	(void)ctl;
	if (argc != 2)
		return ctl_usage("config-check");
	s = settings_load(argv[1], &report);
	for (n = 0; n < report.count; n++) {
		i = &report.items[n];
		if (i->line == 0)
			fprintf(stderr, "%s: %s%s\n", argv[1],
			    i->fatal ? "" : "remark: ", i->text);
		else
			fprintf(stderr, "%s:%u:%u: %s%s\n", argv[1], i->line,
			    i->column, i->fatal ? "" : "remark: ", i->text);
	}
	settings_report_fini(&report);
	if (s == NULL)
		return CTL_FAILED;
	settings_unref(s);
	return CTL_DONE;
}
