/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the session mode: each row of the transition table, what lowers
 * the level, what must wait and what makes a session opaque, and the replay. The
 * reply bytes are those of redis-server 7.0.15. Subscriptions:
 * test_policy_mode_subs.c; against a running Redis: test_policy_mode_live.c.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "mode_fixture.h"

#define OK "+OK\r\n"
#define MAP3                                                                   \
	"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15"   \
	"\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:17\r\n$4\r\nmode\r\n$10\r\n"    \
	"standalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
#define MAP2                                                                   \
	"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15"  \
	"\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:23\r\n$4\r\nmode\r\n$10\r\n"    \
	"standalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
#define WRONGPASS                                                              \
	"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
#define NOPERM "-NOPERM this user has no permissions to run the 'x' command\r\n"
#define DISCARDED                                                              \
	"-EXECABORT Transaction discarded because of previous errors.\r\n"
#define ABORTED(why) "-EXECABORT Transaction discarded because of: " why "\r\n"
#define QUEUED       "+QUEUED\r\n"

/* A session from its start: requests, each with its reply, and what it is then. */
struct row {
	const char *steps[13]; /* request, reply, ...; NULL ends */
	const char *want;      /* fixture_text */
};

/* clang-format off */
static const struct row rows[] = {
    {{NULL}, ""},
    {{"get k", "$-1\r\n", "set k v", OK, "PING", "+PONG\r\n"}, ""},

    /* AUTH */
    {{"auth secret", OK}, "user=default:secret"},
    {{"AUTH u secret", OK}, "user=u:secret"},
    {{"auth u ''", OK}, "user=u:"},
    {{"auth secret", WRONGPASS}, ""},
    {{"auth a 1", OK, "auth b 2", WRONGPASS}, "user=a:1"},
    {{"auth a 1", OK, "auth b 2", OK}, "user=b:2"},
    {{"auth a 1", OK, "auth 2", OK}, "user=default:2"},
    {{"auth", "-ERR wrong number of arguments for 'auth' command\r\n"}, ""},
    {{"auth a b c", "-ERR syntax error\r\n"}, ""},

    /* HELLO */
    {{"hello", MAP2}, ""},
    {{"hello 2", MAP2}, "hello=2"},
    {{"hello 3", MAP3}, "proto=3; hello=3"},
    {{"hello 3", MAP3, "hello", MAP3}, "proto=3; hello=3"},
    {{"hello 3", MAP3, "hello 2", MAP2}, "hello=2"},
    {{"hello 4", "-NOPROTO unsupported protocol version\r\n"}, ""},
    {{"hello x", "-ERR Protocol version is not an integer or out of range\r\n"},
	""},
    {{"hello 3", MAP3, "hello 2", NOPERM}, "proto=3; hello=3"},
    {{"hello 3", "-NOAUTH HELLO must be called with the client already "
	"authenticated, otherwise the HELLO AUTH <user> <pass> option can be "
	"used to authenticate the client and select the RESP protocol version at "
	"the same time\r\n"}, ""},
    {{"hello 3 AUTH u s", MAP3}, "proto=3; hello=3; user=u:s"},
    {{"hello 3 auth u s", WRONGPASS}, ""},
    {{"auth a 1", OK, "hello 3 auth u s", WRONGPASS}, "user=a:1"},
    {{"auth a 1", OK, "hello 3", MAP3}, "proto=3; hello=3; user=a:1"},
    {{"hello 2 auth u s SetName n", MAP2}, "hello=2; user=u:s; name=n"},
    {{"hello 3 setname n", MAP3}, "proto=3; hello=3; name=n"},
    {{"hello 3 auth u s setname n", WRONGPASS}, ""},
    {{"hello 3 auth auth setname setname setname", MAP3},
	"proto=3; hello=3; user=auth:setname; name=setname"},

    /* SELECT */
    {{"select 3", OK}, "db=3"},
    {{"select 3", OK, "select 0", OK}, ""},
    {{"select 3", OK, "select 99", "-ERR DB index is out of range\r\n"}, "db=3"},
    {{"select x", "-ERR value is not an integer or out of range\r\n"}, ""},
    {{"select", "-ERR wrong number of arguments for 'select' command\r\n"}, ""},
    {{"select 3", NOPERM}, ""},

    /* CLIENT */
    {{"client id", ":7\r\n"}, ""},
    {{"client SETNAME n", OK}, "name=n"},
    {{"client setname n", OK, "client setname ''", OK}, "name="},
    {{"client setname n", OK, "client setname o", NOPERM}, "name=n"},
    {{"client setinfo LIB-NAME l", OK, "client setinfo lib-ver 1.2", OK},
	"lib=l; ver=1.2"},
    {{"client setinfo lib-name l",
	"-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n"}, ""},
    {{"client setinfo other l", "-ERR Unrecognized option 'other'\r\n"}, ""},
    {{"client id", ":7\r\n", "client list", "$1\r\nx\r\n", "client info",
	"$1\r\nx\r\n", "client getname", "$-1\r\n", "client getredir", ":-1\r\n"},
	""},
    {{"client kill id 9", ":0\r\n", "client pause 0", OK, "client unpause", OK,
	"client unblock 9", ":0\r\n", "client help", "*1\r\n+HELP\r\n",
	"client REPLY on", OK}, ""},
    {{"client trackinginfo", "*1\r\n$3\r\noff\r\n", "client caching yes",
	"-ERR CLIENT CACHING can be called only when the client is in tracking "
	"mode with OPTIN or OPTOUT mode enabled\r\n"}, ""},
    {{"client", "-ERR wrong number of arguments for 'client' command\r\n"}, ""},
    {{"client id x", "-ERR wrong number of arguments for 'client|id' "
	"command\r\n"}, ""},
    {{"client setname", "-ERR wrong number of arguments for "
	"'client|setname' command\r\n"}, ""},
    {{"client setname x y", "-ERR wrong number of arguments for "
	"'client|setname' command\r\n"}, ""},
    {{"client foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n"}, ""},
    /* A subcommand that is news. */
    {{"client foo", OK}, "forward; foreign; stateful"},
    {{"client setinfo other l", OK}, "forward; foreign; stateful"},

    /* CLIENT TRACKING */
    {{"client tracking on", OK}, "forward; tracking; stateful"},
    {{"client TRACKING On redirect 7 bcast prefix a prefix b noloop", OK},
	"forward; tracking; stateful"},
    {{"client tracking on optin", OK, "client caching yes", OK},
	"forward; tracking; stateful"},
    {{"client tracking on", OK, "client tracking OFF", OK}, ""},
    {{"client tracking off optin", OK}, ""},
    {{"client tracking on", "-NOPERM x\r\n"}, ""},
    {{"client tracking on foo", "-ERR syntax error\r\n"}, ""},
    {{"client tracking", "-ERR wrong number of arguments for "
	"'client|tracking' command\r\n"}, ""},
    {{"client tracking foo", "-ERR syntax error\r\n"}, ""},
    {{"client tracking foo", OK}, "forward; foreign; stateful"},
    {{"client tracking on", OK, "client tracking on bcast", "-ERR You can't "
	"switch BCAST mode on/off before disabling tracking for this client, and "
	"then re-enabling it with a different mode.\r\n"},
	"forward; tracking; stateful"},
    {{"client tracking on", OK, "client tracking off redirect 9", "-ERR The "
	"client ID you want redirect to does not exist\r\n"},
	"forward; tracking; stateful"},
    {{"hello 3", MAP3, "client tracking on", OK, "hello 2", MAP2},
	"forward; hello=2; tracking; stateful"},
    {{"client tracking on", OK, "reset", "+RESET\r\n"}, ""},

    /* CLIENT NO-EVICT and NO-TOUCH: of the connection, but not of reads; RESET
       leaves them */
    {{"client no-evict on", OK}, "no-evict; stateful"},
    {{"client no-evict on", OK, "client no-evict off", OK}, ""},
    {{"client no-evict on", NOPERM}, ""},
    {{"client no-evict on", OK, "client no-evict x", "-ERR syntax error\r\n"},
	"no-evict; stateful"},
    {{"client no-evict on", OK, "reset", "+RESET\r\n"}, "no-evict; stateful"},
    {{"client no-touch on", OK}, "no-touch; stateful"},
    {{"client no-touch on", OK, "client no-touch off", OK}, ""},
    {{"client no-touch on", "-ERR unknown subcommand 'no-touch'. Try CLIENT "
	"HELP.\r\n"}, ""},

    /* QUIT leaves what is for who still reads */
    {{"quit", OK}, ""},

    /* MULTI EXEC DISCARD */
    {{"multi", OK}, "forward; multi; stateful"},
    {{"multi", NOPERM}, ""},
    {{"multi", OK, "multi", "-ERR MULTI calls can not be nested\r\n"},
	"forward; multi; stateful"},
    {{"multi", OK, "get k", QUEUED, "exec", "*1\r\n$-1\r\n"}, ""},
    {{"multi", OK, "exec", "*0\r\n"}, ""},
    {{"multi", OK, "get k", QUEUED, "exec", "*-1\r\n"}, ""},
    {{"hello 3", MAP3, "multi", OK, "exec", "_\r\n"}, "proto=3; hello=3"},
    {{"multi", OK, "nosuch", "-ERR unknown command 'nosuch', with args "
	"beginning with: \r\n", "exec", DISCARDED}, ""},
    {{"multi", OK, "exec x", ABORTED("wrong number of arguments for 'exec' "
	"command")}, ""},
    /* Redis ends the transaction; an error of another kind would not. */
    {{"multi", OK, "exec", ABORTED("NOPERM this user has no permissions to run "
	"the 'exec' command")}, ""},
    {{"multi", OK, "exec", NOPERM}, "forward; multi; stateful"},
    {{"multi", OK, "exec", "-EXEC\r\n"}, "forward; multi; stateful"},
    {{"multi", OK, "exec", NOPERM, "exec", "-ERR EXEC without MULTI\r\n"}, ""},
    {{"multi", OK, "exec", NOPERM, "discard", "-ERR DISCARD without MULTI\r\n"},
	""},
    {{"exec", "-ERR EXEC without MULTI\r\n"}, ""},
    {{"multi", OK, "discard", OK}, ""},
    {{"multi", OK, "discard", NOPERM}, "forward; multi; stateful"},
    {{"multi", OK, "discard x", "-ERR wrong number of arguments for 'discard' "
	"command\r\n"}, "forward; multi; stateful"},
    {{"discard", "-ERR DISCARD without MULTI\r\n"}, ""},
    {{"multi", OK, "discard", OK, "multi", OK}, "forward; multi; stateful"},

    /* WATCH UNWATCH */
    {{"watch k", OK}, "forward; watched; stateful"},
    {{"watch k", NOPERM}, ""},
    {{"watch", "-ERR wrong number of arguments for 'watch' command\r\n"}, ""},
    {{"watch k", OK, "unwatch", OK}, ""},
    {{"watch k", OK, "unwatch", NOPERM}, "forward; watched; stateful"},
    {{"unwatch", OK}, ""},
    {{"watch k", OK, "multi", OK}, "forward; multi; watched; stateful"},
    {{"watch k", OK, "multi", OK, "exec", "*-1\r\n"}, ""},
    {{"watch k", OK, "multi", OK, "exec", "*0\r\n"}, ""},
    {{"watch k", OK, "multi", OK, "exec", DISCARDED}, ""},
    {{"watch k", OK, "multi", OK, "discard", OK}, ""},
    {{"watch k", OK, "exec", "-ERR EXEC without MULTI\r\n"},
	"forward; watched; stateful"},
    {{"watch k", OK, "discard", "-ERR DISCARD without MULTI\r\n"},
	"forward; watched; stateful"},
    {{"multi", OK, "watch k", "-ERR WATCH inside MULTI is not allowed\r\n"},
	"forward; multi; stateful"},
    {{"watch k", OK, "multi", OK, "unwatch", QUEUED},
	"forward; multi; watched; stateful"},
    {{"watch k", OK, "multi", OK, "unwatch", QUEUED, "exec", "*1\r\n+OK\r\n"},
	""},

    /* What nobody knows: nothing, where it fails */
    {{"nosuch", "-ERR unknown command 'nosuch', with args beginning with: \r\n"},
	""},
    {{"nosuch", NOPERM}, ""},
    {{"foo", OK}, "forward; foreign; stateful"},
    {{"foo", "$-1\r\n"}, "forward; foreign; stateful"},
    {{"foo", OK, "exec", "*0\r\n"}, "forward; foreign; stateful"},
    {{"foo", OK, "reset", "+RESET\r\n"}, "forward; foreign; stateful"},
    {{"multi", OK, "foo", QUEUED, "exec", "*1\r\n+OK\r\n"},
	"forward; foreign; stateful"},
    /* A reply that no session outside a transaction gets. */
    {{"select 3", QUEUED}, "forward; foreign; stateful"},
    {{"watch k", QUEUED}, "forward; foreign; stateful"},

    /* What blocks changes nothing */
    {{"BLPOP k 0", "*-1\r\n"}, ""},
    {{"multi", OK, "BLPOP k 0", QUEUED, "exec", "*1\r\n*-1\r\n"}, ""},

    /* RESET: everything back but what it does not touch */
    {{"reset", "+RESET\r\n"}, ""},
    {{"reset", NOPERM}, ""},
    {{"multi", OK, "reset x", "-ERR wrong number of arguments for 'reset' "
	"command\r\n"}, "forward; multi; stateful"},
    {{"hello 3 auth u s setname n", MAP3, "select 3", OK, "watch k", OK,
	"multi", OK, "reset", "+RESET\r\n"}, ""},
    {{"client setinfo lib-name l", OK, "client setinfo lib-ver 1", OK,
	"client setname n", OK, "reset", "+RESET\r\n"},
	"lib=l; ver=1"},
    {{"select 3", OK, "watch k", OK, "reset", NOPERM},
	"forward; db=3; watched; stateful"},
    {{"reset", "+RESET\r\n", "watch k", OK}, "forward; watched; stateful"},
    {{"reset", "+RESET\r\n", "auth u s", OK, "hello 3", MAP3},
	"proto=3; hello=3; user=u:s"},

    /* HELLO that Redis refuses before it does anything */
    {{"hello 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n"}, ""},
    {{"hello 3 auth u", "-ERR Syntax error in HELLO option 'auth'\r\n"}, ""},
    {{"hello 3 setname", "-ERR Syntax error in HELLO option 'setname'\r\n"},
	""},
    {{"hello 3 setname a\tb", "-ERR Client names cannot contain spaces, newlines "
	"or special characters.\r\n"}, ""},
    {{"hello 3 foo", MAP3}, "forward; foreign; stateful"},
    {{"hello x", MAP3}, "forward; foreign; stateful"},
    /* The form of the reply is the protocol. */
    {{"hello 3", MAP2}, "hello=2"},
};
/* clang-format on */

START_TEST(test_row)
{
	const struct row *row = &rows[_i];
	struct mode m;

	mode_init(&m);
	for (size_t i = 0; row->steps[i] != NULL; i += 2)
		fixture_do(&m, row->steps[i], row->steps[i + 1]);
	ck_assert_msg(strcmp(fixture_text(&m), row->want) == 0,
	    "row %d (%s ...): %s, not %s", _i,
	    row->steps[0] != NULL ? row->steps[0] : "", fixture_text(&m),
	    row->want);
	ck_assert_uint_eq(m.outstanding, 0);
	mode_fini(&m);
	ck_assert_str_eq(fixture_text(&m), "");
}
END_TEST

/* Nothing is believed before the reply. */
START_TEST(test_reply_decides)
{
	struct change *c[6];
	struct mode m;

	mode_init(&m);
	c[0] = fixture_ask(&m, "auth u s", MODE_SEND);
	c[1] = fixture_ask(&m, "select 3", MODE_SEND);
	c[2] = fixture_ask(&m, "hello 3", MODE_SEND);
	c[3] = fixture_ask(&m, "client setname n", MODE_SEND);
	c[4] = fixture_ask(&m, "quit", MODE_SEND);
	ck_assert_ptr_null(fixture_ask(&m, "get k", MODE_SEND));
	ck_assert_str_eq(fixture_text(&m), "");
	ck_assert_uint_eq(m.outstanding, 5);
	c[5] = fixture_ask(&m, "multi", MODE_SEND);
	ck_assert_uint_eq(m.outstanding, 6);
	ck_assert_str_eq(fixture_text(&m), "");
	fixture_answer(&m, c[0], OK);
	fixture_answer(&m, c[1], OK);
	ck_assert_str_eq(fixture_text(&m), "db=3; user=u:s");
	/* Replies that never come change nothing. */
	mode_abandon(&m, c[2]);
	mode_abandon(&m, c[3]);
	mode_abandon(&m, c[4]);
	mode_abandon(&m, c[5]);
	ck_assert_uint_eq(m.outstanding, 0);
	ck_assert_str_eq(fixture_text(&m), "db=3; user=u:s");
	mode_fini(&m);
}
END_TEST

/* RESET does not take back what was sent behind it. */
START_TEST(test_reset_then_watch)
{
	struct change *reset, *watch;
	struct mode m;

	mode_init(&m);
	reset = fixture_ask(&m, "reset", MODE_SEND);
	watch = fixture_ask(&m, "watch k", MODE_SEND);
	fixture_answer(&m, reset, "+RESET\r\n");
	ck_assert_uint_eq(m.outstanding, 1);
	ck_assert_str_eq(fixture_text(&m), "");
	fixture_answer(&m, watch, OK);
	ck_assert_str_eq(fixture_text(&m), "forward; watched; stateful");
	fixture_do(&m, "reset", "+RESET\r\n");
	ck_assert_str_eq(fixture_text(&m), "");
	mode_fini(&m);
}
END_TEST

/* A BF.* that was refused inside MULTI is remembered until it ends. */
START_TEST(test_multi_failed)
{
	static const char *const ends[][2] = {
	    {"exec", DISCARDED}, {"discard", OK}, {"reset", "+RESET\r\n"}};
	struct mode m;

	for (size_t i = 0; i < 3; i++) {
		mode_init(&m);
		fixture_do(&m, "multi", OK);
		m.multi_failed = true;
		fixture_do(&m, "exec", NOPERM);
		ck_assert(m.multi_failed);
		fixture_do(&m, ends[i][0], ends[i][1]);
		ck_assert(!m.multi_failed && !m.in_multi);
		fixture_do(&m, "multi", OK);
		ck_assert(!m.multi_failed && m.in_multi);
		mode_fini(&m);
	}
}
END_TEST

/* What is kept of an argument that was cut could not be given back. */
START_TEST(test_cut_arguments)
{
	static const char *const requests[] = {
	    "auth u s", "client setname n", "select 3"};
	struct slice argv[FIXTURE_ARGS];
	struct change *c;
	struct mode m;

	for (size_t i = 0; i < 3; i++) {
		size_t argc = fixture_split(requests[i], argv);

		mode_init(&m);
		ck_assert_int_eq(mode_request(&m, fixture_command(argv[0]),
				     argv, argc, false, &c),
		    MODE_SEND);
		fixture_answer(&m, c, OK);
		ck_assert_ptr_nonnull(
		    strstr(fixture_text(&m), "foreign; stateful"));
		ck_assert_int_eq(m.level, MODE_FORWARD_ONLY);
		mode_fini(&m);
	}
}
END_TEST

/* These may be queued: whether they are is known when MULTI has its reply. */
static const char *const breakers[] = {"select 1", "auth s", "hello 3",
    "client id", "subscribe a", "psubscribe a", "ssubscribe a", "unsubscribe",
    "punsubscribe", "sunsubscribe"};
#define BREAKERS (sizeof(breakers) / sizeof(*breakers))

START_TEST(test_wait)
{
	struct change *multi;
	struct mode m;

	mode_init(&m);
	/* A plain session has sent no MULTI. */
	multi = fixture_ask(&m, "select 1", MODE_SEND);
	mode_abandon(&m, fixture_ask(&m, breakers[_i], MODE_SEND));
	mode_abandon(&m, multi);
	mode_fini(&m);

	mode_init(&m);
	multi = fixture_ask(&m, "multi", MODE_SEND);
	fixture_ask(&m, breakers[_i], MODE_WAIT);
	ck_assert_uint_eq(m.outstanding, 1);
	/* Others do not have to wait. */
	ck_assert_ptr_null(fixture_ask(&m, "get k", MODE_SEND));
	mode_abandon(&m, fixture_ask(&m, "exec", MODE_SEND));
	mode_abandon(&m, fixture_ask(&m, "reset", MODE_SEND));
	fixture_ask(&m, breakers[_i], MODE_WAIT);
	fixture_answer(&m, multi, OK);
	fixture_ask(&m, breakers[_i], MODE_OPAQUE_WISH);
	ck_assert_uint_eq(m.outstanding, 0);
	ck_assert_str_eq(fixture_text(&m), "forward; multi; stateful");
	multi = fixture_ask(&m, "exec", MODE_SEND);
	fixture_ask(&m, breakers[_i], MODE_WAIT);
	fixture_answer(&m, multi, "*0\r\n");
	mode_abandon(&m, fixture_ask(&m, breakers[_i], MODE_SEND));
	/* What nobody knows may be MULTI. */
	multi = fixture_ask(&m, "foo", MODE_SEND);
	fixture_ask(&m, breakers[_i], MODE_WAIT);
	fixture_answer(&m, multi, "-ERR unknown command 'foo'\r\n");
	mode_abandon(&m, fixture_ask(&m, breakers[_i], MODE_SEND));
	/* A MULTI that was refused opens nothing. */
	fixture_do(&m, "multi", NOPERM);
	mode_abandon(&m, fixture_ask(&m, breakers[_i], MODE_SEND));
	mode_fini(&m);
}
END_TEST

/* Where one that nobody knows has not failed, these may be queued for good. */
START_TEST(test_foreign)
{
	struct change *c;
	struct mode m;

	mode_init(&m);
	fixture_do(&m, "foo", OK);
	fixture_ask(&m, breakers[_i], MODE_OPAQUE_WISH);
	mode_fini(&m);

	/* No command at all is known: nothing is meant by it. */
	mode_init(&m);
	c = fixture_ask(&m, "foo", MODE_SEND);
	mode_excuse(&m, c);
	ck_assert(!change_moves_database(c));
	mode_abandon(&m, fixture_ask(&m, breakers[_i], MODE_SEND));
	fixture_answer(&m, c, OK);
	ck_assert_str_eq(fixture_text(&m), "forward; foreign");
	mode_abandon(&m, fixture_ask(&m, breakers[_i], MODE_SEND));
	mode_fini(&m);
}
END_TEST

/* What a lost reply means for what follows in the session. */
START_TEST(test_harmless)
{
	static const struct {
		const char *request;
		bool harmless, moves_database;
	} cases[] = {{"multi", false, false}, {"exec", false, false},
	    {"discard", false, false}, {"watch k", false, false},
	    {"unwatch", false, false}, {"select 1", false, true},
	    {"auth s", false, false}, {"hello 3", false, false},
	    {"reset", false, true}, {"subscribe a", false, false},
	    {"unsubscribe", false, false}, {"foo", false, true},
	    {"client tracking on", false, false},
	    {"client no-evict on", false, false}, {"client foo", false, true},
	    {"client setname n", true, false},
	    {"client setinfo lib-ver 1", true, false},
	    {"client id", true, false}, {"client LIST", true, false},
	    {"quit", true, false}, {"blpop k 0", true, false}};
	struct mode m;

	mode_init(&m);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct change *c = fixture_ask(&m, cases[i].request, MODE_SEND);

		ck_assert_msg(c->harmless == cases[i].harmless &&
			change_moves_database(c) == cases[i].moves_database,
		    "%s", cases[i].request);
		mode_abandon(&m, c);
	}
	ck_assert_uint_eq(m.outstanding, 0);
	ck_assert_uint_eq(m.opening, 0);
	mode_fini(&m);
}
END_TEST

/* Opaque at once, in whatever state; nothing is changed by asking. */
static const char *const opaque[] = {"monitor", "sync", "psync ? -1",
    "client reply off", "client REPLY skip", "client reply",
    /* Redis lets the user in (takes the name) and then refuses the rest. */
    "hello 3 auth u s setname a\tb", "hello 3 auth u s foo",
    "hello 3 auth u s auth v", "hello 3 auth u s auth v t",
    "hello 3 setname n foo", "hello 3 setname n setname o",
    "hello 3 setname n auth u s", "replconf ack 1", "client reply foo",
    "client reply on x"};
#define OPAQUE (sizeof(opaque) / sizeof(*opaque))

START_TEST(test_opaque)
{
	struct change *watch;
	struct mode m;

	mode_init(&m);
	fixture_ask(&m, opaque[_i], MODE_OPAQUE_WISH);
	ck_assert_str_eq(fixture_text(&m), "");
	watch = fixture_ask(&m, "watch k", MODE_SEND);
	fixture_ask(&m, opaque[_i], MODE_OPAQUE_WISH);
	fixture_answer(&m, watch, OK);
	fixture_ask(&m, opaque[_i], MODE_OPAQUE_WISH);
	ck_assert_uint_eq(m.outstanding, 0);
	mode_fini(&m);
}
END_TEST

/* Sessions, and the requests that make another connection the same. */
static const struct {
	const char *steps[13];
	size_t replies;
	const char *want;
} replays[] = {
    {{NULL}, 0, ""},
    {{"auth u s", WRONGPASS, "select 9", NOPERM}, 0, ""},
    {{"auth s", OK}, 1, "*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$1\r\ns\r\n"},
    {{"auth u pw", OK}, 1, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$2\r\npw\r\n"},
    {{"hello", MAP2}, 0, ""},
    {{"hello 2", MAP2}, 1, "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n"},
    {{"hello 3", MAP3}, 1, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"},
    {{"auth u pw", OK, "hello 3", MAP3}, 1,
	"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$2\r\npw"
	"\r\n"},
    {{"select 15", OK}, 1, "*2\r\n$6\r\nSELECT\r\n$2\r\n15\r\n"},
    {{"client setname ''", OK}, 1,
	"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n"},
    {{"client setinfo lib-ver 1", OK}, 1,
	"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$1\r\n1\r\n"},
    {{"hello 3 auth u pw setname n", MAP3, "select 2", OK,
	 "client setinfo lib-name l", OK, "client setinfo lib-ver 1", OK},
	5,
	"*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$2\r\npw"
	"\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n"
	"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$1\r\nn\r\n"
	"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$1\r\nl\r\n"
	"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$1\r\n1\r\n"},
    {{"hello 3 auth u pw setname n", MAP3, "select 2", OK,
	 "client setinfo lib-name l", OK, "reset", "+RESET\r\n"},
	1,
	"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$1\r\nl\r"
	"\n"},
};
#define REPLAYS (sizeof(replays) / sizeof(*replays))

START_TEST(test_replay)
{
	struct mode m;
	struct buf out;

	mode_init(&m);
	for (size_t i = 0; replays[_i].steps[i] != NULL; i += 2)
		fixture_do(&m, replays[_i].steps[i], replays[_i].steps[i + 1]);
	buf_init(&out, 4096);
	ck_assert_uint_eq(mode_replay(&m, &out), replays[_i].replies);
	ck_assert_int_eq(buf_append(&out, "", 1), 0);
	ck_assert_str_eq((const char *)buf_head(&out), replays[_i].want);
	buf_fini(&out);
	mode_fini(&m);
}
END_TEST

/* A secret may hold any byte. */
START_TEST(test_replay_binary)
{
	static const char want[] = "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$5\r\n\0\r\n"
				   "\xff \r\n";
	struct slice argv[3] = {
	    slice_str("auth"), slice_str("u"), slice_of("\0\r\n\xff ", 5)};
	struct change *c;
	struct mode m;
	struct buf out;

	mode_init(&m);
	ck_assert_int_eq(
	    mode_request(&m, fixture_command(argv[0]), argv, 3, true, &c),
	    MODE_SEND);
	fixture_answer(&m, c, OK);
	buf_init(&out, 4096);
	ck_assert_uint_eq(mode_replay(&m, &out), 1);
	ck_assert_uint_eq(buf_len(&out), sizeof(want) - 1);
	ck_assert_mem_eq(buf_head(&out), want, sizeof(want) - 1);
	buf_fini(&out);
	mode_fini(&m);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy_mode");
	TCase *t = tcase_create("mode");
	SRunner *r;
	int failed;

	tcase_add_loop_test(
	    t, test_row, 0, (int)(sizeof(rows) / sizeof(*rows)));
	tcase_add_test(t, test_reply_decides);
	tcase_add_test(t, test_reset_then_watch);
	tcase_add_test(t, test_multi_failed);
	tcase_add_test(t, test_cut_arguments);
	tcase_add_loop_test(t, test_wait, 0, (int)BREAKERS);
	tcase_add_loop_test(t, test_foreign, 0, (int)BREAKERS);
	tcase_add_test(t, test_harmless);
	tcase_add_loop_test(t, test_opaque, 0, (int)OPAQUE);
	tcase_add_loop_test(t, test_replay, 0, (int)REPLAYS);
	tcase_add_test(t, test_replay_binary);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
