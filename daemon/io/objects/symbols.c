// SPDX-License-Identifier: GPL-2.0-only
/*
 * symbols.c: names for file offsets, from the symbol table of an ELF file (.symtab, else .dynsym).
 *
 * Runs in the cold thread. One pass over the table, whatever the number of offsets: each function goes
 * to the first offset at or after its start, of several the nearest one is kept, and an offset without
 * a function takes that of the offset before it. Costs a binary search a symbol and 32 bytes an
 * offset. A name longer than 1023 bytes is cut.
 */
#include "lib/os/elf.h"
#include "daemon/io/objects/objects.h"

/* The best function that starts after the previous offset, and at or before this one. */
struct best {
	uint64_t start, end; /* file offsets */
	uint32_t name;
	uint8_t rank; /* 0: none */
};

struct lookup {
	const struct ttmon_elf *elf;
	const uint64_t *offsets;
	struct best *best;
	size_t n;
};

/* Global names before weak before local ones: the name that a reader knows. */
static uint8_t rank_of(const Elf64_Sym *sym)
{
	switch (ELF64_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
		return 3;
	case STB_WEAK:
		return 2;
	default:
		return 1;
	}
}

static int symbol_seen(void *ctx, const Elf64_Sym *sym)
{
	const struct lookup *l = ctx;
	const struct ttmon_elf_seg *seg = ttmon_elf_seg_of(l->elf, sym->st_value, true);
	size_t lo = 0, hi = l->n;
	struct best b, *old;
	uint64_t left;

	if (!seg || !sym->st_name)
		return 0;
	left = seg->len - (sym->st_value - seg->vaddr);
	b.start = sym->st_value - seg->vaddr + seg->off;
	/* A function without a size extends to the next one, and never past the loaded segment. */
	b.end = b.start + (sym->st_size ? MIN(sym->st_size, left) : left);
	b.name = sym->st_name;
	b.rank = rank_of(sym);
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->offsets[mid] < b.start)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->n)
		return 0;
	old = &l->best[lo];
	if (!old->rank || b.start > old->start || (b.start == old->start && b.rank > old->rank))
		*old = b;
	return 0;
}

int ttmon_elf_symbols(int fd, const uint64_t *offsets, size_t n,
		      void (*cb)(void *ctx, size_t i, const char *name, uint64_t delta), void *ctx)
{
	_cleanup_(ttmon_elf_fini) struct ttmon_elf elf = { .fd = -1 };
	_cleanup_free_ struct best *best = NULL;
	const Elf64_Shdr *symtab, *strtab;
	struct best carry = { 0 };
	struct lookup l;
	int err;

	err = ttmon_elf_open(fd, &elf);
	if (err)
		return err;
	best = calloc(n ? n : 1, sizeof(*best));
	if (!best)
		return -ENOMEM;
	symtab = ttmon_elf_section(&elf, SHT_SYMTAB);
	if (!symtab)
		symtab = ttmon_elf_section(&elf, SHT_DYNSYM);
	strtab = symtab ? ttmon_elf_strtab(&elf, symtab) : NULL;
	if (symtab && !strtab)
		return -EBADMSG;
	if (symtab) {
		l = (struct lookup){ .elf = &elf, .offsets = offsets, .best = best, .n = n };
		err = ttmon_elf_funcs(&elf, symtab, symbol_seen, &l);
		if (err)
			return err;
	}
	for (size_t i = 0; i < n; i++) {
		char name[1024];

		if (best[i].rank)
			carry = best[i];
		if (carry.rank && offsets[i] < carry.end &&
		    !ttmon_elf_string(&elf, strtab, carry.name, name, sizeof(name)) && name[0])
			cb(ctx, i, name, offsets[i] - carry.start);
		else
			cb(ctx, i, NULL, 0);
	}
	return 0;
}

struct one {
	char *buf;
	size_t n;
	uint64_t delta;
	bool found;
};

static void one_found(void *ctx, size_t i, const char *name, uint64_t delta)
{
	struct one *o = ctx;

	(void)i;
	if (!name)
		return;
	o->found = true;
	o->delta = delta;
	snprintf(o->buf, o->n, "%s", name);
}

int ttmon_elf_symbol(int fd, uint64_t offset, char *buf, size_t n, uint64_t *delta)
{
	struct one o = { .buf = buf, .n = n };
	int err;

	err = ttmon_elf_symbols(fd, &offset, 1, one_found, &o);
	if (err)
		return err;
	if (!o.found)
		return -ENOENT;
	*delta = o.delta;
	return 0;
}
