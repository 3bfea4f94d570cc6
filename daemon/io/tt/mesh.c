// SPDX-License-Identifier: GPL-2.0-only
/*
 * mesh.c: the local devices of a MeshDevice, found in the memory of its process without knowing its
 * layout. Cold thread.
 *
 * A breadth-first walk from the mesh object along words that look like user addresses, at most DEPTH
 * steps, READS reads of at most 512 bytes. It searches an array of pointers to objects whose first
 * word is Device's vtable. The best result is an array that a std::vector holds (begin, end, end of
 * storage), all of it devices: MeshDevice -> impl -> MeshDeviceView -> vector, in some releases
 * without the impl, in some with elements of 16 bytes (std::variant of a remote marker and a pointer:
 * index 1 is local). Without such a vector, the longest run of pointers at any place counts, and a
 * single one only if the walk came to its end without meeting another device.
 *
 * The end of an object follows from the size that glibc's malloc keeps before it; otherwise its
 * neighbours would be taken for parts of it. If nothing is found that way, a second search does
 * without that bound, for other allocators. After its last member an object has leftover words of
 * earlier objects, so first only the pointer to the impl is followed from the mesh, where it has had
 * its place since 2025; if no vector lies behind an object there, the mesh is of another layout, and
 * all of its words are followed.
 *
 * A submesh shares with its parent a list of all devices of the root (ScopedDevices), which lies as
 * far away as its own. So among vectors at the least distance that hold different devices, one that is
 * part of the other is the mesh's own. Since 2026 the view is a pointer and nothing else, and the
 * mesh's own vector lies one step further than the root's: from that distance on only the first word
 * of an object is followed, once, and only a vector of variants counts there, which is part of what
 * was found. Words behind an object's last member may lead to another mesh's view: what is found
 * through them gives way to what was found before, and a vector that lies as near as the root's to one
 * that lies one step further, but through a word of the impl before theirs. Other MeshDevices (parent,
 * submeshes) and Devices are not walked into. All of it is untrusted memory of a traced program: ids
 * must be distinct and below 1024.
 *
 * Sources: tt-metal mesh_device.hpp, mesh_device_impl.hpp, mesh_device_view_impl.hpp,
 * maybe_remote.hpp; Device::id_ at 24 (device_impl.hpp, 01066d1c), 8 in older releases without context
 * and env before it.
 */
#include <fcntl.h>
#include <limits.h>

#include "daemon/io/tt/ident.h"

#define DEPTH	  4
#define READS	  512
#define FOLLOWS	  384  /* of them for walking: the others are for what looks like an array */
#define BLOCK	  512u /* bytes of a read */
#define WORDS	  (BLOCK / 8)
#define MESH_SIZE 256u
#define HEAD	  32u /* bytes of a device up to its id */
#define IMPL_AT	  3u  /* word of a MeshDevice: vtable, weak_this, pimpl_ */
#define BEHIND	  3u  /* words that malloc may add: rounding to 16 bytes, and a rest too small for a chunk */
#define BEFORE	  24u /* read before an object: malloc's chunk size, or that and a shared_ptr's counts */
#define MAX_IDS	  1024u

struct block {
	uint64_t addr;
	unsigned int depth;
	unsigned int n;	      /* words read */
	unsigned int members; /* of them, those that are certainly no leftovers after the last member */
	bool leftover;	      /* the word that led here may be a leftover */
	unsigned int via;     /* word of the impl on the way here */
	uint64_t w[WORDS];
};

struct found {
	size_t n;
	uint64_t device[TTMON_TT_MESH_MAX];
	uint64_t head[TTMON_TT_MESH_MAX][HEAD / 8];
};

struct walk {
	int mem;
	uint64_t vt_device, vt_mesh;
	unsigned int reads, follows;
	bool cut;	      /* the limit of reads was reached */
	bool bounded;	      /* objects end where malloc says */
	bool by_impl;	      /* only the mesh's pointer to its impl is followed */
	struct block *blocks; /* read, in order; [0] is the mesh */
	size_t nr_blocks, next;
	struct found vec, run;
	struct found own; /* reached through a view that is a pointer */
	bool ambiguous, deeper;
	/*
		 * number of vectors that vec was chosen from, by the addresses of their elements: a vector may be
		 * reached more than once
		 */
	unsigned int nr_vecs;
	uint64_t begins[2];
	unsigned int vec_depth;
	/* The value of vec before a leftover replaced it, and the word of the impl through which that came. */
	struct found wide;
	bool narrowed;
	unsigned int narrow_via;
};

static bool is_user(uint64_t a)
{
	return a >= 0x10000 && a < 1ULL << 48 && !(a & 7);
}

/* Whole words that could be read. */
static unsigned int read_words(struct walk *k, uint64_t addr, uint64_t *w, size_t bytes)
{
	ssize_t n;

	if (k->reads == READS) {
		k->cut = true;
		return 0;
	}
	k->reads++;
	do {
		n = pread(k->mem, w, bytes, (off_t)addr);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? 0 : (unsigned int)n / 8;
}

/* If w is the size word of a malloc() chunk: the bytes of the object after it; else 0. */
static size_t chunk_bytes(uint64_t w)
{
	return (w & ~7ULL) >= 32 && (w & ~7ULL) < 1 << 20 && !(w & 8) ? (size_t)(w & ~7ULL) - 8 : 0;
}

/*
 * Reads the words of an object, from its start to its end as far as that is known. Sets members if the
 * end is known.
 */
static unsigned int read_object(struct walk *k, uint64_t addr, uint64_t *w, size_t bytes, unsigned int *members)
{
	uint64_t raw[WORDS];
	size_t end = 0, n = 0;

	if (k->bounded)
		n = read_words(k, addr - BEFORE, raw, bytes);
	if (n <= BEFORE / 8) { /* the memory before it cannot be read */
		*members = read_words(k, addr, w, bytes);
		return *members;
	}
	if (chunk_bytes(raw[2]))
		end = chunk_bytes(raw[2]) / 8;
	else if (is_user(raw[1]) && (uint32_t)raw[2] && (uint32_t)raw[2] < 1 << 20 && raw[2] >> 32 &&
		 raw[2] >> 32 < 1 << 20)
		end = chunk_bytes(raw[0]) > 16 ? chunk_bytes(raw[0]) / 8 - 2
					       : 0; /* make_shared(): vtable and two counts first */
	n -= BEFORE / 8;
	*members = (unsigned int)n;
	if (end) {
		n = MIN(n, end);
		*members = (unsigned int)MIN(n, end - MIN(end, BEHIND));
	}
	memcpy(w, raw + BEFORE / 8, n * 8);
	return (unsigned int)n;
}

static bool read_device(struct walk *k, uint64_t addr, uint64_t *head)
{
	const struct block *b = NULL;

	if (!is_user(addr))
		return false;
	for (size_t i = 0; i < k->nr_blocks && !b; i++)
		if (k->blocks[i].addr == addr)
			b = &k->blocks[i];
	if (b && b->n >= HEAD / 8)
		memcpy(head, b->w, HEAD);
	else if (read_words(k, addr, head, HEAD) != HEAD / 8)
		return false;
	return head[0] == k->vt_device;
}

static bool add_device(struct found *f, uint64_t addr, const uint64_t *head)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->device[i] == addr)
			return true;
	if (f->n == TTMON_TT_MESH_MAX)
		return false;
	f->device[f->n] = addr;
	memcpy(f->head[f->n++], head, HEAD);
	return true;
}

/*
 * The elements of a vector, all of them: pointers, or variants whose second word's low byte is 1 for a
 * pointer, 0 for a remote one.
 */
static bool read_vector(struct walk *k, uint64_t begin, uint64_t end, bool variant, struct found *f)
{
	size_t n = (end - begin) / 8, step = variant ? 2 : 1;
	uint64_t w[2 * TTMON_TT_MESH_MAX], head[HEAD / 8];

	for (size_t i = 0; i < n; i += WORDS) {
		size_t m = MIN(n - i, (size_t)WORDS);

		if (read_words(k, begin + i * 8, w + i, m * 8) != m)
			return false;
		/* Most words that look like a vector are something else, which the first element shows. */
		if (!i && !variant && (!is_user(w[0]) || !read_device(k, w[0], head)))
			return false;
	}
	f->n = 0;
	for (size_t i = 0; i < n; i += step) {
		if (variant && !(w[i + 1] & 0xff))
			continue;
		if ((variant && (w[i + 1] & 0xff) != 1) || !read_device(k, w[i], head) || !add_device(f, w[i], head))
			return false;
	}
	return f->n > 0;
}

static bool has(const struct found *f, uint64_t device)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->device[i] == device)
			return true;
	return false;
}

static bool part_of(const struct found *a, const struct found *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!has(b, a->device[i]))
			return false;
	return true;
}

static void take_vector(struct walk *k, const struct found *f, const struct block *b, uint64_t begin)
{
	bool met = false;

	for (unsigned int i = 0; i < k->nr_vecs; i++)
		met |= k->begins[i] == begin;
	/* The root's vector and its own were found already. */
	if (b->leftover && !met && k->nr_vecs == ARRAY_SIZE(k->begins))
		return;
	if (!k->nr_vecs || part_of(f, &k->vec)) {
		if (k->nr_vecs && f->n < k->vec.n) {
			k->wide = k->vec;
			k->narrowed = k->by_impl && b->leftover;
			k->narrow_via = b->via;
		}
		k->vec = *f;
		k->vec_depth = b->depth;
	} else if (!part_of(&k->vec, f)) {
		k->ambiguous = true;
	}
	if (!met && k->nr_vecs < ARRAY_SIZE(k->begins))
		k->begins[k->nr_vecs++] = begin;
}

/* Reached through a view that is a pointer: the mesh's own devices, a subset of those found nearer. */
static void take_deeper(struct walk *k, const struct found *f, const struct block *b)
{
	/*
	 * All words of the impl before a word that leads to a view are members; words after it may be
	 * leftovers.
	 */
	if (k->narrowed && b->via < k->narrow_via && part_of(f, &k->wide)) {
		k->vec = k->wide;
		k->narrowed = false;
	}
	if (!part_of(f, &k->vec) || (b->leftover && k->deeper))
		return;
	/* Two vectors of which neither is part of the other: neither is known to be the mesh's. */
	if (k->deeper && !part_of(f, &k->own) && !part_of(&k->own, f))
		k->ambiguous = true;
	if (!k->deeper || part_of(f, &k->own))
		k->own = *f;
	k->deeper = true;
}

static bool is_walked(const struct walk *k, const struct block *b)
{
	return b->n && b->depth < DEPTH && b->w[0] != k->vt_device && (b == k->blocks || b->w[0] != k->vt_mesh);
}

static void look_for_vectors(struct walk *k, const struct block *b)
{
	bool deep = k->nr_vecs && b->depth > k->vec_depth;
	struct found *f;

	if (!is_walked(k, b))
		return;
	for (unsigned int i = 0; i + 2 < b->n; i++) {
		uint64_t begin = b->w[i], end = b->w[i + 1], cap = b->w[i + 2], bytes = end - begin;

		if (!is_user(begin) || !is_user(end) || !is_user(cap) || begin >= end || end > cap ||
		    bytes > 16 * TTMON_TT_MESH_MAX || cap - begin > 1 << 20)
			continue;
		f = malloc(sizeof(*f));
		if (!f)
			return;
		if (deep) {
			if (!(bytes % 16) && read_vector(k, begin, end, true, f))
				take_deeper(k, f, b);
		} else if ((bytes <= 8 * TTMON_TT_MESH_MAX && read_vector(k, begin, end, false, f)) ||
			   (!(bytes % 16) && read_vector(k, begin, end, true, f))) {
			take_vector(k, f, b, begin);
		}
		free(f);
	}
}

static bool was_read(const struct walk *k, uint64_t addr)
{
	for (size_t i = 0; i < k->nr_blocks; i++)
		if (k->blocks[i].addr == addr)
			return true;
	return false;
}

static void follow(struct walk *k, const struct block *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct block *to = &k->blocks[k->nr_blocks];

		/* One step further than a vector that was found: not this mesh's, unless reached through a view. */
		if (k->ambiguous || (k->nr_vecs && b->depth + 1 > k->vec_depth && (i || b->depth > k->vec_depth)))
			return;
		if (!is_user(b->w[i]) || was_read(k, b->w[i]) || (k->by_impl && b == k->blocks && i != IMPL_AT))
			continue;
		if (k->follows == FOLLOWS) {
			k->cut = true;
			return;
		}
		k->follows++;
		to->n = read_object(k, b->w[i], to->w, BLOCK, &to->members);
		if (!to->n)
			continue;
		to->leftover = b->leftover || i >= b->members;
		to->via = b->depth == 1 ? i : b->via;
		to->addr = b->w[i];
		to->depth = b->depth + 1;
		k->nr_blocks++;
		look_for_vectors(k, to);
	}
}

/* Without a vector: the longest run of pointers to devices in any block. */
static void look_for_runs(struct walk *k)
{
	struct found *f = malloc(sizeof(*f));

	for (size_t i = 0; f && i < k->nr_blocks; i++) {
		const struct block *b = &k->blocks[i];

		f->n = 0;
		for (unsigned int j = 0; b->w[0] != k->vt_device && j <= b->n; j++) {
			uint64_t head[HEAD / 8];

			/* Every pointer of a block that was walked has been read; for the others no reads are left. */
			if (j < b->n && was_read(k, b->w[j]) && read_device(k, b->w[j], head) &&
			    add_device(f, b->w[j], head))
				continue;
			if (f->n > k->run.n)
				k->run = *f;
			f->n = 0;
		}
	}
	free(f);
}

/*
 * Before context and env were added the id was where newer versions have a pointer. A 0 there may be a
 * null pointer.
 */
static bool ids_at_8(const struct found *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->head[i][1] >= MAX_IDS)
			return false;
	return f->n > 1 || f->head[0][1];
}

/* Finds the place of the ids: the first one at which all values are small and distinct. */
static int fill(const struct found *f, struct ttmon_tt_mesh_dev *devs, size_t max)
{
	static const unsigned int all[] = { 8, 24, 8, 16 };
	const unsigned int *places = ids_at_8(f) ? all : all + 1;

	if (!f->n || f->n > max)
		return f->n ? -E2BIG : -ENOENT;
	for (size_t p = 0; p < ARRAY_SIZE(all) - (places != all); p++) {
		bool seen[MAX_IDS] = { false }, good = true;

		for (size_t i = 0; i < f->n && good; i++) {
			uint32_t id = (uint32_t)f->head[i][places[p] / 8];

			good = id < MAX_IDS && !seen[id];
			if (good)
				seen[id] = true;
		}
		for (size_t i = 0; i < f->n && good; i++)
			devs[i] = (struct ttmon_tt_mesh_dev){ .device = f->device[i],
							      .logical = (uint32_t)f->head[i][places[p] / 8] };
		if (good)
			return 0;
	}
	return -EBADMSG;
}

static int walk(struct walk *k, uint64_t mesh)
{
	size_t devices = 0;

	k->blocks[0] = (struct block){ .addr = mesh };
	k->blocks[0].n = read_object(k, mesh, k->blocks[0].w, MESH_SIZE, &k->blocks[0].members);
	if (k->blocks[0].n < 4)
		return k->bounded && k->blocks[0].n ? -ENOENT : -EFAULT;
	k->vt_mesh = k->blocks[0].w[0];
	k->nr_blocks = 1;
	if (!k->by_impl)
		look_for_vectors(k, &k->blocks[0]);
	while (k->next < k->nr_blocks) {
		const struct block *b = &k->blocks[k->next++];

		if (is_walked(k, b))
			follow(k, b);
	}
	if (k->by_impl)
		return k->nr_vecs && !k->ambiguous && k->vec_depth > 1 ? 0 : -ENOENT;
	if (k->ambiguous)
		return -EBADMSG;
	if (k->nr_vecs)
		return 0;
	look_for_runs(k);
	for (size_t i = 0; i < k->nr_blocks; i++)
		devices += k->blocks[i].w[0] == k->vt_device;
	return k->run.n > 1 || (k->run.n && !k->cut && devices == 1) ? 0 : -ENOENT;
}

int ttmon_ttmesh_find(const char *proc_root, uint32_t tgid, uint64_t mesh, uint64_t vt_device,
		      struct ttmon_tt_mesh_dev *devs, size_t max, size_t *n)
{
	_cleanup_free_ struct walk *k = NULL;
	_cleanup_free_ struct block *blocks = NULL;
	_cleanup_close_ int mem = -1;
	const struct found *best;
	char path[PATH_MAX];
	int err;

	if (!is_user(mesh) || !vt_device)
		return -EINVAL;
	if (snprintf(path, sizeof(path), "%s/%u/mem", proc_root ? proc_root : "/proc", tgid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	mem = open(path, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	k = calloc(1, sizeof(*k));
	blocks = malloc((FOLLOWS + 1) * sizeof(*blocks));
	if (!k || !blocks)
		return -ENOMEM;
	for (int pass = 0; pass < 3; pass++) {
		*k = (struct walk){
			.mem = mem, .vt_device = vt_device, .blocks = blocks, .bounded = pass < 2, .by_impl = !pass
		};
		err = walk(k, mesh);
		if (err != -ENOENT)
			break;
	}
	if (err)
		return err;
	best = k->deeper ? &k->own : k->nr_vecs ? &k->vec : &k->run;
	err = fill(best, devs, max);
	if (!err)
		*n = best->n;
	return err;
}

int ttmon_ttmesh_job(const void *ctx _unused_, const void *in, size_t n, int fd _unused_, struct ttmon_helper_out *out)
{
	const struct ttmon_ttmesh_ask *ask = in;
	struct ttmon_tt_mesh_dev devs[TTMON_TT_MESH_MAX];
	size_t found = 0;
	int err = n == sizeof(*ask) ? ttmon_ttmesh_find("/proc", ask->tgid, ask->mesh, ask->vt_device, devs,
							ARRAY_SIZE(devs), &found)
				    : -EINVAL;

	if (!err)
		ttmon_helper_put(out, devs, found * sizeof(*devs));
	return err;
}
