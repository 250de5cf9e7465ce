/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kind of error in a configuration file, with its exact place, none left
 * out and none that only follows from another.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_util.h"
#include "core/mem.h"

START_TEST(test_unknown)
{
	expect_errors("wrokers: 2\n",
	    "1:1: unknown option 'wrokers'; did you mean 'workers'?\n");
	expect_errors("max_clients: 2\n",
	    "1:1: unknown option 'max_clients'; did you mean 'max-clients'?\n");
	expect_errors("limits:\n  memroy: 2\n",
	    "2:3: unknown option 'memroy' in limits; did you mean "
	    "'memory'?\n");
	expect_errors("zzzzzzzz: 2\n", "1:1: unknown option 'zzzzzzzz'\n");
	expect_errors(
	    "limits.memory: 1GiB\n", "1:1: unknown option 'limits.memory'\n");
	/* The right name in the wrong place. */
	expect_errors("bulk-bytes: 1MiB\n",
	    "1:1: unknown option 'bulk-bytes'; did you mean "
	    "'limits.bulk-bytes'?\n");
	expect_errors(FILTER "    redis-share: 0.1\n",
	    "5:5: unknown option 'redis-share'; did you mean "
	    "'rebuild.redis-share'?\n");
	expect_errors("capacity: 1\n",
	    "1:1: unknown option 'capacity'; did you mean 'a filter's "
	    "capacity'?\n");
	expect_errors(FILTER "    permission: trust\n",
	    "5:5: unknown option 'permission'; did you mean 'the top level's "
	    "permission'?\n");
	/* A misspelt required option is not missing as well. */
	expect_errors("filters:\n  - name: a\n    key: [\"{id}\"]\n"
		      "    capacty: 5\n",
	    "3:5: unknown option 'key'; did you mean 'keys'?\n"
	    "4:5: unknown option 'capacty'; did you mean 'capacity'?\n");
}
END_TEST

START_TEST(test_duplicate)
{
	expect_errors("workers: 1\nlog:\n  level: info\nworkers: 2\n",
	    "4:1: duplicate option 'workers' (first in line 1)\n");
	expect_errors("log: {level: info, level: warn}\n",
	    "1:20: duplicate option 'log.level' (first in line 1)\n");
	expect_errors("log: {level: info}\nlog: {level: warn}\n",
	    "2:1: duplicate option 'log' (first in line 1)\n");
	expect_errors(FILTER "    name: other\n",
	    "5:5: duplicate option 'name' (first in line 2)\n");
}
END_TEST

START_TEST(test_types)
{
	expect_errors("workers: many\n"
		      "protected: maybe\n"
		      "lease: 15\n"
		      "limits:\n"
		      "  memory: 1GB\n"
		      "log: {level: loud}\n",
	    "1:10: workers: must be a whole number, not 'many'\n"
	    "2:12: protected: must be true or false, not 'maybe'\n"
	    "3:8: lease: must be a duration such as 500ms, 2s, 5m, 1h or 7d, "
	    "not '15'\n"
	    "5:11: limits.memory: must be a size such as 32KiB, 64MiB, 1GiB or "
	    "bytes, not '1GB'\n"
	    "6:14: log.level: must be one of: debug info warn error, not "
	    "'loud'\n");
	expect_errors("workers: [1]\nlog: 5\nfilters: {a: 1}\n",
	    "1:10: workers: must be a single value\n"
	    "2:6: log: must hold options (key: value)\n"
	    "3:10: filters: must be a list\n");
	expect_errors(
	    "- a\n", "1:1: the file must hold options (key: value)\n");
	expect_errors(
	    "text\n", "1:1: the file must hold options (key: value)\n");
	expect_errors("filters: [a]\n",
	    "1:11: a filter must hold options (key: value)\n");
	expect_errors("? [a]\n: b\nworkers: 0\n",
	    "1:3: an option's name must be a plain word\n"
	    "3:10: workers: must be 1 to 256, not '0'\n");
	expect_errors("timezone: \"a\\tb\"\n",
	    "1:11: timezone: must not hold control characters\n");
	expect_errors("timezone:\n", "1:10: timezone: must not be empty\n");
	expect_errors("log: {file: relative.log}\n",
	    "1:13: log.file: must be an absolute path\n");
}
END_TEST

START_TEST(test_numbers)
{
	expect_errors("workers: 01\n",
	    "1:10: workers: must be a whole number, not '01'\n");
	expect_errors("workers: 1e1\n",
	    "1:10: workers: must be a whole number, not '1e1'\n");
	expect_errors("workers: 0x10\n",
	    "1:10: workers: must be a whole number, not '0x10'\n");
	expect_errors("workers: -1\n",
	    "1:10: workers: must be a whole number, not '-1'\n");
	expect_errors("workers: 18446744073709551616\n",
	    "1:10: workers: must be a whole number, not "
	    "'18446744073709551616'\n");
	expect_errors("workers: 4294967297\n",
	    "1:10: workers: must be 1 to 256, not '4294967297'\n");
	expect_errors("lease: 018s\n",
	    "1:8: lease: must be a duration such as 500ms, 2s, 5m, 1h or 7d, "
	    "not '018s'\n");
	expect_errors("lease: 999999999999999999d\n",
	    "1:8: lease: must be a duration such as 500ms, 2s, 5m, 1h or 7d, "
	    "not '999999999999999999d'\n");
	expect_errors(
	    "lease: 500ms\n", "1:8: lease: must be 1s to 1h, not '500ms'\n");
	expect_errors("tcp-keepalive: 1ms\n",
	    "1:16: tcp-keepalive: must be 0, or 1s to 1d, not '1ms'\n");
	expect_errors("limits: {client-output-bytes: 0}\n",
	    "1:31: limits.client-output-bytes: must be 64KiB to 64GiB, not "
	    "'0'\n");
	expect_errors(FILTER "    error-rate: 0.5\n",
	    "5:17: error-rate: must be 1e-09 to 0.25, not '0.5'\n");
	expect_errors(FILTER "    error-rate: nan\n",
	    "5:17: error-rate: must be a number, not 'nan'\n");
	expect_errors(FILTER "    error-rate: 1e-400\n",
	    "5:17: error-rate: must be 1e-09 to 0.25, not '1e-400'\n");
	expect_errors(FILTER "    error-rate: .01\n",
	    "5:17: error-rate: must be a number, not '.01'\n");
	expect_errors(FILTER "    rebuild: {redis-share: 0, keep: 2}\n",
	    "5:28: rebuild.redis-share: must be above 0 and up to 1, not '0'\n"
	    "5:37: rebuild.keep: must be 0 to 1, not '2'\n");
	expect_errors(FILTER "    rebuild: {chunk-bytes: 33KiB}\n",
	    "5:28: rebuild.chunk-bytes: must be 1KiB to 32KiB, not '33KiB'\n");
}
END_TEST

START_TEST(test_required)
{
	expect_errors("filters:\n  - db: 1\n  - name: b\n    capacity: 5\n",
	    "2:5: a filter needs 'name'\n"
	    "2:5: a filter needs 'keys'\n"
	    "2:5: a filter needs 'capacity'\n"
	    "3:5: a filter needs 'keys'\n");
	expect_errors("filters:\n  - name: a\n    keys: []\n    capacity: 0\n",
	    "3:11: keys: must not be an empty list\n"
	    "4:15: capacity: must be 1 to 10000000000, not '0'\n");
	expect_errors("filters:\n  - name: a\n    keys: user:{id}\n"
		      "    capacity: 1\n",
	    "3:11: keys: must be a list: [a, b]\n");
}
END_TEST

START_TEST(test_yaml)
{
	expect_errors("log: &x {level: info}\nstats: *x\n",
	    "1:6: anchors are not allowed (&x)\n"
	    "2:8: aliases are not allowed (*x)\n");
	expect_errors("workers: !!int 3\n",
	    "1:10: tags are not allowed (tag:yaml.org,2002:int)\n");
	expect_errors("workers: 1\n---\nworkers: 2\n",
	    "2:1: a second document: the file must hold one\n");
	/* What stands before a syntax error is checked, nothing is missing. */
	expect_errors("workers: 0\nfilters:\n  - name: a\n\tkeys: [b]\n",
	    "1:10: workers: must be 1 to 256, not '0'\n"
	    "4:1: found a tab character that violates indentation (while "
	    "scanning a plain scalar)\n");
	expect_errors("\tworkers: 1\n",
	    "1:1: found character that cannot start any token (a tab: YAML is "
	    "indented with spaces) (while scanning for the next token)\n");
	expect_errors("a: [1, 2\n",
	    "1:1: unknown option 'a'\n"
	    "2:1: did not find expected ',' or ']' (while parsing a flow "
	    "sequence)\n");
	expect_errors("timezone: \"a\\0b\"\nworkers: 0\n",
	    "1:11: a value may not hold a NUL byte\n"
	    "2:10: workers: must be 1 to 256, not '0'\n");
}
END_TEST

START_TEST(test_bytes)
{
	expect_errors("workers: 0\nti\0mezone: UTC\nlease: 1\n",
	    "1:10: workers: must be 1 to 256, not '0'\n"
	    "2:3: a NUL byte\n"
	    "3:8: lease: must be a duration such as 500ms, 2s, 5m, 1h or 7d, "
	    "not '1'\n");
	expect_errors("# \xc3\xa4 \xff\xfe \xc3\n",
	    "1:5: not UTF-8\n"
	    "1:8: not UTF-8\n");
	/* Overlong, a surrogate, above U+10FFFF. */
	expect_errors("# \xc0\x80\n# \xed\xa0\x80\n# \xf4\x90\x80\x80\n",
	    "1:3: not UTF-8\n2:3: not UTF-8\n3:3: not UTF-8\n");
	expect_errors("# a\x1b[31m\r\n# \xc2\x9b\r\n",
	    "1:4: a control character (U+001B) is not allowed\n"
	    "2:3: a control character (U+009B) is not allowed\n");
	/* UTF-16 with its byte order mark. */
	expect_errors("\xff\xfew\0o\0",
	    "1:1: not UTF-8\n"
	    "1:4: a NUL byte\n"
	    "1:6: a NUL byte\n");
	/* A BOM is fine and takes no column. */
	expect_errors("\xef\xbb\xbfworkers: 1\n", "");
	expect_errors("\xef\xbb\xbfworkers: 0\n",
	    "1:10: workers: must be 1 to 256, not '0'\n");
	/* Columns count characters. */
	expect_errors("log: {file: \"/\xc3\xa4\xe2\x82\xac\", level: x}\n",
	    "1:27: log.level: must be one of: debug info warn error, not "
	    "'x'\n");
	expect_errors("listen: 127.0.0.1:6380\r\nworkers: 0\r\n",
	    "2:10: workers: must be 1 to 256, not '0'\n");
}
END_TEST

START_TEST(test_addresses)
{
	expect_errors(
	    "listen: [127.0.0.1:0644, \":1\", \"a b:1\", localhost]\n",
	    "1:10: listen: port must be 0 to 65535, not '0644'\n"
	    "1:26: listen: a host is missing: 0.0.0.0 or [::] stand for all\n"
	    "1:32: listen: must be host:port, [v6]:port or unix:/path\n"
	    "1:41: listen: must be host:port, [v6]:port or unix:/path\n");
	expect_errors(
	    "listen: []\n", "1:9: listen: must not be an empty list\n");
	expect_errors("listen: {a: b}\n",
	    "1:9: listen: must be an address or a list of addresses\n");
	expect_errors(
	    "listen: [[a]]\n", "1:10: listen: an item must be a text\n");
	expect_errors("listen: [a:1, b:2, A:1]\n",
	    "1:20: listen: the address is given twice\n");
	expect_errors("upstream: {address: 127.0.0.1:0}\n",
	    "1:21: upstream.address: port must be 1 to 65535, not '0'\n");
	expect_errors("upstream: {address: 127.0.0.1:6380}\n",
	    "1:21: upstream.address: is an address that clients connect to\n");
	expect_errors("upstream: {address: \"\"}\n",
	    "1:21: upstream.address: must not be empty\n");
	expect_errors("stats: {listen: 127.0.0.1:6380}\n",
	    "1:17: stats.listen: is in listen already\n");
	expect_errors("admin: {listen: 127.0.0.1:9380}\n",
	    "1:17: admin.listen: is stats.listen already\n");
	expect_errors("store: {username: a, password-file: /b}\n",
	    "1:19: store.username: needs store.address\n"
	    "1:37: store.password-file: needs store.address\n");
	/* What is wrong in itself causes no second error. */
	expect_errors("store: {username: a, address: x}\n",
	    "1:31: store.address: must be host:port, [v6]:port or "
	    "unix:/path\n");
}
END_TEST

START_TEST(test_top_checks)
{
	expect_errors("timezone: Europe/Atlantis\n",
	    "1:11: timezone: no zone 'Europe/Atlantis' in "
	    "/usr/share/zoneinfo/\n");
	expect_errors("timezone: ../../../etc/passwd\n",
	    "1:11: timezone: no zone '../../../etc/passwd' in "
	    "/usr/share/zoneinfo/\n");
	expect_errors("timezone: Europe\n",
	    "1:11: timezone: no zone 'Europe' in /usr/share/zoneinfo/\n");
	expect_errors("limits: {bulk-bytes: 2GiB}\n",
	    "1:22: limits.bulk-bytes: request-bytes must not be below "
	    "bulk-bytes\n");
	expect_errors("limits: {bulk-bytes: 2GiB, request-bytes: 1GiB}\n",
	    "1:43: limits.request-bytes: request-bytes must not be below "
	    "bulk-bytes\n");
}
END_TEST

START_TEST(test_remarks)
{
	util_expect_remarks("upstream: {sharing: true, lanes: 2}\n" FILTER,
	    "1:12: upstream.sharing: comes later and has no effect yet\n"
	    "1:27: upstream.lanes: comes later and has no effect yet\n");
	util_expect_remarks("upstream: {sharing: off, lanes: 1}\n" FILTER, "");
	util_expect_remarks(FILTER "    check: mirror\n"
				   "    verify-sample: 0.01\n"
				   "    after-restart: replay\n"
				   "    feed: {stream: s}\n"
				   "    rebuild:\n"
				   "      schedule: daily 01:00\n"
				   "      source: {set: s}\n",
	    "6:5: verify-sample: comes later and has no effect yet\n"
	    "7:5: after-restart: comes later and has no effect yet\n"
	    "8:12: feed.stream: comes later and has no effect yet\n"
	    "10:7: rebuild.schedule: comes later and has no effect yet\n"
	    "11:16: rebuild.source.set: comes later and has no effect yet\n");
	util_expect_remarks(FILTER "    verify-sample: 0\n"
				   "    after-restart: rebuild\n"
				   "    rebuild: {schedule: never}\n",
	    "");
	util_expect_remarks(FILTER "    key-file: /k\n",
	    "5:5: key-file: only scheme keyed uses it\n");
	util_expect_remarks("admin: {listen: 0.0.0.0:1}\n" FILTER,
	    "1:17: admin.listen: whoever reaches this address may operate "
	    "bloomgate; nothing is asked of them\n");
	util_expect_remarks("admin: {listen: \"[::1]:1\"}\n" FILTER, "");
	util_expect_remarks("", "0:0: no filters: everything is forwarded\n");
}
END_TEST

START_TEST(test_files)
{
	struct settings_report report;

	ck_assert_ptr_null(settings_load("/nonexistent/file", &report));
	ck_assert_uint_eq(report.count, 1);
	ck_assert_uint_eq(report.items[0].line, 0);
	ck_assert_str_eq(report.items[0].text, "No such file or directory");
	settings_report_fini(&report);
	ck_assert_ptr_null(settings_load("/", &report));
	ck_assert_str_eq(report.items[0].text, "Is a directory");
	settings_report_fini(&report);
	ck_assert_ptr_null(settings_load("/dev/zero", &report));
	ck_assert_str_eq(report.items[0].text, "larger than 1048576 bytes");
	settings_report_fini(&report);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config errors");
	TCase *t = tcase_create("errors");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	tcase_add_test(t, test_unknown);
	tcase_add_test(t, test_duplicate);
	tcase_add_test(t, test_types);
	tcase_add_test(t, test_numbers);
	tcase_add_test(t, test_required);
	tcase_add_test(t, test_yaml);
	tcase_add_test(t, test_bytes);
	tcase_add_test(t, test_addresses);
	tcase_add_test(t, test_top_checks);
	tcase_add_test(t, test_remarks);
	tcase_add_test(t, test_files);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
