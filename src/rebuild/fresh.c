/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a file may be believed. One that was written before the building
 * generation got the adds may lack elements added since: it never takes bits away.
 * Then the bits of active are carried over, or the file is refused (DESIGN.md,
 * Sources). Rebuild thread.
 */
#include "config.h"

#include <string.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/log.h"
#include "rebuild/build.h"

#define FRESH_REMEDIES                                                         \
	"write the file anew while the rebuild runs, set trust: true if it "   \
	"always holds every element, or rebuild with --force"

enum carry {
	CARRY_YES,
	CARRY_NOTHING, /* no active, or one that is lost or suspect */
	CARRY_OTHER,   /* other parameters */
};

static bool
same_bits(const struct generation *g, const struct geometry *n)
{
	return g->geometry.scheme == n->scheme &&
	    g->geometry.single == n->single &&
	    g->geometry.shards == n->shards && g->geometry.bits == n->bits &&
	    g->geometry.hashes == n->hashes;
}

static enum carry
can_carry(const struct build *b, const struct generation **out)
{
	const struct meta *m = b->meta;
	const struct generation *g;
	char fingerprint[33] = "";

	if (!m->exists || m->active < 0)
		return CARRY_NOTHING;
	g = &m->generations[m->active];
	if (g->state != GENERATION_SEALED || strcmp(m->run_id, b->run_id) != 0)
		return CARRY_NOTHING;
	if (g->usable && g->geometry.scheme == SCHEME_KEYED)
		scheme_key_fingerprint(
		    &b->filter->key, slice_str(g->name), fingerprint);
	if (!g->usable || !same_bits(g, &b->geometry) ||
	    strcmp(g->key_fingerprint, fingerprint) != 0)
		return CARRY_OTHER;
	*out = g;
	return CARRY_YES;
}

static int
take_or_refuse(struct build *b, enum carry why)
{
	if (b->force) {
		log_warn("rebuild_forced", LOG_STR("filter", b->filter->name),
		    LOG_STR("what", "a source that is not fresh is taken"));
		return 0;
	}
	if (why == CARRY_OTHER)
		return build_refuse(b,
		    "the file is older than the rebuild and the serving "
		    "generation has other parameters, so its bits cannot be "
		    "carried over: " FRESH_REMEDIES);
	if (b->first) {
		log_warn("rebuild_first_from_old_file",
		    LOG_STR("filter", b->filter->name),
		    LOG_STR("file", b->settings->rebuild.file),
		    LOG_STR("why",
			"the file is older than the rebuild; this Redis never "
			"had the filter, so it is taken. Elements added since "
			"it was written are missing"));
		return 0;
	}
	return build_refuse(b,
	    "the file is older than the rebuild and there is no trusted "
	    "generation to carry bits from: " FRESH_REMEDIES);
}

int
fresh_decide(struct build *b, int64_t written_us, bool trust)
{
	const struct generation *g = NULL;
	enum carry carry;

	if (trust || written_us > b->opened_us)
		return 0;
	carry = can_carry(b, &g);
	if (carry != CARRY_YES)
		return take_or_refuse(b, carry);
	b->carry = g;
	b->carried = true;
	return 0;
}

int
fresh_foresee(struct build *b)
{
	const struct filter_rebuild_settings *r = &b->settings->rebuild;
	const struct generation *g = NULL;
	struct stat st;
	enum carry carry;

	if (r->source != SOURCE_FILE || r->trust || b->force || b->first)
		return 0;
	/* What is wrong with it is said when it is read. */
	if (stat(r->file, &st) != 0)
		return 0;
	if (st.st_mtim.tv_sec * INT64_C(1000000) + st.st_mtim.tv_nsec / 1000 >
	    clock_wall_us())
		return 0;
	carry = can_carry(b, &g);
	return carry == CARRY_YES ? 0 : take_or_refuse(b, carry);
}
