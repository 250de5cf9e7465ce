/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's entry. Not wired yet: says so and fails. */
#include <stdio.h>

int
main(void)
{
	fputs("bloomgate: not built yet\n", stderr);
	return 1;
}
