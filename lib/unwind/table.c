// SPDX-License-Identifier: GPL-2.0-only
/* table.c: see table.h. */
#include "lib/unwind/table.h"

#define FIRST_READ 512u	       /* bytes read at first for a CIE or FDE: nearly all are shorter */
#define PIECE	   (64u << 10) /* bytes read at once when a table is scanned */
#define BLOCK	   64u	       /* entries of .eh_frame_hdr that are read at once */
#define HDR_ENTRY  8u
#define CIE_MAX	   4096u
#define LOOKED_MAX (1u << 20) /* limit of entries scanned for an index */

static int read_at(struct ttmon_uw_table *t, uint64_t off, void *buf, size_t n)
{
	/* The reader's budget is for all reads of a file, so it is renewed for each lookup. */
	t->elf.budget = TTMON_ELF_MAX_BYTES;
	return ttmon_elf_pread(&t->elf, off, buf, n);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* ---- sections of the file ---- */

/* pcrel sdata4, udata4, datarel sdata4: the encodings that ld, gold, lld and mold use. */
static bool is_known_hdr(const uint8_t *hdr)
{
	return hdr[0] == 1 && hdr[1] == 0x1b && hdr[2] == 0x03 && hdr[3] == 0x3b;
}

/* Finds .eh_frame_hdr by the program headers, which every stripped file still has. */
static void find_hdr(struct ttmon_uw_table *t)
{
	const Elf64_Phdr *ph = NULL;
	const struct ttmon_elf_seg *seg;
	uint8_t hdr[12];
	uint64_t vaddr;

	for (size_t i = 0; i < t->elf.nr_ph && !ph; i++)
		if (t->elf.ph[i].p_type == PT_GNU_EH_FRAME)
			ph = &t->elf.ph[i];
	if (!ph || ph->p_filesz < sizeof(hdr) || read_at(t, ph->p_offset, hdr, sizeof(hdr)) || !is_known_hdr(hdr))
		return;
	vaddr = ph->p_vaddr + 4 + (uint64_t)(int64_t)(int32_t)get32(hdr + 4);
	seg = ttmon_elf_seg_of(&t->elf, vaddr, false);
	if (!seg || get32(hdr + 8) > (ph->p_filesz - sizeof(hdr)) / HDR_ENTRY)
		return;
	t->eh = (struct ttmon_uw_section){ .off = seg->off + (vaddr - seg->vaddr),
					   .len = seg->len - (vaddr - seg->vaddr),
					   .vaddr = vaddr };
	t->hdr_vaddr = ph->p_vaddr;
	t->entries_off = ph->p_offset + sizeof(hdr);
	t->nr_entries = get32(hdr + 8);
}

static void find_sections(struct ttmon_uw_table *t)
{
	for (size_t i = 0; i < t->elf.nr_sh; i++) {
		const Elf64_Shdr *sh = &t->elf.sh[i];
		struct ttmon_uw_section s = { .off = sh->sh_offset, .len = sh->sh_size, .vaddr = sh->sh_addr };
		bool loaded = sh->sh_flags & SHF_ALLOC;

		/* .eh_frame may also have the type SHT_X86_64_UNWIND. */
		if ((sh->sh_type != SHT_PROGBITS && sh->sh_type != 0x70000001) || sh->sh_flags & SHF_COMPRESSED)
			continue;
		t->elf.budget = TTMON_ELF_MAX_BYTES;
		if (loaded && !t->nr_entries && ttmon_elf_named(&t->elf, sh, ".eh_frame")) {
			t->by_eh.section = s;
		} else if (!loaded && ttmon_elf_named(&t->elf, sh, ".debug_frame")) {
			s.debug = true;
			t->by_debug.section = s;
		}
	}
}

int ttmon_uw_table_open(int fd_in, struct ttmon_uw_table **ret)
{
	_cleanup_close_ int fd = fd_in;
	struct ttmon_uw_table *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->fd = TAKE_FD(fd);
	err = ttmon_elf_open(t->fd, &t->elf);
	t->bytes = err ? NULL : malloc(TTMON_UW_FDE_MAX + CIE_MAX);
	if (err || !t->bytes) {
		ttmon_uw_table_free(t);
		return err ? err : -ENOMEM;
	}
	find_hdr(t);
	find_sections(t);
	/* From now on only the loaded segments are needed. */
	free(TAKE_PTR(t->elf.sh));
	free(TAKE_PTR(t->elf.ph));
	t->elf.nr_sh = t->elf.nr_ph = 0;
	*ret = t;
	return 0;
}

void ttmon_uw_table_free(struct ttmon_uw_table *t)
{
	if (!t)
		return;
	ttmon_elf_fini(&t->elf);
	close(t->fd);
	free(t->by_eh.v);
	free(t->by_debug.v);
	free(t->bytes);
	free(t);
}

bool ttmon_uw_table_any(const struct ttmon_uw_table *t)
{
	return t->nr_entries || t->by_eh.section.len || t->by_debug.section.len;
}

/* ---- entries ---- */

/*
 * Reads the CIE or FDE at this place of a section into buf (n bytes), without its length. Returns its
 * length; 0: the end of the section; -EBADMSG; -EOPNOTSUPP: 64-bit DWARF.
 */
static ssize_t read_entry(struct ttmon_uw_table *t, const struct ttmon_uw_section *s, uint64_t at, uint8_t *buf,
			  size_t n)
{
	uint8_t head[FIRST_READ];
	size_t first;
	uint32_t len;
	int err;

	if (at >= s->len || s->len - at < 4)
		return -EBADMSG;
	first = MIN(sizeof(head), s->len - at);
	err = read_at(t, s->off + at, head, first);
	if (err)
		return err;
	len = get32(head);
	if (len == UINT32_MAX)
		return -EOPNOTSUPP;
	if (len > s->len - at - 4 || len > n || (len && len < 4))
		return -EBADMSG;
	memcpy(buf, head + 4, MIN(len, first - 4));
	if (len > first - 4)
		err = read_at(t, s->off + at + first, buf + (first - 4), len - (first - 4));
	return err ? err : (ssize_t)len;
}

static bool is_cie(const struct ttmon_uw_section *s, uint32_t id)
{
	return id == (s->debug ? UINT32_MAX : 0);
}

/* Reads the CIE of the FDE at this place, whose CIE pointer is id, into f. */
static int read_cie(struct ttmon_uw_table *t, const struct ttmon_uw_section *s, uint64_t at, uint32_t id,
		    struct ttmon_uw_fde *f)
{
	uint8_t *buf = t->bytes + TTMON_UW_FDE_MAX;
	uint64_t cie = s->debug ? id : at + 4 - id;
	ssize_t n;

	if (is_cie(s, id) || (!s->debug && id > at + 4))
		return -EBADMSG;
	n = read_entry(t, s, cie, buf, CIE_MAX);
	if (n < 4)
		return n < 0 ? (int)n : -EBADMSG;
	if (!is_cie(s, get32(buf)))
		return -EBADMSG;
	return ttmon_uw_read_cie(buf + 4, buf + n, s->debug, f);
}

/* Reads the FDE at this place, with its CIE. */
static int read_fde(struct ttmon_uw_table *t, const struct ttmon_uw_section *s, uint64_t at, struct ttmon_uw_fde *f)
{
	ssize_t n = read_entry(t, s, at, t->bytes, TTMON_UW_FDE_MAX);
	int err;

	if (n < 4)
		return n < 0 ? (int)n : -EBADMSG;
	err = read_cie(t, s, at, get32(t->bytes), f);
	return err ? err : ttmon_uw_read_fde(t->bytes + 4, t->bytes + n, s->vaddr + at + 8, f);
}

/* ---- .eh_frame_hdr: pairs of function and FDE, sorted ---- */

static int64_t hdr_start(const uint8_t *entry)
{
	return (int32_t)get32(entry);
}

/*
 * Finds the place in .eh_frame of the FDE of the last function that begins at or before va. -ENOENT:
 * none.
 */
static int search_hdr(struct ttmon_uw_table *t, uint64_t va, uint64_t *at)
{
	int64_t rel = (int64_t)(va - t->hdr_vaddr);
	uint64_t lo = 0, hi = t->nr_entries, n, fde;
	uint8_t block[BLOCK * HDR_ENTRY];
	size_t i = 0;
	int err;

	/* Invariant: entries before lo begin at or before va, entries from hi on after it. */
	while (hi - lo > BLOCK - 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		err = read_at(t, t->entries_off + mid * HDR_ENTRY, block, HDR_ENTRY);
		if (err)
			return err;
		if (hdr_start(block) <= rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Include the entry before, which is the answer if none of these is. */
	lo -= lo != 0;
	n = MIN(hi - lo, (uint64_t)BLOCK);
	err = read_at(t, t->entries_off + lo * HDR_ENTRY, block, n * HDR_ENTRY);
	if (err)
		return err;
	while (i < n && hdr_start(block + i * HDR_ENTRY) <= rel)
		i++;
	if (!i)
		return -ENOENT;
	fde = t->hdr_vaddr + (uint64_t)(int64_t)(int32_t)get32(block + (i - 1) * HDR_ENTRY + 4);
	if (fde < t->eh.vaddr || fde - t->eh.vaddr >= t->eh.len)
		return -EBADMSG;
	*at = fde - t->eh.vaddr;
	return 0;
}

/* ---- our own index ---- */

static int by_start(const void *a, const void *b)
{
	const struct ttmon_uw_entry *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int add_entry(struct ttmon_uw_index *x, size_t *cap, uint64_t start, uint64_t at)
{
	if (x->n == TTMON_UW_INDEX_MAX)
		return -ENOSPC;
	if (x->n == *cap) {
		size_t more = *cap ? *cap * 2 : 1024;
		void *v = realloc(x->v, more * sizeof(*x->v));

		if (!v)
			return -ENOMEM;
		x->v = v;
		*cap = more;
	}
	x->v[x->n++] = (struct ttmon_uw_entry){ .start = start, .at = at };
	return 0;
}

/* Handles the entry at this place of a section; p has its first len bytes, perhaps not all of it. */
static int scan_entry(struct ttmon_uw_table *t, struct ttmon_uw_index *x, size_t *cap, uint64_t at, const uint8_t *p,
		      size_t len)
{
	uint32_t id = get32(p);
	struct ttmon_uw_fde f;

	/* An entry that cannot be read is skipped. */
	if (is_cie(&x->section, id) || read_cie(t, &x->section, at, id, &f) ||
	    ttmon_uw_read_fde(p + 4, p + len, x->section.vaddr + at + 8, &f) || !f.len)
		return 0;
	return add_entry(x, cap, f.start, at);
}

/*
 * Indexes all functions of a section. Functions behind a damaged entry are not found, because its
 * length is not known.
 */
static int make_index(struct ttmon_uw_table *t, struct ttmon_uw_index *x)
{
	uint64_t end = MIN(x->section.len, TTMON_UW_SCAN_MAX), from = 0, have = 0;
	_cleanup_free_ uint8_t *buf = malloc(PIECE);
	unsigned int looked = 0;
	size_t cap = 0;
	int err = 0;

	if (!buf)
		return -ENOMEM;
	x->made = true;
	for (uint64_t at = 0; !err && end - at >= 8 && looked < LOOKED_MAX; looked++) {
		const uint8_t *p;
		uint32_t len;

		if (at < from || at - from + FIRST_READ > have) {
			from = at;
			have = MIN((uint64_t)PIECE, end - at);
			err = read_at(t, x->section.off + from, buf, have);
			if (err)
				break;
		}
		p = buf + (at - from);
		len = get32(p);
		if (len == 0) { /* the end of the section, or of one of several tables in a row */
			at += 4;
			continue;
		}
		if (len == UINT32_MAX || len < 4 || len > end - at - 4)
			break;
		err = scan_entry(t, x, &cap, at, p + 4, MIN((uint64_t)len, from + have - at - 4));
		at += 4 + (uint64_t)len;
	}
	if (x->n)
		qsort(x->v, x->n, sizeof(*x->v), by_start);
	return err == -ENOMEM ? err : 0;
}

static int search_index(struct ttmon_uw_table *t, struct ttmon_uw_index *x, uint64_t va, uint64_t *at)
{
	size_t lo = 0, hi;
	int err;

	if (!x->section.len)
		return -ENOENT;
	err = x->made ? 0 : make_index(t, x);
	if (err)
		return err;
	hi = x->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->v[mid].start <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return -ENOENT;
	*at = x->v[lo - 1].at;
	return 0;
}

/* ---- rows ---- */

/* Gets the row from the section, at the place that a search has found. */
static int row_in(struct ttmon_uw_table *t, const struct ttmon_uw_section *s, int found, uint64_t at, uint64_t va,
		  struct ttmon_uw_row *row, struct ttmon_uw_exprs *exprs)
{
	struct ttmon_uw_fde f;
	int err = found ? found : read_fde(t, s, at, &f);

	if (err)
		return err;
	if (va < f.start || va - f.start >= f.len)
		return -ENOENT;
	return ttmon_uw_rules(&f, va, row, exprs);
}

int ttmon_uw_table_row(struct ttmon_uw_table *t, uint64_t off, struct ttmon_uw_row *row, struct ttmon_uw_exprs *exprs)
{
	const struct ttmon_elf_seg *seg = NULL;
	uint64_t va, at = 0;
	int err = -ENOENT, found;

	for (size_t i = 0; i < t->elf.nr_seg && !seg; i++)
		if (t->elf.seg[i].exec && off >= t->elf.seg[i].off && off - t->elf.seg[i].off < t->elf.seg[i].len)
			seg = &t->elf.seg[i];
	if (!seg)
		return -ENOENT;
	va = seg->vaddr + (off - seg->off);
	if (t->nr_entries) {
		found = search_hdr(t, va, &at);
		err = row_in(t, &t->eh, found, at, va, row, exprs);
	}
	if (err == -ENOENT) {
		found = search_index(t, &t->by_eh, va, &at);
		err = row_in(t, &t->by_eh.section, found, at, va, row, exprs);
	}
	if (err == -ENOENT) {
		found = search_index(t, &t->by_debug, va, &at);
		err = row_in(t, &t->by_debug.section, found, at, va, row, exprs);
	}
	return err;
}
