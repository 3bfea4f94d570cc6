/* SPDX-License-Identifier: GPL-2.0-only */
/* programs.h: parses lines of /v1/tt/programs (docs/ttmond-api.md). The input is not trusted. Pure. */
#ifndef TTMON_READ_PROGRAMS_H
#define TTMON_READ_PROGRAMS_H

#include <jansson.h>

#include "lib/base/hmap.h"

/* A row. Unknown values: chip, kernels and the times are 0, error_ns is UINT64_MAX. */
struct ttmon_program_row {
	uint64_t seq;
	uint32_t pid, device, chip, program;
	uint64_t start_ns, end_ns, error_ns;
	uint32_t clock;
	uint64_t seen_ns;
	uint32_t kernels; /* for ttmon_program_names_get() */
};

/* Returns false if the line is not a row. */
bool ttmon_program_row_parse(const char *at, size_t n, struct ttmon_program_row *ret);

/* The names of kernels by their numbers, as the stream defines them. */
struct ttmon_program_names {
	struct ttmon_hmap by_number; /* char * */
};

/* Takes the names from a line that is an object, if it has any. Returns 0 or -ENOMEM. */
int ttmon_program_names_take(struct ttmon_program_names *names, const json_t *line) _must_check;
/* Returns NULL if the name is not known. Valid until the next take or fini. */
const char *ttmon_program_names_get(const struct ttmon_program_names *names, uint32_t number);
void ttmon_program_names_fini(struct ttmon_program_names *names);

#endif
