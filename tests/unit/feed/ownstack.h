/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ownstack.h: the calling thread's own stack as the probes copy it (<ttmon/stack.h>), and what the
 * process has mapped, for the unwinder's tests and its benchmark. x86-64.
 */
#ifndef TTMON_TEST_OWNSTACK_H
#define TTMON_TEST_OWNSTACK_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/unwind/unwind.h"

#define OWN_MAPS 512

struct own_map {
	uint64_t start, end, pgoff;
	uint32_t object; /* 0: no file */
};

struct own_maps {
	struct own_map v[OWN_MAPS];
	size_t n;
	struct ttmon_uw_table *tables[OWN_MAPS]; /* by object, NULL: none */
	char paths[OWN_MAPS][256];
	uint32_t objects;
};

/* The registers of its caller, as they are when it has returned: rbx, rbp, rsp, r12 to r15, rip. */
void own_registers(uint64_t regs[8]);
__asm__(".text\n"
	".type own_registers, @function\n"
	"own_registers:\n"
	".cfi_startproc\n"
	"mov %rbx, (%rdi)\n"
	"mov %rbp, 8(%rdi)\n"
	"lea 8(%rsp), %rax\n"
	"mov %rax, 16(%rdi)\n"
	"mov %r12, 24(%rdi)\n"
	"mov %r13, 32(%rdi)\n"
	"mov %r14, 40(%rdi)\n"
	"mov %r15, 48(%rdi)\n"
	"mov (%rsp), %rax\n"
	"mov %rax, 56(%rdi)\n"
	"ret\n"
	".cfi_endproc\n"
	".size own_registers, .-own_registers\n");

/* Words that belong to other frames than its own. */
__attribute__((noinline, no_sanitize_address, unused)) static void own_copy_words(struct ttmon_stack_copy *s,
										  uint64_t n)
{
	uint64_t at = s->sp & (TTMON_STACK_PAGE - 1);

	for (uint64_t i = 0; i + 8 <= n; i += 8)
		*(uint64_t *)(s->bytes + at + i) = *(const volatile uint64_t *)(s->sp + i);
}

/*
 * Copies the stack of the caller, which ends below top. The caller must not return until the copy is
 * used.
 */
__attribute__((always_inline)) static inline void own_stack(struct ttmon_stack_copy *s, uint64_t top)
{
	uint64_t r[8], n;

	memset(s, 0, sizeof(*s));
	own_registers(r);
	s->bx = r[0];
	s->bp = r[1];
	s->sp = r[2];
	s->r12 = r[3];
	s->r13 = r[4];
	s->r14 = r[5];
	s->r15 = r[6];
	s->ip = r[7];
	n = top - s->sp < TTMON_STACK_BYTES ? top - s->sp : TTMON_STACK_BYTES;
	own_copy_words(s, n);
	for (uint64_t i = 0; i < TTMON_STACK_PAGES; i++)
		if ((s->sp & ~(TTMON_STACK_PAGE - 1)) + i * TTMON_STACK_PAGE < s->sp + n)
			s->pages |= 1u << i;
}

static inline void own_maps_read(struct own_maps *m)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	memset(m, 0, sizeof(*m));
	while (f && fgets(line, sizeof(line), f) && m->n < OWN_MAPS) {
		unsigned long start, end, off;
		char prot[8], path[256] = "";
		uint32_t o = 0;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, prot, &off, path) < 4 || prot[2] != 'x')
			continue;
		if (path[0] == '/')
			for (o = 1; o <= m->objects && strcmp(m->paths[o], path) != 0; o++)
				;
		if (o > m->objects) {
			m->objects = o;
			strcpy(m->paths[o], path);
			if (ttmon_uw_table_open(open(path, O_RDONLY | O_CLOEXEC), &m->tables[o]))
				m->tables[o] = NULL;
		}
		m->v[m->n++] = (struct own_map){ start, end, off, o };
	}
	if (f)
		fclose(f);
}

static inline void own_maps_free(struct own_maps *m)
{
	for (uint32_t o = 1; o <= m->objects; o++)
		ttmon_uw_table_free(m->tables[o]);
}

static inline enum ttmon_uw_place own_locate(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off)
{
	const struct own_maps *m = ctx;

	for (size_t i = 0; i < m->n; i++) {
		if (pc < m->v[i].start || pc >= m->v[i].end)
			continue;
		if (!m->v[i].object)
			return TTMON_UW_NO_FILE;
		*object = m->v[i].object;
		*off = pc - m->v[i].start + m->v[i].pgoff;
		return TTMON_UW_IN_OBJECT;
	}
	return TTMON_UW_NOWHERE;
}

static inline struct ttmon_uw_table *own_table(void *ctx, uint32_t object)
{
	return ((struct own_maps *)ctx)->tables[object];
}

#endif
