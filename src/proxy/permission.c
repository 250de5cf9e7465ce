/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The permission cache. An entry a user holds what GETUSER told, and the bits
 * that DRYRUN gave, one a command and filter:
 *
 *	no entry, too old, or older than the session's AUTH: GETUSER alone. Its
 *	    answer replaces the entry's knowledge and clears the bits.
 *	a bit is missing: DRYRUN and GETUSER, side by side in one write, so that
 *	    Redis answers both under the same rules. It sets one bit; the entry
 *	    gets no younger by it.
 *
 * So everything that an entry says is from after asked_ns, and a right that was
 * revoked ends with expires_ms at the latest. What must be asked is waited for:
 * each question is out once, whoever waits.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keypattern.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/random.h"
#include "proxy/permission.h"
#include "proxy/permission_entry.h"
#include "proxy/permission_rule.h"

#define USER_MAX       1024 /* bytes; longer names are not asked about */
#define QUESTIONS_MAX  32 /* out at once; who comes then waits for one's end */
#define ASK_TIMEOUT_MS 1000
#define RETRY_MS       1000 /* after an answer that could not be had */

/* The texts that keys of one filter begin with. */
struct texts {
	struct keypattern *patterns; /* owned */
	struct slice *prefixes;      /* of the patterns */
	size_t count;
};

struct permissions {
	struct worker *worker;
	struct permission_entries entries;
	size_t questions;       /* out */
	struct texts *texts;    /* one a filter */
	char sample[17];        /* what no rule names: random */
	uint64_t getuser_again; /* clock_boot_ms; refused until then */
	uint64_t dryrun_again;  /* the same */
	bool try_dryrun;        /* whether it may be asked is not known */
};

struct question {
	struct permissions *permissions;
	struct permission_entry *entry;
	bool dryrun; /* with DRYRUN, for the bit of the filter */
	size_t filter, row;
	bool answered, refused, yes; /* DRYRUN's answer */
	uint64_t asked_ns;
};

static void
texts_init(struct texts *t, const struct string_list *keys)
{
	struct err err;
	size_t i;

	t->count = keys->count;
	t->patterns = mem_zalloc(t->count + 1, sizeof(*t->patterns));
	t->prefixes = mem_zalloc(t->count + 1, sizeof(*t->prefixes));
	for (i = 0; i < t->count; i++) {
		struct keypattern *k = &t->patterns[i];

		/* settings_load has parsed it before. */
		check(keypattern_parse(k, keys->items[i], &err) == 0);
		t->prefixes[i] = slice_of(k->prefix, k->prefix_len);
	}
}

static void
texts_fini(struct texts *t)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		keypattern_fini(&t->patterns[i]);
	free(t->patterns);
	free(t->prefixes);
}

struct permissions *
permissions_new(struct worker *w)
{
	struct permissions *p = mem_zalloc(1, sizeof(*p));
	size_t i, filters = w->settings->filter_count;

	check(covered_count() < 64);
	p->worker = w;
	permission_entries_init(&p->entries, filters, QUESTIONS_MAX);
	p->texts = mem_zalloc(filters + 1, sizeof(*p->texts));
	for (i = 0; i < filters; i++)
		texts_init(&p->texts[i], &w->settings->filters[i].keys);
	snprintf(p->sample, sizeof(p->sample), "%016llx",
	    (unsigned long long)random_u64());
	return p;
}

void
permissions_free(struct permissions *p)
{
	size_t i;

	permission_entries_fini(&p->entries);
	for (i = 0; i < p->worker->settings->filter_count; i++)
		texts_fini(&p->texts[i]);
	free(p->texts);
	free(p);
}

/*
 * True when bloomgate's own user may not ask, or Redis has no such question: ACL
 * renamed, and DRYRUN before Redis 7. Other errors (an unknown user or command,
 * a busy Redis) are about the moment or the question.
 */
static bool
is_refusal(const struct redisReply *reply)
{
	static const char unknown[] = "ERR unknown ";
	struct slice text = link_reply_text(reply);

	return link_reply_is_error(reply, "NOPERM") ||
	    (link_reply_type(reply) == LINK_ERROR &&
		text.len >= sizeof(unknown) - 1 &&
		slice_is_nocase(
		    slice_of(text.data, sizeof(unknown) - 1), unknown));
}

/* DRYRUN's answer, when GETUSER's is here too. */
static void
take_bit(struct permission_entry *e, const struct question *q)
{
	struct permission_bits *b = &e->bits[q->filter];
	uint64_t bit = UINT64_C(1) << q->row;
	unsigned rule = q->row == covered_count() ? RULE_WRITE : RULE_READ;

	b->asking &= ~bit;
	if (q->refused)
		return; /* asked again once it may be allowed */
	if (!q->answered && e->expires_ms > clock_boot_ms() + RETRY_MS)
		e->expires_ms = clock_boot_ms() + RETRY_MS;
	b->known |= bit;
	if (q->yes && (e->rules[q->filter] & rule) != 0)
		b->yes |= bit;
	else
		b->yes &= ~bit;
}

static void
take_user(struct permissions *p, struct permission_entry *e,
    const struct question *q, const struct redisReply *reply)
{
	const struct settings *s = p->worker->settings;
	enum link_reply_type type = link_reply_type(reply);
	uint64_t now_ms = clock_boot_ms();
	size_t i;

	if (!q->dryrun) {
		e->asking = false;
		e->asked_ns = q->asked_ns;
		e->expires_ms = q->asked_ns / 1000000 + s->permission_ttl_ms;
		permission_entry_forget_bits(&p->entries, e);
	}
	/* Nil: no such user. */
	e->known = type == LINK_ARRAY || type == LINK_NIL;
	if (type != LINK_ARRAY) {
		e->expires_ms = now_ms + RETRY_MS;
		permission_entry_forget_bits(&p->entries, e);
	}
	e->on = permission_rule_flag(reply, "on");
	e->nopass = e->on && permission_rule_flag(reply, "nopass");
	for (i = 0; i < s->filter_count; i++)
		e->rules[i] = (uint8_t)permission_rule(
		    reply, p->texts[i].prefixes, p->texts[i].count);
	if (type == LINK_ERROR)
		p->getuser_again = now_ms + RETRY_MS;
	if (is_refusal(reply) || type == LINK_ARRAY)
		worker_lacks(p->worker, LACK_GETUSER, type == LINK_ERROR,
		    link_reply_text(reply));
	if (strcmp(e->user, "default") == 0) {
		p->worker->default_closed = e->known && !e->nopass;
		p->worker->default_open = e->known && e->nopass;
	}
}

static void
on_user(struct link *link, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct permissions *p = q->permissions;
	struct permission_entry *e = q->entry;

	(void)link;
	check(e->questions > 0 && p->questions > 0);
	e->questions--;
	p->questions--;
	take_user(p, e, q, reply);
	if (q->dryrun)
		take_bit(e, q);
	if (clock_boot_ms() >= e->expires_ms) {
		/* Slower than permission-ttl: who waits would wait for ever. */
		e->known = false;
		e->expires_ms = clock_boot_ms() + RETRY_MS;
		/* Another answer may make the rest known again. */
		permission_entry_forget_bits(&p->entries, e);
	}
	free(q);
	worker_pump_all(p->worker);
}

static void
on_dryrun(struct link *link, const struct redisReply *reply, void *arg)
{
	struct question *q = arg;
	struct permissions *p = q->permissions;

	(void)link;
	q->answered = reply != NULL;
	q->refused = is_refusal(reply);
	q->yes = link_reply_type(reply) == LINK_STATUS &&
	    slice_is(link_reply_text(reply), "OK");
	if (reply == NULL)
		return;
	p->try_dryrun = q->refused;
	if (q->refused)
		p->dryrun_again = clock_boot_ms() + RETRY_MS;
	worker_lacks(
	    p->worker, LACK_DRYRUN, q->refused, link_reply_text(reply));
}

static int
send_dryrun(struct permissions *p, struct question *q)
{
	struct slice argv[3 + COVERED_SAMPLE_MAX] = {
	    slice_str("ACL"), slice_str("DRYRUN"), slice_str(q->entry->user)};
	size_t len, argc = 3;
	char *key = pattern_key(
	    p->worker->patterns, q->filter, slice_str(p->sample), &len);
	int rc;

	if (q->row == covered_count()) {
		argv[argc++] = slice_str("set");
		argv[argc++] = slice_of(key, len);
		argv[argc++] = slice_str("0");
	} else {
		argc += covered_sample(
		    covered_at(q->row), slice_of(key, len), argv + argc);
	}
	rc = link_command(
	    p->worker->upstream, ASK_TIMEOUT_MS, on_dryrun, q, argv, argc);
	free(key);
	return rc;
}

/* Sends what q asks; takes it. False when the link is not up: then nothing was
 * sent. */
static bool
ask(struct permissions *p, struct question *q)
{
	const struct slice argv[] = {
	    slice_str("ACL"), slice_str("GETUSER"), slice_str(q->entry->user)};

	q->permissions = p;
	q->asked_ns = clock_boot_ns();
	if (q->dryrun && send_dryrun(p, q) != 0) {
		free(q);
		return false;
	}
	/* In the same turn of the loop, and so in one write; the link, which
	 * took DRYRUN, cannot have gone since. */
	if (link_command(p->worker->upstream, ASK_TIMEOUT_MS, on_user, q, argv,
		3) != 0) {
		check(!q->dryrun);
		free(q);
		return false;
	}
	q->entry->questions++;
	p->questions++;
	return true;
}

/* Asks whether the user may run a command on the keys of a filter. */
static enum permission
ask_bit(struct permissions *p, struct permission_entry *e, size_t filter,
    size_t row)
{
	uint64_t bit = UINT64_C(1) << row;
	struct question *q;

	permission_entry_need_bits(&p->entries, e);
	if (e->bits[filter].known & bit)
		return (e->bits[filter].yes & bit) != 0 ? PERMISSION_ALL
							: PERMISSION_NO;
	if (e->bits[filter].asking & bit)
		return PERMISSION_ASKING;
	if (clock_boot_ms() < p->dryrun_again)
		return PERMISSION_NO;
	if (p->questions >= QUESTIONS_MAX)
		return PERMISSION_ASKING;
	q = mem_zalloc(1, sizeof(*q));
	q->entry = e;
	q->dryrun = true;
	q->filter = filter;
	q->row = row;
	if (!ask(p, q))
		return PERMISSION_UNKNOWN;
	e->bits[filter].asking |= bit;
	return PERMISSION_ASKING;
}

/* Asks about the user as a whole. */
static enum permission
ask_user(struct permissions *p, struct permission_entry *e)
{
	struct question *q;

	if (e->asking)
		return PERMISSION_ASKING;
	if (clock_boot_ms() < p->getuser_again)
		return PERMISSION_UNKNOWN;
	if (p->questions >= QUESTIONS_MAX)
		return PERMISSION_ASKING;
	q = mem_zalloc(1, sizeof(*q));
	q->entry = e;
	e->asking = ask(p, q);
	/* Operators want to know before it is needed, and when it is cured. */
	if (e->asking && p->try_dryrun)
		(void)ask_bit(p, e, 0, 0);
	if (e->asking)
		return PERMISSION_ASKING;
	e->expires_ms = 0;
	return PERMISSION_UNKNOWN;
}

static bool
is_fresh(const struct permission_entry *e, uint64_t since_ns)
{
	return e->asked_ns > since_ns && clock_boot_ms() < e->expires_ms;
}

void
permissions_begin(struct permissions *p)
{
	const struct settings *s = p->worker->settings;

	/* It may be another Redis, or one that has read its rules anew. */
	permission_entries_expire(&p->entries);
	p->getuser_again = 0;
	p->try_dryrun = s->filter_count > 0 &&
	    s->permission == SETTING_PERMISSION_CHECK;
	p->dryrun_again = 0;
	(void)permission_default_closed(p);
}

bool
permission_default_closed(struct permissions *p)
{
	struct permission_entry *e = permission_entries_get(
	    &p->entries, "default");

	/* What was known holds until the answer is here: nobody is refused
	 * because permission-ttl is just over. permission_renew_default keeps
	 * it young. */
	if (!is_fresh(e, 0))
		(void)ask_user(p, e);
	return e->known && !e->nopass;
}

void
permission_renew_default(struct permissions *p)
{
	if (permission_entries_get(&p->entries, "default")->known)
		(void)permission_default_closed(p);
}

enum permission
permission_of(struct permissions *p, const struct mode *m,
    const struct covered_read *r, size_t filter)
{
	const char *user = m->user != NULL ? m->user : "default";
	struct permission_entry *e;

	if (p->worker->settings->permission == SETTING_PERMISSION_TRUST)
		return PERMISSION_ALL;
	if (strlen(user) > USER_MAX)
		return PERMISSION_UNKNOWN;
	e = permission_entries_get(&p->entries, user);
	if (!is_fresh(e, m->since_ns))
		return ask_user(p, e);
	if (!e->known)
		return PERMISSION_UNKNOWN;
	if (m->user == NULL && !e->nopass)
		return PERMISSION_NOAUTH;
	/* Redis lets sessions that are in already go on; that is its matter. */
	if (!e->on)
		return PERMISSION_NO;
	if (e->rules[filter] & (r != NULL ? RULE_READ_ALL : RULE_WRITE_ALL))
		return PERMISSION_ALL;
	if (!(e->rules[filter] & (r != NULL ? RULE_READ : RULE_WRITE)))
		return PERMISSION_NO;
	return ask_bit(
	    p, e, filter, r != NULL ? covered_index(r) : covered_count());
}

enum permission
permission_of_request(struct permissions *p, const struct mode *m,
    const struct covered_read *r, const struct slice *keys, size_t count)
{
	const struct worker *w = p->worker;
	size_t i, last = SIZE_MAX;
	bool asking = false, no = false, stranger = false, error = false;
	struct pattern_match match;

	for (i = 0; i < count; i++) {
		enum permission one;

		if (!pattern_match(w->patterns, m->db, keys[i], &match)) {
			stranger = true;
			continue;
		}
		if (match.filter == last)
			continue;
		last = match.filter;
		one = permission_of(p, m, r, last);
		asking |= one == PERMISSION_ASKING;
		no |= one != PERMISSION_ALL && one != PERMISSION_ASKING;
		error |= w->settings->filters[last].absent ==
		    SETTING_ABSENT_ERROR;
	}
	/* An error answers for keys that no filter covers, too, and of those
	 * nothing is known: Redis judges first. */
	if (no || (stranger && error))
		return PERMISSION_NO;
	return asking ? PERMISSION_ASKING : PERMISSION_ALL;
}
