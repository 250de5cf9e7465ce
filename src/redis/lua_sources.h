/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts as bytes of the program. lua_sources.c is made at build by
 * scripts/embed-lua. Constant; any thread.
 */
#ifndef REDIS_LUA_SOURCES_H
#define REDIS_LUA_SOURCES_H

#include <stddef.h>

#include "redis/script.h"

struct lua_source {
	const char *name;          /* the .lua file's stem */
	const char *sha1;          /* 40 lower-case hex digits */
	const unsigned char *text; /* prelude.lua and the script; no NUL */
	size_t len;                /* bytes */
};

extern const struct lua_source lua_sources[SCRIPT_COUNT];

#endif
