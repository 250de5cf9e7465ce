/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts about commands: what the upstream's own COMMAND says of each (arity,
 * flags, where its keys are), joined with the little that bloomgate itself must
 * know (which reads it may answer, which commands change a session's state).
 * The table is built by who reads COMMAND's reply and is immutable after. Any
 * thread.
 */
#ifndef POLICY_COMMAND_H
#define POLICY_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"
#include "policy/covered.h"

/* What a command may do to a session (DESIGN.md, State). */
enum effect {
	EFFECT_ORDINARY,
	EFFECT_SELECT,
	EFFECT_AUTH,
	EFFECT_HELLO,
	EFFECT_CLIENT, /* container: its subcommand decides */
	EFFECT_QUIT,
	EFFECT_RESET,
	EFFECT_MULTI,
	EFFECT_EXEC,
	EFFECT_DISCARD,
	EFFECT_WATCH,
	EFFECT_UNWATCH,
	EFFECT_SUBSCRIBE,   /* SUBSCRIBE PSUBSCRIBE SSUBSCRIBE */
	EFFECT_UNSUBSCRIBE, /* their opposites */
	EFFECT_MONITOR,     /* MONITOR SYNC PSYNC REPLCONF: opaque */
	EFFECT_BF,          /* BF.* of a configured name is ours */
	EFFECT_UNKNOWN,     /* not in the upstream's COMMAND */
};

enum command_flag {
	COMMAND_WRITE = 1 << 0,
	COMMAND_READONLY = 1 << 1,
	COMMAND_BLOCKING = 1 << 2,
	COMMAND_MOVABLE_KEYS = 1 << 3,
	COMMAND_MAY_REPLICATE = 1 << 4, /* EVAL, FCALL, ... */
	COMMAND_PUBSUB = 1 << 5,
};

/* Where keys are: Redis 7 key specifications, or first/last/step before. */
struct key_spec {
	bool keyword; /* begin: search from `from` for word */
	char word[24];
	int index;             /* begin without keyword: argument index; from */
	bool keynum;           /* find: a count at keynum_index, else a range */
	int last, step, limit; /* range */
	int keynum_index, first_key; /* keynum, relative to begin */
	bool incomplete;             /* Redis says it may miss keys */
};
#define KEY_SPECS_MAX 8

struct command {
	char name[32]; /* lower case; "client" for a container */
	int arity;     /* as Redis: negative is a minimum */
	unsigned flags;
	enum effect effect;
	const struct covered_read *covered; /* NULL: it is not */
	size_t spec_count;
	struct key_spec specs[KEY_SPECS_MAX];
	bool keys_told; /* filled in by the table: the specs find every key */
};

struct command_table;

/*
 * Empty: every command is EFFECT_UNKNOWN but those of DESIGN's State list and
 * BF.*, and nothing is covered. Returned; freed with command_table_free.
 */
struct command_table *command_table_new(void);
void command_table_free(struct command_table *t);
/*
 * Adds one command as the upstream describes it; name, arity, flags and specs
 * are read from c and copied; effect and covered are filled in here. A name
 * added again replaces what was said before. A subcommand ("xgroup|create") adds
 * its flags and specs to its container, which is made if need be.
 */
void command_table_add(struct command_table *t, const struct command *c);
/* Commands that were added, containers with their subcommands as one. */
size_t command_table_size(const struct command_table *t);

/* The command called name (any case); never NULL: an unknown one has effect
 * EFFECT_UNKNOWN. The pointer holds as long as the table. */
const struct command *command_find(
    const struct command_table *t, struct slice name);

/*
 * Calls fn with the index of each argument that is a key. argv has argc slices,
 * argv[0] the name. Keys outside argv are left out; an index may come twice, and
 * where an option that names a key is repeated each such key is named. Returns
 * how many, or -1 when the keys cannot be told (unknown command, or movable keys
 * with no usable specification): fn was then called for some at most.
 */
int command_keys(const struct command *c, const struct slice *argv, size_t argc,
    void (*fn)(size_t index, void *arg), void *arg);

/* True for a command whose executing may create the keys it names. */
bool command_may_create(const struct command *c);

#endif
