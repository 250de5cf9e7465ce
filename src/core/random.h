/* SPDX-License-Identifier: BSD-2-Clause */
/* Random bytes from the kernel: tags, tokens, jitter. Any thread. */
#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *out, size_t len);
uint64_t random_u64(void);
/* Uniform in [0, bound); bound > 0. */
uint64_t random_below(uint64_t bound);

#endif
