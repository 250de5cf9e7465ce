/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs every file of a corpus folder through the fuzz target it is linked with,
 * so that "make check" replays them without libFuzzer. Usage: replay [FOLDER];
 * the folder defaults to the target's own. An empty or missing one fails.
 */
#include "config.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t len = 0, cap = 0, got;

	if (file == NULL) {
		perror(path);
		return -1;
	}
	do {
		if (len == cap) {
			cap = cap == 0 ? 4096 : cap * 2;
			data = mem_realloc(data, cap);
		}
		got = fread(data + len, 1, cap - len, file);
		len += got;
	} while (got > 0);
	if (ferror(file)) {
		perror(path);
		fclose(file);
		free(data);
		return -1;
	}
	fclose(file);
	/* The target must not read past the end: give it no more than that. */
	data = mem_realloc(data, len > 0 ? len : 1);
	LLVMFuzzerTestOneInput(data, len);
	free(data);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : FUZZ_CORPUS;
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0, status = EXIT_SUCCESS;

	if (dir == NULL) {
		perror(folder);
		return EXIT_FAILURE;
	}
	while ((entry = readdir(dir)) != NULL) {
		char *path;

		if (entry->d_name[0] == '.')
			continue;
		path = mem_printf("%s/%s", folder, entry->d_name);
		/* Named before, so that an abort says what caused it. */
		printf("%s\n", entry->d_name);
		fflush(stdout);
		if (replay(path) == -1)
			status = EXIT_FAILURE;
		free(path);
		count++;
	}
	closedir(dir);
	if (count == 0) {
		fprintf(stderr, "%s: empty corpus\n", folder);
		return EXIT_FAILURE;
	}
	printf("%d inputs\n", count);
	return status;
}
