/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwinder.h: the process that finds call stacks in copies of stacks, and the daemon's protocol with
 * it.
 *
 * Traced programs control the content of these copies, and of the files with their unwind tables. So a
 * separate process without rights does the work: it has no capability, and no file except those passed
 * to it (io/unwind/box.c), and the daemon does not trust its answers. It takes the copies from their
 * ring itself; if it hangs, the only effect is a full ring.
 *
 * A message is a head and n entries of its kind, of at most TTMON_UNWINDER_MAX bytes.
 */
#ifndef TTMON_UNWINDER_H
#define TTMON_UNWINDER_H

#include <ttmon/stack.h>

#include "lib/base/util.h"

#define TTMON_UNWINDER_MAX  32768u
#define TTMON_UNWINDER_VDSO UINT32_MAX /* the vDSO of this kernel as an object, which the process has itself */

enum ttmon_unwinder_kind {
	/* To the process. */
	TTMON_UNWINDER_SETUP, /* struct ttmon_unwinder_setup, with the fd of the ring's map */
	TTMON_UNWINDER_MAP,   /* struct ttmon_unwinder_map */
	TTMON_UNWINDER_EXIT,  /* struct ttmon_unwinder_map, only tgid is set: the process is gone */
	/*
	 * u32: an object, with a socket through which its file comes, or its end; without a socket: not
	 * available
	 */
	TTMON_UNWINDER_FILE,
	TTMON_UNWINDER_LOOK,   /* nothing: there are copies in the ring */
	TTMON_UNWINDER_FINISH, /* nothing: answer everything with what is known */
	/* From the process. */
	TTMON_UNWINDER_HELLO, /* u32: its process id */
	TTMON_UNWINDER_WANT,  /* u32: an object whose file is requested */
	TTMON_UNWINDER_STACK, /* struct ttmon_unwinder_stack, one */
	TTMON_UNWINDER_DONE,  /* nothing: all is answered */
	TTMON_UNWINDER_FN,    /* struct ttmon_unwinder_fn, one: before the first stack that has it */
	TTMON_UNWINDER_KINDS,
};

struct ttmon_unwinder_head {
	uint32_t kind; /* enum ttmon_unwinder_kind */
	uint32_t n;    /* entries that follow */
};

struct ttmon_unwinder_setup {
	uint64_t ring_bytes;
	uint32_t depth; /* most frames of a stack */
	uint32_t pad;
};

/* An executable mapping. */
struct ttmon_unwinder_map {
	uint64_t ts_ns, start, end, pgoff;
	uint32_t tgid;
	uint32_t object; /* id of the OBJECT fact, TTMON_UNWINDER_VDSO, 0: no file */
};

struct ttmon_unwinder_stack {
	uint64_t id, chain; /* as in the copy */
	uint32_t tgid, tid;
	uint32_t object;
	uint8_t by, end;
	uint16_t nframes;
	uint64_t frames[TTMON_MAX_FRAMES];
};

/*
 * A function of Python's: code objects of the same name, line table and first line. In frames of a
 * stack it is TTMON_FRAME_PYTHON | no << TTMON_FRAME_OBJECT_SHIFT | line. Numbers begin with 0, and do
 * so again when there were too many: then all before are void.
 */
struct ttmon_unwinder_fn {
	uint32_t no; /* < TTMON_UNWINDER_FNS */
	uint32_t tgid;
	uint64_t code; /* hash of its line table: the same function after an edit has another one */
	uint32_t firstlineno;
	uint32_t pad;
	char file[TTMON_PY_FILE]; /* with NUL, not empty */
	char name[TTMON_PY_NAME];
};
#define TTMON_UNWINDER_FNS   32768u
#define TTMON_UNWINDER_NO_FN ((1u << 20) - 1) /* its code is not known */

/*
 * Start what starts such processes, where there is a processor they know; before the daemon has
 * threads. *ret: its socket. *reads: a word of memory that one of them has with us: the object whose
 * file it reads in the lower half, 0: none, and another number each time above it. -EOPNOTSUPP,
 * -errno.
 */
int ttmon_unwinder_start(int *ret, uint64_t **reads) _must_check;
/* Starts an unwinder, after the previous one, if any, was killed. *ret: our end of its socket. */
int ttmon_unwinder_new(int starter, int *ret) _must_check;
/*
 * Sends one message, a head and what follows; fd is borrowed, -1: none. wait: until there is room,
 * else -EAGAIN. -EPIPE: it is gone.
 */
int ttmon_unwinder_send(int sock, const void *msg, size_t size, int fd, bool wait) _must_check;
/*
 * True if the size bytes received are a complete message with every number in its bounds. Entries
 * follow the head. Does not check whether anything was requested.
 */
bool ttmon_unwinder_is_good(const void *msg, size_t size);

/*
 * codes.c: the last 16,384 code objects of Python, and the names of their functions.
 * tell: sends a function before the first answer that has it.
 */
typedef void (*ttmon_codes_tell_fn)(const struct ttmon_unwinder_fn *fn);
void ttmon_codes_take(const struct ttmon_py_code *c, size_t size, ttmon_codes_tell_fn tell);
/* What stands for a frame in an answer, 0: nothing; *known: function and line are. */
uint64_t ttmon_codes_line(uint32_t tgid, const struct ttmon_py_frame *f, bool *known);

/*
 * box.c: give up all capabilities but those to be another user, which those that are started need, and
 * to end these.
 */
void ttmon_unwinder_starter_box(void);
/* Gives up everything except reading, answering and memory. False: that failed. */
bool ttmon_unwinder_box(void);

#endif
