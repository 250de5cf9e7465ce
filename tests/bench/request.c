/* SPDX-License-Identifier: BSD-2-Clause */
/* The request made from a template; see request.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "request.h"

static struct piece *
piece_new(struct request *r)
{
	struct piece *p;

	r->pieces = mem_realloc(
	    r->pieces, (r->piece_count + 1) * sizeof(*r->pieces));
	p = &r->pieces[r->piece_count++];
	*p = (struct piece){0};
	return p;
}

static void
add_argument(struct request *r, const char *arg)
{
	struct piece *p = piece_new(r);
	const char *id = strstr(arg, "{id}");
	size_t len = strlen(arg), max = 0;

	if (id == NULL) {
		p->head[0] = mem_printf("$%zu\r\n%s\r\n", len, arg);
		p->head_len[0] = strlen(p->head[0]);
		r->max += p->head_len[0];
		return;
	}
	p->has_id = true;
	p->tail = mem_printf("%s\r\n", id + 4);
	p->tail_len = strlen(p->tail);
	for (size_t d = 1; d <= DIGITS_MAX; d++) {
		p->head[d] = mem_printf(
		    "$%zu\r\n%.*s", len - 4 + d, (int)(id - arg), arg);
		p->head_len[d] = strlen(p->head[d]);
		max = p->head_len[d] + d;
	}
	r->max += max + p->tail_len;
}

void
request_compile(struct request *r, char *const *argv, int argc)
{
	struct piece *p = piece_new(r);

	p->head[0] = mem_printf("*%d\r\n", argc);
	p->head_len[0] = r->max = strlen(p->head[0]);
	for (int i = 0; i < argc; i++)
		add_argument(r, argv[i]);
}

static uint64_t
next_id(struct request *r)
{
	/* splitmix64 */
	uint64_t z = r->random += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t span = r->high - r->low + 1;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return span == 0 ? z : r->low + z % span;
}

static char *
put_id(struct request *r, const struct piece *p, char *out)
{
	char digits[DIGITS_MAX];
	uint64_t id = next_id(r);
	size_t n = 0;

	do {
		digits[DIGITS_MAX - ++n] = (char)('0' + id % 10);
		id /= 10;
	} while (id > 0);
	memcpy(out, p->head[n], p->head_len[n]);
	out += p->head_len[n];
	memcpy(out, digits + DIGITS_MAX - n, n);
	out += n;
	memcpy(out, p->tail, p->tail_len);
	return out + p->tail_len;
}

char *
request_put(struct request *r, char *out)
{
	for (size_t i = 0; i < r->piece_count; i++) {
		const struct piece *p = &r->pieces[i];

		if (p->has_id) {
			out = put_id(r, p, out);
		} else {
			memcpy(out, p->head[0], p->head_len[0]);
			out += p->head_len[0];
		}
	}
	return out;
}

void
request_fini(struct request *r)
{
	for (size_t i = 0; i < r->piece_count; i++) {
		for (size_t d = 0; d <= DIGITS_MAX; d++)
			free(r->pieces[i].head[d]);
		free(r->pieces[i].tail);
	}
	free(r->pieces);
}
