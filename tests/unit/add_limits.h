/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much one call of add.lua takes, by the generations that it is for.
 */
#ifndef TESTS_ADD_LIMITS_H
#define TESTS_ADD_LIMITS_H

#include <stddef.h>

/* Hashes of the generations, and how many elements one call then takes. */
static const struct {
	unsigned k[3]; /* 0: no such generation */
	size_t elements;
} limits[] = {
    {{0, 0, 0}, 200}, {{1, 0, 0}, 200}, {{3, 0, 0}, 200}, /* 600 positions */
    {{4, 0, 0}, 175},                                     /* 700 */
    {{7, 0, 0}, 100},                                     /* 700 */
    {{10, 0, 0}, 70},                                     /* 700 */
    {{10, 7, 0}, 41},                                     /* 697 */
    {{30, 30, 30}, 7},                                    /* 630 */
    {{1, 1, 1}, 200},                                     /* 600 */
    {{2, 1, 1}, 175},                                     /* 700 */
};
#define LIMITS (sizeof(limits) / sizeof(*limits))

#endif
