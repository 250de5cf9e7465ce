/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts one option's value into a settings object, reads it back as YAML, and
 * frees it: the only code that goes through the table's offsets. It knows types
 * and ranges, not what options mean to each other. One owner, one thread.
 */
#ifndef CONFIG_ASSIGN_H
#define CONFIG_ASSIGN_H

#include "config/document.h"
#include "config/issues.h"
#include "config/options.h"

/* base: the struct settings or filter_settings that the option's scope says. */

/* Sets the default. The field is zero before. */
void option_set_default(const struct option *o, void *base);
/*
 * Sets what node says, in place of what is there. 0, or -1 with the issues
 * reported and the field holding something that can be freed.
 */
int option_assign(const struct option *o, void *base, const struct node *node,
    struct issues *issues) __attribute__((warn_unused_result));
/* Appends the value as a YAML flow value on one line. */
void option_print(const struct option *o, const void *base, struct buf *out);
/* Frees what the field owns. */
void option_free(const struct option *o, void *base);

#endif
