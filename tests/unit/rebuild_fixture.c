/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of control and rebuild: see rebuild_fixture.h.
 */
#include "config.h"

#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "tests/unit/rebuild_fixture.h"

#define ARGS_MAX 16

static void
load_settings(struct fixture *f, const char *options)
{
	char path[128];
	struct settings_report report;
	FILE *file;

	snprintf(path, sizeof(path), "%s/bloomgate.yaml", f->dir);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fprintf(file,
	    "listen: 127.0.0.1:0\n"
	    "upstream:\n"
	    "  address: unix:%s\n"
	    "lease: %s\n"
	    "filters:\n"
	    "  - name: user\n"
	    "    keys: [\"user:{id}\"]\n"
	    "%s",
	    f->socket, "3s", options);
	fclose(file);
	f->settings = settings_load(path, &report);
	for (size_t i = 0; i < report.count; i++) {
		if (report.items[i].fatal)
			ck_abort_msg("settings: line %u: %s",
			    report.items[i].line, report.items[i].text);
	}
	settings_report_fini(&report);
}

void
fixture_redis_start(struct fixture *f)
{
	pid_t parent = getpid();

	f->redis = fork();
	ck_assert_int_ge(f->redis, 0);
	if (f->redis == 0) {
		/* A failed test must not leave its Redis behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		execlp("redis-server", "redis-server", "--port", "0",
		    "--unixsocket", f->socket, "--dir", f->dir, "--save", "",
		    "--appendonly", "no", "--logfile", "redis.log",
		    (char *)NULL);
		_exit(127);
	}
}

void
fixture_redis_stop(struct fixture *f)
{
	kill(f->redis, SIGKILL);
	waitpid(f->redis, NULL, 0);
	f->redis = 0;
}

void
fixture_init(struct fixture *f, const char *options)
{
	const char *name = "user";

	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/bloomgate-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/redis.sock", f->dir);
	fixture_redis_start(f);
	load_settings(f, options);
	f->base = event_base_new();
	f->metrics = metrics_new(&name, 1, "test");
	f->filter = filter_new(
	    0, name, f->settings->filters[0].redis_key, 0, NULL);
	f->link = link_new(&(struct link_options){.base = f->base,
	    .endpoint = settings_store(f->settings),
	    .connect_timeout_ms = 1000,
	    .purpose = "test"});
	link_start(f->link);
	link_reply_free(fixture_call(f, "PING", NULL));
}

void
fixture_fini(struct fixture *f)
{
	char command[96];

	link_free(f->link);
	filter_free(f->filter);
	metrics_free(f->metrics);
	settings_unref(f->settings);
	event_base_free(f->base);
	fixture_redis_stop(f);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	ck_assert_int_eq(system(command), 0);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static struct redisReply *
vcall(struct fixture *f, va_list ap)
{
	static const _Atomic bool never = false;
	struct slice argv[ARGS_MAX];
	struct redisReply *r;
	const char *word;
	size_t n = 0;

	while ((word = va_arg(ap, const char *)) != NULL && n < ARGS_MAX)
		argv[n++] = slice_str(word);
	r = link_call(f->link, FIXTURE_WAIT_MS, argv, n, &never);
	ck_assert_ptr_nonnull(r);
	return r;
}

bool
fixture_until(struct fixture *f, bool (*done)(struct fixture *f))
{
	uint64_t until_ms = clock_boot_ms() + FIXTURE_WAIT_MS;
	struct timeval tick = {.tv_usec = 2000};

	while (!done(f)) {
		if (clock_boot_ms() > until_ms)
			return false;
		event_base_once(f->base, -1, EV_TIMEOUT, on_tick, NULL, &tick);
		event_base_loop(f->base, EVLOOP_ONCE);
	}
	return true;
}

struct redisReply *
fixture_call(struct fixture *f, ...)
{
	struct redisReply *r;
	va_list ap;

	va_start(ap, f);
	r = vcall(f, ap);
	va_end(ap);
	return r;
}

int64_t
fixture_integer(struct fixture *f, ...)
{
	struct redisReply *r;
	int64_t n;
	va_list ap;

	va_start(ap, f);
	r = vcall(f, ap);
	va_end(ap);
	ck_assert_int_eq(link_reply_type(r), LINK_INTEGER);
	n = link_reply_integer(r);
	link_reply_free(r);
	return n;
}

char *
fixture_text(struct fixture *f, ...)
{
	struct redisReply *r;
	char *text = NULL;
	va_list ap;

	va_start(ap, f);
	r = vcall(f, ap);
	va_end(ap);
	if (link_reply_type(r) != LINK_NIL)
		text = mem_printf("%.*s", (int)link_reply_text(r).len,
		    (const char *)link_reply_text(r).data);
	link_reply_free(r);
	return text;
}

void
fixture_meta(struct fixture *f, struct meta *m)
{
	struct redisReply *r = fixture_call(
	    f, "HGETALL", "bloom:{user}:meta", NULL);
	size_t n = link_reply_count(r);
	struct slice *fields = mem_zalloc(n + 1, sizeof(*fields));
	struct err err = {""};

	for (size_t i = 0; i < n; i++)
		fields[i] = link_reply_text(link_reply_at(r, i));
	if (meta_parse(m, fields, n, &err) != 0)
		ck_abort_msg("meta: %s", err.text);
	free(fields);
	link_reply_free(r);
}

char *
fixture_list(struct fixture *f, const char *name, const char *prefix,
    unsigned first, unsigned n)
{
	char *path = mem_printf("%s/%s", f->dir, name);
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%s%u\n", prefix, first + i);
	fclose(file);
	return path;
}

static unsigned
bit_of(struct fixture *f, const char *key, uint64_t bit)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, bit);
	return (unsigned)fixture_integer(f, "GETBIT", key, number, NULL);
}

unsigned
fixture_present(
    struct fixture *f, const char *prefix, unsigned first, unsigned n)
{
	const struct generation *g;
	struct meta *m = mem_zalloc(1, sizeof(*m));
	unsigned present = 0;

	fixture_meta(f, m);
	ck_assert_int_ge(m->active, 0);
	g = &m->generations[m->active];
	for (unsigned i = 0; i < n; i++) {
		char text[64], key[NAME_MAX_BYTES];
		struct positions p;
		unsigned all = 1;

		snprintf(text, sizeof(text), "%s%u", prefix, first + i);
		ck_assert_int_eq(scheme_positions(&g->geometry, &f->filter->key,
				     slice_str(text), &p),
		    0);
		name_shard(
		    key, sizeof(key), f->filter->redis_key, g->name, p.shard);
		for (uint32_t k = 0; k < p.count && all; k++)
			all = bit_of(f, key, p.bit[k]);
		present += all;
	}
	free(m);
	return present;
}
