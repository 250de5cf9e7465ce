/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MurmurHash3 x64 128 with a seed of 64 bits, as guava-hashcode needs it (an
 * int that Java has sign-extended). Private to src/filter; the 32-bit form is in
 * scheme.h. Pure. Any thread.
 */
#ifndef FILTER_MURMUR3_H
#define FILTER_MURMUR3_H

#include <stddef.h>
#include <stdint.h>

void murmur3_x64_128_wide(
    const void *data, size_t len, uint64_t seed, uint64_t out[2]);

#endif
