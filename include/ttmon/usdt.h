/* SPDX-License-Identifier: MIT */
/*
 * usdt.h: for an allocator that wants its allocations seen by ttmond. C11 and C++11; needs nothing but
 * this file.
 *
 *	#include <ttmon/usdt.h>
 *
 *	p = my_pool_alloc(pool, n);
 *	TTMON_ALLOC(p, n, "pool A");	after the memory was handed out; the tag is a string or NULL
 *	...
 *	TTMON_FREE(p);			before the memory can be handed out again
 *	...
 *	TTMON_CHECKPOINT("step");	a period of the program ends, the next one begins; the label says of which kind
 *
 * Each use is a nop and a note in the ELF file (.note.stapsdt, provider "ttmon", names "alloc", "free"
 * and "checkpoint"; arguments are pointer, size and tag; pointer; label: each 8 bytes in a register):
 * a few instructions and no call as long as no tracer is attached. Any tool that knows such notes can
 * use them. On other machines than x86-64 and 64-bit ARM the macros only evaluate their arguments.
 *
 * What is given out of pinned memory (cudaHostAlloc, cudaHostRegister) is shown as a piece of it, with
 * the copies of its own, and pinned.
 *
 * Of a tag 31 bytes are kept, of a label 63. A label is a string or NULL; where several threads say
 * checkpoints, each kind has its label.
 */
#ifndef TTMON_USDT_H
#define TTMON_USDT_H

#include <stddef.h>

#define TTMON_ALLOC(ptr, size, tag) ttmon_usdt_alloc_((ptr), (size), (tag))
#define TTMON_FREE(ptr)		    ttmon_usdt_free_((ptr))
#define TTMON_CHECKPOINT(label)	    ttmon_usdt_checkpoint_((label))

/*
 * One byte on x86, although Linux 6.18 makes a probe on a 5-byte nop cheaper by turning it into a
 * call: what it calls is not mapped in a child after fork(), and such a call ends the child.
 */
#if (defined(__x86_64__) && defined(__LP64__)) || (defined(__aarch64__) && defined(__LP64__))
#define TTMON_USDT_NOP_ "990: nop\n"
#endif

/*
 * The note: sizes of name and description, type 3, "stapsdt"; address of the nop, of a base symbol (by
 * which readers undo prelink) and of a semaphore (none); provider, name and arguments. Flag "?" puts
 * it into the section group of the function around it, so that it goes when the linker drops a
 * duplicate of an inline function.
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
	/* A tracer cannot read a page that was never touched, and a string constant may stand on one. */
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
	 * As above, to the end of what is kept: a label in two pages is one that cannot be read if one of them
	 * is not there.
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
