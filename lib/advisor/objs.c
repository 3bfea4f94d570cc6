// SPDX-License-Identifier: GPL-2.0-only
/*
 * objs.c: finds the file, offset and function of an address of this process.
 *
 * The list of objects comes from the dynamic linker (dl_iterate_phdr), build-ids from the mapped
 * notes, and function names from the file. A file is read, with the tracer's bounded reader, only if
 * names are useful: the runs had another build of the object, or the innermost frame of a site is in
 * it. All this is done at open and refresh. Only the two searches at the end of this file are in the
 * hot path, when a stack is new.
 */
#include <fcntl.h>
#include <limits.h>
#include <link.h>

#include "lib/os/elf.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"
#include "lib/advisor/advisor_int.h"

#define FUNCS_MAX   (1u << 20)	 /* the most functions of one file; a larger file is known by its frames only */
#define STRINGS_MAX (256u << 20) /* the most bytes of names read of one file */
#define OBJS_MAX    4096u
#define SEGS_MAX    16384u

/* ---- functions ---- */

struct reading {
	const struct ttmon_known *known;
	const struct ttmon_obj *obj;
	const struct ttmon_elf *elf;
	const char *strings;
	uint64_t strings_len;
	struct ttmon_func *v;
	uint8_t *rank;
	size_t n, cap;
};

static uint8_t rank_of(const Elf64_Sym *sym)
{
	return ELF64_ST_BIND(sym->st_info) == STB_GLOBAL ? 3 : ELF64_ST_BIND(sym->st_info) == STB_WEAK ? 2 : 1;
}

static const char *known_name(const struct ttmon_known *k, const char *name)
{
	uint64_t at = ttmon_hmap_get(&k->fns, ttmon_site_hash_name(TTMON_FNV_BASIS, name) ^ k->seed);

	return at == TTMON_HMAP_NONE ? NULL : (const char *)(uintptr_t)at;
}

/* The end of what is loaded is that of a function without a size. */
static int func_seen(void *ctx, const Elf64_Sym *sym)
{
	struct reading *r = ctx;
	const struct ttmon_elf_seg *seg = ttmon_elf_seg_of(r->elf, sym->st_value, true);
	uint64_t left;

	if (!seg || !sym->st_name || sym->st_name >= r->strings_len || !r->strings[sym->st_name])
		return 0;
	if (r->n == FUNCS_MAX)
		return -E2BIG;
	if (TTMON_GROW(r->v, r->cap, r->n + 1, 1024))
		return -ENOMEM;
	left = seg->len - (sym->st_value - seg->vaddr);
	r->v[r->n] = (struct ttmon_func){
		.start = sym->st_value - seg->vaddr + seg->off,
		.name = known_name(r->known, r->strings + sym->st_name),
	};
	r->v[r->n].plumbing =
		r->obj->plumbing || ttmon_plumbing_native(r->known->plumbing, r->obj->path, r->strings + sym->st_name);
	r->v[r->n].end = r->v[r->n].start + (sym->st_size ? MIN(sym->st_size, left) : left);
	/*
	 * Of those at one address the global one is what it is called; the rank is in the low bits until they
	 * are sorted.
	 */
	r->v[r->n].start = r->v[r->n].start << 2 | rank_of(sym);
	r->n++;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct ttmon_func *)a)->start, y = ((const struct ttmon_func *)b)->start;

	return x < y ? -1 : x > y;
}

/* Sorted, the best name of each start. */
static void settle(struct ttmon_funcs *f)
{
	size_t n = 0;

	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), by_start);
	for (size_t i = 0; i < f->n; i++) {
		struct ttmon_func x = f->v[i];

		x.start >>= 2;
		if (n && f->v[n - 1].start == x.start)
			n--;
		f->v[n++] = x;
	}
	f->n = n;
}

static int build_id_note(void *ctx, const struct ttmon_elf_note *note)
{
	struct ttmon_obj *o = ctx;

	if (note->type != NT_GNU_BUILD_ID || note->name_len != sizeof(ELF_NOTE_GNU) ||
	    memcmp(note->name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) || !note->desc_len)
		return 0;
	o->build_id_len = (uint8_t)MIN(note->desc_len, sizeof(o->build_id));
	memcpy(o->build_id, note->desc, o->build_id_len);
	return 1;
}

static bool same_build(const struct ttmon_obj *a, const uint8_t *build_id, uint8_t len)
{
	return a->build_id_len == len && !memcmp(a->build_id, build_id, len);
}

/* The functions in fd, if it still is the file of this object. */
static int read_funcs(const struct ttmon_known *k, const struct ttmon_obj *o, int fd, struct ttmon_funcs *ret)
{
	_cleanup_(ttmon_elf_fini) struct ttmon_elf elf = { .fd = -1 };
	_cleanup_free_ struct ttmon_func *v = NULL;
	_cleanup_free_ char *strings = NULL;
	struct ttmon_obj file = { 0 };
	const Elf64_Shdr *symtab, *strtab;
	struct reading r = { .known = k, .obj = o, .elf = &elf };
	int err = ttmon_elf_open(fd, &elf);

	if (err)
		return err;
	err = ttmon_elf_notes(&elf, build_id_note, &file);
	if (err < 0)
		return err;
	if (!same_build(o, file.build_id, file.build_id_len))
		return -ESTALE;
	symtab = ttmon_elf_section(&elf, SHT_SYMTAB);
	if (!symtab)
		symtab = ttmon_elf_section(&elf, SHT_DYNSYM);
	strtab = symtab ? ttmon_elf_strtab(&elf, symtab) : NULL;
	if (!strtab)
		return symtab ? -EBADMSG : 0;
	if (!strtab->sh_size || strtab->sh_size > STRINGS_MAX)
		return -E2BIG;
	strings = malloc(strtab->sh_size);
	if (!strings)
		return -ENOMEM;
	err = ttmon_elf_pread(&elf, strtab->sh_offset, strings, strtab->sh_size);
	if (err)
		return err;
	strings[strtab->sh_size - 1] = '\0';
	r.strings = strings;
	r.strings_len = strtab->sh_size;
	err = ttmon_elf_funcs(&elf, symtab, func_seen, &r);
	v = r.v;
	if (err)
		return err;
	ret->v = TAKE_PTR(v);
	ret->n = r.n;
	settle(ret);
	return 0;
}

void ttmon_funcs_free(struct ttmon_funcs *f)
{
	while (f) {
		struct ttmon_funcs *next = f->next;

		free(f->path);
		free(f->v);
		free(f);
		f = next;
	}
}

/*
 * Returns whether reading the names is useful: the runs had another build, or it has the innermost
 * frame of a site. The program itself may have another name, too.
 */
static bool wants_funcs(const struct ttmon_known *k, const struct ttmon_obj *o, bool program)
{
	uint64_t build = ttmon_hmap_get(&k->builds, ttmon_hash_build(o->build_id, o->build_id_len) ^ k->seed);
	bool built = o->build_id_len && build != TTMON_HMAP_NONE;

	if (o->left_out || !k->profile)
		return false;
	if (built)
		return build & TTMON_BUILD_INNER;
	return program ||
	       ttmon_hmap_get(&k->bases, ttmon_site_hash_name(TTMON_FNV_BASIS, o->base) ^ k->seed) != TTMON_HMAP_NONE;
}

/*
 * Reads the functions of a file, or finds those already read. A file that cannot be read has no names.
 * Returns 0 or -ENOMEM.
 */
static int give_funcs(const struct ttmon_known *k, struct ttmon_obj *o, bool program, struct ttmon_funcs **funcs)
{
	_cleanup_close_ int fd = -1;
	struct ttmon_funcs *f;
	int err;

	if (!wants_funcs(k, o, program))
		return 0;
	for (f = *funcs; f; f = f->next)
		if (!strcmp(f->path, o->path) && same_build(o, f->build_id, f->build_id_len)) {
			o->funcs = f;
			return 0;
		}
	fd = open(program ? "/proc/self/exe" : o->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	memcpy(f->build_id, o->build_id, sizeof(f->build_id));
	f->build_id_len = o->build_id_len;
	f->path = strdup(o->path);
	err = f->path ? read_funcs(k, o, fd, f) : -ENOMEM;
	if (err) {
		ttmon_funcs_free(f);
		return err == -ENOMEM ? err : 0;
	}
	f->next = *funcs;
	*funcs = f;
	o->funcs = f;
	return 0;
}

/* ---- objects ---- */

struct taking {
	struct ttmon_objs *o;
	const struct ttmon_objs *before;
	bool same;
	int err;
};

/* Finds the build-id note in memory that is mapped according to the object's program headers. */
static void mapped_build_id(const struct dl_phdr_info *info, struct ttmon_obj *o)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *ph = &info->dlpi_phdr[i];
		const uint8_t *p = (const uint8_t *)(info->dlpi_addr + ph->p_vaddr), *end = p + ph->p_memsz;
		bool loaded = false;

		if (ph->p_type != PT_NOTE)
			continue;
		for (int j = 0; j < info->dlpi_phnum && !loaded; j++) {
			const Elf64_Phdr *in = &info->dlpi_phdr[j];

			loaded = in->p_type == PT_LOAD && in->p_flags & PF_R && ph->p_vaddr >= in->p_vaddr &&
				 ph->p_memsz <= in->p_filesz && ph->p_vaddr - in->p_vaddr <= in->p_filesz - ph->p_memsz;
		}
		/* Names and descriptions are padded to 4 bytes, or to 8 in segments with that alignment. */
		while (loaded && (size_t)(end - p) >= sizeof(Elf64_Nhdr)) {
			size_t pad = ph->p_align == 8 ? 8 : 4, left = (size_t)(end - p) - sizeof(Elf64_Nhdr);
			const Elf64_Nhdr *nh = (const Elf64_Nhdr *)p;
			size_t name = ROUND_UP((size_t)nh->n_namesz, 4), desc = ROUND_UP((size_t)nh->n_descsz, pad);

			if (name > left || nh->n_descsz > left - name)
				break;
			p += sizeof(*nh);
			if (nh->n_type == NT_GNU_BUILD_ID && nh->n_namesz == sizeof(ELF_NOTE_GNU) &&
			    !memcmp(p, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) && nh->n_descsz) {
				o->build_id_len = (uint8_t)MIN(nh->n_descsz, sizeof(o->build_id));
				memcpy(o->build_id, p + name, o->build_id_len);
				return;
			}
			p += name + MIN(desc, left - name);
		}
	}
}

static int room(void **array, size_t n, size_t *cap, size_t max, size_t size)
{
	size_t want = *cap ? 2 * *cap : 64;
	void *p;

	if (n < *cap)
		return 0;
	p = n < max ? realloc(*array, want * size) : NULL;
	if (!p)
		return n < max ? -ENOMEM : -E2BIG;
	*array = p;
	*cap = want;
	return 0;
}

static int take_segs(struct ttmon_objs *o, const struct dl_phdr_info *info, uint32_t obj)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;
		void *array = o->segs;
		int err;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || !ph->p_filesz)
			continue;
		err = room(&array, o->nr_segs, &o->cap_segs, SEGS_MAX, sizeof(*o->segs));
		o->segs = array;
		if (err)
			return err;
		o->segs[o->nr_segs++] = (struct ttmon_seg){
			.start = start,
			.end = start + ph->p_memsz,
			.to_file = ph->p_offset - start,
			.obj = obj,
		};
	}
	return 0;
}

static int object_seen(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct taking *t = ctx;
	struct ttmon_objs *o = t->o;
	void *array = o->objs;
	struct ttmon_obj *obj;

	if (!o->nr_objs && size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		o->adds = info->dlpi_adds;
		o->subs = info->dlpi_subs;
		t->same = t->before && t->before->adds == o->adds && t->before->subs == o->subs;
		if (t->same)
			return 1;
	}
	t->err = room(&array, o->nr_objs, &o->cap_objs, OBJS_MAX, sizeof(*o->objs));
	o->objs = array;
	if (t->err)
		return 1;
	obj = &o->objs[o->nr_objs];
	*obj = (struct ttmon_obj){ .path = strdup(info->dlpi_name ? info->dlpi_name : "") };
	if (!obj->path) {
		t->err = -ENOMEM;
		return 1;
	}
	mapped_build_id(info, obj);
	t->err = take_segs(o, info, (uint32_t)o->nr_objs++);
	return t->err != 0;
}

/*
 * Marks the same objects as the tracer (daemon/io/probes/discover_obj.c), by their names, and those
 * that a run left out of its call sites.
 */
static bool is_left_out(const struct ttmon_known *k, const struct ttmon_obj *o)
{
	uint64_t build = ttmon_hmap_get(&k->builds, ttmon_hash_build(o->build_id, o->build_id_len) ^ k->seed);

	if (o->build_id_len && build != TTMON_HMAP_NONE)
		return build & TTMON_BUILD_CUDA;
	return !strncmp(o->base, "libcudart", 9) || !strncmp(o->base, "libcuda.so", 10) ||
	       (!strncmp(o->base, "libttmon", 8) && strstr(o->base, ".so"));
}

/* Resolves the path as the kernel reports it: the tracer knows the object by that name. */
static int name_object(struct ttmon_obj *o, bool program)
{
	char real[PATH_MAX];
	const char *slash;
	char *path;

	if (program) {
		ssize_t n = readlink("/proc/self/exe", real, sizeof(real) - 1);

		real[n > 0 ? n : 0] = '\0';
	} else if (!realpath(o->path, real)) {
		snprintf(real, sizeof(real), "%s", o->path);
	}
	path = strdup(real);
	if (!path)
		return -ENOMEM;
	free(o->path);
	o->path = path;
	slash = strrchr(path, '/');
	o->base = slash ? (char *)slash + 1 : path;
	return 0;
}

static int seg_by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct ttmon_seg *)a)->start, y = ((const struct ttmon_seg *)b)->start;

	return x < y ? -1 : x > y;
}

void ttmon_objs_free(struct ttmon_objs *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->nr_objs; i++)
		free(o->objs[i].path);
	free(o->objs);
	free(o->segs);
	free(o);
}

static void objs_freep(struct ttmon_objs **o)
{
	ttmon_objs_free(*o);
}

int ttmon_objs_take(const struct ttmon_known *known, const struct ttmon_objs *before, struct ttmon_funcs **funcs,
		    struct ttmon_objs **ret)
{
	_cleanup_(objs_freep) struct ttmon_objs *o = calloc(1, sizeof(*o));
	struct taking t = { .o = o, .before = before };

	if (!o)
		return -ENOMEM;
	dl_iterate_phdr(object_seen, &t);
	if (t.same) {
		*ret = NULL;
		return 0;
	}
	/* If there are too many objects, only the first ones are known. */
	if (t.err && t.err != -E2BIG)
		return t.err;
	for (size_t i = 0; i < o->nr_objs; i++) {
		int err = name_object(&o->objs[i], i == 0);

		if (err)
			return err;
		o->objs[i].left_out = is_left_out(known, &o->objs[i]);
		o->objs[i].plumbing = ttmon_plumbing_native(known->plumbing, o->objs[i].path, NULL);
		o->objs[i].interpreter = ttmon_plumbing_is_interpreter(o->objs[i].path);
		err = give_funcs(known, &o->objs[i], i == 0, funcs);
		if (err)
			return err;
	}
	if (o->nr_segs)
		qsort(o->segs, o->nr_segs, sizeof(*o->segs), seg_by_start);
	o->gen = before ? before->gen + 1 : 1;
	*ret = TAKE_PTR(o);
	return 0;
}

/* ---- searches ---- */

const struct ttmon_seg *ttmon_objs_find(const struct ttmon_objs *o, uint64_t addr)
{
	size_t lo = TTMON_SEARCH((size_t)0, o->nr_segs, mid, o->segs[mid].start <= addr);
	return lo && addr < o->segs[lo - 1].end ? &o->segs[lo - 1] : NULL;
}

const struct ttmon_func *ttmon_funcs_find(const struct ttmon_funcs *f, uint64_t offset)
{
	size_t lo = TTMON_SEARCH((size_t)0, f->n, mid, f->v[mid].start <= offset);
	return lo && offset < f->v[lo - 1].end ? &f->v[lo - 1] : NULL;
}
