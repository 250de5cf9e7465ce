/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the answer to ACL GETUSER says about the keys of one filter, and whether
 * that, together with ACL DRYRUN, proves that Redis would execute a read of every
 * one of them. Pure; any thread.
 *
 * A user is a list of permission sets: the root and its selectors (Redis 7). Redis
 * executes a command when one set allows the command and, on its own, all keys
 * that it names; channels matter to commands that name some, and no covered read
 * does. A set "covers" the filter for reading when each text that a key of the
 * filter can begin with (the literal bytes before the placeholder of each of its
 * patterns) begins with P, for some key pattern ~P* or %R~P* of the set, P without
 * glob characters: then every key of the filter fits a pattern of the set. %W~P*
 * does the same for writing, ~P* (%RW~P*) for both. What else is there is not
 * read; it can only give more, for the patterns of a set add up.
 *
 * Claim 1: when a set whose commands are exactly "+@all" covers the filter, Redis
 * executes every command on its keys. That set alone allows both. (No exception
 * can hide in the text: "+@all -get" is printed as that.)
 *
 * Claim 2: when every set that allows any command covers the filter, and DRYRUN
 * lets the user run COMMAND on one key of it that no rule names, Redis executes
 * COMMAND on all keys of it. DRYRUN succeeds only where one set S allows COMMAND
 * and the sample. S allows a command, so it is not "-@all", so it covers the
 * filter: its keys allow every key of the filter. Its commands allow COMMAND
 * whatever the arguments are: the one rule that looks at arguments, +get|TEXT,
 * allows the first argument TEXT only, and the sample, which is random, is not
 * that. So S allows COMMAND on every key, on several at once too. Which set S is
 * need not be known. One set that allows something and does not cover is enough
 * for a no: it might be S, with a pattern that fits the sample alone.
 *
 * Neither claim holds for rules that change between the two questions: they have
 * to be answered together.
 */
#ifndef PROXY_PERMISSION_RULE_H
#define PROXY_PERMISSION_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/slice.h"
#include "redis/link.h"

enum permission_rule {
	RULE_READ_ALL = 1 << 0,  /* claim 1, reads */
	RULE_WRITE_ALL = 1 << 1, /* claim 1, writes */
	RULE_READ = 1 << 2,      /* claim 2 but for DRYRUN, reads */
	RULE_WRITE = 1 << 3,     /* claim 2 but for DRYRUN, writes */
};

/*
 * The bits of enum permission_rule that hold for the filter whose keys begin with
 * one of texts (count of them, at least one). user: the answer to ACL GETUSER, of
 * Redis 7 (keys as a text, selectors) or 6 (keys as a list); 0 for what cannot be
 * read.
 */
unsigned permission_rule(
    const struct redisReply *user, const struct slice *texts, size_t count);

/* True when the user has the flag ("on", "nopass"). */
bool permission_rule_flag(const struct redisReply *user, const char *flag);

#endif
