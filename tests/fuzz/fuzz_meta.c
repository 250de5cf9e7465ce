/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the meta hash, as anybody may have written it, up to the verdict.
 * The input is the list of fields and values, each ended by a newline. Whatever
 * it says, nothing crashes, and absent is said only for a sealed, usable active
 * under the right tag and run.
 */
#include "config.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/check.h"
#include "filter/filter.h"

#define FIELDS_MAX 600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t
split(const uint8_t *data, size_t size, struct slice *fields)
{
	size_t n = 0;

	while (size > 0 && n < FIELDS_MAX) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t len = end == NULL ? size : (size_t)(end - data);

		fields[n++] = slice_of(data, len);
		if (end == NULL)
			break;
		data += len + 1;
		size -= len + 1;
	}
	return n;
}

static void
check_generation(const struct filter *f, const struct generation *g)
{
	struct positions p;

	if (!g->usable)
		return;
	check(geometry_valid(&g->geometry));
	if (!filter_fits(f, g))
		return;
	check(
	    scheme_positions(&g->geometry, &f->key, slice_str("42"), &p) == 0);
	check(p.shard < g->geometry.shards);
	check(p.count == g->geometry.hashes);
	for (uint32_t i = 0; i < p.count; i++)
		check(p.bit[i] < g->geometry.bits);
}

static void
check_verdict(struct filter *f, const struct meta *m)
{
	struct view *v = view_new(f, m, m->run_id);
	const struct generation *g;
	int64_t values[HASHES_MAX + 1] = {0};
	uint64_t tag = 0;
	size_t count = 1;

	atomic_store(&v->lease_until_ns, 2);
	filter_publish(f, v);
	if (m->active != -1) {
		g = &m->generations[m->active];
		if (g->geometry.hashes <= HASHES_MAX)
			count = g->geometry.hashes + 1;
		for (int i = 0; i < TAG_BYTES; i++)
			tag = tag << 8 | g->tag[i];
		values[count - 1] = (int64_t)tag;
	}
	if (filter_judge(f, v, filter_version(f), m->run_id, values, count, 1,
		NULL) == VERDICT_ABSENT) {
		check(m->exists && m->layout == META_LAYOUT);
		check(m->run_id[0] != '\0' && m->active != -1);
		g = &m->generations[m->active];
		check(g->usable && g->state == GENERATION_SEALED);
		check(!g->retiring && tag != 0);
		check(filter_ready(f, v, filter_version(f), 1));
	}
	/* Without the tag, the run or the lease there is no verdict. */
	values[count - 1] = 0;
	check(filter_judge(f, v, filter_version(f), m->run_id, values, count, 1,
		  NULL) == VERDICT_MAYBE);
	view_unref(v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct scheme_key key = {{1, 2, 3, 4}};
	struct slice fields[FIELDS_MAX];
	size_t n = split(data, size, fields);
	struct filter *f;
	struct meta m;
	struct err err;

	if (meta_parse(&m, fields, n, &err) == -1) {
		check(m.exists && m.layout == 0 && m.generation_count == 0);
		return 0;
	}
	check(m.generation_count <= META_GENERATIONS_MAX);
	f = filter_new(0, "user", "bloom:{user}", 0, &key);
	for (size_t i = 0; i < m.generation_count; i++) {
		check(
		    meta_find(&m, slice_str(m.generations[i].name)) == (int)i);
		check_generation(f, &m.generations[i]);
	}
	check_verdict(f, &m);
	filter_free(f);
	return 0;
}
