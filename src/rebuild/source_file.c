/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source `file`: one line an element, read in big blocks. Rebuild thread.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/mem.h"
#include "rebuild/lines.h"

#define FILE_BLOCK (256 * 1024)

static int64_t
mtime_us(const struct stat *st)
{
	return st->st_mtim.tv_sec * INT64_C(1000000) +
	    st->st_mtim.tv_nsec / 1000;
}

static int
read_all(struct build *b, int fd, uint8_t *block)
{
	struct rebuild_progress *p = &b->filter->progress;
	struct lines *l = mem_alloc(sizeof(*l));
	int rc = -1;

	lines_init(l, b);
	for (;;) {
		ssize_t n = read(fd, block, FILE_BLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			build_fail(b, "%s: %s", b->settings->rebuild.file,
			    strerror(errno));
			break;
		}
		if (n == 0) {
			rc = lines_end(l);
			break;
		}
		atomic_fetch_add_explicit(
		    &p->bytes_read, (uint64_t)n, memory_order_relaxed);
		if (lines_feed(l, block, (size_t)n) != 0 || build_tick(b) != 0)
			break;
	}
	free(l);
	return rc;
}

/* A file that is written while it is read gives half of two lists. */
static int
unchanged(struct build *b, int fd, const struct stat *before)
{
	struct stat now;

	if (fstat(fd, &now) == 0 && now.st_size == before->st_size &&
	    mtime_us(&now) == mtime_us(before))
		return 0;
	return build_fail(b,
	    "%s changed while it was read: write a new file and rename it "
	    "into place",
	    b->settings->rebuild.file);
}

int
source_file(struct build *b)
{
	const char *path = b->settings->rebuild.file;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint8_t *block;
	struct stat st;
	int rc = -1;

	if (fd < 0)
		return build_fail(b, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		build_fail(b, "%s: not a regular file", path);
		goto out;
	}
	if (fresh_decide(b, mtime_us(&st), b->settings->rebuild.trust) != 0)
		goto out;
	atomic_store_explicit(&b->filter->progress.bytes_total,
	    (uint64_t)st.st_size, memory_order_relaxed);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	block = mem_alloc(FILE_BLOCK);
	rc = read_all(b, fd, block);
	free(block);
	if (rc == 0)
		rc = unchanged(b, fd, &st);
out:
	close(fd);
	return rc;
}
