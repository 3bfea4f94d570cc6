// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_unwind.c: a hostile file and a hostile copy of a stack into the unwinder. A walk has to end,
 * within its limits, with frames that lie where code is mapped; the same input has to give the same
 * result from the cache of rows. The file is one that is mapped too.
 *
 *	first 16 bytes: where the program counter is in the file, which pages were copied, registers,
 *	which byte of the file changes between the walks; then a copy of 256 bytes, repeated; then the file
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/unwind/mapped.h"
#include "lib/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 16u
#define COPY 256u
#define CODE 0x10000000u /* where the file is mapped */
#define SP   0x7fff0000u

static void require(bool ok)
{
	if (!ok)
		abort();
}

static size_t file_size;

static enum ttmon_uw_place locate(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off)
{
	(void)ctx;
	if (pc >= CODE && pc - CODE < file_size) {
		*object = 1;
		*off = pc - CODE;
		return TTMON_UW_IN_OBJECT;
	}
	return pc >= SP && pc < SP + TTMON_STACK_BYTES ? TTMON_UW_NO_FILE : TTMON_UW_NOWHERE;
}

static struct ttmon_uw_table *table(void *ctx, uint32_t object)
{
	require(object == 1);
	return ctx;
}

static void check(const struct ttmon_uw_result *r, unsigned int max)
{
	uint32_t object;
	uint64_t off;

	require(r->n >= 1 && r->n <= max && r->end > TTMON_STACK_UNKNOWN && r->end < TTMON_STACK_END_MAX);
	require(r->end != TTMON_STACK_DEPTH || r->n == max);
	for (unsigned int i = 1; i < r->n; i++)
		require(locate(NULL, r->pc[i] - 1, &object, &off) != TTMON_UW_NOWHERE ||
			locate(NULL, r->pc[i], &object, &off) != TTMON_UW_NOWHERE);
}

static void fill(struct ttmon_stack_copy *s, const uint8_t *data, size_t size)
{
	uint16_t word[6];

	memset(s, 0, sizeof(*s));
	memcpy(word, data, sizeof(word));
	s->ip = CODE + (word[0] | (uint64_t)(word[1] & 0xff) << 16);
	s->sp = SP + (word[2] & 0xff8);
	s->pages = word[3] & 7;
	s->flags = word[3] >> 8 & TTMON_STACK_EXACT;
	s->bp = SP + word[4];
	s->bx = CODE + word[5];
	s->r12 = s->sp;
	s->trampoline = word[3] & 8 ? CODE + 1 : 0;
	s->nret = word[3] >> 4 & 7;
	for (unsigned int i = 0; i < 8; i++) {
		s->ret[i].sp = s->sp + 8 * i;
		s->ret[i].ra = CODE + 2 * i;
	}
	for (size_t i = 0; i < sizeof(s->bytes); i++)
		s->bytes[i] = data[HEAD + i % MIN(COPY, size - HEAD)];
}

/*
 * As if it were an object of this process: wherever its table is said to be, nothing but it is read.
 */
static void mapped(const uint8_t *file, size_t n, uint32_t where)
{
	uint64_t start = (uint64_t)(uintptr_t)file;
	struct ttmon_uw_exprs exprs;
	struct ttmon_uw_row row;

	for (uint64_t hdr = start; hdr < start + MIN(n, 4096u); hdr += 4) {
		uint32_t magic = 0;

		memcpy(&magic, (const void *)(uintptr_t)hdr, MIN(sizeof(magic), start + n - hdr));
		if (magic == 0x3b031b01u || hdr - start == (where & 0xffcu))
			(void)!ttmon_uw_mapped_row(hdr, start, start + n, start + where % (n + 1), &row, &exprs);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ttmon_uw *u;
	static struct ttmon_stack_copy s;
	struct ttmon_uw_table *t = NULL;
	struct ttmon_uw_files ops = { .locate = locate, .table = table };
	struct ttmon_uw_result first, again;
	uint32_t at;
	int fd, err;

	if (size < HEAD + COPY)
		return 0;
	ttmon_uw_free(TAKE_PTR(u));
	require(!ttmon_uw_new(64, &u));
	fill(&s, data, size);
	file_size = size - HEAD - COPY;
	fd = memfd_create("fuzz_unwind", MFD_CLOEXEC);
	require(fd >= 0 && write(fd, data + HEAD + COPY, file_size) == (ssize_t)file_size);
	err = ttmon_uw_table_open(fd, &t);
	require(err == 0 || err == -EBADMSG || err == -ENOEXEC);
	ops.ctx = t;
	ttmon_uw_unwind(u, &s, &ops, TTMON_UW_FRAMES, &first);
	check(&first, TTMON_UW_FRAMES);
	ttmon_uw_unwind(u, &s, &ops, TTMON_UW_FRAMES, &again);
	require(first.n == again.n && first.end == again.end &&
		!memcmp(first.pc, again.pc, first.n * sizeof(first.pc[0])));
	ttmon_uw_unwind(u, &s, &ops, 3, &again);
	check(&again, 3);
	require(!memcmp(first.pc, again.pc, again.n * sizeof(first.pc[0])));
	/* The file changes under the reader, and is cut. */
	memcpy(&at, data + 12, sizeof(at));
	mapped(data + HEAD + COPY, file_size, at);
	if (t && file_size) {
		require(pwrite(t->fd, data + HEAD, 64, at % file_size) >= 0);
		ttmon_uw_free(u);
		require(!ttmon_uw_new(64, &u));
		ttmon_uw_unwind(u, &s, &ops, TTMON_UW_FRAMES, &again);
		check(&again, TTMON_UW_FRAMES);
		require(!ftruncate(t->fd, at % file_size));
		ttmon_uw_unwind(u, &s, &ops, TTMON_UW_FRAMES, &again);
		check(&again, TTMON_UW_FRAMES);
	}
	ttmon_uw_table_free(t);
	return 0;
}
