/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's pure parts: the JSON writer, progress, and notify's datagram. */
#include "config.h"

#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/json.h"
#include "daemon/notify.h"
#include "filter/progress.h"

/* --- JSON --------------------------------------------------------------------- */

START_TEST(json_structure)
{
	struct json j;
	char *text;

	json_init(&j);
	json_open(&j, NULL, '{');
	json_open(&j, "empty", '[');
	json_close(&j, ']');
	json_open(&j, "list", '[');
	json_int(&j, NULL, -1);
	json_open(&j, NULL, '{');
	json_bool(&j, "t", true);
	json_bool(&j, "f", false);
	json_close(&j, '}');
	json_uint(&j, NULL, UINT64_MAX);
	json_close(&j, ']');
	json_null(&j, "n");
	json_real(&j, "r", 0.25);
	json_real(&j, "nan", NAN);
	json_real(&j, "inf", INFINITY);
	json_close(&j, '}');
	text = json_finish(&j);
	ck_assert_str_eq(text,
	    "{\"empty\":[],\"list\":[-1,{\"t\":true,\"f\":false},"
	    "18446744073709551615],\"n\":null,\"r\":0.25,\"nan\":null,"
	    "\"inf\":null}");
	free(text);
}
END_TEST

static void
expect_quoted(const char *value, const char *quoted)
{
	struct json j;
	char *text;

	json_init(&j);
	json_str(&j, NULL, value);
	text = json_finish(&j);
	ck_assert_str_eq(text, quoted);
	free(text);
}

START_TEST(json_strings)
{
	expect_quoted("", "\"\"");
	expect_quoted("a\"b\\c", "\"a\\\"b\\\\c\"");
	expect_quoted("\n\x01\x7f", "\"\\u000a\\u0001\\u007f\"");
	expect_quoted(
	    "caf\xc3\xa9 \xf0\x9f\x98\x80", "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
	/* Not UTF-8: cut, overlong, surrogate, too high, lone. */
	expect_quoted("a\xc3", "\"a\\ufffd\"");
	expect_quoted("\xc0\x80", "\"\\ufffd\\ufffd\"");
	expect_quoted("\xe0\x80\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	expect_quoted("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	expect_quoted("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	expect_quoted("\xf0\x8f\xbf\xbf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	expect_quoted("\xffz", "\"\\ufffdz\"");
	expect_quoted("\xe2\x82z", "\"\\ufffd\\ufffdz\"");
}
END_TEST

/* --- progress --------------------------------------------------------------------- */

#define SECOND UINT64_C(1000000000)

static struct rebuild_progress raw;

static struct progress
at(int phase, uint64_t seconds)
{
	struct progress p;

	atomic_store(&raw.phase, phase);
	atomic_store(&raw.began_ns, 100 * SECOND);
	progress_read(&p, &raw, (100 + seconds) * SECOND);
	return p;
}

START_TEST(progress_idle)
{
	struct progress p = at(PHASE_IDLE, 5);

	ck_assert_int_eq(p.phase, PHASE_IDLE);
	ck_assert(p.share < 0 && p.seconds_left < 0);
	/* Something this program never wrote. */
	p = at(99, 5);
	ck_assert_int_eq(p.phase, PHASE_IDLE);
	p = at(-1, 5);
	ck_assert_int_eq(p.phase, PHASE_IDLE);
}
END_TEST

START_TEST(progress_queued_shows_nothing_old)
{
	struct progress p;

	atomic_store(&raw.elements, 500);
	p = at(PHASE_QUEUED, 5);
	ck_assert_int_eq(p.phase, PHASE_QUEUED);
	ck_assert_uint_eq(p.elements, 0);
	ck_assert(p.rate == 0);
}
END_TEST

START_TEST(progress_reading)
{
	struct progress p;

	atomic_store(&raw.elements, 1000);
	p = at(PHASE_READ, 10);
	ck_assert_uint_eq(p.elements, 1000);
	ck_assert_double_eq_tol(p.rate, 100, 1e-9);
	/* How much there is nobody knows. */
	ck_assert(p.share < 0 && p.seconds_left < 0);
	atomic_store(&raw.expected, 2000);
	p = at(PHASE_READ, 10);
	ck_assert_double_eq_tol(p.share, 0.45, 1e-9);
	ck_assert_double_eq_tol(p.seconds_left, 10 * 0.55 / 0.45, 1e-6);
	/* More came than was expected: never above the phase's end. */
	atomic_store(&raw.elements, 3000);
	p = at(PHASE_READ, 10);
	ck_assert_double_eq_tol(p.share, 0.85, 1e-9);
	/* Bytes are known better than elements. */
	atomic_store(&raw.bytes_total, 100);
	atomic_store(&raw.bytes_read, 25);
	p = at(PHASE_READ, 10);
	ck_assert_double_eq_tol(p.share, 0.25, 1e-9);
}
END_TEST

START_TEST(progress_only_rises)
{
	struct progress p;
	double before = 0;
	int phase;

	atomic_store(&raw.bytes_total, 100);
	atomic_store(&raw.bytes_read, 100);
	atomic_store(&raw.chunks_total, 10);
	atomic_store(&raw.chunks_done, 0);
	for (phase = PHASE_QUEUED + 1; phase <= PHASE_RETIRE; phase++) {
		p = at(phase, 10);
		ck_assert_msg(p.share >= 0 && p.share <= 1, "phase %d", phase);
		if (phase != PHASE_MERGE)
			ck_assert_msg(p.share >= before - 1e-9, "phase %d: %g",
			    phase, p.share);
		before = phase == PHASE_READ ? 0.85 : p.share;
	}
	/* The clock of a build that has just begun. */
	atomic_store(&raw.began_ns, 0);
	progress_read(&p, &raw, 5 * SECOND);
	ck_assert(p.seconds_left < 0);
}
END_TEST

/* --- notify ------------------------------------------------------------------------- */

static void
expect_datagram(const char *name, const struct sockaddr_un *to, socklen_t len)
{
	char got[64] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	ck_assert_int_eq(bind(fd, (const struct sockaddr *)to, len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_send("READY=1\nSTATUS=Running");
	ck_assert_int_eq(recv(fd, got, sizeof(got) - 1, 0), 22);
	ck_assert_str_eq(got, "READY=1\nSTATUS=Running");
	close(fd);
}

START_TEST(notify_path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char name[64];

	snprintf(name, sizeof(name), "/tmp/test_daemon.%d", (int)getpid());
	memcpy(to.sun_path, name, strlen(name) + 1);
	expect_datagram(name, &to, sizeof(to));
	unlink(name);
	/* Nobody there any more, no variable, nonsense: no harm. */
	notify_send("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_send("READY=1");
	unsetenv("NOTIFY_SOCKET");
	notify_send("READY=1");
}
END_TEST

START_TEST(notify_abstract)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char name[64];
	size_t n;

	snprintf(name, sizeof(name), "@test_daemon.%d", (int)getpid());
	n = strlen(name);
	memcpy(to.sun_path, name, n);
	to.sun_path[0] = '\0';
	expect_datagram(
	    name, &to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("daemon");
	TCase *t = tcase_create("daemon");
	SRunner *r;
	int failed;

	tcase_add_test(t, json_structure);
	tcase_add_test(t, json_strings);
	tcase_add_test(t, progress_idle);
	tcase_add_test(t, progress_queued_shows_nothing_old);
	tcase_add_test(t, progress_reading);
	tcase_add_test(t, progress_only_rises);
	tcase_add_test(t, notify_path);
	tcase_add_test(t, notify_abstract);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
