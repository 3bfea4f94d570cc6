/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * symtab.h: the contents of OBJECT and SYMBOL facts: ELF files by id, and function names by (object,
 * file offset).
 */
#ifndef TTMON_SYMTAB_H
#define TTMON_SYMTAB_H

#include "lib/base/fifo.h"
#include "daemon/core/history/history.h"
#include "lib/base/hmap.h"

#define TTMON_OBJECTS_MAX (1u << 20)
#define TTMON_SYMBOLS_MAX (1u << 20)

struct ttmon_symbol {
	char *name; /* NULL: looked up, and there is none */
	uint64_t delta;
};

struct ttmon_symtab {
	struct ttmon_object *objects; /* by id; an id of 0 in it: no fact came */
	uint32_t nr_objects, cap_objects;
	struct ttmon_symbol *symbols;
	uint32_t nr_symbols, cap_symbols;
	struct ttmon_hmap by_frame; /* index in symbols, or a mark that it was requested */
	struct ttmon_fifo wanted;   /* struct ttmon_frame */
};

void ttmon_symtab_init(struct ttmon_symtab *t);
/* -EINVAL: the id or the offset is out of range; -ENOSPC, -ENOMEM. */
int ttmon_symtab_object(struct ttmon_symtab *t, const struct ttmon_ev_object *ev) _must_check;
int ttmon_symtab_symbol(struct ttmon_symtab *t, const struct ttmon_ev_symbol *ev) _must_check;
/* NULL: no fact of this id came. */
const struct ttmon_object *ttmon_symtab_get_object(const struct ttmon_symtab *t, uint32_t id);
const char *ttmon_symtab_get_symbol(const struct ttmon_symtab *t, const struct ttmon_frame *f, uint64_t *delta);
/* Requests a frame's name, once. */
int ttmon_symtab_want(struct ttmon_symtab *t, const struct ttmon_frame *f) _must_check;
void ttmon_symtab_fini(struct ttmon_symtab *t);

#endif
