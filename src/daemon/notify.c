/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sd_notify without libsystemd: one datagram to a Unix socket, whose name may
 * be abstract (written with a leading '@').
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/log.h"
#include "daemon/notify.h"

void
notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	socklen_t len;
	size_t n;
	int fd;

	if (path == NULL || *path == '\0')
		return;
	n = strlen(path);
	if ((*path != '/' && *path != '@') || n >= sizeof(to.sun_path)) {
		log_warn("notify_failed",
		    LOG_STR("error", "NOTIFY_SOCKET is no usable address"));
		return;
	}
	memcpy(to.sun_path, path, n);
	/* An abstract name is not NUL-terminated: its length is its end. */
	if (*path == '@')
		to.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1 ||
	    sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(struct sockaddr *)&to, len) == -1)
		log_warn("notify_failed", LOG_STR("error", strerror(errno)));
	if (fd != -1)
		close(fd);
}
