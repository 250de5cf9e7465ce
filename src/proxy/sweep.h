/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at all sessions of a worker a few times a second: how much they hold
 * (limits.memory: the largest are closed first), and who is idle too long
 * (client-idle-timeout). A worker's thread.
 */
#ifndef PROXY_SWEEP_H
#define PROXY_SWEEP_H

struct sweep;
struct worker;

struct sweep *sweep_new(struct worker *w);
void sweep_start(struct sweep *s);
void sweep_free(struct sweep *s);

#endif
