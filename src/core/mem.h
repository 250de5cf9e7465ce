/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation that aborts on exhaustion, so callers never see NULL. Lengths that
 * a peer supplies are checked against a limit before they come here. Any
 * thread.
 */
#ifndef CORE_MEM_H
#define CORE_MEM_H

#include <stddef.h>

/*
 * Settings of the allocator for the whole process, before its first thread: what
 * a burst took goes back to the system when it is freed. Left alone, glibc
 * raises its thresholds with the sizes it sees, up to 32 MiB, and keeps as much.
 */
void mem_init(void);

/* Each is returned to the caller, who frees it with free(). */
void *mem_alloc(size_t size);
void *mem_zalloc(size_t count, size_t size);
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
void *mem_dup(const void *data, size_t len);
/* printf into a new string. */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Overwrites len bytes in a way that the compiler keeps: for secrets. */
void mem_wipe(void *p, size_t len);

#endif
