/* SPDX-License-Identifier: BSD-2-Clause */
/* The operator's commands: names, argument counts, what each does. */
#ifndef ADMIN_COMMANDS_H
#define ADMIN_COMMANDS_H

#include "admin/connection.h"

/* Items of one CHECK or ADD; more are sent in several. */
#define COMMANDS_ITEMS_MAX 1000

/* Executes argv (argc > 0, borrowed): writes one reply to c, or waits. */
void commands_run(struct connection *c, const struct slice *argv, size_t argc);

#endif
