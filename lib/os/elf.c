// SPDX-License-Identifier: GPL-2.0-only
/*
 * elf.c: headers, segments and streamed tables of one ELF file, which is not trusted. elf.h explains
 * why this is not libelf.
 *
 * Runs in the cold thread. The constants below bound the memory, whatever the file contains. Every
 * read is within the size that the file had at open, and the sum of reads is at most
 * TTMON_ELF_MAX_BYTES. A file that shrinks meanwhile gives -EBADMSG. 64-bit files of this machine's
 * byte order only. Knows nothing of CUDA, symbols' meanings or probes.
 */
#include <sys/stat.h>

#include "lib/os/elf.h"

#define MAX_SEGMENTS 4096u
#define MAX_NOTES    64u
#define NOTES_MAX    (1u << 20) /* the most bytes read of a note segment or section */
#define PIECE	     (256u << 10)
#define HOLE	     (16u << 10) /* a smaller hole is not skipped */
#define RESERVE	     (16u << 20) /* part of the budget that walks leave for the small reads after them */

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "which EM_ constant is this machine's?"
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_DATA ELFDATA2LSB
#else
#define OUR_DATA ELFDATA2MSB
#endif

/* Returns whether len bytes at off lie within size. */
static bool within(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

int ttmon_elf_pread(struct ttmon_elf *e, uint64_t off, void *buf, size_t n)
{
	size_t done = 0;

	if (!within(off, n, e->size) || n > e->budget)
		return -EBADMSG;
	while (done < n) {
		ssize_t r = pread(e->fd, (char *)buf + done, n - done, (off_t)(off + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return -EBADMSG; /* the file has shrunk */
		done += (size_t)r;
	}
	e->budget -= n;
	return 0;
}

/* Reads a table of headers into allocated memory. */
static int read_table(struct ttmon_elf *e, uint64_t off, size_t n, size_t entry, void **ret)
{
	_cleanup_free_ void *table = NULL;
	int err;

	if (!within(off, n * entry, e->size))
		return -EBADMSG;
	table = calloc(n, entry);
	if (!table)
		return -ENOMEM;
	err = ttmon_elf_pread(e, off, table, n * entry);
	if (err)
		return err;
	*ret = TAKE_PTR(table);
	return 0;
}

static int read_sections(struct ttmon_elf *e, const Elf64_Ehdr *eh)
{
	void *table;
	int err;

	if (!eh->e_shoff)
		return 0;
	/*
	 * e_shnum 0 means "more than 65279, see section 0", which no linker produces for a program or library.
	 * Otherwise the table takes at most 4 MiB.
	 */
	if (!eh->e_shnum || eh->e_shentsize != sizeof(*e->sh))
		return -EBADMSG;
	err = read_table(e, eh->e_shoff, eh->e_shnum, sizeof(*e->sh), &table);
	if (err)
		return err;
	e->sh = table;
	e->nr_sh = eh->e_shnum;
	e->shstrndx = eh->e_shstrndx;
	for (size_t i = 0; i < e->nr_sh; i++) {
		const Elf64_Shdr *sh = &e->sh[i];

		if (sh->sh_type != SHT_NOBITS && sh->sh_type != SHT_NULL &&
		    !within(sh->sh_offset, sh->sh_size, e->size))
			return -EBADMSG;
	}
	return 0;
}

static int read_segments(struct ttmon_elf *e, const Elf64_Ehdr *eh)
{
	void *table;
	int err;

	if (!eh->e_phoff || !eh->e_phnum)
		return 0;
	if (eh->e_phnum > MAX_SEGMENTS || eh->e_phentsize != sizeof(*e->ph))
		return -EBADMSG;
	err = read_table(e, eh->e_phoff, eh->e_phnum, sizeof(*e->ph), &table);
	if (err)
		return err;
	e->ph = table;
	e->nr_ph = eh->e_phnum;
	for (size_t i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *ph = &e->ph[i];

		if (!within(ph->p_offset, ph->p_filesz, e->size) || ph->p_vaddr + ph->p_filesz < ph->p_vaddr)
			return -EBADMSG;
		if (ph->p_type != PT_LOAD || !ph->p_filesz)
			continue;
		if (e->nr_seg == TTMON_ELF_SEGS)
			return -EBADMSG;
		e->seg[e->nr_seg++] = (struct ttmon_elf_seg){
			.vaddr = ph->p_vaddr,
			.off = ph->p_offset,
			.len = ph->p_filesz,
			.exec = ph->p_flags & PF_X,
		};
	}
	return 0;
}

int ttmon_elf_open(int fd, struct ttmon_elf *e)
{
	struct ttmon_elf tmp = { .fd = fd, .budget = TTMON_ELF_MAX_BYTES };
	struct stat st;
	Elf64_Ehdr eh;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(eh))
		return -ENOEXEC;
	tmp.size = (uint64_t)st.st_size;
	err = ttmon_elf_pread(&tmp, 0, &eh, sizeof(eh));
	if (err)
		return err;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != OUR_DATA || eh.e_machine != OUR_MACHINE)
		return -ENOEXEC;
	if (eh.e_ident[EI_VERSION] != EV_CURRENT)
		return -EBADMSG;
	tmp.machine = eh.e_machine;
	err = read_sections(&tmp, &eh);
	if (!err)
		err = read_segments(&tmp, &eh);
	if (err) {
		ttmon_elf_fini(&tmp);
		return err;
	}
	*e = tmp;
	return 0;
}

void ttmon_elf_fini(struct ttmon_elf *e)
{
	free(e->sh);
	free(e->ph);
	*e = (struct ttmon_elf){ .fd = -1 };
}

/*
 * Returns the bytes of a hole that begins at `at`, len at most; 0: there is data, or it is not known.
 * A hole reads as zeros and takes no disk space: a file of 16 KiB can have a string table of 512 MiB.
 */
static uint64_t hole_at(struct ttmon_elf *e, uint64_t at, uint64_t len)
{
	off_t next;

	if (at < e->data_end)
		return 0;
	next = lseek(e->fd, (off_t)at, SEEK_DATA);
	if (next < 0)
		return errno == ENXIO ? len : 0;
	if ((uint64_t)next > at)
		return MIN((uint64_t)next - at, len);
	next = lseek(e->fd, (off_t)at, SEEK_HOLE);
	e->data_end = next < 0 ? UINT64_MAX : (uint64_t)next;
	return 0;
}

int ttmon_elf_walk(struct ttmon_elf *e, uint64_t off, uint64_t len, size_t unit, ttmon_elf_piece_fn cb, void *ctx)
{
	_cleanup_free_ char *buf = NULL;
	uint64_t pos = 0; /* position of buf[0] in the range */
	size_t have = 0;
	bool zeros = true; /* everything in buf is zero */

	if (!within(off, len, e->size))
		return -EBADMSG;
	e->data_end = 0;
	buf = malloc(PIECE);
	if (!buf)
		return -ENOMEM;
	while (pos < len) {
		size_t more = MIN(PIECE - have, len - pos - have);
		uint64_t at = off + pos + have, hole = hole_at(e, at, len - pos - have);
		size_t fresh;
		int err;

		if (hole >= HOLE && zeros) {
			/* A symbol or string that begins in a hole is empty. */
			pos += have + hole;
			pos -= pos % unit;
			have = 0;
			if (pos + unit > len)
				return 0;
			continue;
		}
		if (hole >= HOLE) {
			/* What began before the hole ends in it, or is too long. */
			more = 2 * TTMON_ELF_OVERLAP;
			memset(buf + have, 0, more);
			zeros = true;
		} else {
			/* Read up to the next hole, or through a small one. */
			if (hole)
				more = MIN(more, hole);
			else if (at < e->data_end)
				more = MIN(more, e->data_end - at);
			if (more + RESERVE > e->budget)
				return 0;
			err = ttmon_elf_pread(e, at, buf + have, more);
			if (err)
				return err;
			zeros = false;
		}
		have += more;
		fresh = have;
		if (pos + have < len)
			fresh -= MIN(fresh, TTMON_ELF_OVERLAP);
		fresh -= fresh % unit;
		if (!fresh && pos + have >= len)
			return 0; /* an incomplete unit at the end of the range */
		if (!fresh)
			continue;
		err = cb(ctx, buf, fresh, have, pos);
		if (err)
			return err;
		have -= fresh;
		memmove(buf, buf + fresh, have);
		pos += fresh;
	}
	return 0;
}

struct funcs {
	unsigned int types;
	ttmon_elf_func_fn cb;
	void *ctx;
};

static int funcs_piece(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	const struct funcs *f = ctx;

	(void)n;
	(void)pos;
	for (size_t i = 0; i < fresh; i += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		int err;

		memcpy(&sym, p + i, sizeof(sym));
		if (!(f->types >> ELF64_ST_TYPE(sym.st_info) & 1) || sym.st_shndx == SHN_UNDEF)
			continue;
		err = f->cb(f->ctx, &sym);
		if (err)
			return err;
	}
	return 0;
}

int ttmon_elf_syms(struct ttmon_elf *e, const Elf64_Shdr *symtab, unsigned int types, ttmon_elf_func_fn cb, void *ctx)
{
	struct funcs f = { .types = types, .cb = cb, .ctx = ctx };
	uint64_t nr = symtab->sh_size / sizeof(Elf64_Sym);

	if (symtab->sh_entsize != sizeof(Elf64_Sym))
		return -EBADMSG;
	nr = MIN(nr, TTMON_ELF_MAX_SYMS);
	return ttmon_elf_walk(e, symtab->sh_offset, nr * sizeof(Elf64_Sym), sizeof(Elf64_Sym), funcs_piece, &f);
}

int ttmon_elf_funcs(struct ttmon_elf *e, const Elf64_Shdr *symtab, ttmon_elf_func_fn cb, void *ctx)
{
	return ttmon_elf_syms(e, symtab, 1u << STT_FUNC, cb, ctx);
}

const Elf64_Shdr *ttmon_elf_section(const struct ttmon_elf *e, uint32_t type)
{
	for (size_t i = 0; i < e->nr_sh; i++) {
		if (e->sh[i].sh_type == type)
			return &e->sh[i];
	}
	return NULL;
}

const Elf64_Shdr *ttmon_elf_strtab(const struct ttmon_elf *e, const Elf64_Shdr *sh)
{
	if (sh->sh_link >= e->nr_sh || e->sh[sh->sh_link].sh_type != SHT_STRTAB)
		return NULL;
	return &e->sh[sh->sh_link];
}

int ttmon_elf_string(struct ttmon_elf *e, const Elf64_Shdr *strtab, uint64_t idx, char *buf, size_t n)
{
	size_t len;
	int err;

	if (idx >= strtab->sh_size)
		return -EBADMSG;
	len = MIN(n - 1, strtab->sh_size - idx);
	err = ttmon_elf_pread(e, strtab->sh_offset + idx, buf, len);
	if (err)
		return err;
	buf[len] = '\0';
	return 0;
}

bool ttmon_elf_named(struct ttmon_elf *e, const Elf64_Shdr *sh, const char *name)
{
	char buf[32];

	if (e->shstrndx >= e->nr_sh || e->sh[e->shstrndx].sh_type != SHT_STRTAB)
		return false;
	return !ttmon_elf_string(e, &e->sh[e->shstrndx], sh->sh_name, buf, sizeof(buf)) && !strcmp(buf, name);
}

/* Lists the notes of one segment or section; a note that exceeds the end ends the list. */
static int notes_in(struct ttmon_elf *e, uint64_t off, uint64_t len, uint64_t align, ttmon_elf_note_fn cb, void *ctx)
{
	_cleanup_free_ char *buf = NULL;
	uint64_t pos = 0;
	int err;

	len = MIN(len, NOTES_MAX);
	align = align == 8 ? 8 : 4;
	buf = malloc(len ? len : 1);
	if (!buf)
		return -ENOMEM;
	err = ttmon_elf_pread(e, off, buf, len);
	if (err)
		return err;
	while (len - pos >= sizeof(Elf64_Nhdr)) {
		struct ttmon_elf_note note;
		uint64_t name_at = pos + sizeof(Elf64_Nhdr), desc_at;
		Elf64_Nhdr nh;

		memcpy(&nh, buf + pos, sizeof(nh));
		desc_at = ROUND_UP(name_at + nh.n_namesz, align);
		if (!within(desc_at, nh.n_descsz, len))
			break;
		note = (struct ttmon_elf_note){
			.type = nh.n_type,
			.name = buf + name_at,
			.name_len = nh.n_namesz,
			.desc = buf + desc_at,
			.desc_len = nh.n_descsz,
		};
		err = cb(ctx, &note);
		if (err)
			return err;
		pos = MIN(ROUND_UP(desc_at + nh.n_descsz, align), len);
	}
	return 0;
}

int ttmon_elf_notes(struct ttmon_elf *e, ttmon_elf_note_fn cb, void *ctx)
{
	unsigned int left = MAX_NOTES;
	int err = 0;

	for (size_t i = 0; i < e->nr_ph && left && !err; i++) {
		const Elf64_Phdr *ph = &e->ph[i];

		if (ph->p_type != PT_NOTE)
			continue;
		err = notes_in(e, ph->p_offset, ph->p_filesz, ph->p_align, cb, ctx);
		left--;
	}
	for (size_t i = 0; i < e->nr_sh && left && !err; i++) {
		const Elf64_Shdr *sh = &e->sh[i];

		/* Notes that are loaded are in a segment, so they were listed above. */
		if (sh->sh_type != SHT_NOTE || ((sh->sh_flags & SHF_ALLOC) && e->nr_ph))
			continue;
		err = notes_in(e, sh->sh_offset, sh->sh_size, sh->sh_addralign, cb, ctx);
		left--;
	}
	return err;
}

const struct ttmon_elf_seg *ttmon_elf_seg_of(const struct ttmon_elf *e, uint64_t vaddr, bool exec_only)
{
	for (size_t i = 0; i < e->nr_seg; i++) {
		const struct ttmon_elf_seg *seg = &e->seg[i];

		if (vaddr >= seg->vaddr && vaddr - seg->vaddr < seg->len && (seg->exec || !exec_only))
			return seg;
	}
	return NULL;
}
