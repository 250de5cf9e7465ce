/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands that ask the daemon share. */
#ifndef CTL_ONLINE_H
#define CTL_ONLINE_H

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/tree.h"

/* A status as text (owned) and as a tree over it. */
struct online_state {
	char *text;
	struct tree tree;
};

/* Connected; NULL with the reason said: then the status is CTL_UNREACHABLE. */
struct client *online_connect(const struct ctl *ctl);

/*
 * Asks words (count of them). CTL_DONE and *reply (client_reply_fini), or
 * another exit status with the reason said.
 */
int online_ask(struct client *c, const char *const *words, size_t count,
    struct client_reply *reply);

/* STATUS [filter] (NULL: all). CTL_DONE and *state (online_state_fini), or
 * another exit status with the reason said. */
int online_get_state(
    struct client *c, const char *filter, struct online_state *state);
void online_state_fini(struct online_state *s);

#endif
