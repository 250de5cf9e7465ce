/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only place that reads the time. Leases count CLOCK_BOOTTIME, which goes on
 * while the machine sleeps and never steps; dates use the wall clock. Both are
 * read afresh at each call (never an event loop's cache). Tests shift them.
 * Any thread.
 */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>

uint64_t clock_boot_ns(void); /* since boot, sleep included */
uint64_t clock_boot_ms(void);
int64_t clock_wall_us(void); /* since 1970-01-01 UTC */

/* Tests: added to what the clocks say from now on. */
void clock_test_shift(int64_t boot_ns, int64_t wall_us);

#endif
