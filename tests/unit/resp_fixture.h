/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the unit tests of the request parser share: a pipeline from which
 * requests are expected one by one, and the texts of Redis's errors.
 */
#ifndef UNIT_RESP_FIXTURE_H
#define UNIT_RESP_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "resp/request.h"

#include "../fuzz/resp_compare.h"

#define LIMITS ((struct request_limits){(uint64_t)512 << 20, (uint64_t)1 << 30})

/* A request and the pipeline it is taken from. */
struct fixture {
	struct request r;
	const uint8_t *data;
	size_t len;
};

static inline void
fixture_begin(struct fixture *f, const void *data, size_t len)
{
	struct request_limits limits = LIMITS;

	request_init(&f->r, &limits);
	f->data = data;
	f->len = len;
}

/* The next thing is a request whose arguments, joined by '|', are these. */
static inline void
fixture_expect(struct fixture *f, const char *joined)
{
	char *got = mem_strdup(""), *longer;
	size_t i;

	ck_assert_int_eq(request_parse(&f->r, f->data, f->len), PARSE_READY);
	ck_assert_uint_eq(f->r.empty, f->r.argc == 0);
	for (i = 0; i < f->r.argc; i++) {
		struct slice arg = request_arg(&f->r, f->data, i);

		ck_assert(request_arg_whole(&f->r, i));
		longer = mem_printf("%s%s%.*s", got, i > 0 ? "|" : "",
		    (int)arg.len, (const char *)arg.data);
		free(got);
		got = longer;
	}
	ck_assert_str_eq(got, joined);
	free(got);
	f->data += f->r.size;
	f->len -= f->r.size;
	request_reset(&f->r);
}

static inline void
fixture_end(struct fixture *f)
{
	ck_assert_uint_eq(f->len, 0);
	request_fini(&f->r);
}

/* All of data is one bad request; also when cut anywhere. */
static inline void
fixture_expect_bad(const void *data, size_t len, const char *error)
{
	struct fixture f;

	fixture_begin(&f, data, len);
	ck_assert_int_eq(request_parse(&f.r, f.data, f.len), PARSE_BAD);
	ck_assert_str_eq(f.r.error, error);
	/* It stays bad. */
	ck_assert_int_eq(request_parse(&f.r, f.data, f.len), PARSE_BAD);
	request_fini(&f.r);
	request_compare(data, len, 2);
}

static inline void
fixture_expect_more(const void *data, size_t len)
{
	struct fixture f;

	fixture_begin(&f, data, len);
	ck_assert_int_eq(request_parse(&f.r, f.data, f.len), PARSE_MORE);
	ck_assert_uint_eq(f.r.size, len);
	ck_assert_int_eq(request_parse(&f.r, f.data, f.len), PARSE_MORE);
	request_fini(&f.r);
}

#define BEGIN(f, s)     fixture_begin((f), (s), sizeof(s) - 1)
#define BAD(s, error)   fixture_expect_bad((s), sizeof(s) - 1, (error))
#define MORE(s)         fixture_expect_more((s), sizeof(s) - 1)
#define BAD_COUNT       "ERR Protocol error: invalid multibulk length"
#define BAD_LENGTH      "ERR Protocol error: invalid bulk length"
#define BAD_QUOTES      "ERR Protocol error: unbalanced quotes in request"
#define BAD_DOLLAR(got) "ERR Protocol error: expected '$', got '" got "'"

#endif
