/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind each path of the stats port. Bodies are made at the request;
 * nothing is kept between two.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "stats/http.h"
#include "stats/page.h"
#include "stats/stats.h"

#define STATS_MAGIC 0x73746174U

struct stats {
	unsigned magic;
	struct stats_options options;
	struct http *http; /* owned */
};

static void
set_text(struct http_response *r, int status, const char *type, char *text)
{
	r->status = status;
	r->type = type;
	r->body = text;
	r->body_len = strlen(text);
	r->owned = text;
}

static void
get_metrics(const struct stats *s, struct http_response *r)
{
	s->options.refresh(s->options.arg);
	r->owned = metrics_text(s->options.metrics, &r->body_len);
	r->body = r->owned;
	r->status = 200;
	r->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void
get_readiness(const struct stats *s, struct http_response *r)
{
	bool ready = false;
	char *text = s->options.readiness(&ready, s->options.arg);

	set_text(r, ready ? 200 : 503, "text/plain; charset=utf-8", text);
}

static void
get_page(struct http_response *r)
{
	r->status = 200;
	r->type = "text/html; charset=utf-8";
	/* Names come from a file; should one slip through, nothing loads. */
	r->extra = "Content-Security-Policy: default-src 'none'; "
		   "style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
		   "connect-src 'self'; base-uri 'none'; form-action 'none'; "
		   "frame-ancestors 'none'\r\n"
		   "Referrer-Policy: no-referrer\r\n";
	r->body = page_html;
	r->body_len = page_html_len;
}

static void
on_request(const char *path, struct http_response *r, void *arg)
{
	const struct stats *s = arg;

	check(s->magic == STATS_MAGIC);
	if (strcmp(path, "/metrics") == 0)
		get_metrics(s, r);
	else if (strcmp(path, "/status.json") == 0)
		set_text(r, 200, "application/json",
		    s->options.status_json(s->options.arg));
	else if (strcmp(path, "/healthz") == 0)
		set_text(
		    r, 200, "text/plain; charset=utf-8", mem_strdup("ok\n"));
	else if (strcmp(path, "/readyz") == 0)
		get_readiness(s, r);
	else if (strcmp(path, "/") == 0)
		get_page(r);
	else
		set_text(r, 404, "text/plain; charset=utf-8",
		    mem_strdup("not here: try / /metrics /status.json "
			       "/healthz /readyz\n"));
}

struct stats *
stats_new(const struct stats_options *o, struct err *err)
{
	struct stats *s = mem_zalloc(1, sizeof(*s));
	struct http_options ho = {
	    .base = o->base,
	    .listen = o->listen,
	    .total_ms = HTTP_TOTAL_MS,
	    .handler = on_request,
	    .arg = s,
	};

	s->magic = STATS_MAGIC;
	s->options = *o;
	s->options.listen = NULL;
	s->http = http_new(&ho, err);
	if (s->http == NULL) {
		free(s);
		return NULL;
	}
	return s;
}

void
stats_free(struct stats *s)
{
	check(s->magic == STATS_MAGIC);
	http_free(s->http);
	s->magic = 0;
	free(s);
}

const char *
stats_address(const struct stats *s)
{
	return http_address(s->http);
}
