// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ttmesh.c: io/tt/mesh.c over objects in this process's own memory, laid out as the releases of
 * tt-metal do: with and without an impl, vectors of pointers and of variants, maps, submeshes that
 * share their root's devices; and over memory that means harm.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "daemon/io/tt/ident.h"

#define WORDS_MAX 8192
#define A(p)	  ((uint64_t)(uintptr_t)(p))

static uint64_t vt_device[8], vt_mesh[8], vt_other[8];
static uint64_t heap[WORDS_MAX];
static size_t used;
static struct ttmon_tt_mesh_dev devs[TTMON_TT_MESH_MAX];
static size_t nr;

static bool headers; /* as glibc's malloc, else nothing between objects */

static uint64_t *object(size_t words)
{
	uint64_t *p;

	if (headers) {
		heap[used] = ROUND_UP(words * 8 + 8, 16) | 1;
		used++;
		words = ROUND_UP(words * 8 + 8, 16) / 8 - 1;
	}
	p = &heap[used];
	used += words;
	assert_true(used <= WORDS_MAX);
	return p;
}

static uint64_t *device(uint32_t id)
{
	uint64_t *d = object(40);

	d[0] = A(vt_device);
	d[1] = A(vt_other);		/* context */
	d[2] = A(vt_other);		/* env */
	d[3] = 0xffffffff00000000 | id; /* id_, and what comes after */
	return d;
}

static uint64_t *new_mesh(void)
{
	uint64_t *m = object(32);

	m[0] = A(vt_mesh);
	return m;
}

/* std::vector at where[0..2]. */
static void vector(uint64_t *where, uint64_t *data, size_t n, size_t cap)
{
	where[0] = A(data);
	where[1] = A(data + n);
	where[2] = A(data + cap);
}

static uint64_t *array(uint64_t *const *d, size_t from, size_t n)
{
	uint64_t *a = object(n);

	for (size_t i = 0; i < n; i++)
		a[i] = A(d[from + i]);
	return a;
}

static int find(const uint64_t *m)
{
	nr = 999;
	memset(devs, 0xee, sizeof(devs));
	return ttmon_ttmesh_find(NULL, (uint32_t)getpid(), A(m), A(vt_device), devs, ARRAY_SIZE(devs), &nr);
}

static void found(const uint64_t *m, uint64_t *const *d, size_t from, size_t n)
{
	assert_int_equal(find(m), 0);
	assert_int_equal(nr, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(devs[i].device, A(d[from + i]));
		assert_int_equal(devs[i].logical, (uint32_t)d[from + i][3]);
		assert_int_equal(devs[i].pad, 0);
	}
}

static void not_found(const uint64_t *m, int err)
{
	assert_int_equal(find(m), err);
	assert_int_equal(nr, 999);
}

static uint64_t *d[64];

static int setup(void **state)
{
	(void)state;
	memset(heap, 0, sizeof(heap));
	used = 4;
	headers = true;
	for (uint32_t i = 0; i < 64; i++)
		d[i] = device(i * 7 % 64);
	return 0;
}

/* The mesh itself holds the view, the view the vector (2025). */
static void test_no_impl(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20), *scoped = object(12);

	(void)state;
	m[3] = A(scoped);
	m[9] = A(view);
	vector(view + 7, array(d, 0, 8), 8, 8);
	vector(scoped + 6, array(d, 0, 8), 8, 16);
	found(m, d, 0, 8);
}

/* pimpl_ at 24 (2026). */
static uint64_t *impl_mesh(uint64_t **scoped, size_t from, size_t n, size_t room)
{
	uint64_t *m = new_mesh(), *impl = object(60), *view = object(20);

	m[3] = A(impl);
	impl[0] = A(vt_other);
	impl[8] = A(*scoped);
	impl[11] = A(view);
	vector(view + 5, array(d, from, n), n, n + room);
	return m;
}

static void test_impl(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 64; n = n < 4 ? n + 1 : n * 2) {
		uint64_t *scoped, *m;

		setup(state);
		scoped = object(12);
		vector(scoped + 2, array(d, 0, n), n, n);
		m = impl_mesh(&scoped, 0, n, 0);
		found(m, d, 0, n);
	}
}

/*
 * A submesh: its own view, and the devices of the root, equally far away; the parent is another mesh.
 */
static void test_submesh(void **state)
{
	uint64_t *scoped = object(12), *root, *sub, *impl;

	(void)state;
	vector(scoped + 2, array(d, 0, 32), 32, 32);
	root = impl_mesh(&scoped, 0, 32, 0);
	sub = impl_mesh(&scoped, 4, 4, 0);
	impl = (uint64_t *)(uintptr_t)sub[3];
	impl[13] = A(root); /* parent_mesh_ */
	((uint64_t *)(uintptr_t)root[3])[15] = A(sub);
	found(sub, d, 4, 4);
	found(root, d, 0, 32);
}

/* The devices of a parent are not those of a mesh that has none of its own. */
static void test_parent(void **state)
{
	uint64_t *m = new_mesh(), *impl = object(60), *parent = new_mesh();

	(void)state;
	m[3] = A(impl);
	impl[13] = A(parent);
	vector(parent + 9, array(d, 0, 4), 4, 4);
	not_found(m, -ENOENT);
	found(parent, d, 0, 4);
}

/*
 * std::variant<RemoteDevice, IDevice *>: 16 bytes, index 1 is a pointer; devices of other hosts are
 * left out.
 */
static void test_variants(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20), *v = object(16);

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		v[2 * i] = i & 1 ? A(d[i]) : 0x1234;
		v[2 * i + 1] = 0xabcdef00 | (i & 1);
	}
	m[3] = A(view);
	vector(view + 5, v, 16, 16);
	assert_int_equal(find(m), 0);
	assert_int_equal(nr, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(devs[i].device, A(d[2 * i + 1]));
	v[5] = 2; /* no such index */
	not_found(m, -ENOENT);
}

/*
 * As of 2026: mesh -> impl -> view -> ViewImpl -> vector of variants; the root's ScopedDevices is a
 * step nearer. at: which word of the object leads to the vector; a view has one alone.
 */
static uint64_t *deep_mesh(uint64_t *scoped, size_t from, size_t n, size_t at)
{
	uint64_t *m = new_mesh(), *impl = object(60), *view = object(3 + at), *inner = object(24), *v = object(2 * n);

	for (size_t i = 0; i < n; i++) {
		v[2 * i] = A(d[from + i]);
		v[2 * i + 1] = 1;
	}
	m[3] = A(impl);
	impl[8] = A(scoped);
	impl[11] = A(view);
	view[at] = A(inner);
	vector(inner + 4, v, 2 * n, 2 * n);
	return m;
}

static uint64_t *deep_scoped(size_t n, bool variants)
{
	uint64_t *scoped = object(12), *v = object(2 * n);

	for (size_t i = 0; i < n; i++) {
		v[variants ? 2 * i : i] = A(d[i]);
		if (variants)
			v[2 * i + 1] = 1;
	}
	vector(scoped + 6, v, variants ? 2 * n : n, variants ? 2 * n : n);
	return scoped;
}

static void test_deep_submesh(void **state)
{
	for (size_t n = 1; n <= 8; n *= 2)
		for (int variants = 0; variants < 2; variants++) {
			uint64_t *scoped, *root, *sub;

			setup(state);
			scoped = deep_scoped(8, variants);
			root = deep_mesh(scoped, 0, 8, 0);
			sub = deep_mesh(scoped, 8 - n, n, 0);
			((uint64_t *)(uintptr_t)sub[3])[13] = A(root);
			found(sub, d, 8 - n, n);
			found(root, d, 0, 8);
		}
	/* What lies as deep behind anything else is not the mesh's. */
	setup(state);
	found(deep_mesh(deep_scoped(8, true), 2, 2, 3), d, 0, 8);
	/* Nor is what is no part of the root. */
	setup(state);
	found(deep_mesh(deep_scoped(4, true), 3, 2, 0), d, 0, 4);
}

/*
 * What an object had in its place before is behind its last member: it leads to another mesh's
 * devices.
 */
static void test_leftovers(void **state)
{
	uint64_t *scoped = deep_scoped(8, true), *other = deep_mesh(scoped, 2, 1, 0), *m = deep_mesh(scoped, 5, 1, 0);

	(void)state;
	vector(m + 6, (uint64_t *)(uintptr_t)((uint64_t *)(uintptr_t)other[3])[11], 1, 1);
	m[10] = other[3];
	m[11] = A(other + 8);
	other[8] = A(scoped + 2);
	vector(other + 9, array(d, 3, 1), 1, 1);
	found(m, d, 5, 1);
	/* Behind the last member of its impl, other meshes' views, of fewer devices and of others. */
	for (size_t i = 1; i < 8; i += 2) {
		uint64_t *impl = object(8), *last = impl + 8, *own = deep_mesh(scoped, 0, 4, 0);

		other = deep_mesh(scoped, i, 1, 0);
		impl[1] = A(scoped);
		impl[6] = ((uint64_t *)(uintptr_t)own[3])[11];
		*last = ((uint64_t *)(uintptr_t)other[3])[11];
		own[3] = A(impl);
		found(own, d, 0, 4);
	}
	/*
	 * And what such a view points to, which is as near as the root's devices: the mesh has all of these,
	 * or some.
	 */
	for (size_t i = 1; i < 8; i += 2) {
		uint64_t *impl = object(8), *last = impl + 8, *own = deep_mesh(scoped, 0, i < 4 ? 8 : 6, 0);

		other = deep_mesh(scoped, i, 1, 0);
		impl[1] = A(scoped);
		impl[6] = ((uint64_t *)(uintptr_t)own[3])[11];
		*last = *(uint64_t *)(uintptr_t)((uint64_t *)(uintptr_t)other[3])[11];
		own[3] = A(impl);
		found(own, d, 0, i < 4 ? 8 : 6);
	}
	/*
	 * The same before 2026: the view holds the vector, which lies as near as the root's, and the root's is
	 * met twice.
	 */
	for (size_t i = 1; i < 8; i += 2) {
		uint64_t *counts = object(6), *impl = object(8), *last = impl + 8, *view = object(5),
			 *other_view = object(5), *own = new_mesh();

		vector(view + 2, array(d, 0, 4), 4, 4);
		vector(other_view + 2, array(d, i, 1), 1, 1);
		memcpy(counts + 2, scoped + 6, 24);
		impl[1] = A(scoped);
		impl[2] = A(counts);
		impl[6] = A(view);
		*last = A(other_view);
		own[3] = A(impl);
		found(own, d, 0, 4);
	}
	/* One device of an earlier layout: the id is not what lies at the later place. */
	d[6][1] = 6 * 7 % 64;
	d[6][3] = 0;
	m = deep_mesh(scoped, 6, 1, 0);
	assert_int_equal(find(m), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(devs[0].logical, 6 * 7 % 64);
}

static void test_raw_array(void **state)
{
	uint64_t *m = new_mesh(), *impl = object(60);

	(void)state;
	m[3] = A(impl);
	impl[20] = A(d[9]); /* a lone one, elsewhere */
	memcpy(impl + 30, (uint64_t[]){ A(d[0]), A(d[1]), A(d[2]) }, 24);
	found(m, d, 0, 3);
	impl[31] = 0;
	impl[32] = 0;
	not_found(m, -ENOENT); /* two single ones: neither is a list */
	impl[20] = 0;
	found(m, d, 0, 1);
}

/* What looks like a vector and is none. */
static void test_not_a_vector(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20), *a = array(d, 0, 8);

	(void)state;
	m[3] = A(view);
	vector(view + 5, a, 8, 8);
	a[7] = A(vt_other); /* not all of them are devices */
	found(m, d, 0, 7);  /* but seven in a row are */
	a[7] = A(d[7]);
	view[6] = A(a) - 8; /* ends before it begins */
	found(m, d, 0, 8);
	view[6] = A(a) + 4; /* not whole words */
	found(m, d, 0, 8);
	memset(view, 0, 160);
	view[1] = A(a);
	view[2] = A(a) + 64;
	view[3] = A(a) + 56; /* past its storage */
	found(m, d, 0, 8);
}

static void test_duplicates(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20), *a = array(d, 0, 4);

	(void)state;
	m[3] = A(view);
	vector(view + 5, a, 4, 4);
	a[2] = a[0];
	assert_int_equal(find(m), 0);
	assert_int_equal(nr, 3);
	assert_int_equal(devs[2].device, A(d[3]));
	d[3][3] = d[0][3]; /* two devices with one id */
	not_found(m, -EBADMSG);
}

static void test_ids(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20);

	(void)state;
	m[3] = A(view);
	vector(view + 5, array(d, 0, 4), 4, 4);
	d[1][3] = 1023;
	found(m, d, 0, 4);
	d[1][3] = 1024;
	not_found(m, -EBADMSG);
	/* Before context and env: the id follows the vtable. */
	for (uint32_t i = 0; i < 4; i++) {
		d[i][1] = 0xffffffff00000000 | (i + 5);
		d[i][3] = A(vt_other);
	}
	assert_int_equal(find(m), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(devs[i].logical, i + 5);
}

static void test_max(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20);
	struct ttmon_tt_mesh_dev three[3];

	(void)state;
	m[3] = A(view);
	vector(view + 5, array(d, 0, 4), 4, 4);
	nr = 999;
	assert_int_equal(ttmon_ttmesh_find("/proc", (uint32_t)getpid(), A(m), A(vt_device), three, 3, &nr), -E2BIG);
	assert_int_equal(nr, 999);
}

/* Two vectors at one distance with devices of which neither holds the other's. */
static void test_ambiguous(void **state)
{
	uint64_t *m = new_mesh(), *impl = object(60);

	(void)state;
	m[3] = A(impl);
	vector(impl + 5, array(d, 0, 4), 4, 4);
	vector(impl + 15, array(d, 2, 4), 4, 4);
	not_found(m, -EBADMSG);
}

static void test_distance(void **state)
{
	uint64_t *m = new_mesh(), *a = object(100), *b = object(100), *c = object(100), *e;

	(void)state;
	e = object(100);
	m[3] = A(a);
	a[4] = A(b);
	b[4] = A(c);
	vector(c + 5, array(d, 0, 4), 4, 4); /* in the third, so that the array is in the fourth */
	found(m, d, 0, 4);
	vector(a + 10, array(d, 8, 2), 2, 2); /* nearer */
	found(m, d, 8, 2);
	a[10] = a[11] = a[12] = 0;
	c[5] = c[6] = c[7] = 0;
	c[4] = A(e);
	vector(e + 5, array(d, 0, 4), 4, 4); /* one too far */
	not_found(m, -ENOENT);
}

/*
 * Neighbours on the heap: their vectors are not ours, whether the view is an allocation of its own or
 * after a shared_ptr's counts.
 */
static void test_neighbours(void **state)
{
	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		uint64_t *m, *view, *other;

		setup(state);
		m = new_mesh();
		view = object(10);
		other = object(20);
		vector(other, array(d, 8, 16), 16, 16);
		if (shared) {
			view[0] = A(vt_other);
			view[1] = 0x100000002;
			view += 2;
		}
		m[3] = A(view);
		vector(view + 2, array(d, 0, 4), 4, 4);
		found(m, d, 0, 4);
		/* Without the bound there are two lists. */
		((uint64_t *)(uintptr_t)A(view))[shared ? -3 : -1] = 0;
		not_found(m, -EBADMSG);
	}
}

/*
 * Another allocator: nothing is known about where objects end, or what stands before looks like a size
 * and is none.
 */
static void test_other_allocator(void **state)
{
	uint64_t *scoped, *m, *view;

	(void)state;
	headers = false;
	scoped = object(12);
	vector(scoped + 2, array(d, 0, 4), 4, 4);
	m = impl_mesh(&scoped, 0, 4, 0);
	found(m, d, 0, 4);
	m = new_mesh();
	*object(1) = 64; /* a number at the end of the object before */
	view = object(40);
	m[3] = A(view);
	vector(view + 20, array(d, 0, 4), 4, 4);
	found(m, d, 0, 4);
}

static void test_hostile(void **state)
{
	uint64_t *m = new_mesh(), *big, x = 1;
	size_t page = 4096;

	(void)state;
	not_found((uint64_t *)8, -EINVAL);
	not_found((uint64_t *)(uintptr_t)(A(m) + 1), -EINVAL);
	not_found((uint64_t *)(1ULL << 60), -EINVAL);
	not_found(m, -ENOENT); /* it leads nowhere */
	assert_int_equal(ttmon_ttmesh_find("/proc", 1u << 30, A(m), A(vt_device), devs, 64, &nr), -ESRCH);
	assert_int_equal(ttmon_ttmesh_find("/proc", (uint32_t)getpid(), A(m), 0, devs, 64, &nr), -EINVAL);
	/* It leads to itself, and to nothing that can be read. */
	for (size_t i = 1; i < 32; i++)
		m[i] = i & 1 ? A(m) : 0x7f0000000000 + i * 8;
	not_found(m, -ENOENT);
	/* A labyrinth: every word leads on. */
	big = mmap(NULL, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(big != MAP_FAILED);
	for (size_t i = 0; i < 1 << 19; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		big[i] = A(big) + (x >> 33) % (1 << 19) * 8;
	}
	not_found(big, -ENOENT);
	/* A single device in it is no mesh: not everything was looked at. */
	big[3] = A(d[0]);
	not_found(big, -ENOENT);
	/* Vectors everywhere, of vectors. */
	for (size_t i = 0; i < 1 << 19; i++)
		big[i] = A(big) + i * 8 + 64;
	not_found(big, -ENOENT);
	/* It ends within the object, and within the block that it leads to. */
	assert_int_equal(munmap(big + page / 8, (1 << 22) - page), 0);
	memset(big, 0, page);
	big[page / 8 - 2] = A(d[0]);
	big[page / 8 - 1] = A(d[1]);
	memset(m + 1, 0, 31 * 8);
	m[3] = A(big + page / 8 - 2);
	found(m, d, 0, 2);
	not_found(big + page / 8 - 2, -EFAULT);
	munmap(big, page);
	not_found(big, -EFAULT);
}

/* Another process's memory, as it is in the daemon. */
static void test_other_process(void **state)
{
	uint64_t *m = new_mesh(), *view = object(20);
	int status, gate[2];
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(gate), 0);
	m[3] = A(view);
	pid = fork();
	if (!pid) {
		vector(view + 5, array(d, 10, 4), 4, 4);
		_exit(write(gate[1], "x", 1) == 1 && pause() ? 0 : 1);
	}
	assert_int_equal(read(gate[0], &c, 1), 1);
	not_found(m, -ENOENT); /* ours has none */
	assert_int_equal(ttmon_ttmesh_find("/proc", (uint32_t)pid, A(m), A(vt_device), devs, 64, &nr), 0);
	assert_int_equal(nr, 4);
	assert_int_equal(devs[0].device, A(d[10]));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_true(ttmon_ttmesh_find("/proc", (uint32_t)pid, A(m), A(vt_device), devs, 64, &nr) < 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(test_no_impl),      T(test_impl),	     T(test_submesh),	   T(test_parent),
		T(test_variants),     T(test_raw_array),     T(test_deep_submesh), T(test_leftovers),
		T(test_not_a_vector), T(test_duplicates),    T(test_ids),	   T(test_max),
		T(test_ambiguous),    T(test_distance),	     T(test_neighbours),   T(test_other_allocator),
		T(test_hostile),      T(test_other_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
