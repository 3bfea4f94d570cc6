/* SPDX-License-Identifier: GPL-2.0-only */
/* objects_int.h: the reader of one file, which objects.c (symbols) and objects_notes.c (the rest) share. */
#ifndef TTMON_OBJECTS_INT_H
#define TTMON_OBJECTS_INT_H

#include "io/elf.h"
#include "io/objects.h"

/* A string of the string table at hand that ends in, or is, a name we want. */
struct candidate {
	uint32_t at;  /* st_name of a symbol with this name */
	uint16_t row; /* the first row with this base name, or USER_ROW + i, or TT_ROW + name */
	uint8_t version;
	char symbol[64];
};

/* A defined function with such a name. */
struct hit {
	uint64_t offset, addr;
	uint64_t name_at; /* in the file */
	uint16_t row;
	uint8_t version;
	bool local;
	char symbol[64];
};

struct reader {
	struct ttmon_elf elf;
	const char *base;
	const struct ttmon_user_fn *user;
	size_t nr_user;
	struct ttmon_elf_info info; /* owned until handed on */

	struct candidate *cand;
	size_t nr_cand, cap_cand;
	struct hit *hits;
	size_t nr_hits, cap_hits;

	bool is_driver, needs_rt;
	bool imports_dlopen;
	bool in_dynstr; /* the string table at hand is .dynstr */
	uint64_t strtab_at;
	unsigned int rodata_seen;

	uint64_t stapsdt_base; /* address of .stapsdt.base, 0: none */
	size_t cap_usdts;
};

/* Make room for one more element, up to max of them: past that the file is not what it pretends to be. */
int ttmon_objects_reserve(void **array, size_t nr, size_t *cap, size_t max, size_t size) _must_check;
/* Build-id and USDT points. */
int ttmon_objects_notes(struct reader *r) _must_check;
/* A runtime without symbols is known by how it finds the driver. Only what can dlopen() is worth reading its data. */
int ttmon_objects_stripped(struct reader *r) _must_check;

#endif
