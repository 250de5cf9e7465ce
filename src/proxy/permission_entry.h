/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of the permission cache, one a user: found by name, bounded by
 * dropping the one not used for longest. What stands in them is permission.c's
 * matter. Worker's thread.
 */
#ifndef PROXY_PERMISSION_ENTRY_H
#define PROXY_PERMISSION_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define PERMISSION_BUCKETS 256

/* DRYRUN's bits of one filter: covered_index(), and one more for SET. */
struct permission_bits {
	uint64_t asking;
	uint64_t known;
	uint64_t yes;
};

struct permission_entry {
	TAILQ_ENTRY(permission_entry) next; /* of entries */
	TAILQ_ENTRY(permission_entry) near; /* of its bucket */
	char *user;
	unsigned questions; /* out; while there are, it is not dropped */
	bool asking;        /* GETUSER alone is out */
	bool known;         /* Redis has told */
	bool on;
	bool nopass;         /* on and without a password */
	uint64_t asked_ns;   /* clock_boot_ns; what is known is younger */
	uint64_t expires_ms; /* clock_boot_ms; 0: nothing is known */
	uint8_t *rules;      /* enum permission_rule, one a filter */
	struct permission_bits
	    *bits; /* one a filter; NULL until one is asked */
};
TAILQ_HEAD(permission_list, permission_entry);

struct permission_entries {
	struct permission_list used; /* used last first */
	struct permission_list buckets[PERMISSION_BUCKETS];
	size_t count, limit;
	size_t filters; /* each entry holds something for each */
};

/* At most questions are ever out at once. */
void permission_entries_init(
    struct permission_entries *t, size_t filters, size_t questions);
void permission_entries_fini(struct permission_entries *t);

/* The user's entry, made where there is none, as the one used last. Borrowed
 * until the next permission_entries_get; while questions are out, until they are back. */
struct permission_entry *permission_entries_get(
    struct permission_entries *t, const char *user);
/* Nothing of any is good any more. */
void permission_entries_expire(struct permission_entries *t);

/* Room for DRYRUN's bits. */
void permission_entry_need_bits(
    const struct permission_entries *t, struct permission_entry *e);
/* What DRYRUN said; what it is being asked stays. */
void permission_entry_forget_bits(
    const struct permission_entries *t, struct permission_entry *e);

#endif
