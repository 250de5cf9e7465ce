/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the embedded scripts: EVALSHA, and once EVAL where Redis does not know
 * the script (after a restart, SCRIPT FLUSH or an eviction). What the scripts
 * mean is not known here.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/mem.h"
#include "redis/link_private.h"
#include "redis/lua_sources.h"
#include "redis/script.h"

/* A call that is out: what EVAL would need. */
struct run {
	enum script script;
	link_reply_fn fn;
	void *arg;
	uint64_t until_ns; /* 0: no timeout */
	size_t argc;       /* keys and arguments */
	size_t len;        /* bytes of tail */
	char tail[];       /* number of keys, keys, arguments: as formatted */
};

const char *
script_name(enum script s)
{
	check(s < SCRIPT_COUNT);
	return lua_sources[s].name;
}

const char *
script_sha1(enum script s)
{
	check(s < SCRIPT_COUNT);
	return lua_sources[s].sha1;
}

/* EVALSHA into w. Returns where the tail begins. */
static size_t
format_sha(struct wire *w, enum script s, size_t nkeys,
    const struct slice *argv, size_t argc)
{
	size_t tail;

	check(s < SCRIPT_COUNT && nkeys <= argc);
	wire_begin(w, argc + 3);
	wire_str(w, "EVALSHA");
	wire_str(w, lua_sources[s].sha1);
	tail = w->len;
	wire_number(w, nkeys);
	for (size_t i = 0; i < argc; i++)
		wire_arg(w, argv[i]);
	return tail;
}

static void
format_eval(struct wire *w, enum script s, size_t argc)
{
	wire_begin(w, argc + 3);
	wire_str(w, "EVAL");
	wire_arg(w, slice_of(lua_sources[s].text, lua_sources[s].len));
}

static void
on_evaluated(struct link *l, const struct redisReply *reply, void *arg)
{
	struct run *r = arg;
	link_reply_fn fn = r->fn;
	void *fn_arg = r->arg;

	free(r);
	fn(l, reply, fn_arg);
}

static void
on_script(struct link *l, const struct redisReply *reply, void *arg)
{
	struct run *r = arg;
	uint64_t now_ns, timeout_ms = 0;

	if (!link_reply_is_error(reply, "NOSCRIPT")) {
		on_evaluated(l, reply, r);
		return;
	}
	now_ns = clock_boot_ns();
	if (r->until_ns != 0)
		timeout_ms = now_ns < r->until_ns
		    ? (r->until_ns - now_ns) / 1000000 + 1
		    : 1;
	format_eval(&l->wire, r->script, r->argc);
	wire_raw(&l->wire, r->tail, r->len);
	if (!link_is_up(l) || link_send(l, timeout_ms, on_evaluated, r) == NULL)
		on_evaluated(l, NULL, r);
}

int
script_run(struct link *l, enum script s, uint64_t timeout_ms, link_reply_fn fn,
    void *arg, size_t nkeys, const struct slice *argv, size_t argc)
{
	struct run *r;
	size_t tail;

	if (!link_is_up(l))
		return -1;
	tail = format_sha(&l->wire, s, nkeys, argv, argc);
	r = mem_alloc(sizeof(*r) + l->wire.len - tail);
	*r = (struct run){.script = s,
	    .fn = fn,
	    .arg = arg,
	    .until_ns = call_until(timeout_ms),
	    .argc = argc,
	    .len = l->wire.len - tail};
	memcpy(r->tail, l->wire.data + tail, r->len);
	if (link_send(l, timeout_ms, on_script, r) == NULL) {
		free(r);
		return -1;
	}
	return 0;
}

struct redisReply *
script_call(struct link *l, enum script s, uint64_t timeout_ms, size_t nkeys,
    const struct slice *argv, size_t argc, const _Atomic bool *cancel)
{
	uint64_t until_ns = call_until(timeout_ms);
	struct redisReply *reply;

	if (call_wait_up(l, until_ns, cancel) != 0)
		return NULL;
	format_sha(&l->wire, s, nkeys, argv, argc);
	reply = call_send(l, until_ns, cancel);
	if (!link_reply_is_error(reply, "NOSCRIPT"))
		return reply;
	link_reply_free(reply);
	if (!link_is_up(l))
		return NULL;
	format_eval(&l->wire, s, argc);
	wire_number(&l->wire, nkeys);
	for (size_t i = 0; i < argc; i++)
		wire_arg(&l->wire, argv[i]);
	return call_send(l, until_ns, cancel);
}
