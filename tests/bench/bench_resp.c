/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times the RESP parsers and encoder: nanoseconds per request or reply, best of
 * several rounds, since other load only ever makes a round slower. Not a test.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/buf.h"
#include "core/check.h"
#include "core/mem.h"
#include "resp/encode.h"
#include "resp/reply.h"
#include "resp/request.h"

#define ROUNDS 300 /* short ones: some fall between other work */
#define BATCH  16  /* things in one buffer, as in a pipeline */
#define MANY   500 /* batches of small things a round */

/* Keeps results alive. */
static uint64_t sink;

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void
parse_requests(const uint8_t *data, size_t len)
{
	static struct request r;
	static bool ready;
	struct request_limits limits = {(uint64_t)512 << 20, (uint64_t)1 << 30};

	if (!ready)
		request_init(&r, &limits);
	ready = true;
	while (len > 0) {
		request_reset(&r);
		check(request_parse(&r, data, len) == PARSE_READY);
		sink += request_arg(&r, data, r.argc - 1).len;
		data += r.size;
		len -= r.size;
	}
}

static void
parse_replies(const uint8_t *data, size_t len)
{
	static struct reply r;
	static bool ready;
	size_t used;

	if (!ready)
		reply_init(&r);
	ready = true;
	while (len > 0) {
		reply_reset(&r);
		check(reply_feed(&r, data, len, &used) == PARSE_READY);
		sink += r.head_len;
		data += used;
		len -= used;
	}
}

/* Times work over a pipeline of what is in b, then empties b. */
static void
run(const char *name, struct buf *b, void (*work)(const uint8_t *, size_t))
{
	size_t len = buf_len(b), i, batches;
	uint8_t *data = mem_alloc(len * BATCH);
	double best = 1e18;
	int round;

	for (i = 0; i < BATCH; i++)
		memcpy(data + i * len, buf_head(b), len);
	batches = len > 1000 ? MANY / 10 : MANY;
	for (round = 0; round < ROUNDS; round++) {
		double begun = now_ns(), took;

		for (i = 0; i < batches; i++)
			work(data, len * BATCH);
		took = (now_ns() - begun) / (double)(batches * BATCH);
		if (took < best)
			best = took;
	}
	printf("%-28s %8zu bytes %8.1f ns\n", name, len, best);
	free(data);
	buf_consume(b, len);
}

static void
bench_requests(void)
{
	struct slice argv[11] = {slice_str("GET"), slice_str("user:1234567")};
	char value[100];
	struct buf b;
	size_t i;

	buf_init(&b, SIZE_MAX);
	check(encode_request(&b, argv, 2) == 0);
	run("request GET", &b, parse_requests);
	memset(value, 'v', sizeof value);
	argv[0] = slice_str("SET");
	argv[2] = slice_of(value, sizeof value);
	check(encode_request(&b, argv, 3) == 0);
	run("request SET of 100 bytes", &b, parse_requests);
	argv[0] = slice_str("MGET");
	for (i = 1; i <= 10; i++)
		argv[i] = slice_str("user:1234567");
	check(encode_request(&b, argv, 11) == 0);
	run("request MGET of 10", &b, parse_requests);
	check(buf_append(&b, "GET user:1234567\r\n", 18) == 0);
	run("request GET, inline", &b, parse_requests);
	buf_fini(&b);
}

static void
bench_replies(void)
{
	static uint8_t large[100000];
	struct buf b;
	int i;

	buf_init(&b, SIZE_MAX);
	check(encode_nil(&b, 2) == 0);
	run("reply $-1", &b, parse_replies);
	check(encode_status(&b, "OK") == 0);
	run("reply +OK", &b, parse_replies);
	check(encode_integer(&b, 1) == 0);
	run("reply :1", &b, parse_replies);
	check(encode_bulk(&b, slice_of(large, 20)) == 0);
	run("reply bulk of 20", &b, parse_replies);
	check(encode_bulk(&b, slice_of(large, 1000)) == 0);
	run("reply bulk of 1000", &b, parse_replies);
	check(encode_bulk(&b, slice_of(large, sizeof large)) == 0);
	run("reply bulk of 100000", &b, parse_replies);
	check(encode_array(&b, 10) == 0);
	for (i = 0; i < 10; i++)
		check(encode_bulk(&b, slice_of(large, 20)) == 0);
	run("reply MGET of 10 x 20", &b, parse_replies);
	buf_fini(&b);
}

/* The integer encoder against snprintf, which it replaces. */
static void
bench_encode(void)
{
	enum {
		COUNT = 1000000
	};
	double begun, hand, libc;
	char line[32];
	struct buf b;
	int64_t i;

	buf_init(&b, SIZE_MAX);
	begun = now_ns();
	for (i = 0; i < COUNT; i++) {
		check(encode_integer(&b, i * 7919) == 0);
		buf_consume(&b, buf_len(&b));
	}
	hand = (now_ns() - begun) / COUNT;
	begun = now_ns();
	for (i = 0; i < COUNT; i++) {
		int n = snprintf(
		    line, sizeof line, ":%lld\r\n", (long long)i * 7919);

		check(buf_append(&b, line, (size_t)n) == 0);
		buf_consume(&b, buf_len(&b));
	}
	libc = (now_ns() - begun) / COUNT;
	printf(
	    "%-43s %8.1f ns (snprintf %.1f)\n", "encode_integer", hand, libc);
	buf_fini(&b);
}

int
main(void)
{
	bench_requests();
	bench_replies();
	bench_encode();
	return sink == 0;
}
