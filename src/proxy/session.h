/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One client connection and the upstream connection that belongs to it. The
 * files, by the way of a request:
 *
 *	session.c   life, and the pump that moves slots along
 *	client.c    the client's socket
 *	decide.c    what a parsed request is, and what is to happen with it
 *	learn.c     writes: the elements to add before they are forwarded
 *	bf.c        BF.* of configured names
 *	forward.c   bytes to the upstream: raw, split, streamed
 *	connect.c   an upstream connection: resolve, connect, replay
 *	upstream.c  the upstream's socket, and its loss
 *	absent.c    what an absent key is answered with
 *	answer.c    the upstream's replies: framed and relayed
 *	replace.c   those that do not pass as they are: merged, replaced
 *
 * The input buffer, from its head:
 *
 *	| parsed: slots not yet forwarded | the request being parsed | unread |
 *
 * A worker's thread. A callback that holds a session calls session_enter first
 * and session_leave last: only there is a closed one freed.
 */
#ifndef PROXY_SESSION_H
#define PROXY_SESSION_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "core/buf.h"
#include "policy/mode.h"
#include "proxy/slot.h"
#include "proxy/worker.h"
#include "resp/reply.h"
#include "resp/request.h"

#define SESSION_MAGIC 0x5e551047U
/* A request is kept whole up to this; larger ones stream, unless they are for
 * bloomgate itself: then they are refused. */
#define WHOLE_MAX 1048576
/* A request that is only forwarded streams from this on. */
#define STREAM_MIN 65536
/* Above this much unsent (or half of client-output-bytes), reading from the other
 * side pauses. */
#define OUTPUT_PAUSE 1048576
/* A stranger who leaves more than this unread is closed: Redis too keeps no more
 * for one than its first buffer. */
#define STRANGER_OUTPUT_MAX 16384

enum upstream_state {
	UPSTREAM_NONE,
	UPSTREAM_RESOLVING,
	UPSTREAM_CONNECTING,
	UPSTREAM_OPEN,
};

enum stream_state {
	STREAM_NONE,
	STREAM_FORWARD, /* its bytes go upstream but for the last one */
	STREAM_DISCARD, /* its bytes are dropped; its slot is answered */
	STREAM_HELD,    /* all is here; its last byte waits for the adds */
};

struct session {
	unsigned magic; /* SESSION_MAGIC */
	struct worker *worker;
	TAILQ_ENTRY(session) next;
	struct mode mode;
	unsigned busy; /* session_enter depth */
	unsigned ops;  /* checks and adds that will still call back */
	bool closed;   /* descriptors are gone; freed when nothing holds it */
	bool pumping, pump_again;

	/* client side */
	int fd;
	struct event read_event, write_event;
	bool reading, writing; /* events are added */
	bool input_ended;      /* EOF, QUIT, protocol error or drain */
	bool end_of_file;      /* the client closed or half-closed */
	bool close_after_flush;
	struct buf in;  /* up to WHOLE_MAX + SCRATCH_BYTES */
	bool in_lent;   /* in.data is the worker's scratch */
	struct buf out; /* unsent replies; limits.client-output-bytes */
	char peer[64];  /* for CLIENTS and debug logs */

	/* requests */
	struct request request;
	size_t
	    parsed; /* bytes of `in` that belong to slots not yet forwarded */
	struct slots slots;
	size_t slot_count;   /* requests that they stand for */
	struct slot *cursor; /* first slot not yet forwarded; NULL: none */
	struct slot *held;   /* the HELD one (always the last) */
	unsigned adds;       /* adds of this session not yet acknowledged */
	unsigned
	    databases; /* requests whose reply may bring another database */
	enum stream_state stream;
	struct slot *stream_slot; /* not owned; NULL once answered or opaque */
	uint8_t stream_last;      /* the byte held back */
	bool stream_has_last;
	uint64_t turn_ns; /* clock at the last read from the client */
	uint64_t
	    now_ns; /* clock in this callback, once it was asked for; or 0 */

	/* upstream side */
	enum upstream_state upstream;
	int up_fd;
	struct event up_read_event, up_write_event, up_timer;
	bool up_reading, up_writing;
	struct buf up_out;
	struct buf up_in; /* read, and waits for room in `out` */
	struct reply reply;
	bool relayed;      /* bytes of the reply being framed have gone out */
	bool refused;      /* the last reply was Redis's protocol error */
	bool unparsed;     /* opaque, behind what is no request: bytes pass */
	uint8_t stash[64]; /* start of a reply that may be replaced */
	size_t stash_len;
	bool swallow; /* the rest of this reply is dropped */
	unsigned connect_tries;
	/* Opened while Redis admitted everybody: it stays in, whatever is asked of
	 * those who come later. */
	bool admitted;
	void *resolving; /* a lookup that is out */
};

/* Takes fd. */
void session_new(struct worker *w, int fd, const char *peer);
void session_enter(struct session *s);
void session_leave(struct session *s); /* s may be gone afterwards */
/* Closes both sides now; what is unsent is lost. */
void session_close(struct session *s);
/* Closes once what is due to the client has been sent. */
void session_end(struct session *s);
/* No more input; ends when everything due has been answered. */
void session_end_input(struct session *s);
/* Moves everything that can move. Within session_enter/leave. */
void session_pump(struct session *s);
/* The client's address and state in a line, for operators. */
void session_describe(const struct session *s, struct buf *out);

/* Counts the session, whose level was `before`, under the one it has now. */
void session_count_level(struct session *s, enum mode_level before);
/* The reply that may change what t->change says will never come. */
void session_abandon_change(struct session *s, struct slot *t);
/* Appends to the client's output; closes the session where its cap is passed. */
void session_put(struct session *s, const void *data, size_t len);
/* Replies that wait at the head and are complete leave. */
bool session_deliver(struct session *s); /* true: some did */
/* Replies of the head slot have left; with its last the slot is freed. */
void session_pop(struct session *s, size_t replies);
/* Brings the metrics up to date with the replies of the head slot that left. */
void session_count(struct session *s);
/* The first byte of the request of t, which is not yet forwarded and is the
 * cursor or the last one parsed. */
const uint8_t *session_request_base(
    const struct session *s, const struct slot *t);

/* client.c */
void client_init(struct session *s);
/* Writes what it can; false when the session closed. */
bool client_flush(struct session *s);
void client_update(struct session *s);
/* Redis has let nobody in yet. */
static inline bool
session_is_outside(const struct session *s)
{
	return s->mode.user == NULL && s->worker->default_closed &&
	    !s->admitted;
}
/* Redis asks who must authenticate first to be brief, and so do we; who has an
 * AUTH on its way is Redis's to judge. */
static inline bool
session_is_stranger(const struct session *s)
{
	return session_is_outside(s) && s->mode.outstanding == 0;
}
/* So much is unsent that nothing is to be added: what makes more waits. */
static inline bool
session_is_full(const struct session *s)
{
	size_t pause = s->worker->output_pause;

	if (pause > STRANGER_OUTPUT_MAX && session_is_stranger(s))
		pause = STRANGER_OUTPUT_MAX;
	return buf_len(&s->out) >= pause;
}
static inline bool
upstream_has_room(const struct session *s)
{
	return buf_len(&s->up_out) < OUTPUT_PAUSE;
}
/* Adds or removes an event; *added is what it is now. */
void session_set_event(struct event *e, bool *added, bool want);
/* True while both directions have room for what a new request may cause. */
static inline bool
session_has_room(const struct session *s)
{
	return !session_is_full(s) && upstream_has_room(s) &&
	    s->slot_count < s->worker->settings->limit_pipeline;
}

/* decide.c: decides t (HELD); false when it must go on being held. */
bool decide(struct session *s, struct slot *t);
/* True where the request at the parse position is of the command whose metric
 * index is given, and decide would only let it and its reply pass as they are. */
bool decide_passes(struct session *s, size_t command);
/* mode_request for the slot of a request that goes upstream. */
enum mode_wish decide_mode(struct session *s, const struct command *c,
    const struct slice *argv, size_t argc, struct slot *t);
/* What a request may not be kept whole for: true when it may stream. */
bool decide_may_stream(struct session *s);
/* Until the upstream's commands are known nobody can say which are writes. */
bool decide_table_missing(const struct session *s);
#define TABLE_MISSING_TEXT                                                     \
	"ERR bloomgate: upstream is not reachable yet, so its "                \
	"commands are not known; try again"
/* Fills the worker's argv from the session's request; its argc. */
size_t decide_argv(struct session *s, const uint8_t *base);
/* learn.c: starts the adds that the request needs; how many. */
unsigned learn_start(struct session *s, struct slot *t, const struct command *c,
    const struct slice *argv, size_t argc);
/* True when the request may add elements, whichever its keys are. */
bool learn_may(const struct session *s, const struct command *c);
/* True when learn_start is sure to start nothing and to refuse nothing. */
bool learn_is_idle(struct session *s, const struct command *c,
    const struct slice *argv, size_t argc);

/* bf.c: a BF.* request for a configured filter; false: hold it. */
bool bf_decide(struct session *s, struct slot *t, size_t filter,
    const struct slice *argv, size_t argc);

/* forward.c: sends the cursor slot; false when there is no room yet. */
bool forward_slot(struct session *s, struct slot *t);
/* Begins to stream the request at the parse position. */
void forward_stream_start(struct session *s);
/* Feeds what is there; false when nothing moved. */
bool forward_stream(struct session *s);
/* The adds of the streamed request are acknowledged (or failed: why). */
void forward_stream_release(struct session *s, const char *failure);
/* The upstream went while only the last byte was missing: when its adds are back
 * the request is answered as not executed; nothing is forwarded before. */
void forward_stream_lost(struct session *s, const char *reason);
/* The reply to the streamed request, of which a part has not been sent, has left
 * (Redis refused its head): the rest is dropped. */
void forward_stream_answered(struct session *s);

/* connect.c */
/* Above the pause, room for a whole request made anew and for the replay, which
 * holds what up to four requests brought: secret, name, library and version. */
#define UP_OUT_MAX (OUTPUT_PAUSE + 6 * (WHOLE_MAX + SCRATCH_BYTES))
/* Opens the connection if there is none. */
void upstream_need(struct session *s);
void upstream_opened(struct session *s);
/* error: an errno. */
void upstream_connect_failed(struct session *s, int error);
void upstream_arm_timer(struct session *s, uint64_t ms);
void upstream_on_timer(evutil_socket_t fd, short what, void *arg);

/* upstream.c */
void upstream_init(struct session *s);
void upstream_on_read(evutil_socket_t fd, short what, void *arg);
void upstream_on_write(evutil_socket_t fd, short what, void *arg);
/* response-timeout is over. */
void upstream_late(struct session *s);
void upstream_flush(struct session *s);
/* Goes on with what waited for room; false when nothing did, or there is none. */
bool upstream_resume(struct session *s);
/* Reading pauses while the client's output is long. */
void upstream_update(struct session *s);
/* Gone: every reply that is due becomes an error. */
void upstream_lost(struct session *s, const char *reason);
void upstream_close(struct session *s);

/* answer.c: len bytes came from the upstream. How many were taken: what is made of
 * them may be a thousand times as long, so the rest waits for room in `out`. */
size_t answer_feed(struct session *s, const uint8_t *data, size_t len);
/* absent.c */
/* Answers a covered read that is decided here alone. The reply is made only when
 * it leaves: it may be much longer than the request, and wait long. */
void answer_absent(struct slot *t);
/* The reply of an ANSWERED slot goes to the client. */
void answer_write(struct session *s, const struct slot *t);
/* One absent element or GET in the filter's way. */
void answer_put_absent(struct session *s, struct buf *b, size_t filter);
/* True (and the text) where the filter answers absent with an error. */
bool answer_absent_error(struct session *s, size_t filter, struct slice *text);
/* What Redis answers where the keys of t are missing. */
void answer_put_missing(struct session *s, struct buf *b, const struct slot *t);
/* The error of the first absent key whose filter answers with one. */
bool answer_first_error(
    struct session *s, const struct slot *t, struct slice *text);

#endif
