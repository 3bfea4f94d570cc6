// SPDX-License-Identifier: GPL-2.0-only
/*
 * image.c: PTX out of what a program loads. This runs in the program, before its driver has seen the
 * bytes: nothing is read that the headers do not claim, and what cannot be is refused.
 */
#include "memtrace/ptx/image.h"
#include "memtrace/ptx/ptx.h"
#include "lib/base/util.h"

#include <elf.h>
#include <endian.h>
#include <lz4.h>
#include <zstd.h>

#define WRAPPER	    0x466243b1u
#define FATBIN	    0xba55ed50u
#define FATBIN_LEN  16
#define ENTRY_LEN   64
#define CUDA_ELF    190
#define MAX_ENTRIES 65536
#define MAX_BYTES   (4ULL << 30) /* of a container or an ELF whose length only its own headers say */

enum kind { KIND_PTX = 1, KIND_ELF = 2 };

#define FLAG_LZ4  0x2000u
#define FLAG_ZSTD 0x8000u

struct bytes {
	const uint8_t *p;
	size_t n;
};

struct entry {
	struct bytes payload;
	uint64_t plain; /* bytes when it is decompressed; 0: it is not compressed */
	uint32_t kind, arch, flags;
};

struct entries {
	struct entry *list;
	size_t nr, cap;
};

static void entries_fini(struct entries *e)
{
	free(e->list);
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* ---- text ---- */

/*
 * Where the first directive is, behind blanks and comments; n: not there. Ends at a NUL, whatever n
 * says.
 */
static size_t first_word(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i]) {
		if (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r')) {
			i++;
		} else if (p[i] == '/' && i + 1 < n && p[i + 1] == '/') {
			while (i < n && p[i] && p[i] != '\n')
				i++;
		} else if (p[i] == '/' && i + 1 < n && p[i + 1] == '*') {
			for (i += 2; i < n && p[i] && !(p[i] == '*' && i + 1 < n && p[i + 1] == '/'); i++)
				;
			i += i < n && p[i] ? 2 : 0;
		} else {
			return i;
		}
	}
	return n;
}

static bool is_ptx(const char *p, size_t n)
{
	static const char word[] = ".version";
	size_t at = first_word(p, n);

	/* Byte by byte: there may be a NUL, and nothing behind it. */
	for (size_t i = 0; i < sizeof(word) - 1; i++)
		if (at >= n || i >= n - at || p[at + i] != word[i])
			return false;
	return true;
}

/* 90 of ".target sm_90a", and the letter; 0: there is none. text ends with a NUL. */
static uint32_t target_of(const char *text, char *letter)
{
	const char *p = strstr(text, ".target");
	unsigned int arch = 0;

	*letter = '\0';
	if (!p || sscanf(p, ".target sm_%5u%c", &arch, letter) < 1)
		return 0;
	return arch;
}

/* May a device of max_arch have it? */
static bool fits(uint32_t arch, char letter, uint32_t max_arch)
{
	if (!max_arch)
		return true;
	if (letter == 'a')
		return arch == max_arch;
	return arch <= max_arch && (letter != 'f' || arch / 10 == max_arch / 10);
}

/*
 * A copy of n bytes, up to their NUL; with lines, the NULs between them become the ends of lines.
 * -EBADMSG: no PTX.
 */
static int take_text(struct bytes b, bool lines, uint32_t max_arch, const char *from, struct ttmon_mt_image *ret)
{
	_cleanup_free_ char *text = NULL;
	uint32_t arch;
	char letter;

	if (lines)
		while (b.n && !b.p[b.n - 1])
			b.n--;
	else
		b.n = strnlen((const char *)b.p, MIN(b.n, TTMON_PTX_MAX + 1u));
	if (b.n > TTMON_PTX_MAX)
		return -E2BIG;
	text = malloc(b.n + 2);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < b.n; i++)
		text[i] = (char)(b.p[i] ? b.p[i] : '\n');
	if (lines)
		text[b.n++] = '\n';
	text[b.n] = '\0';
	if (!is_ptx(text, b.n))
		return -EBADMSG;
	arch = target_of(text, &letter);
	if (!fits(arch, letter, max_arch))
		return -ENOENT;
	*ret = (struct ttmon_mt_image){ .text = TAKE_PTR(text), .len = b.n, .arch = arch, .from = from };
	return 0;
}

static int from_text(struct bytes b, uint32_t max_arch, struct ttmon_mt_image *ret, char *why, size_t n)
{
	int err = take_text(b, false, max_arch, "PTX text", ret);

	if (err == -ENOENT)
		snprintf(why, n, "PTX text for another architecture than sm_%u", max_arch);
	return err;
}

/* ---- cubins ---- */

/* The section of that name of a 64-bit little-endian ELF. */
static bool find_section(struct bytes elf, const char *name, struct bytes *ret)
{
	size_t table = (size_t)get64(elf.p + offsetof(Elf64_Ehdr, e_shoff)),
	       size = get16(elf.p + offsetof(Elf64_Ehdr, e_shentsize));
	size_t nr = get16(elf.p + offsetof(Elf64_Ehdr, e_shnum)),
	       names = get16(elf.p + offsetof(Elf64_Ehdr, e_shstrndx));
	size_t names_at, names_n, len = strlen(name) + 1;

	if (size < sizeof(Elf64_Shdr) || names >= nr || table > elf.n || nr > (elf.n - table) / size)
		return false;
	names_at = (size_t)get64(elf.p + table + names * size + offsetof(Elf64_Shdr, sh_offset));
	names_n = (size_t)get64(elf.p + table + names * size + offsetof(Elf64_Shdr, sh_size));
	if (names_at > elf.n || names_n > elf.n - names_at)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const uint8_t *s = elf.p + table + i * size;
		size_t at = get32(s + offsetof(Elf64_Shdr, sh_name));

		if (at >= names_n || len > names_n - at || memcmp(elf.p + names_at + at, name, len))
			continue;
		at = (size_t)get64(s + offsetof(Elf64_Shdr, sh_offset));
		ret->n = (size_t)get64(s + offsetof(Elf64_Shdr, sh_size));
		if (get32(s + offsetof(Elf64_Shdr, sh_type)) != SHT_PROGBITS || at > elf.n || ret->n > elf.n - at)
			return false;
		ret->p = elf.p + at;
		return true;
	}
	return false;
}

/*
 * Where an ELF ends that comes with no length, or one of n bytes: behind its sections and their table.
 * 0: it cannot be.
 */
static size_t elf_bytes(const uint8_t *p, size_t n)
{
	uint64_t table = get64(p + offsetof(Elf64_Ehdr, e_shoff)), end;
	size_t size = get16(p + offsetof(Elf64_Ehdr, e_shentsize)), nr = get16(p + offsetof(Elf64_Ehdr, e_shnum));

	if (size < sizeof(Elf64_Shdr) || table < sizeof(Elf64_Ehdr) || table > MAX_BYTES)
		return 0;
	end = table + nr * size;
	for (size_t i = 0; i < nr && end <= n; i++) {
		const uint8_t *s = p + table + i * size;
		uint64_t at = get64(s + offsetof(Elf64_Shdr, sh_offset)),
			 bytes = get64(s + offsetof(Elf64_Shdr, sh_size));

		if (get32(s + offsetof(Elf64_Shdr, sh_type)) == SHT_NOBITS)
			continue;
		if (at > MAX_BYTES || bytes > MAX_BYTES)
			return 0;
		end = MAX(end, at + bytes);
	}
	return end <= n ? (size_t)end : 0;
}

static bool is_cubin(const uint8_t *p, size_t n)
{
	return n >= sizeof(Elf64_Ehdr) && p[EI_CLASS] == ELFCLASS64 && p[EI_DATA] == ELFDATA2LSB &&
	       get16(p + offsetof(Elf64_Ehdr, e_machine)) == CUDA_ELF;
}

size_t ttmon_mt_image_cubin(const void *image, size_t n)
{
	static const uint8_t magic[] = { 0x7f, 'E', 'L', 'F' };
	const uint8_t *p = image;

	for (size_t i = 0; i < sizeof(magic); i++)
		if (i >= n || p[i] != magic[i])
			return 0;
	return is_cubin(p, n) ? elf_bytes(p, n) : 0;
}

static int from_elf(struct bytes b, uint32_t max_arch, struct ttmon_mt_image *ret, char *why, size_t n)
{
	struct bytes section;
	int err;

	if (!is_cubin(b.p, b.n)) {
		snprintf(why, n, "an ELF file, but no cubin");
		return -EBADMSG;
	}
	if (b.n == SIZE_MAX)
		b.n = elf_bytes(b.p, SIZE_MAX);
	if (!b.n) {
		snprintf(why, n, "a cubin whose section table is out of range");
		return -EBADMSG;
	}
	if (!find_section(b, ".nv_debug_ptx_txt", &section)) {
		snprintf(why, n, "a cubin without PTX in it (not built with -lineinfo, or linked from LTO-IR)");
		return -ENOENT;
	}
	err = take_text(section, true, max_arch, "cubin's debug section", ret);
	if (err == -ENOENT || err == -EBADMSG) {
		snprintf(why, n, "a cubin whose PTX is %s",
			 err == -EBADMSG ? "not legible" : "for another architecture");
		err = -ENOENT;
	}
	return err;
}

/* ---- fat binaries ---- */

/*
 * The entries of one container of n bytes behind its header; one that reaches past its end is the
 * last.
 */
static int add_entries(struct entries *e, const uint8_t *p, size_t n)
{
	while (n >= ENTRY_LEN) {
		uint64_t head = get32(p + 4), bytes = get64(p + 8), packed = get32(p + 16);
		struct entry *entry;

		if (head < ENTRY_LEN || head > n || bytes > n - head)
			return -EBADMSG;
		if (e->nr == e->cap) {
			size_t cap = MAX(e->cap * 2, 16u);

			if (e->nr >= MAX_ENTRIES)
				return -EBADMSG;
			entry = reallocarray(e->list, cap, sizeof(*entry));
			if (!entry)
				return -ENOMEM;
			e->list = entry;
			e->cap = cap;
		}
		entry = &e->list[e->nr++];
		*entry = (struct entry){ .payload = { p + head, (size_t)bytes },
					 .kind = get16(p),
					 .arch = get32(p + 28),
					 .flags = (uint32_t)get64(p + 40) };
		if (entry->flags & (FLAG_LZ4 | FLAG_ZSTD)) {
			entry->plain = get64(p + 56);
			entry->payload.n = (size_t)MIN(packed, bytes);
		}
		p += head + bytes;
		n -= (size_t)(head + bytes);
	}
	return 0;
}

/* All containers from p on, one behind the other with nothing but zeros between them. */
static int collect(struct bytes b, struct entries *e)
{
	while (b.n >= FATBIN_LEN && get32(b.p) == FATBIN) {
		uint64_t head = get16(b.p + 6), bytes = get64(b.p + 8);
		bool alone = b.n == SIZE_MAX;
		int err;

		if (head < FATBIN_LEN || head > b.n || bytes > (alone ? MAX_BYTES : b.n - head))
			return -EBADMSG;
		err = add_entries(e, b.p + head, (size_t)bytes);
		if (err || alone)
			return err;
		b.p += head + bytes;
		b.n -= (size_t)(head + bytes);
		while (b.n && !*b.p) {
			b.p++;
			b.n--;
		}
	}
	return 0;
}

/* What is in entry: *ret is in the image, or in *own, which the caller frees. */
static int unpack(const struct entry *entry, struct bytes *ret, uint8_t **own)
{
	const struct bytes *in = &entry->payload;
	_cleanup_free_ uint8_t *p = NULL;
	unsigned long long says;
	size_t got;

	if (!(entry->flags & (FLAG_LZ4 | FLAG_ZSTD))) {
		*ret = *in;
		return 0;
	}
	if (entry->plain > TTMON_PTX_MAX || in->n > INT32_MAX)
		return -E2BIG;
	/*
	 * No more memory than the bytes can fill: LZ4 makes at most 255 of one, zstd says how many there are.
	 */
	says = entry->flags & FLAG_ZSTD	     ? ZSTD_getFrameContentSize(in->p, in->n)
	       : entry->plain / 255 <= in->n ? entry->plain
					     : 0;
	if (!entry->plain || says != entry->plain)
		return -EBADMSG;
	p = malloc(entry->plain);
	if (!p)
		return -ENOMEM;
	if (entry->flags & FLAG_ZSTD) {
		got = ZSTD_decompress(p, entry->plain, in->p, in->n);
	} else {
		int k = LZ4_decompress_safe((const char *)in->p, (char *)p, (int)in->n, (int)entry->plain);

		got = k < 0 ? 0 : (size_t)k;
	}
	if (got != entry->plain)
		return -EBADMSG;
	*ret = (struct bytes){ p, got };
	*own = TAKE_PTR(p);
	return 0;
}

static int try_entry(const struct entry *entry, uint32_t max_arch, struct ttmon_mt_image *ret)
{
	_cleanup_free_ uint8_t *own = NULL;
	struct bytes b;
	char why[96];
	int err = unpack(entry, &b, &own);

	if (err)
		return err;
	if (entry->kind == KIND_ELF)
		err = from_elf(b, max_arch, ret, why, sizeof(why));
	else
		err = take_text(b, false, max_arch,
				entry->flags & FLAG_ZSTD  ? "fat binary, zstd"
				: entry->flags & FLAG_LZ4 ? "fat binary, LZ4"
							  : "fat binary",
				ret);
	if (!err && entry->kind == KIND_PTX)
		ret->arch = entry->arch;
	return err;
}

/*
 * In the order in which they are tried: PTX before cubins, the highest architecture first, then as
 * they stand in the image.
 */
static int by_worth(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	return (a->kind > b->kind) - (a->kind < b->kind) ?: (a->arch < b->arch) - (a->arch > b->arch) ?:
	       (a->payload.p > b->payload.p) - (a->payload.p < b->payload.p);
}

static void say_what_there_is(const struct entries *e, uint32_t max_arch, char *why, size_t n)
{
	uint32_t lowest = UINT32_MAX, elf = 0;

	for (size_t i = 0; i < e->nr; i++) {
		if (e->list[i].kind == KIND_PTX)
			lowest = MIN(lowest, e->list[i].arch);
		elf += e->list[i].kind == KIND_ELF;
	}
	if (lowest != UINT32_MAX)
		snprintf(why, n, "a fat binary with no PTX that sm_%u can have: the lowest is for sm_%u", max_arch,
			 lowest);
	else if (elf)
		snprintf(why, n, "a fat binary without PTX, only %u cubin%s", elf, elf == 1 ? "" : "s");
	else
		snprintf(why, n, "a fat binary with neither PTX nor cubins");
}

static int from_fatbin(struct bytes b, uint32_t max_arch, struct ttmon_mt_image *ret, char *why, size_t n)
{
	_cleanup_(entries_fini) struct entries e = { 0 };
	int err = collect(b, &e), first = 0;

	/* What stands before the damage is still there. */
	if (err && (err != -EBADMSG || !e.nr)) {
		snprintf(why, n, "a fat binary that is damaged");
		return err;
	}
	if (e.nr)
		qsort(e.list, e.nr, sizeof(*e.list), by_worth);
	for (size_t i = 0; i < e.nr; i++) {
		const struct entry *x = &e.list[i];

		if ((x->kind != KIND_PTX && x->kind != KIND_ELF) || (max_arch && x->arch > max_arch))
			continue;
		err = try_entry(x, max_arch, ret);
		if (!err || err == -ENOMEM)
			return err;
		if (x->kind == KIND_PTX && err != -ENOENT && !first)
			first = err;
	}
	if (first) {
		snprintf(why, n, "a fat binary whose PTX is %s", first == -E2BIG ? "too large" : "damaged");
		return first;
	}
	say_what_there_is(&e, max_arch, why, n);
	return -ENOENT;
}

/* ---- all of them ---- */

static int from_any(struct bytes b, uint32_t max_arch, struct ttmon_mt_image *ret, char *why, size_t n)
{
	static const uint8_t elf[] = { 0x7f, 'E', 'L', 'F' }, fatbin[] = { 0x50, 0xed, 0x55, 0xba },
			     wrapper[] = { 0xb1, 0x43, 0x62, 0x46 };
	const char *text = (const char *)b.p;
	size_t len = 0;

	/* Text may end after one byte; what begins like an image has at least its header. */
	while (len < 4 && len < b.n && (b.p[len] == elf[len] || b.p[len] == fatbin[len] || b.p[len] == wrapper[len]))
		len++;
	if (len == 4 && !memcmp(b.p, elf, 4))
		return from_elf(b, max_arch, ret, why, n);
	if (len == 4 && !memcmp(b.p, fatbin, 4))
		return from_fatbin(b, max_arch, ret, why, n);
	if (len == 4 && !memcmp(b.p, wrapper, 4)) {
		const uint8_t *data;

		if (b.n != SIZE_MAX) {
			snprintf(why, n, "the wrapper of a fat binary that is elsewhere");
			return -ENOENT;
		}
		memcpy(&data, b.p + 8, sizeof(data));
		if (data && get32(data) == FATBIN)
			return from_fatbin((struct bytes){ data, SIZE_MAX }, max_arch, ret, why, n);
		snprintf(why, n, "the wrapper of something that is no fat binary");
		return -EBADMSG;
	}
	if (is_ptx(text, b.n))
		return from_text(b, max_arch, ret, why, n);
	return -EBADMSG;
}

int ttmon_mt_image_ptx(const void *image, size_t n, uint32_t max_arch, struct ttmon_mt_image *ret, char *why,
		       size_t n_why)
{
	char text[160] = "neither PTX, nor a fat binary, nor a cubin";
	int err = image ? from_any((struct bytes){ image, n }, max_arch, ret, text, sizeof(text)) : -EBADMSG;

	if (err == -ENOMEM)
		snprintf(text, sizeof(text), "out of memory");
	else if (err == -E2BIG)
		snprintf(text, sizeof(text), "more than %u MiB of PTX", TTMON_PTX_MAX >> 20);
	if (err)
		snprintf(why, n_why, "%s", text);
	return err;
}
