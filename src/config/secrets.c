/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Password files: one secret a line, tried in order by whoever connects. Every
 * copy made here is wiped before it is freed. Messages name the file and the
 * line, never what stands in it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/settings.h"
#include "core/mem.h"

#define SECRETS_BYTES_MAX 65536
#define SECRETS_MAX       100

/* Reads up to size bytes; their count, or -1 with errno. */
static ssize_t
read_all(const char *path, char *data, size_t size)
{
	ssize_t n = 0;
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), saved;

	if (fd < 0)
		return -1;
	while (len < size) {
		n = read(fd, data + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return n < 0 ? -1 : (ssize_t)len;
}

static void
push(struct secrets *out, const char *line, size_t len)
{
	char **items = mem_alloc((out->count + 1) * sizeof(*items));

	if (out->count > 0)
		memcpy(items, out->items, out->count * sizeof(*items));
	free(out->items);
	out->items = items;
	items[out->count] = mem_alloc(len + 1);
	memcpy(items[out->count], line, len);
	items[out->count++][len] = '\0';
}

static int
split(struct secrets *out, const char *data, size_t len, const char *path,
    struct err *err)
{
	const char *end = data + len, *next;
	unsigned line;
	size_t n;

	for (line = 1; data < end; data = next, line++) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));

		next = newline != NULL ? newline + 1 : end;
		n = (size_t)((newline != NULL ? newline : end) - data);
		if (n > 0 && data[n - 1] == '\r')
			n--;
		if (n == 0)
			continue;
		if (memchr(data, '\0', n) != NULL)
			return err_set(err, "%s:%u: a secret holds a NUL byte",
			    path, line);
		if (out->count == SECRETS_MAX)
			return err_set(
			    err, "%s: more than %d secrets", path, SECRETS_MAX);
		push(out, data, n);
	}
	if (out->count == 0)
		return err_set(err, "%s holds no secret", path);
	return 0;
}

int
secrets_load(struct secrets *out, const char *path, struct err *err)
{
	char *data;
	ssize_t len;
	int r = -1;

	*out = (struct secrets){0};
	if (path == NULL || path[0] == '\0')
		return 0;
	data = mem_alloc(SECRETS_BYTES_MAX + 1);
	len = read_all(path, data, SECRETS_BYTES_MAX + 1);
	if (len < 0)
		err_set(err, "%s: %s", path, strerror(errno));
	else if (len > SECRETS_BYTES_MAX)
		err_set(err, "%s: more than %d bytes", path, SECRETS_BYTES_MAX);
	else
		r = split(out, data, (size_t)len, path, err);
	mem_wipe(data, SECRETS_BYTES_MAX + 1);
	free(data);
	if (r != 0)
		secrets_fini(out);
	return r;
}

void
secrets_fini(struct secrets *s)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		mem_wipe(s->items[i], strlen(s->items[i]));
		free(s->items[i]);
	}
	free(s->items);
	*s = (struct secrets){0};
}
