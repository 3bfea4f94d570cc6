/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python.h: is an ELF file a Python interpreter, and where do its structs have what the frames of its
 * threads are found by (include/ttmon/python.h)? CPython 3.11, 3.12 and 3.13 are known; of others, of
 * free-threaded and of debug builds, nothing is guessed. Pure.
 */
#ifndef TTMON_OBJECTS_PYTHON_H
#define TTMON_OBJECTS_PYTHON_H

#include <ttmon/python.h>

#include "lib/base/util.h"

enum ttmon_python_build {
	TTMON_PYTHON_NONE, /* no interpreter */
	TTMON_PYTHON_KNOWN,
	TTMON_PYTHON_VERSION,  /* a version that is not known; before 3.11 also one that does not say which */
	TTMON_PYTHON_THREADED, /* free-threaded */
	TTMON_PYTHON_DEBUG,    /* a debug build */
	TTMON_PYTHON_ODD,      /* its own table of offsets is not what that version has */
};

struct ttmon_python {
	uint32_t build;	    /* enum ttmon_python_build */
	uint32_t version;   /* PY_VERSION_HEX; 0: not known */
	uint64_t from_text; /* address of _PyRuntime minus that of the file's first byte where its code is mapped */
	struct ttmon_py_layout layout; /* KNOWN; without addresses */
};

/* Words of struct _Py_DebugOffsets, which _PyRuntime begins with from 3.13 on. */
#define TTMON_PYTHON_WORDS 44

/*
 * build, version and layout of an interpreter that says it is of this version (0: it does not say) and
 * whose _PyRuntime begins with these words. debug: it is a debug build.
 */
void ttmon_python_of(uint32_t version, const uint64_t words[TTMON_PYTHON_WORDS], bool debug, struct ttmon_python *ret);
/* "a free-threaded build"; NULL for one that is known. */
const char *ttmon_python_refused(const struct ttmon_python *p);

#endif
