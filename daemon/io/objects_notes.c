// SPDX-License-Identifier: GPL-2.0-only
/*
 * objects_notes.c: what an ELF file says beside its symbols: build-id and USDT points, in its notes, and whether a CUDA runtime without
 * symbols is in it, by its strings. The other half of objects.c; runs where that does.
 */
#include "io/objects_int.h"

#define MAX_USDTS  256u
#define MAX_RODATA (256ull << 20)

static bool note_named(const struct ttmon_elf_note *note, const char *name)
{
	size_t n = strlen(name) + 1;

	return note->name_len == n && !memcmp(note->name, name, n);
}

/* The row of a point of ours, 0: not ours. */
static uint16_t usdt_fn(const char *provider, const char *name)
{
	static const struct {
		const char *name;
		uint16_t fn;
	} points[] = {
		{ "alloc", TTMON_FN_USDT_ALLOC },
		{ "free", TTMON_FN_USDT_FREE },
		{ "checkpoint", TTMON_FN_USDT_CHECKPOINT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(points) && !strcmp(provider, "ttmon"); i++)
		if (!strcmp(name, points[i].name))
			return points[i].fn;
	return 0;
}

/* A stapsdt note: location, base, semaphore, then three strings: provider, name, arguments. */
static int usdt_note(struct reader *r, const struct ttmon_elf_note *note)
{
	uint64_t addr[3];
	const char *str[3], *p = note->desc + sizeof(addr), *end = note->desc + note->desc_len;
	const struct ttmon_elf_seg *seg;
	struct ttmon_usdt u = { 0 };
	void *array = r->info.usdts;
	int err;

	if (note->desc_len < sizeof(addr))
		return 0;
	memcpy(addr, note->desc, sizeof(addr));
	for (size_t i = 0; i < ARRAY_SIZE(str); i++) {
		const char *nul = p < end ? memchr(p, '\0', (size_t)(end - p)) : NULL;

		if (!nul)
			return 0;
		str[i] = p;
		p = nul + 1;
	}
	u.fn = usdt_fn(str[0], str[1]);
	if (!u.fn || strlen(str[2]) >= sizeof(u.args))
		return 0;
	/* A prelinker moves sections but not the addresses in notes; by how much, the base section tells. */
	if (r->stapsdt_base) {
		addr[0] += r->stapsdt_base - addr[1];
		if (addr[2])
			addr[2] += r->stapsdt_base - addr[1];
	}
	seg = ttmon_elf_seg_of(&r->elf, addr[0], true);
	if (!seg)
		return 0;
	u.offset = addr[0] - seg->vaddr + seg->off;
	if (addr[2]) {
		seg = ttmon_elf_seg_of(&r->elf, addr[2], false);
		if (!seg)
			return 0;
		u.sema = addr[2] - seg->vaddr + seg->off;
	}
	memcpy(u.args, str[2], strlen(str[2]));
	err = ttmon_objects_reserve(&array, r->info.nr_usdts, &r->cap_usdts, MAX_USDTS, sizeof(u));
	if (err)
		return err;
	r->info.usdts = array;
	r->info.usdts[r->info.nr_usdts++] = u;
	return 0;
}

static int note_found(void *ctx, const struct ttmon_elf_note *note)
{
	struct reader *r = ctx;

	if (note->type == 3 && note_named(note, "stapsdt"))
		return usdt_note(r, note);
	if (note->type == NT_GNU_BUILD_ID && note_named(note, ELF_NOTE_GNU) && !r->info.build_id_len &&
	    note->desc_len) {
		r->info.build_id_len = (uint8_t)MIN(note->desc_len, sizeof(r->info.build_id));
		memcpy(r->info.build_id, note->desc, r->info.build_id_len);
	}
	return 0;
}

int ttmon_objects_notes(struct reader *r)
{
	for (size_t i = 0; i < r->elf.nr_sh; i++) {
		const Elf64_Shdr *sh = &r->elf.sh[i];

		if (sh->sh_type == SHT_PROGBITS && sh->sh_size <= 8 && ttmon_elf_named(&r->elf, sh, ".stapsdt.base"))
			r->stapsdt_base = sh->sh_addr;
	}
	return ttmon_elf_notes(&r->elf, note_found, r);
}

#define SEEN_GETPROC 1u
#define SEEN_LIBCUDA 2u

static int rodata_piece(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	static const char getproc[] = "cuGetProcAddress", libcuda[] = "libcuda.so.1";
	struct reader *r = ctx;

	(void)fresh;
	(void)pos;
	if (memmem(p, n, getproc, sizeof(getproc) - 1))
		r->rodata_seen |= SEEN_GETPROC;
	if (memmem(p, n, libcuda, sizeof(libcuda)))
		r->rodata_seen |= SEEN_LIBCUDA;
	return r->rodata_seen == (SEEN_GETPROC | SEEN_LIBCUDA); /* 1 ends the walk */
}

int ttmon_objects_stripped(struct reader *r)
{
	if ((r->info.kind & TTMON_OBJ_IS_RT) || r->is_driver || r->needs_rt || !r->imports_dlopen)
		return 0;
	for (size_t i = 0; i < r->elf.nr_sh; i++) {
		const Elf64_Shdr *sh = &r->elf.sh[i];
		int err;

		if (sh->sh_type != SHT_PROGBITS || !(sh->sh_flags & SHF_ALLOC) || (sh->sh_flags & SHF_EXECINSTR) ||
		    !ttmon_elf_named(&r->elf, sh, ".rodata"))
			continue;
		err = ttmon_elf_walk(&r->elf, sh->sh_offset, MIN(sh->sh_size, MAX_RODATA), 1, rodata_piece, r);
		if (err < 0)
			return err;
		if (err > 0)
			r->info.kind |= TTMON_OBJ_STRIPPED_RT;
		return 0;
	}
	return 0;
}
