/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of TCP sockets: see socket.h. */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "proxy/socket.h"

void
socket_options(int fd, int family, uint64_t keepalive_ms)
{
	int one = 1, idle = (int)(keepalive_ms / 1000);

	if (family == AF_UNIX)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (idle <= 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
}
