/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share about the one admin object. */
#ifndef ADMIN_PRIVATE_H
#define ADMIN_PRIVATE_H

#include <sys/queue.h>

#include "admin/connection.h"

struct acceptor;

struct admin {
	struct admin_options options;
	struct acceptor *acceptor; /* owned */
	TAILQ_HEAD(connections, connection) connections;
	size_t count;
};

#endif
