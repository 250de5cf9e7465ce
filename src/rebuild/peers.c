/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Step 2 of a build: until every live peer goes by the new epoch. From then on
 * nobody *skips* an add because its bits are set in active, so every add reaches
 * the building generation. Rebuild thread.
 */
#include "config.h"

#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "rebuild/build.h"
#include "rebuild/calls.h"

/*
 * Needed as soon as anyone skips an add (a mirror that knows the bits to be set):
 * then a peer that does not acknowledge must be waited for until its field ends,
 * and on a new or another Redis, where the list of peers may be lost, a full
 * lease (DESIGN.md, model rule 9).
 *
 * In this version every add is sent, and carries the epoch its sender goes by:
 * add.lua refuses it under any other and so no add can miss the building
 * generation once it is open. Waiting for acknowledgements then only saves
 * refused adds, and is bounded by the lease.
 */
#define PEERS_ADDS_MAY_BE_SKIPPED false

#define PEERS_POLL_MIN_NS UINT64_C(500000)
#define PEERS_POLL_MAX_NS UINT64_C(100000000)

/* The next space-separated word of *s. */
static struct slice
next_word(struct slice *s)
{
	const uint8_t *end = s->len > 0 ? memchr(s->data, ' ', s->len) : NULL;
	size_t n = end != NULL ? (size_t)(end - s->data) : s->len;
	struct slice word = slice_of(s->data, n);

	*s = slice_of(s->data + n, s->len - n);
	if (s->len > 0)
		*s = slice_of(s->data + 1, s->len - 1);
	return word;
}

/* "UNTIL EPOCH ...": true where that peer lives and goes by another epoch. A
 * field that cannot be read is no peer of ours. */
static bool
peer_behind(struct slice value, const char *epoch, int64_t now_us)
{
	struct slice until = next_word(&value), at = next_word(&value);
	int64_t until_us;

	if (slice_to_int64(until, &until_us) != 0 || until_us <= now_us)
		return false;
	return !slice_is(at, epoch);
}

static int
redis_time(struct build *b, int64_t *out_us)
{
	struct slice argv = slice_str("TIME");
	struct redisReply *r = calls_command(b, &argv, 1);
	int64_t s = 0, us = 0;

	if (r == NULL)
		return -1;
	if (slice_to_int64(link_reply_text(link_reply_at(r, 0)), &s) != 0 ||
	    slice_to_int64(link_reply_text(link_reply_at(r, 1)), &us) != 0) {
		link_reply_free(r);
		return build_fail(b, "TIME cannot be read");
	}
	link_reply_free(r);
	*out_us = s * 1000000 + us;
	return 0;
}

static int
count_behind(struct build *b, size_t *out)
{
	char key[NAME_MAX_BYTES];
	size_t n = name_other(key, sizeof(key), b->filter->redis_key, "peers");
	struct slice argv[] = {slice_str("HGETALL"), slice_of(key, n)};
	struct redisReply *r;
	int64_t now_us = 0;

	*out = 0;
	if (redis_time(b, &now_us) != 0)
		return -1;
	r = calls_command(b, argv, 2);
	if (r == NULL)
		return -1;
	for (size_t i = 1; i < link_reply_count(r); i += 2)
		*out += peer_behind(
		    link_reply_text(link_reply_at(r, i)), b->epoch, now_us);
	link_reply_free(r);
	return 0;
}

int
peers_wait(struct build *b)
{
	uint64_t lease_ns = b->options->settings->lease_ms * UINT64_C(1000000);
	uint64_t began = clock_boot_ns(), pause = PEERS_POLL_MIN_NS;
	bool whole_lease = PEERS_ADDS_MAY_BE_SKIPPED &&
	    (b->created || strcmp(b->meta->run_id, b->run_id) != 0);

	for (;;) {
		uint64_t waited = clock_boot_ns() - began;
		size_t behind;

		if (count_behind(b, &behind) != 0)
			return -1;
		if (behind == 0 && !(whole_lease && waited < lease_ns))
			break;
		if (!PEERS_ADDS_MAY_BE_SKIPPED && waited >= lease_ns) {
			log_info("rebuild_peers_behind",
			    LOG_STR("filter", b->filter->name),
			    LOG_INT("peers", behind));
			break;
		}
		if (build_tick(b) != 0 || build_sleep(b, pause) != 0)
			return -1;
		if ((pause *= 2) > PEERS_POLL_MAX_NS)
			pause = PEERS_POLL_MAX_NS;
	}
	b->opened_us = clock_wall_us();
	return 0;
}
