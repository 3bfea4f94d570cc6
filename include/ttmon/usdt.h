/* SPDX-License-Identifier: MIT */
/*
 * usdt.h: for an allocator whose allocations ttmond should see. C11 and C++11; only this file is
 * needed.
 *
 *	#include <ttmon/usdt.h>
 *
 *	p = my_pool_alloc(pool, n);
 *	TTMON_ALLOC(p, n, "pool A");	after the memory was allocated; the tag is a string or NULL
 *	...
 *	TTMON_FREE(p);			before the memory can be reused
 *	...
 *	TTMON_CHECKPOINT("step");	a period of the program ends, the next one begins; label:
 *					kind of period
 *
 * Each use is a nop and a note in the ELF file (.note.stapsdt, provider "ttmon", names "alloc", "free"
 * and "checkpoint"; arguments are pointer, size and tag; pointer; label: each 8 bytes in a register):
 * a few instructions and no call as long as no tracer is attached. Any tool that supports such notes
 * can use them. On other machines than x86-64 and 64-bit ARM the macros only evaluate their arguments.
 *
 * A part of pinned memory (cudaHostAlloc, cudaHostRegister) is shown as a piece of it, pinned, with
 * its own copies.
 *
 * 31 bytes of a tag are kept, and 63 of a label. A label is a string or NULL; if several threads mark
 * checkpoints, use a label for each kind.
 */
#ifndef TTMON_USDT_H
#define TTMON_USDT_H

#include <stddef.h>

#define TTMON_ALLOC(ptr, size, tag) ttmon_usdt_alloc_((ptr), (size), (tag))
#define TTMON_FREE(ptr)		    ttmon_usdt_free_((ptr))
#define TTMON_CHECKPOINT(label)	    ttmon_usdt_checkpoint_((label))

/*
 * A one-byte nop on x86, although Linux 6.18 makes a probe on a 5-byte nop cheaper by turning it into
 * a call: the target of that call is not mapped in a child after fork(), so the call would end the
 * child.
 */
#if (defined(__x86_64__) && defined(__LP64__)) || (defined(__aarch64__) && defined(__LP64__))
#define TTMON_USDT_NOP_ "990: nop\n"
#endif

/*
 * The note: sizes of name and description, type 3, "stapsdt"; address of the nop, of a base symbol
 * (with which readers undo prelink) and of a semaphore (none); provider, name and arguments. Flag "?"
 * puts it into the section group of the surrounding function, so that it is removed when the linker
 * drops a duplicate of an inline function.
 */
#define TTMON_USDT_NOTE_(name, args)                                                \
	".pushsection .note.stapsdt, \"?\", \"note\"\n"                             \
	".balign 4\n"                                                               \
	".4byte 992f - 991f, 994f - 993f, 3\n"                                      \
	"991: .asciz \"stapsdt\"\n"                                                 \
	"992: .balign 4\n"                                                          \
	"993: .8byte 990b, _.stapsdt.base, 0\n"                                     \
	".asciz \"ttmon\"\n"                                                        \
	".asciz \"" name "\"\n"                                                     \
	".asciz \"" args "\"\n"                                                     \
	"994: .balign 4\n"                                                          \
	".popsection\n"                                                             \
	".ifndef _.stapsdt.base\n"                                                  \
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
	".weak _.stapsdt.base\n"                                                    \
	".hidden _.stapsdt.base\n"                                                  \
	"_.stapsdt.base: .space 1\n"                                                \
	".size _.stapsdt.base, 1\n"                                                 \
	".popsection\n"                                                             \
	".endif\n"

static inline __attribute__((__always_inline__, __unused__)) void ttmon_usdt_alloc_(const void *ptr, size_t size,
										    const char *tag)
{
#ifdef TTMON_USDT_NOP_
	/* A tracer cannot read a page that was never touched, and a string constant may be on one. */
	if (tag) {
		const volatile char *p = tag;
		char first = *p;

		(void)first;
	}
	__asm__ __volatile__(TTMON_USDT_NOP_ TTMON_USDT_NOTE_("alloc", "8@%0 8@%1 8@%2")
			     :
			     : "r"(ptr), "r"(size), "r"(tag)
			     : "memory");
#else
	(void)ptr;
	(void)size;
	(void)tag;
#endif
}

static inline __attribute__((__always_inline__, __unused__)) void ttmon_usdt_free_(const void *ptr)
{
#ifdef TTMON_USDT_NOP_
	__asm__ __volatile__(TTMON_USDT_NOP_ TTMON_USDT_NOTE_("free", "8@%0") : : "r"(ptr) : "memory");
#else
	(void)ptr;
#endif
}

static inline __attribute__((__always_inline__, __unused__)) void ttmon_usdt_checkpoint_(const char *label)
{
#ifdef TTMON_USDT_NOP_
	/*
	 * As above, up to the end of the part that is kept: a label on two pages cannot be read if one of them
	 * is not present.
	 */
	if (label) {
		const volatile char *p = label;
		int i;

		for (i = 0; i < 63 && p[i]; i++)
			;
	}
	__asm__ __volatile__(TTMON_USDT_NOP_ TTMON_USDT_NOTE_("checkpoint", "8@%0") : : "r"(label) : "memory");
#else
	(void)label;
#endif
}

#endif
