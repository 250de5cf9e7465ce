/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the time. The shifts are for tests; they are zero in the daemon. */
#include "config.h"

#include <stdatomic.h>
#include <time.h>

#include "core/check.h"
#include "core/clock.h"

/* Partner: clock_test_shift. Relaxed: a test orders itself. */
static _Atomic int64_t shift_boot_ns;
static _Atomic int64_t shift_wall_us;

uint64_t
clock_boot_ns(void)
{
	struct timespec ts;

	check(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
	return (uint64_t)((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec +
	    atomic_load_explicit(&shift_boot_ns, memory_order_relaxed));
}

uint64_t
clock_boot_ms(void)
{
	return clock_boot_ns() / 1000000;
}

int64_t
clock_wall_us(void)
{
	struct timespec ts;

	check(clock_gettime(CLOCK_REALTIME, &ts) == 0);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 +
	    atomic_load_explicit(&shift_wall_us, memory_order_relaxed);
}

void
clock_test_shift(int64_t boot_ns, int64_t wall_us)
{
	atomic_fetch_add_explicit(
	    &shift_boot_ns, boot_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(
	    &shift_wall_us, wall_us, memory_order_relaxed);
}
