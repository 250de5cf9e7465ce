/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of TCP sockets, of clients and upstream alike. Any thread. */
#ifndef PROXY_SOCKET_H
#define PROXY_SOCKET_H

#include <stdint.h>

/*
 * No delay, and keepalive after keepalive_ms of silence (0: none). Best effort: a
 * connection without them still serves. Does nothing for AF_UNIX.
 */
void socket_options(int fd, int family, uint64_t keepalive_ms);

#endif
