/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python.h: the Python frames of a thread, as a probe finds them beside its native stack, and what it
 * copies of a code object that is new. Shared by the BPF programs, the daemon, and the process that
 * unwinds (daemon/io/unwind). x86-64 alone.
 *
 * The thread that is in the probe holds its frames, and these hold their code objects: nothing of them
 * can be freed or changed while the probe reads.
 */
#ifndef TTMON_PYTHON_H
#define TTMON_PYTHON_H

#include <ttmon/event.h>

#define TTMON_PY_FRAMES	 32  /* of a thread that are read, at most */
#define TTMON_PY_THREADS 256 /* of a process that are looked at to find one */

/*
 * How an interpreter's frames are laid out: what differs by version and cannot be said by an offset.
 */
enum ttmon_py_shape {
	TTMON_PY_NONE,
	TTMON_PY_3_11, /* a frame says that it was entered from C; struct _PyCFrame says where */
	TTMON_PY_3_12, /* 3.12 and 3.13: between frames is one that lies in the C frame that runs them */
	TTMON_PY_SHAPES,
};

/*
 * Where the interpreter's structs have what is needed, in bytes. In all versions that are known code
 * objects have their filename, qualified name and line table at 112, 128 and 136.
 */
struct ttmon_py_layout {
	__u64 runtime;		    /* address of _PyRuntime */
	__u64 text_start, text_end; /* addresses of the interpreter's code */
	__u32 shape;		    /* enum ttmon_py_shape */
	__u32 interp_head;	    /* _PyRuntimeState.interpreters.head */
	__u32 interp_next;	    /* PyInterpreterState.next */
	__u32 threads_head;	    /* PyInterpreterState.threads.head */
	__u32 ts_next, ts_thread;   /* PyThreadState.next, .thread_id */
	__u32 ts_frame;		    /* PyThreadState.cframe (3.11, 3.12), .current_frame */
	__u32 via_cframe;	    /* ts_frame leads to a struct _PyCFrame, which has the frame at cframe_frame */
	__u32 cframe_frame;
	__u32 co_firstlineno, co_code; /* PyCodeObject.co_firstlineno, .co_code_adaptive */
	__u32 text;		       /* a string's characters, where all are ASCII; else another 16 or 24 bytes on */
	__u32 text_other;
	__u32 pad;
};

/* What came of looking for Python frames. */
enum ttmon_py_state {
	TTMON_PY_NOT_LOOKED, /* no interpreter that is known */
	TTMON_PY_OK,	     /* all frames, maybe none */
	TTMON_PY_CUT,	     /* there are more than TTMON_PY_FRAMES */
	TTMON_PY_FAILED,     /* memory that could not be read, a list without end, several interpreters */
	TTMON_PY_STATES,
};

struct ttmon_py_frame {
	__u64 code;  /* address of the code object */
	__u64 print; /* of what it is made of: another one at this address has another one */
	__u32 off;   /* of the instruction, from the first one; beyond INT32_MAX: before it */
	/*
	 * the C frame that runs it and those inside lies here, in bytes from the stack pointer; 0: not the
	 * outermost of these
	 */
	__u32 entry;
};

#define TTMON_PY_FILE 1024 /* bytes, of one to four a character */
#define TTMON_PY_NAME 512
/* Bytes of its line table: most are short; of a longer one the first are there. */
#define TTMON_PY_LINES	    2048
#define TTMON_PY_LINES_LONG 32768

/* A string of the interpreter's. */
struct ttmon_py_str {
	__u32 len;   /* characters */
	__u32 state; /* kind and flags, as in PyASCIIObject */
};

/* A code object, in the ring of the copies of stacks and before the first copy that names it. */
struct ttmon_py_code {
	__u64 zero; /* where a copy of a stack has its number */
	__u64 code, print;
	__u32 tgid;
	__u32 firstlineno;
	__u32 nlines; /* bytes of its line table in lines */
	__u32 cut;    /* 1: it has more */
	struct ttmon_py_str file, name;
	__u8 file_text[TTMON_PY_FILE];
	__u8 name_text[TTMON_PY_NAME];
	__u8 lines[];
};

#endif
