/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes RESP into a buffer. proto is 2 or 3: what differs between them (nil,
 * booleans, maps, sets) follows it. Each returns 0, or -1 when the buffer's cap
 * would be passed (then nothing was written).
 */
#ifndef RESP_ENCODE_H
#define RESP_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/slice.h"

#define ENCODE_CHECKED __attribute__((warn_unused_result))

int encode_status(struct buf *b, const char *text) ENCODE_CHECKED;
/* text with its code, as "ERR what"; CR and LF in it become spaces. */
int encode_error(struct buf *b, const char *text) ENCODE_CHECKED;
int encode_error_slice(struct buf *b, struct slice text) ENCODE_CHECKED;
int encode_integer(struct buf *b, int64_t value) ENCODE_CHECKED;
int encode_bulk(struct buf *b, struct slice value) ENCODE_CHECKED;
int encode_nil(struct buf *b, int proto) ENCODE_CHECKED;
int encode_bool(
    struct buf *b, int proto, bool value) ENCODE_CHECKED; /* :1/#t */
int encode_array(struct buf *b, size_t count) ENCODE_CHECKED;
int encode_map(struct buf *b, int proto, size_t pairs) ENCODE_CHECKED;
int encode_set(struct buf *b, int proto, size_t count) ENCODE_CHECKED;
/* A request: *argc, then each argument as a bulk string. */
int encode_request(
    struct buf *b, const struct slice *argv, size_t argc) ENCODE_CHECKED;

#endif
