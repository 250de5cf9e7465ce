/* SPDX-License-Identifier: BSD-2-Clause */
/* Users' entries: see permission_entry.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "proxy/permission_entry.h"

#define ENTRIES_MAX 1024
#define ENTRIES_MIN 64
/* The most users times filters between the two: 25 bytes each. */
#define RIGHTS_MAX 262144

void
permission_entries_init(
    struct permission_entries *t, size_t filters, size_t questions)
{
	size_t i;

	check(questions < ENTRIES_MIN);
	*t = (struct permission_entries){.filters = filters};
	TAILQ_INIT(&t->used);
	for (i = 0; i < PERMISSION_BUCKETS; i++)
		TAILQ_INIT(&t->buckets[i]);
	t->limit = RIGHTS_MAX / (filters + 1);
	if (t->limit > ENTRIES_MAX)
		t->limit = ENTRIES_MAX;
	if (t->limit < ENTRIES_MIN)
		t->limit = ENTRIES_MIN;
}

static struct permission_list *
bucket_of(struct permission_entries *t, const char *user)
{
	uint32_t hash = 2166136261U; /* FNV-1a */

	for (; *user != '\0'; user++)
		hash = (hash ^ (uint8_t)*user) * 16777619U;
	return &t->buckets[hash % PERMISSION_BUCKETS];
}

static void
drop(struct permission_entries *t, struct permission_entry *e)
{
	TAILQ_REMOVE(&t->used, e, next);
	TAILQ_REMOVE(bucket_of(t, e->user), e, near);
	t->count--;
	free(e->user);
	free(e->rules);
	free(e->bits);
	free(e);
}

void
permission_entries_fini(struct permission_entries *t)
{
	struct permission_entry *e;

	while ((e = TAILQ_FIRST(&t->used)) != NULL)
		drop(t, e);
}

static void
drop_oldest(struct permission_entries *t)
{
	struct permission_entry *e;

	/* There are more entries than questions: some have none. */
	TAILQ_FOREACH_REVERSE(e, &t->used, permission_list, next)
	if (e->questions == 0)
		break;
	check(e != NULL);
	drop(t, e);
}

struct permission_entry *
permission_entries_get(struct permission_entries *t, const char *user)
{
	struct permission_list *bucket = bucket_of(t, user);
	struct permission_entry *e;

	TAILQ_FOREACH (e, bucket, near)
		if (strcmp(e->user, user) == 0)
			break;
	if (e != NULL) {
		TAILQ_REMOVE(&t->used, e, next);
		TAILQ_INSERT_HEAD(&t->used, e, next);
		return e;
	}
	if (t->count >= t->limit)
		drop_oldest(t);
	e = mem_zalloc(1, sizeof(*e));
	e->user = mem_strdup(user);
	e->rules = mem_zalloc(t->filters + 1, sizeof(*e->rules));
	TAILQ_INSERT_HEAD(&t->used, e, next);
	TAILQ_INSERT_HEAD(bucket, e, near);
	t->count++;
	return e;
}

void
permission_entries_expire(struct permission_entries *t)
{
	struct permission_entry *e;

	TAILQ_FOREACH (e, &t->used, next) {
		e->expires_ms = 0;
		e->known = false;
	}
}

void
permission_entry_need_bits(
    const struct permission_entries *t, struct permission_entry *e)
{
	if (e->bits == NULL)
		e->bits = mem_zalloc(t->filters + 1, sizeof(*e->bits));
}

void
permission_entry_forget_bits(
    const struct permission_entries *t, struct permission_entry *e)
{
	size_t i;

	for (i = 0; e->bits != NULL && i < t->filters; i++)
		e->bits[i].known = e->bits[i].yes = 0;
}
