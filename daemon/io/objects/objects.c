// SPDX-License-Identifier: GPL-2.0-only
/*
 * objects.c: reads from an ELF file what is needed to trace it: functions of the table (fns.h), USDT
 * points, build-id, and which CUDA library it is.
 *
 * Runs in the cold thread. The names are searched before the symbols: one pass over a string table
 * finds the strings that end in a name of the table and, only if there are any, a pass over its symbol
 * table finds the functions that use them. Hence a library without targets costs one pass over its
 * strings, and no memory grows with the file. Symbol versions are ignored; imports (undefined symbols)
 * are never targets. It refuses rather than guesses, and must not know how probes are attached.
 */
#include "daemon/io/objects/objects.h"

#include "daemon/io/objects/find.h"
#include "daemon/io/objects/fnnames.h"
#include "daemon/io/objects/insn.h"
#include "daemon/io/objects/place.h"
#include "daemon/io/objects/switches.h"
#include "daemon/io/objects/ttnames.h"
#include "lib/base/names.h"
#include "lib/os/elf.h"

/* A string of the current string table that is, or ends in, a name of the table. */
struct candidate {
	uint32_t at;  /* st_name of a symbol with this name */
	uint16_t row; /* the first row with this base name, or USER_ROW + i, or TT_ROW + name */
	uint8_t version;
	char symbol[64];
};

/* A defined function with such a name. */
struct hit {
	uint64_t offset, addr, size;
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
	struct ttmon_elf_info info; /* owned until it is handed over */

	struct candidate *cand;
	size_t nr_cand, cap_cand;
	struct hit *hits;
	size_t nr_hits, cap_hits;

	bool is_driver, needs_rt;
	bool imports_dlopen;
	bool in_dynstr; /* the current string table is .dynstr */
	/* false for libraries that have such functions for other programs: the C library, sanitizers */
	bool may_switch;
	uint64_t strtab_at;
	unsigned int rodata_seen;

	/* Link-time addresses, 0: none. */
	uint64_t py_runtime, py_version;
	bool py_debug; /* it has what debug builds of Python have */

	uint64_t stapsdt_base; /* address of .stapsdt.base, 0: none */
	size_t cap_usdts;
};

#define MAX_CANDIDATES 8192u /* strings of one table that end in a name of the table: hundreds in libcudart */
#define MAX_HITS       4096u
#define MAX_STRINGS    (512ull << 20) /* bytes of one string table that are searched */
#define MAX_DYNAMIC    4096u
#define USER_ROW       0x8000u /* candidate.row: USER_ROW + index of the user's function */
#define TT_ROW	       0x4000u /* candidate.row: TT_ROW + what ttmon_ttname_find() says */
#define PY_ROW	       0x2000u /* candidate.row: PY_ROW + enum py_name */
#define TO_FIRST_WORD  16      /* from a vtable's symbol to what an object's first word holds (Itanium C++ ABI 2.5.2) */

static void reader_fini(struct reader *r)
{
	ttmon_elf_fini(&r->elf);
	ttmon_elf_info_fini(&r->info);
	free(r->cand);
	free(r->hits);
}

void ttmon_elf_info_fini(struct ttmon_elf_info *info)
{
	if (!info)
		return;
	for (size_t i = 0; i < info->nr_targets; i++)
		free(info->targets[i].mangled);
	free(info->targets);
	free(info->usdts);
	*info = (struct ttmon_elf_info){ 0 };
}

/* Makes room for one more element, up to max of them: a file with more is not valid. */
static int reserve(void **array, size_t nr, size_t *cap, size_t max, size_t size)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *p;

	if (nr < *cap)
		return 0;
	if (nr >= max)
		return -EBADMSG;
	p = realloc(*array, want * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = want;
	return 0;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/*
 * Major version in "libcudart.so.12", "libcudart-d0da41ae.so.11.0" (as auditwheel renames it); 0:
 * none.
 */
static uint32_t runtime_major(const char *soname)
{
	const char *so;
	unsigned long major;

	if (!starts_with(soname, "libcudart"))
		return 0;
	so = strstr(soname, ".so.");
	if (!so || so[4] < '0' || so[4] > '9')
		return 0;
	major = strtoul(so + 4, NULL, 10);
	return major < 1000 ? (uint32_t)major : 0;
}

/* ---- string tables ---- */

static int add_candidate(struct reader *r, uint64_t at, size_t row, uint8_t version, const char *name, size_t len)
{
	struct candidate *c;
	void *array = r->cand;
	int err;

	if (at > UINT32_MAX)
		return 0;
	err = reserve(&array, r->nr_cand, &r->cap_cand, MAX_CANDIDATES, sizeof(*c));
	if (err)
		return err;
	r->cand = array;
	c = &r->cand[r->nr_cand++];
	*c = (struct candidate){ .at = (uint32_t)at, .row = (uint16_t)row, .version = version };
	memcpy(c->symbol, name, MIN(len, sizeof(c->symbol) - 1));
	return 0;
}

/* Length of a name that ends in NUL, or in '@' and a version; n if it does not end within n. */
static size_t name_len(const char *s, size_t n)
{
	size_t len = 0;

	while (len < n && s[len] && s[len] != '@')
		len++;
	return len;
}

/* Other facts from .dynstr: it contains the names of needed libraries and of symbol versions. */
static void look_at_dynstr(struct reader *r, const char *p, size_t n)
{
	static const char rt[] = "libcudart.so.", dl[] = "dlopen";
	const char *s = memmem(p, n, rt, sizeof(rt) - 1);
	char name[32] = "";

	for (const char *d = p; !r->imports_dlopen && (d = ttmon_find_pair(d, p + n, 'd', 'l')); d++)
		r->imports_dlopen = (size_t)(p + n - d) >= sizeof(dl) && !memcmp(d, dl, sizeof(dl));
	if (!s || r->info.rt_major)
		return;
	memcpy(name, s, MIN((size_t)(p + n - s), sizeof(name) - 1));
	r->info.rt_major = runtime_major(name);
}

/*
 * Finds names of tt-metal in a piece by the mark that all of them contain; "_Z" or "_ZTV" is before
 * it.
 */
static int tt_strings(struct reader *r, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	static const char mark[] = TTMON_TTNAME_MARK;
	const char *end = p + MIN(fresh + 8, n);
	int err;

	/* By the middle of the mark: "N2" is in most names of C++. */
	for (const char *m = p; (m = ttmon_find_pair(m + 1, end, mark[1], mark[2]));) {
		const char *s = m - p >= 5 && !memcmp(m - 5, "_ZTV", 4) ? m - 5 : m - p >= 3 ? m - 3 : m - 1;
		size_t left = (size_t)(p + n - s), len;
		unsigned int name;

		if (s >= p + fresh || *s != '_' || end - m < 3 || memcmp(m - 1, mark, sizeof(mark) - 1))
			continue;
		len = name_len(s, MIN(left, TTMON_TTNAME_MAX + 1));
		name = len < left ? ttmon_ttname_find(s, len) : TTMON_TTNAME_NONE;
		err = name ? add_candidate(r, pos + (size_t)(s - p), TT_ROW + name, 0, s, len) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* Names of the Python interpreter's. */
enum py_name { PY_RUNTIME, PY_VERSION, PY_DEBUG, PY_NAMES };

static int py_strings(struct reader *r, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	static const char *const names[PY_NAMES] = { "_PyRuntime", "Py_Version", "_Py_NegativeRefcount" };

	for (unsigned int i = 0; i < PY_NAMES; i++) {
		const char *s = memmem(p, n, names[i], strlen(names[i]) + 1);
		int err = s && s < p + fresh ? add_candidate(r, pos + (size_t)(s - p), PY_ROW + i, 0, s, 0) : 0;

		if (err)
			return err;
	}
	return 0;
}

static int strings_piece(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	static const char cxa_throw[] = "__cxa_throw";
	struct reader *r = ctx;
	const char *s = p, *end = p + fresh;
	int err;

	if (r->in_dynstr)
		look_at_dynstr(r, p, n);
	if (!r->info.throws && memmem(p, n, cxa_throw, sizeof(cxa_throw) - 1))
		r->info.throws = true;
	if (r->may_switch && !r->info.switches)
		r->info.switches = ttmon_switches_strings(p, n);
	while (s < end && (s = ttmon_find_pair(s, MIN(end + 1, p + n), 'c', 'u'))) {
		size_t left = (size_t)(p + n - s), len, row;
		uint8_t version;

		if (left > 2 && (s[2] == 'd' || (s[2] >= 'A' && s[2] <= 'Z'))) {
			len = name_len(s, MIN(left, sizeof(r->cand->symbol)));
			if (len < MIN(left, sizeof(r->cand->symbol)) && ttmon_fnname_parse(s, len, &row, &version)) {
				err = add_candidate(r, pos + (size_t)(s - p), row, version, s, len);
				if (err)
					return err;
			}
		}
		s += 2;
	}
	for (size_t i = 0; i < r->nr_user; i++) {
		size_t len = strlen(r->user[i].symbol);

		for (s = p; s < end && (s = memmem(s, (size_t)(p + n - s), r->user[i].symbol, len)) && s < end; s++) {
			if (s + len == p + n || (s[len] && s[len] != '@'))
				continue;
			err = add_candidate(r, pos + (size_t)(s - p), USER_ROW + i, 0, s, len);
			if (err)
				return err;
		}
	}
	err = py_strings(r, p, fresh, n, pos);
	return err ?: tt_strings(r, p, fresh, n, pos);
}

/* ---- symbol tables ---- */

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* A symbol with a name of tt-metal: false for a vtable, or for no function. */
static bool is_tt_function(struct reader *r, const struct candidate *c, const Elf64_Sym *sym)
{
	unsigned int name = c->row & ~TT_ROW;

	if (name >= TTMON_TT_FN_FIRST)
		return true;
	if (ELF64_ST_TYPE(sym->st_info) != STT_OBJECT || sym->st_value > UINT64_MAX - TO_FIRST_WORD)
		return false;
	if (name == TTMON_TTNAME_VT_DEVICE)
		r->info.tt.vt_device = sym->st_value + TO_FIRST_WORD;
	else
		r->info.tt.vt_mesh = sym->st_value + TO_FIRST_WORD;
	return false;
}

static void py_symbol(struct reader *r, unsigned int name, const Elf64_Sym *sym)
{
	if (name == PY_DEBUG)
		r->py_debug = true;
	else if (ELF64_ST_TYPE(sym->st_info) == STT_OBJECT)
		*(name == PY_RUNTIME ? &r->py_runtime : &r->py_version) = sym->st_value;
}

static int symbol_found(void *ctx, const Elf64_Sym *sym)
{
	struct reader *r = ctx;
	size_t lo = 0, hi = r->nr_cand;
	const struct ttmon_elf_seg *seg;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (r->cand[mid].at < sym->st_name)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == r->nr_cand || r->cand[lo].at != sym->st_name)
		return 0;
	seg = ttmon_elf_seg_of(&r->elf, sym->st_value, true);
	for (; lo < r->nr_cand && r->cand[lo].at == sym->st_name; lo++) {
		void *array = r->hits;
		struct hit *h;
		int err;

		if (!(r->cand[lo].row & (USER_ROW | TT_ROW)) && r->cand[lo].row & PY_ROW) {
			py_symbol(r, r->cand[lo].row & ~PY_ROW, sym);
			continue;
		}
		if ((r->cand[lo].row & TT_ROW) && !is_tt_function(r, &r->cand[lo], sym))
			continue;
		if (!seg || ELF64_ST_TYPE(sym->st_info) != STT_FUNC)
			continue;
		err = reserve(&array, r->nr_hits, &r->cap_hits, MAX_HITS, sizeof(*h));
		if (err)
			return err;
		r->hits = array;
		h = &r->hits[r->nr_hits++];
		*h = (struct hit){
			.offset = sym->st_value - seg->vaddr + seg->off,
			.addr = sym->st_value,
			.size = sym->st_size,
			.name_at = r->strtab_at + sym->st_name,
			.row = r->cand[lo].row,
			.version = r->cand[lo].version,
			.local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL,
		};
		memcpy(h->symbol, r->cand[lo].symbol, sizeof(h->symbol));
	}
	return 0;
}

static int read_symbols(struct reader *r, uint32_t type)
{
	const Elf64_Shdr *symtab = ttmon_elf_section(&r->elf, type);
	const Elf64_Shdr *strtab;
	int err;

	if (!symtab)
		return 0;
	strtab = ttmon_elf_strtab(&r->elf, symtab);
	if (!strtab)
		return -EBADMSG;
	r->nr_cand = 0;
	r->in_dynstr = type == SHT_DYNSYM;
	r->strtab_at = strtab->sh_offset;
	err = ttmon_elf_walk(&r->elf, strtab->sh_offset, MIN(strtab->sh_size, MAX_STRINGS), 1, strings_piece, r);
	if (err || !r->nr_cand)
		return err;
	qsort(r->cand, r->nr_cand, sizeof(*r->cand), compare_candidates);
	return ttmon_elf_syms(&r->elf, symtab, 1u << STT_FUNC | 1u << STT_OBJECT, symbol_found, r);
}

/* ---- results ---- */

static bool is_before_13(const struct reader *r)
{
	if (r->info.rt_major)
		return r->info.rt_major < 13;
	for (size_t i = 0; i < r->nr_hits; i++) {
		const struct hit *h = &r->hits[i];

		if (!(h->row & (USER_ROW | TT_ROW)) && ttmon_fnname_is_old(h->row, h->version))
			return true;
	}
	return false;
}

static int compare_targets(const void *a, const void *b)
{
	const struct ttmon_target *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->fn != y->fn)
		return x->fn < y->fn ? -1 : 1;
	return strcmp(x->symbol, y->symbol);
}

/* Finds the place of each probe. */
static int place_targets(struct reader *r)
{
	struct ttmon_elf_info *info = &r->info;
	_cleanup_free_ struct ttmon_place *places = calloc(info->nr_targets, sizeof(*places));
	int err;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < info->nr_targets; i++) {
		const struct ttmon_target *t = &info->targets[i];

		places[i] = (struct ttmon_place){ .offset = t->offset, .addr = t->addr, .size = t->size };
	}
	err = ttmon_place_find(&r->elf, places, info->nr_targets);
	if (err)
		return err;
	for (size_t i = 0; i < info->nr_targets; i++) {
		info->targets[i].skip = places[i].skip;
		info->targets[i].single_step = places[i].single_step;
		info->targets[i].nop5 = places[i].nop5;
		info->targets[i].refused = places[i].refused;
	}
	return 0;
}

/* Sort, keep the first of each offset, and find the place of each probe. */
static int finish_targets(struct reader *r)
{
	struct ttmon_elf_info *info = &r->info;
	size_t nr = 0;

	if (!info->nr_targets)
		return 0;
	qsort(info->targets, info->nr_targets, sizeof(*info->targets), compare_targets);
	for (size_t i = 0; i < info->nr_targets; i++) {
		if (!nr || info->targets[i].offset != info->targets[nr - 1].offset)
			info->targets[nr++] = info->targets[i];
		else
			free(info->targets[i].mangled);
	}
	info->nr_targets = nr;
	return place_targets(r);
}

/* The name as found, cut, for /v1/probes. */
static char *read_name(struct reader *r, uint64_t at)
{
	char buf[256];
	size_t n = at < r->elf.size ? MIN(sizeof(buf) - 1, r->elf.size - at) : 0;

	if (ttmon_elf_pread(&r->elf, at, buf, n))
		return NULL;
	buf[n] = '\0';
	buf[name_len(buf, n)] = '\0';
	return strdup(buf);
}

static int collect_targets(struct reader *r)
{
	_cleanup_free_ bool *found = calloc(ttmon_nr_fnnames, sizeof(*found));
	bool before_13 = is_before_13(r);
	size_t fit = 0, has = 0; /* rows of a runtime */

	if (!found)
		return -ENOMEM;
	if (r->nr_hits) {
		r->info.targets = calloc(r->nr_hits, sizeof(*r->info.targets));
		if (!r->info.targets)
			return -ENOMEM;
	}
	for (size_t i = 0; i < r->nr_hits; i++) {
		const struct hit *h = &r->hits[i];
		struct ttmon_target *t = &r->info.targets[r->info.nr_targets];

		if (h->row & USER_ROW) {
			t->fn = r->user[h->row - USER_ROW].fn;
		} else if (h->row & TT_ROW) {
			t->fn = h->row & ~TT_ROW;
			t->mangled = read_name(r, h->name_at);
			r->info.kind |= TTMON_OBJ_IS_TT;
		} else {
			const struct ttmon_fnname *row = ttmon_fnname_resolve(h->row, h->version, before_13);

			if (!row)
				continue;
			t->fn = row->fn;
			found[row - ttmon_fnnames] = true;
			if (ttmon_fnname_is_rt(row))
				r->info.kind |= TTMON_OBJ_IS_RT | (h->local ? TTMON_OBJ_STATIC_RT : 0);
		}
		t->offset = h->offset;
		t->addr = h->addr;
		t->size = h->size;
		memcpy(t->symbol, h->symbol, sizeof(t->symbol));
		if (h->row & TT_ROW)
			snprintf(t->symbol, sizeof(t->symbol), "%s", ttmon_tt_fn_name(t->fn));
		r->info.nr_targets++;
	}
	if (r->is_driver)
		r->info.kind |= TTMON_OBJ_IS_DRV;
	for (size_t i = 0; i < ttmon_nr_fnnames; i++) {
		bool rt = ttmon_fnname_is_rt(&ttmon_fnnames[i]);
		uint32_t need = rt ? TTMON_OBJ_IS_RT : TTMON_OBJ_IS_DRV;

		if (!ttmon_fnname_fits(&ttmon_fnnames[i], before_13))
			continue;
		fit += rt;
		has += rt && found[i];
		if (!found[i] && (r->info.kind & need))
			r->info.missing++;
	}
	/* Each release lacks some. */
	r->info.whole_rt = has * 2 > fit;
	return finish_targets(r);
}

/* ---- dynamic section ---- */

static int read_dynamic(struct reader *r)
{
	const Elf64_Shdr *dyn = ttmon_elf_section(&r->elf, SHT_DYNAMIC);
	const Elf64_Shdr *strtab = dyn ? ttmon_elf_strtab(&r->elf, dyn) : NULL;
	_cleanup_free_ Elf64_Dyn *d = NULL;
	size_t nr;
	int err;

	r->is_driver = starts_with(r->base, "libcuda.so");
	if (!strtab)
		return 0;
	nr = MIN(dyn->sh_size / sizeof(*d), MAX_DYNAMIC);
	d = calloc(nr ? nr : 1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	err = ttmon_elf_pread(&r->elf, dyn->sh_offset, d, nr * sizeof(*d));
	if (err)
		return err;
	for (size_t i = 0; i < nr && d[i].d_tag != DT_NULL; i++) {
		char name[128];

		if (d[i].d_tag != DT_SONAME && d[i].d_tag != DT_NEEDED)
			continue;
		err = ttmon_elf_string(&r->elf, strtab, d[i].d_un.d_val, name, sizeof(name));
		if (err)
			return err;
		if (d[i].d_tag == DT_NEEDED) {
			r->needs_rt |= starts_with(name, "libcudart");
			continue;
		}
		r->is_driver |= !strcmp(name, "libcuda.so.1");
		r->info.rt_major = runtime_major(name);
	}
	return 0;
}

/*
 * True if the user's pattern matches this library: "*", the base name, or the base name up to ".so" or
 * a version.
 */
static bool lib_matches(const char *lib, const char *base)
{
	size_t n = strlen(lib);

	if (!strcmp(lib, "*"))
		return true;
	if (!n || strncmp(base, lib, n))
		return false;
	return !base[n] || starts_with(base + n, ".so") || (n > 3 && !strcmp(lib + n - 3, ".so") && base[n] == '.');
}

#define MAX_USDTS  256u
#define MAX_RODATA (256ull << 20)

static bool note_named(const struct ttmon_elf_note *note, const char *name)
{
	size_t n = strlen(name) + 1;

	return note->name_len == n && !memcmp(note->name, name, n);
}

/* The row of a USDT point of ours, 0: not ours. */
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
	uint8_t insn[8];
	size_t n;
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
	/* A prelinker moves sections but not the addresses in notes; the base section shows by how much. */
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
	n = MIN(sizeof(insn), r->elf.size - u.offset);
	err = ttmon_elf_pread(&r->elf, u.offset, insn, n);
	if (err)
		return err;
	u.nop5 = ttmon_insn_is_nop5(insn, n, r->elf.machine);
	err = reserve(&array, r->info.nr_usdts, &r->cap_usdts, MAX_USDTS, sizeof(u));
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

/* Build-id and USDT points. */
static int read_notes(struct reader *r)
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
	for (const char *s = p, *end = p + n; (s = ttmon_find_pair(s, end, 'c', 'u')); s++) {
		if ((size_t)(end - s) >= sizeof(getproc) - 1 && !memcmp(s, getproc, sizeof(getproc) - 1))
			r->rodata_seen |= SEEN_GETPROC;
		/* "cu" is in the middle of it. */
		if (s - p >= 3 && (size_t)(end - s) >= sizeof(libcuda) - 3 && !memcmp(s - 3, libcuda, sizeof(libcuda)))
			r->rodata_seen |= SEEN_LIBCUDA;
	}
	return r->rodata_seen == (SEEN_GETPROC | SEEN_LIBCUDA); /* 1 ends the walk */
}

/*
 * A stripped runtime is recognised by how it finds the driver. Only files that can dlopen() are worth
 * reading their data.
 */
static int find_stripped(struct reader *r)
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

/* Bytes of the file that lie at a link-time address. */
static bool read_at(struct reader *r, uint64_t vaddr, void *buf, size_t n)
{
	const struct ttmon_elf_seg *seg = vaddr ? ttmon_elf_seg_of(&r->elf, vaddr, false) : NULL;

	return seg && seg->len - (vaddr - seg->vaddr) >= n &&
	       !ttmon_elf_pread(&r->elf, vaddr - seg->vaddr + seg->off, buf, n);
}

/* An interpreter, known by its one variable, which has a section of its own too. */
static void find_python(struct reader *r)
{
	uint64_t words[TTMON_PYTHON_WORDS] = { 0 }, version = 0;

	for (size_t i = 0; i < r->elf.nr_sh && !r->py_runtime; i++) {
		const Elf64_Shdr *sh = &r->elf.sh[i];

		if (sh->sh_type == SHT_PROGBITS && sh->sh_flags == (SHF_ALLOC | SHF_WRITE) &&
		    sh->sh_size > sizeof(words) && ttmon_elf_named(&r->elf, sh, ".PyRuntime"))
			r->py_runtime = sh->sh_addr;
	}
	for (size_t i = 0; i < r->elf.nr_seg && r->py_runtime; i++) {
		const struct ttmon_elf_seg *seg = &r->elf.seg[i];

		if (!seg->exec)
			continue;
		(void)!read_at(r, r->py_runtime, words, sizeof(words));
		(void)!read_at(r, r->py_version, &version, sizeof(version));
		r->info.python.from_text = r->py_runtime - seg->vaddr + seg->off;
		ttmon_python_of((uint32_t)version, words, r->py_debug, &r->info.python);
		return;
	}
}

/* A library that has these functions for its callers, not for its own use. */
static bool is_of_others(const char *base)
{
	return starts_with(base, "libc.so") || starts_with(base, "libc-2") || starts_with(base, "libasan.") ||
	       starts_with(base, "libcrypto.") || starts_with(base, "libtsan.") || starts_with(base, "libclang_rt.");
}

int ttmon_elf_read(int fd, const char *base, const struct ttmon_user_fn *user, size_t nr_user,
		   struct ttmon_elf_info *ret)
{
	_cleanup_(reader_fini) struct reader r = { .elf.fd = -1, .base = base };
	struct ttmon_user_fn wanted[TTMON_FN_USER_MAX];
	int err;

	for (size_t i = 0; i < nr_user; i++) {
		size_t n = strlen(user[i].symbol);

		if (!n || n >= TTMON_ELF_OVERLAP)
			return -EINVAL;
		if (!lib_matches(user[i].lib, base))
			continue;
		if (r.nr_user == ARRAY_SIZE(wanted))
			return -EINVAL;
		wanted[r.nr_user++] = user[i];
	}
	r.user = wanted;
	err = ttmon_elf_open(fd, &r.elf);
	if (err)
		return err;
	r.info.machine = r.elf.machine;
	r.info.switches = ttmon_switches_file(base);
	r.may_switch = !is_of_others(base);
	err = read_dynamic(&r);
	if (!err)
		err = read_symbols(&r, SHT_DYNSYM);
	if (!err)
		err = read_symbols(&r, SHT_SYMTAB);
	if (!err)
		err = read_notes(&r);
	if (!err)
		err = collect_targets(&r);
	if (!err)
		err = find_stripped(&r);
	if (err)
		return err;
	find_python(&r);
	*ret = r.info;
	r.info = (struct ttmon_elf_info){ 0 };
	return 0;
}
