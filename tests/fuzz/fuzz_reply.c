/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the reply framer: the first byte chooses the cuts, the rest is
 * what an upstream sent.
 */
#include "config.h"

#include <stddef.h>
#include <stdint.h>

#include "resp_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1)
		reply_compare(data + 1, size - 1, data[0]);
	return 0;
}
