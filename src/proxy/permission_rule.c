/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading ACL GETUSER: see permission_rule.h. */
#include "config.h"

#include <string.h>

#include "proxy/permission_rule.h"

/* What a key pattern gives. */
enum {
	KEYS_READ = 1 << 0,
	KEYS_WRITE = 1 << 1,
};

bool
permission_rule_flag(const struct redisReply *user, const char *flag)
{
	const struct redisReply *flags = link_reply_field(user, "flags");
	size_t i;

	for (i = 0; i < link_reply_count(flags); i++)
		if (slice_is(link_reply_text(link_reply_at(flags, i)), flag))
			return true;
	return false;
}

static bool
is_glob(uint8_t byte)
{
	return byte == '*' || byte == '?' || byte == '[' || byte == '\\';
}

/* True when the pattern is P* and text begins with P. */
static bool
fits_all(struct slice pattern, struct slice text)
{
	size_t i, len = pattern.len - 1;

	if (pattern.len == 0 || pattern.data[len] != '*' || len > text.len)
		return false;
	for (i = 0; i < len; i++)
		if (is_glob(pattern.data[i]) || pattern.data[i] != text.data[i])
			return false;
	return true;
}

/* Takes "~", "%R~", "%W~" or "%RW~" off a word; what it gives, 0 for others. */
static unsigned
take_prefix(struct slice *word)
{
	unsigned gives = 0;
	size_t i = 1;

	if (word->len > 0 && word->data[0] == '~')
		gives = KEYS_READ | KEYS_WRITE;
	else if (word->len > 0 && word->data[0] == '%') {
		for (; i < word->len && word->data[i] != '~'; i++) {
			if (word->data[i] == 'R')
				gives |= KEYS_READ;
			else if (word->data[i] == 'W')
				gives |= KEYS_WRITE;
			else
				return 0;
		}
		if (i++ == word->len)
			return 0;
	}
	if (gives != 0)
		*word = slice_of(word->data + i, word->len - i);
	return gives;
}

/* The next word of a text separated by blanks (no key pattern holds one). */
static bool
next_word(struct slice *text, struct slice *word)
{
	size_t start = 0, end;

	while (start < text->len && text->data[start] == ' ')
		start++;
	for (end = start; end < text->len && text->data[end] != ' ';)
		end++;
	*word = slice_of(text->data + start, end - start);
	*text = slice_of(text->data + end, text->len - end);
	return word->len > 0;
}

/* What keys (a text of Redis 7, a list of Redis 6) give on keys with text. */
static unsigned
keys_give(const struct redisReply *keys, struct slice text)
{
	struct slice rest, word;
	unsigned gives = 0, one;
	size_t i;

	if (link_reply_type(keys) == LINK_ARRAY) {
		for (i = 0; i < link_reply_count(keys); i++)
			if (fits_all(
				link_reply_text(link_reply_at(keys, i)), text))
				return KEYS_READ | KEYS_WRITE;
		return 0;
	}
	rest = link_reply_text(keys);
	while (next_word(&rest, &word)) {
		one = take_prefix(&word);
		if (one != 0 && fits_all(word, text))
			gives |= one;
	}
	return gives;
}

/* One permission set: takes from *every what it does not give on all texts, and
 * adds to *any what it does give where it allows every command. */
static void
take_set(const struct redisReply *set, const struct slice *texts, size_t count,
    unsigned *every, unsigned *any)
{
	const struct redisReply *keys = link_reply_field(set, "keys");
	struct slice commands = link_reply_text(
	    link_reply_field(set, "commands"));
	unsigned gives = KEYS_READ | KEYS_WRITE;
	size_t i;

	if (slice_is(commands, "-@all"))
		return;
	for (i = 0; i < count; i++)
		gives &= keys_give(keys, texts[i]);
	*every &= gives;
	if (slice_is(commands, "+@all"))
		*any |= gives;
}

unsigned
permission_rule(
    const struct redisReply *user, const struct slice *texts, size_t count)
{
	const struct redisReply *selectors = link_reply_field(
	    user, "selectors");
	unsigned every = KEYS_READ | KEYS_WRITE, any = 0, rule = 0;
	size_t i;

	if (link_reply_type(user) != LINK_ARRAY || count == 0)
		return 0;
	take_set(user, texts, count, &every, &any);
	for (i = 0; i < link_reply_count(selectors); i++)
		take_set(
		    link_reply_at(selectors, i), texts, count, &every, &any);
	if (selectors != NULL && link_reply_type(selectors) != LINK_ARRAY)
		every = 0; /* who knows what they allow */
	if (any & KEYS_READ)
		rule |= RULE_READ_ALL;
	if (any & KEYS_WRITE)
		rule |= RULE_WRITE_ALL;
	if (every & KEYS_READ)
		rule |= RULE_READ;
	if (every & KEYS_WRITE)
		rule |= RULE_WRITE;
	return rule;
}
