/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as people write them: "host:port", "[v6]:port" or "unix:/path".
 * Nothing is looked up here.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "config/issues.h"
#include "config/settings.h"
#include "core/mem.h"

#define HOST_MAX 253 /* RFC 1035, as text */

static const char forms[] = "host:port, [v6]:port or unix:/path";

/* Digits only, no leading zeros (0644 is somebody's octal), 0 to 65535. */
static int
parse_port(const char *text, uint16_t *out, struct err *err)
{
	unsigned v = 0;
	size_t i;

	for (i = 0; text[i] >= '0' && text[i] <= '9' && i < 6; i++)
		v = v * 10 + (unsigned)(text[i] - '0');
	if (i == 0 || text[i] != '\0' || v > 65535 ||
	    (text[0] == '0' && i > 1)) {
		char *shown = issues_quote(text, strlen(text));

		err_set(err, "port must be 0 to 65535, not '%s'", shown);
		free(shown);
		return -1;
	}
	*out = (uint16_t)v;
	return 0;
}

static int
check_name(const char *host, size_t len, struct err *err)
{
	size_t i;

	if (len == 0)
		return err_set(
		    err, "a host is missing: 0.0.0.0 or [::] stand for all");
	if (len > HOST_MAX)
		return err_set(
		    err, "a host has at most %d characters", HOST_MAX);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)host[i];

		if (c == ':')
			return err_set(
			    err, "an IPv6 address goes in brackets: [v6]:port");
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
			c == '_'))
			return err_set(err, "must be %s", forms);
	}
	return 0;
}

static int
check_v6(const char *host, struct err *err)
{
	struct in6_addr v6;
	char *copy = mem_strdup(host), *zone = strchr(copy, '%');
	bool good;

	if (zone != NULL)
		*zone++ = '\0';
	good = inet_pton(AF_INET6, copy, &v6) == 1 &&
	    (zone == NULL || *zone != '\0');
	free(copy);
	if (!good)
		return err_set(err, "not an IPv6 address in the brackets");
	return 0;
}

static int
parse_unix(struct address *out, const char *path, struct err *err)
{
	struct sockaddr_un un;

	if (path[0] != '/')
		return err_set(
		    err, "a Unix socket needs an absolute path: unix:/path");
	if (strlen(path) >= sizeof(un.sun_path))
		return err_set(err,
		    "a Unix socket's path has at most %zu bytes",
		    sizeof(un.sun_path) - 1);
	out->kind = ADDRESS_UNIX;
	out->path = mem_strdup(path);
	return 0;
}

static int
parse_tcp(struct address *out, const char *text, struct err *err)
{
	const char *colon, *host = text;
	size_t len;

	if (text[0] == '[') {
		const char *end = strchr(text, ']');

		if (end == NULL || end[1] != ':')
			return err_set(err, "must be %s", forms);
		host = text + 1;
		len = (size_t)(end - host);
		colon = end + 1;
	} else {
		colon = strrchr(text, ':');
		if (colon == NULL)
			return err_set(err, "must be %s", forms);
		len = (size_t)(colon - host);
		if (check_name(host, len, err) != 0)
			return -1;
	}
	if (parse_port(colon + 1, &out->port, err) != 0)
		return -1;
	out->host = mem_alloc(len + 1);
	memcpy(out->host, host, len);
	out->host[len] = '\0';
	out->kind = ADDRESS_TCP;
	return text[0] == '[' ? check_v6(out->host, err) : 0;
}

int
address_parse(struct address *out, const char *text, struct err *err)
{
	int r;

	*out = (struct address){.kind = ADDRESS_NONE};
	if (strncmp(text, "unix:", 5) == 0)
		r = parse_unix(out, text + 5, err);
	else
		r = parse_tcp(out, text, err);
	if (r != 0) {
		address_fini(out);
		return -1;
	}
	out->text = mem_strdup(text);
	return 0;
}

void
address_fini(struct address *a)
{
	free(a->text);
	free(a->host);
	free(a->path);
	*a = (struct address){.kind = ADDRESS_NONE};
}
