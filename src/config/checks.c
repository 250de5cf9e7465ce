/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks between options of the top of the file, and the remarks about options
 * whose feature comes later. Filters: filterchecks.c. An option that is wrong
 * in itself takes no part in checks.
 */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config/assign.h"
#include "config/load.h"
#include "config/value.h"

#define ZONEINFO "/usr/share/zoneinfo/"

static bool
is_good(const struct load *load, const char *path)
{
	return !load_given(&load->top, SCOPE_SETTINGS, path)->bad;
}

static void
complain(struct load *load, const char *path, const char *why)
{
	load_error(load, &load->top, SCOPE_SETTINGS, path, "%s", why);
}

/* True when the file is a compiled time zone (RFC 8536). */
static bool
is_zone_file(const char *path)
{
	char magic[4];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool good;

	if (fd < 0)
		return false;
	good = read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	    memcmp(magic, "TZif", sizeof(magic)) == 0;
	close(fd);
	return good;
}

static bool
is_zone(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_+-/";
	char path[256];
	size_t len = strlen(name);

	if (strcmp(name, "UTC") == 0)
		return true;
	/* No dots and no leading slash: it stays inside the folder. */
	if (name[0] == '/' || strspn(name, allowed) != len ||
	    len + sizeof(ZONEINFO) > sizeof(path))
		return false;
	memcpy(path, ZONEINFO, sizeof(ZONEINFO) - 1);
	memcpy(path + sizeof(ZONEINFO) - 1, name, len + 1);
	return is_zone_file(path);
}

static void
check_timezone(struct load *load)
{
	char *shown;

	if (!is_good(load, "timezone") || is_zone(load->settings->timezone))
		return;
	shown = issues_quote(
	    load->settings->timezone, strlen(load->settings->timezone));
	load_error(load, &load->top, SCOPE_SETTINGS, "timezone",
	    "no zone '%s' in " ZONEINFO, shown);
	free(shown);
}

/* The same place to listen at, or to connect to. Port 0 is never the same. */
static bool
same_address(const struct address *a, const struct address *b)
{
	if (a->kind != b->kind || a->kind == ADDRESS_NONE)
		return false;
	if (a->kind == ADDRESS_UNIX)
		return strcmp(a->path, b->path) == 0;
	return a->port != 0 && a->port == b->port &&
	    strcasecmp(a->host, b->host) == 0;
}

static bool
is_listened(const struct settings *s, const struct address *a)
{
	size_t i;

	for (i = 0; i < s->listen_count; i++)
		if (same_address(&s->listen[i], a))
			return true;
	return false;
}

static void
check_listen(struct load *load)
{
	const struct settings *s = load->settings;
	const struct given *g = load_given(
	    &load->top, SCOPE_SETTINGS, "listen");
	size_t i, j;

	if (g->bad)
		return;
	for (i = 1; i < s->listen_count; i++)
		for (j = 0; j < i; j++)
			if (same_address(&s->listen[i], &s->listen[j])) {
				issues_error(load->issues,
				    g->value->items[i]->line,
				    g->value->items[i]->column,
				    "listen: the address is given twice");
				break;
			}
}

static void
check_addresses(struct load *load)
{
	const struct settings *s = load->settings;

	check_listen(load);
	if (!is_good(load, "listen"))
		return;
	if (is_good(load, "upstream.address") &&
	    is_listened(s, &s->upstream.address))
		complain(load, "upstream.address",
		    "is an address that clients connect to");
	if (is_good(load, "store.address") && is_listened(s, &s->store.address))
		complain(load, "store.address",
		    "is an address that clients connect to");
	if (is_good(load, "stats.listen") && is_listened(s, &s->stats_listen))
		complain(load, "stats.listen", "is in listen already");
	if (!is_good(load, "admin.listen"))
		return;
	if (is_listened(s, &s->admin_listen))
		complain(load, "admin.listen", "is in listen already");
	else if (is_good(load, "stats.listen") &&
	    same_address(&s->stats_listen, &s->admin_listen))
		complain(load, "admin.listen", "is stats.listen already");
}

static bool
is_loopback(const struct address *a)
{
	struct in6_addr v6;

	return a->kind != ADDRESS_TCP || strcmp(a->host, "localhost") == 0 ||
	    strncmp(a->host, "127.", 4) == 0 ||
	    (inet_pton(AF_INET6, a->host, &v6) == 1 &&
		IN6_IS_ADDR_LOOPBACK(&v6));
}

static void
check_admin(struct load *load)
{
	const struct node *at;

	if (!is_good(load, "admin.listen") ||
	    is_loopback(&load->settings->admin_listen))
		return;
	at = load_place(&load->top, SCOPE_SETTINGS, "admin.listen");
	issues_remark(load->issues, at->line, at->column,
	    "admin.listen: whoever reaches this address may operate bloomgate; "
	    "nothing is asked of them");
}

static void
check_store(struct load *load)
{
	const struct settings *s = load->settings;

	if (!is_good(load, "store.address") ||
	    s->store.address.kind != ADDRESS_NONE)
		return;
	if (is_good(load, "store.username") && s->store.username[0] != '\0')
		complain(load, "store.username", "needs store.address");
	if (is_good(load, "store.password-file") &&
	    s->store.password_file[0] != '\0')
		complain(load, "store.password-file", "needs store.address");
}

static void
check_limits(struct load *load)
{
	const struct settings *s = load->settings;

	if (is_good(load, "limits.bulk-bytes") &&
	    is_good(load, "limits.request-bytes") &&
	    s->limit_request_bytes < s->limit_bulk_bytes)
		complain(load,
		    load_given(
			&load->top, SCOPE_SETTINGS, "limits.request-bytes")
				->key != NULL
			? "limits.request-bytes"
			: "limits.bulk-bytes",
		    "request-bytes must not be below bulk-bytes");
}

/* One remark for each option that is set and comes later. */
static void
remark_later(struct load *load, const struct scope *sc, enum option_scope scope)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		const struct given *g = &sc->given[i];
		struct buf value;
		char *text;

		if (o->scope != scope || !(o->flags & OPTION_LATER) ||
		    g->key == NULL || g->bad)
			continue;
		value_text_start(&value);
		option_print(o, sc->base, &value);
		text = value_text_end(&value);
		if (o->idle == NULL || strcmp(text, o->idle) != 0)
			issues_remark(load->issues, g->key->line,
			    g->key->column,
			    "%s: comes later and has no effect yet", o->path);
		free(text);
	}
}

void
checks_run(struct load *load)
{
	size_t i;

	check_timezone(load);
	check_addresses(load);
	check_admin(load);
	check_store(load);
	check_limits(load);
	remark_later(load, &load->top, SCOPE_SETTINGS);
	for (i = 0; i < load->settings->filter_count; i++) {
		checks_filter(load, i);
		remark_later(load, &load->filters[i], SCOPE_FILTER);
	}
	checks_filter_pairs(load);
}
