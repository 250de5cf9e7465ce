/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Differential tests of the RESP parsers, for the fuzz targets and the property
 * tests: the same bytes in one piece, byte by byte, in random pieces and
 * (requests) detached must give the same. Every piece lies in an allocation of
 * its own size, so that a sanitizer sees each byte read too far. A difference
 * aborts through check().
 */
#ifndef FUZZ_RESP_COMPARE_H
#define FUZZ_RESP_COMPARE_H

#include <stddef.h>
#include <stdint.h>

/* Both read data as a pipeline, up to the first incomplete or bad thing, and
 * return how many were complete. seed chooses the cuts and the limits. */
size_t request_compare(const uint8_t *data, size_t len, uint64_t seed);
size_t reply_compare(const uint8_t *data, size_t len, uint64_t seed);

#endif
