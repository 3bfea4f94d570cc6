// SPDX-License-Identifier: GPL-2.0-only
/*
 * allocs.c: what a kernelslist.g says about memory. Accel-Sim's tracer writes a line for each copy to
 * the device, in order with the kernels:
 *
 *	MemcpyHtoD,0x00007efe7b500000,2052
 *	kernel-1.traceg
 *
 * so that memory is known from the kernel behind its first copy on, which is launch 1 - 1 of its
 * context. Copies that overlap are of one buffer. Lines of lists made otherwise,
 * "cudaMalloc,ADDRESS,BYTES", "cudaFree,ADDRESS" and "MemcpyDtoH,ADDRESS,BYTES", are taken too.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "memtrace/read/src.h"
#include "memtrace/model/map.h"
#include "lib/base/util.h"

#define MAX_ALLOCS 65536u
#define CHUNK	   65536u

struct buffer {
	uint64_t addr, size, made, freed; /* made, freed: launches before */
	uint64_t copies, bytes, d2h_bytes;
	char name[32];
	bool is_whole; /* by its own line: what is copied beyond it is another one */
};

struct list {
	struct buffer *all;   /* in the order of their lines */
	uint32_t nr, pending; /* pending: from here on, made behind the last kernel */
	uint32_t *live;	      /* by address, none overlaps another */
	uint32_t nr_live;
	uint32_t *freed; /* behind the last kernel */
	uint32_t nr_freed;
	uint64_t lines[4]; /* of each kind */
	uint64_t left_out; /* lines about allocations past MAX_ALLOCS */
};

enum { MALLOC, FREE, H2D, D2H };
static const char *const kinds[] = { "cudaMalloc,", "cudaFree,", "MemcpyHtoD,", "MemcpyDtoH," };

static void list_fini(struct list *l)
{
	free(l->all);
	free(l->live);
	free(l->freed);
}

/* The first live one that ends behind addr. */
static uint32_t behind(const struct list *l, uint64_t addr)
{
	uint32_t lo = 0, hi = l->nr_live;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct buffer *b = &l->all[l->live[mid]];

		if (b->addr + b->size <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void end_live(struct list *l, uint32_t at)
{
	l->freed[l->nr_freed++] = l->live[at];
	memmove(&l->live[at], &l->live[at + 1], (l->nr_live - at - 1) * sizeof(*l->live));
	l->nr_live--;
}

static struct buffer *new_live(struct list *l, uint32_t at, unsigned int kind, uint64_t addr, uint64_t size)
{
	struct buffer *b = &l->all[l->nr];

	if (l->nr == MAX_ALLOCS) {
		l->left_out++;
		return NULL;
	}
	*b = (struct buffer){ .addr = addr, .size = size, .freed = TTMON_MT_NO_NTH, .is_whole = kind == MALLOC };
	snprintf(b->name, sizeof(b->name), "%.10s %llu", kinds[kind], (unsigned long long)l->lines[kind]);
	memmove(&l->live[at + 1], &l->live[at], (l->nr_live - at) * sizeof(*l->live));
	l->live[at] = l->nr++;
	l->nr_live++;
	return b;
}

static void add_malloc(struct list *l, uint64_t addr, uint64_t size)
{
	uint32_t at = behind(l, addr);

	while (at < l->nr_live && l->all[l->live[at]].addr < addr + size)
		end_live(l, at);
	new_live(l, at, MALLOC, addr, size);
}

/*
 * It grows to take in [addr, addr + size) and those behind it that reach into that. The oldest of them
 * lives on: it was there before.
 */
static void stretch(struct list *l, uint32_t at, uint64_t addr, uint64_t size)
{
	struct buffer *b = &l->all[l->live[at]];
	uint64_t end = MAX(addr + size, b->addr + b->size);
	struct buffer *oldest = b;

	b->addr = MIN(b->addr, addr);
	while (at + 1 < l->nr_live && l->all[l->live[at + 1]].addr < end) {
		struct buffer *next = &l->all[l->live[at + 1]];

		if (next->is_whole) {
			end = next->addr;
			break;
		}
		end = MAX(end, next->addr + next->size);
		b->copies += next->copies;
		b->bytes += next->bytes;
		b->d2h_bytes += next->d2h_bytes;
		next->size = 0; /* it is none any more */
		oldest = MIN(oldest, next);
		memmove(&l->live[at + 1], &l->live[at + 2], (l->nr_live - at - 2) * sizeof(*l->live));
		l->nr_live--;
	}
	b->size = end - b->addr;
	if (oldest == b)
		return;
	b->made = oldest->made;
	memcpy(b->name, oldest->name, sizeof(b->name));
	*oldest = *b;
	b->size = 0;
	l->live[at] = (uint32_t)(oldest - l->all);
}

static void add_copy(struct list *l, unsigned int kind, uint64_t addr, uint64_t size)
{
	uint32_t at = behind(l, addr);
	struct buffer *b = at < l->nr_live ? &l->all[l->live[at]] : NULL;

	if (!b || b->addr >= addr + size || (b->is_whole && b->addr > addr))
		b = new_live(l, at, kind, addr, b && b->addr < addr + size ? b->addr - addr : size);
	else if (!b->is_whole)
		stretch(l, at, addr, size);
	if (!b)
		return;
	b = &l->all[l->live[at]];
	b->copies++;
	b->bytes += size;
	b->d2h_bytes += kind == D2H ? size : 0;
}

static void add_free(struct list *l, uint64_t addr)
{
	uint32_t at = behind(l, addr);

	if (at < l->nr_live && l->all[l->live[at]].addr == addr)
		end_live(l, at);
}

/* Kernel number `id`, from 1: what came since the one before it was there, or gone, before it. */
static void kernel(struct list *l, uint64_t id)
{
	for (; l->pending < l->nr; l->pending++)
		l->all[l->pending].made = id - 1;
	for (uint32_t i = 0; i < l->nr_freed; i++)
		l->all[l->freed[i]].freed = id - 1;
	l->nr_freed = 0;
}

bool ttmon_mt_list_memory(const char *p, size_t n, unsigned int *kind, uint64_t *addr, uint64_t *size)
{
	char text[80], *end;

	*size = 0;
	for (*kind = 0; *kind < ARRAY_SIZE(kinds); ++*kind) {
		size_t k = strlen(kinds[*kind]);

		if (n <= k || n >= sizeof(text) || memcmp(p, kinds[*kind], k))
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)(n - k), p + k);
		*addr = strtoull(text, &end, 16);
		if (end == text || *text == '-' || *text == ' ')
			return false;
		if (*kind == FREE)
			return *addr && !*end;
		if (*end++ != ',' || *end < '0' || *end > '9')
			return false;
		*size = strtoull(end, &end, 10);
		return *addr && *size && *size < INT64_MAX && *addr < INT64_MAX - *size && !*end;
	}
	return false;
}

static void line(struct list *l, const char *p, size_t n)
{
	unsigned int kind;
	uint64_t addr, size, id;

	if (n > 7 && !memcmp(p, "kernel-", 7)) {
		id = strtoull(p + 7, NULL, 10);
		if (id)
			kernel(l, id);
		return;
	}
	if (!ttmon_mt_list_memory(p, n, &kind, &addr, &size))
		return;
	l->lines[kind]++;
	if (kind == FREE)
		add_free(l, addr);
	else if (kind == MALLOC)
		add_malloc(l, addr, size);
	else
		add_copy(l, kind, addr, size);
}

static int to_map(const struct list *l, struct ttmon_mt_map *map)
{
	int err = ttmon_mt_map_order(map, 0, TTMON_MT_NO_NTH), nr = 0;

	/* What came behind the last kernel was there for none. */
	for (uint32_t i = 0; i < l->pending && !err; i++) {
		const struct buffer *b = &l->all[i];

		if (!b->size)
			continue;
		err = ttmon_mt_map_add(
			map, &(struct ttmon_mt_alloc){
				     .addr = b->addr,
				     .size = b->size,
				     .alloc_ns = b->made + 1,
				     .free_ns = b->freed == TTMON_MT_NO_NTH ? UINT64_MAX : b->freed + 1,
				     .made_nth = b->made,
				     .freed_nth = b->freed,
				     .copies = b->copies,
				     .bytes = b->bytes,
				     .d2h_bytes = b->d2h_bytes,
				     /* The tracer does not list copies to the host: any written memory may be read. */
				     .others = !l->lines[D2H],
				     .id = b->name,
				     .name = b->name,
				     .mem = TTMON_MT_MEM_DEVICE,
			     });
		nr++;
	}
	return err ?: nr;
}

/*
 * Reads a list, with a NUL behind it; NULL: it is not a list, or cannot be read: the reader of its
 * traces reports why.
 */
static char *read_list(const char *path, size_t *ret_n)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *text = NULL;
	struct ttmon_mt_src *src = NULL;
	char why[200];
	struct stat st;
	size_t n = 0;
	ssize_t got = 1;

	/*
	 * A named pipe is not even opened: its writer would begin, and what it writes would be lost to the
	 * trace's reader.
	 */
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	text = malloc(TTMON_MT_LIST_MAX + CHUNK);
	if (fd < 0 || !text || ttmon_mt_src_new(fd, path, &src))
		return NULL;
	while (n < TTMON_MT_LIST_MAX && got > 0) {
		got = ttmon_mt_src_read(src, (uint8_t *)text + n, CHUNK - 1, -1, why, sizeof(why));
		n += got > 0 ? (size_t)got : 0;
		if (!n || ttmon_mt_list_detect((const uint8_t *)text, n) <= 0)
			break;
	}
	ttmon_mt_src_free(src);
	if (got || !n)
		return NULL;
	text[n] = '\0';
	*ret_n = n;
	return TAKE_PTR(text);
}

int ttmon_mt_in_allocs(const char *path, struct ttmon_mt_map *map, uint64_t *left_out)
{
	size_t n = 0;
	_cleanup_free_ char *text = read_list(path, &n);
	struct list l = { 0 };
	int err = -ENOMEM;

	*left_out = 0;
	if (!text)
		return 0;
	l.all = calloc(MAX_ALLOCS, sizeof(*l.all));
	l.live = calloc(MAX_ALLOCS + 1, sizeof(*l.live));
	l.freed = calloc(MAX_ALLOCS, sizeof(*l.freed));
	if (l.all && l.live && l.freed) {
		for (const char *p = text, *end = text + n; p < end; p++) {
			const char *nl = memchr(p, '\n', (size_t)(end - p)) ?: end;
			size_t k = (size_t)(nl - p);

			while (k && (p[k - 1] == '\r' || p[k - 1] == ' ' || p[k - 1] == '\t'))
				k--;
			line(&l, p, k);
			p = nl;
		}
		err = to_map(&l, map);
	}
	*left_out = l.left_out;
	list_fini(&l);
	return err;
}
