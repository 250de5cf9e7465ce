/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that make another connection what a session was. Pure; any
 * thread that owns the mode.
 */
#include "config.h"

#include <stdio.h>

#include "core/check.h"
#include "policy/mode.h"
#include "resp/encode.h"

static size_t
put(struct buf *out, const struct slice *argv, size_t argc)
{
	check(encode_request(out, argv, argc) == 0);
	return 1;
}

size_t
mode_replay(const struct mode *m, struct buf *out)
{
	struct slice a[5];
	char db[16];
	size_t replies = 0, n;

	if (m->hello != 0) {
		n = 0;
		a[n++] = slice_str("HELLO");
		a[n++] = slice_str(m->hello == 3 ? "3" : "2");
		if (m->user != NULL) {
			a[n++] = slice_str("AUTH");
			a[n++] = slice_str(m->user);
			a[n++] = slice_of(m->secret, m->secret_len);
		}
		replies += put(out, a, n);
	} else if (m->user != NULL) {
		a[0] = slice_str("AUTH");
		a[1] = slice_str(m->user);
		a[2] = slice_of(m->secret, m->secret_len);
		replies += put(out, a, 3);
	}
	if (m->db != 0) {
		snprintf(db, sizeof(db), "%u", m->db);
		a[0] = slice_str("SELECT");
		a[1] = slice_str(db);
		replies += put(out, a, 2);
	}
	a[0] = slice_str("CLIENT");
	if (m->name != NULL) {
		a[1] = slice_str("SETNAME");
		a[2] = slice_of(m->name, m->name_len);
		replies += put(out, a, 3);
	}
	a[1] = slice_str("SETINFO");
	if (m->lib_name != NULL) {
		a[2] = slice_str("LIB-NAME");
		a[3] = slice_of(m->lib_name, m->lib_name_len);
		replies += put(out, a, 4);
	}
	if (m->lib_version != NULL) {
		a[2] = slice_str("LIB-VER");
		a[3] = slice_of(m->lib_version, m->lib_version_len);
		replies += put(out, a, 4);
	}
	return replies;
}
