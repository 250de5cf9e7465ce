/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and password files by themselves. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_util.h"
#include "core/mem.h"

START_TEST(test_address_good)
{
	static const struct {
		const char *text, *host, *path;
		unsigned port;
	} cases[] = {
	    {"127.0.0.1:6379", "127.0.0.1", NULL, 6379},
	    {"redis_1.local-net:0", "redis_1.local-net", NULL, 0},
	    {"h:65535", "h", NULL, 65535},
	    {"[::]:1", "::", NULL, 1},
	    {"[fe80::1%eth0]:1", "fe80::1%eth0", NULL, 1},
	    {"unix:/run/a b.sock", NULL, "/run/a b.sock", 0},
	};
	struct address a;
	struct err err;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(address_parse(&a, cases[i].text, &err) == 0,
		    "%s: %s", cases[i].text, err.text);
		ck_assert_str_eq(a.text, cases[i].text);
		ck_assert_uint_eq(a.port, cases[i].port);
		if (cases[i].path != NULL) {
			ck_assert_int_eq(a.kind, ADDRESS_UNIX);
			ck_assert_str_eq(a.path, cases[i].path);
			ck_assert_ptr_null(a.host);
		} else {
			ck_assert_int_eq(a.kind, ADDRESS_TCP);
			ck_assert_str_eq(a.host, cases[i].host);
			ck_assert_ptr_null(a.path);
		}
		address_fini(&a);
		ck_assert_int_eq(a.kind, ADDRESS_NONE);
	}
}
END_TEST

START_TEST(test_address_bad)
{
	static const char *const bad[] = {"", ":", ":1", "h", "h:", "h:x",
	    "h:65536", "h:999999999999", "h:0644", "h:00", "h:+1", "h:-1",
	    "h: 1", "h:1 ", "::1:1", "[::1]", "[::1]1", "[::1", "[]:1",
	    "[::1%]:1", "[1.2.3.4]:1", "[::g]:1", "h/x:1", "*:1",
	    "unix:", "unix:a", "unix", "tcp://h:1"};
	struct address a;
	struct err err;
	char path[200] = "unix:/";
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		ck_assert_msg(address_parse(&a, bad[i], &err) == -1,
		    "'%s' was taken", bad[i]);
		ck_assert_str_ne(err.text, "");
		ck_assert_int_eq(a.kind, ADDRESS_NONE);
		ck_assert_ptr_null(a.host);
	}
	/* 107 bytes of path are the most that fit. */
	memset(path + 6, 'a', 106);
	path[6 + 106] = '\0';
	ck_assert_int_eq(address_parse(&a, path, &err), 0);
	address_fini(&a);
	path[6 + 106] = 'a';
	path[6 + 107] = '\0';
	ck_assert_int_eq(address_parse(&a, path, &err), -1);
}
END_TEST

static int
load_secrets(struct secrets *s, const void *data, size_t len, struct err *err)
{
	char *path = util_file(data, len);
	int r = secrets_load(s, path, err);

	unlink(path);
	free(path);
	return r;
}

START_TEST(test_secrets)
{
	struct secrets s;
	struct err err;
	char *large;

	ck_assert_int_eq(secrets_load(&s, "", &err), 0);
	ck_assert_uint_eq(s.count, 0);
	secrets_fini(&s);
	ck_assert_int_eq(
	    load_secrets(&s, "one\r\n\n two \nthree", 17, &err), 0);
	ck_assert_uint_eq(s.count, 3);
	ck_assert_str_eq(s.items[0], "one");
	ck_assert_str_eq(s.items[1], " two ");
	ck_assert_str_eq(s.items[2], "three");
	secrets_fini(&s);
	ck_assert_uint_eq(s.count, 0);
	ck_assert_ptr_null(s.items);
	ck_assert_int_eq(load_secrets(&s, "\r\n", 2, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "holds no secret"));
	ck_assert_int_eq(load_secrets(&s, "ok\nxyz\0zyx\n", 11, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, ":2: a secret holds a NUL"));
	ck_assert_ptr_null(strstr(err.text, "xyz"));
	ck_assert_uint_eq(s.count, 0);
	large = mem_alloc(65537);
	memset(large, 'x', 65537);
	ck_assert_int_eq(load_secrets(&s, large, 65536, &err), 0);
	ck_assert_uint_eq(strlen(s.items[0]), 65536);
	secrets_fini(&s);
	ck_assert_int_eq(load_secrets(&s, large, 65537, &err), -1);
	memset(large, '\n', 65536);
	large[0] = 'x';
	for (int i = 0; i < 101; i++)
		large[i * 2] = 'x';
	ck_assert_int_eq(load_secrets(&s, large, 65536, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "more than 100 secrets"));
	free(large);
	ck_assert_int_eq(secrets_load(&s, "/nonexistent/x", &err), -1);
	ck_assert_str_eq(err.text, "/nonexistent/x: No such file or directory");
	ck_assert_int_eq(secrets_load(&s, "/", &err), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config addresses");
	TCase *t = tcase_create("addresses");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	tcase_add_test(t, test_address_good);
	tcase_add_test(t, test_address_bad);
	tcase_add_test(t, test_secrets);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
