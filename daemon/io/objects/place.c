// SPDX-License-Identifier: GPL-2.0-only
/* place.c: see place.h. */
#include "daemon/io/objects/place.h"

#include "daemon/io/objects/insn.h"

#define MAX_CODE   (64ull << 20) /* bytes of code that are searched for jumps, about 2 ns each */
#define MAX_OTHERS 4096u	 /* most other functions whose first instructions are examined */

struct search {
	struct ttmon_elf *e;
	struct ttmon_insn_span *spans; /* sorted by address */
	size_t nr;
	size_t others;	  /* functions examined by other_function() */
	uint64_t vaddr;	  /* of the current segment */
	uint64_t scanned; /* bytes of code */
};

const char *ttmon_place_why_name(enum ttmon_place_why why)
{
	static const char *const names[] = {
		[TTMON_PLACE_ENTRY] = "emulated at the entry",
		[TTMON_PLACE_BEHIND] = "emulated behind the entry",
		[TTMON_PLACE_UNKNOWN] = "no better place is known",
		[TTMON_PLACE_ENTERED] = "something may jump behind the entry",
	};

	return names[why];
}

/* What the entry alone shows. */
static void at_entry(struct ttmon_place *p, const uint8_t *fn, size_t n, uint16_t machine)
{
	p->skip = 0;
	p->single_step = !ttmon_insn_is_emulated(fn, n, machine);
	p->nop5 = ttmon_insn_is_nop5(fn, n, machine);
	p->refused = ttmon_insn_is_refused(fn, n, machine);
	p->why = p->single_step || p->nop5 ? TTMON_PLACE_UNKNOWN : TTMON_PLACE_ENTRY;
}

static int read_start(struct ttmon_elf *e, const struct ttmon_place *p, uint8_t *fn, size_t *n)
{
	*n = p->offset < e->size ? MIN(TTMON_INSN_BYTES, e->size - p->offset) : 0;
	return ttmon_elf_pread(e, p->offset, fn, *n);
}

static int compare_spans(const void *a, const void *b)
{
	const struct ttmon_insn_span *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->skip == y->skip ? 0 : x->skip > y->skip ? -1 : 1;
}

/*
 * Another exported function that begins like these: its first bytes are known too. Otherwise the
 * offsets in libcuda's stubs look like jumps to the next stub: 8 of 115 functions.
 */
static int other_function(void *ctx, const Elf64_Sym *sym)
{
	struct search *s = ctx;
	const struct ttmon_elf_seg *seg = ttmon_elf_seg_of(s->e, sym->st_value, true);
	struct ttmon_place p = { .addr = sym->st_value, .size = sym->st_size };
	uint8_t fn[TTMON_INSN_BYTES];
	size_t len, skip;
	int err;

	if (!seg || s->others++ >= MAX_OTHERS)
		return 0;
	p.offset = p.addr - seg->vaddr + seg->off;
	err = read_start(s->e, &p, fn, &len);
	if (err)
		return err;
	skip = ttmon_insn_place(fn, len, p.size, s->e->machine);
	if (!skip)
		return 0;
	s->spans[s->nr++] = (struct ttmon_insn_span){
		.addr = p.addr,
		.skip = (uint8_t)skip,
		.known = (uint8_t)ttmon_insn_known(fn, len, skip),
	};
	return 0;
}

/* Spans for the probes after an entry, and for similar functions, each address once. */
static int make_spans(const struct ttmon_place *places, size_t n, struct search *s)
{
	const Elf64_Shdr *dynsym = ttmon_elf_section(s->e, SHT_DYNSYM);
	size_t nr = 0;
	int err;

	s->spans = calloc(n + MAX_OTHERS, sizeof(*s->spans));
	if (!s->spans)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (places[i].skip)
			s->spans[s->nr++] = (struct ttmon_insn_span){ .addr = places[i].addr,
								      .skip = places[i].skip,
								      .known = places[i].known };
	err = dynsym ? ttmon_elf_funcs(s->e, dynsym, other_function, s) : 0;
	if (err)
		return err;
	qsort(s->spans, s->nr, sizeof(*s->spans), compare_spans);
	for (size_t i = 0; i < s->nr; i++)
		if (!nr || s->spans[i].addr != s->spans[nr - 1].addr)
			s->spans[nr++] = s->spans[i];
	s->nr = nr;
	return 0;
}

static int code_piece(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	struct search *s = ctx;

	ttmon_insn_scan(s->spans, s->nr, (const uint8_t *)p, fresh, n, s->vaddr + pos);
	s->scanned += fresh;
	return 0;
}

static int symbol_at(void *ctx, const Elf64_Sym *sym)
{
	struct search *s = ctx;

	ttmon_insn_refer(s->spans, s->nr, sym->st_value);
	return 0;
}

static int rela_piece(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	struct search *s = ctx;

	(void)n;
	(void)pos;
	for (size_t i = 0; i < fresh; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, p + i, sizeof(r));
		ttmon_insn_refer(s->spans, s->nr, (uint64_t)r.r_addend);
	}
	return 0;
}

/* References in sections: symbols, and addresses that the loader puts into tables. */
static int ask_sections(struct ttmon_elf *e, struct search *s)
{
	int err = 0;

	for (size_t i = 0; i < e->nr_sh && !err; i++) {
		const Elf64_Shdr *sh = &e->sh[i];

		if (sh->sh_type == SHT_RELA)
			err = ttmon_elf_walk(e, sh->sh_offset, sh->sh_size, sizeof(Elf64_Rela), rela_piece, s);
		else if (sh->sh_type == SHT_DYNSYM || sh->sh_type == SHT_SYMTAB)
			err = ttmon_elf_syms(e, sh, 1u << STT_FUNC | 1u << STT_NOTYPE | 1u << STT_GNU_IFUNC, symbol_at,
					     s);
	}
	return err;
}

/* Searches every executable byte. *whole is false if there is more than the limit. */
static int ask_code(struct ttmon_elf *e, struct search *s, bool *whole)
{
	uint64_t all = 0;

	for (size_t i = 0; i < e->nr_seg; i++)
		if (e->seg[i].exec)
			all += MIN(e->seg[i].len, MAX_CODE + 1);
	*whole = all <= MAX_CODE;
	for (size_t i = 0; i < e->nr_seg && *whole; i++) {
		int err;

		if (!e->seg[i].exec)
			continue;
		s->vaddr = e->seg[i].vaddr;
		err = ttmon_elf_walk(e, e->seg[i].off, e->seg[i].len, 1, code_piece, s);
		if (err)
			return err;
	}
	/* The walk ends early if too much of the file has been read. */
	*whole = *whole && s->scanned == all;
	return 0;
}

static bool entered(const struct search *s, const struct ttmon_place *p)
{
	const struct ttmon_insn_span key = { .addr = p->addr };
	size_t lo = 0, hi = s->nr;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->spans[mid].addr < key.addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo == s->nr || s->spans[lo].addr != p->addr || s->spans[lo].entered;
}

/* Moves probes back to the entry if something may jump after it. */
static int take_back(struct ttmon_elf *e, struct ttmon_place *places, size_t n)
{
	struct search s = { .e = e };
	bool whole = false;
	int err;

	err = make_spans(places, n, &s);
	if (!err && s.nr)
		err = ask_sections(e, &s);
	if (!err && s.nr)
		err = ask_code(e, &s, &whole);
	for (size_t i = 0; i < n && !err; i++) {
		uint8_t fn[TTMON_INSN_BYTES];
		size_t len;

		if (!places[i].skip || (whole && !entered(&s, &places[i])))
			continue;
		err = read_start(e, &places[i], fn, &len);
		if (err)
			break;
		at_entry(&places[i], fn, len, e->machine);
		places[i].why = TTMON_PLACE_ENTERED;
	}
	free(s.spans);
	return err;
}

int ttmon_place_find(struct ttmon_elf *e, struct ttmon_place *places, size_t n)
{
	size_t behind = 0;

	for (size_t i = 0; i < n; i++) {
		struct ttmon_place *p = &places[i];
		uint8_t fn[TTMON_INSN_BYTES];
		size_t len, skip;
		int err = read_start(e, p, fn, &len);

		if (err)
			return err;
		at_entry(p, fn, len, e->machine);
		if (!p->single_step && !p->nop5)
			continue;
		skip = ttmon_insn_place(fn, len, p->size, e->machine);
		if (!skip)
			continue;
		p->skip = (uint8_t)skip;
		p->known = (uint8_t)ttmon_insn_known(fn, len, skip);
		p->single_step = p->nop5 = p->refused = false;
		p->why = TTMON_PLACE_BEHIND;
		behind++;
	}
	return behind ? take_back(e, places, n) : 0;
}
