/* SPDX-License-Identifier: BSD-2-Clause */
/* The operator tool's entry. Not wired yet: says so and fails. */
#include <stdio.h>

int
main(void)
{
	fputs("bloomgatectl: not built yet\n", stderr);
	return 1;
}
