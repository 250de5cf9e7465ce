/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deliberate mistakes, one in a build, by which tests/chaos/laws.py shows that
 * the checker sees each: configure --with-broken-law=N. HACKING.md has the table.
 * In every other build BROKEN_LAW is constant false and nothing of them remains.
 */
#ifndef CORE_BROKEN_H
#define CORE_BROKEN_H

#define BROKEN_LAW(n) (BROKEN_LAW_NUMBER == (n))

#endif
