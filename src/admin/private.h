/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share about the one admin object. */
#ifndef ADMIN_PRIVATE_H
#define ADMIN_PRIVATE_H

#include <sys/queue.h>

#include "admin/connection.h"

struct listener;

struct admin {
	struct admin_options options;
	struct listener *listener; /* owned */
	TAILQ_HEAD(connections, connection) connections;
	size_t count;
};

#endif
