// SPDX-License-Identifier: GPL-2.0-only
/* python.c: see python.h. */
#include "daemon/io/objects/python.h"

#define MINOR(version)	  ((version) >> 16)
#define IS_FINAL(version) (((version)&0xf0) == 0xf0)
#define COOKIE		  0x7970677562656478ULL /* "xdebugpy" */

/*
 * From the headers of 3.11.2 and 3.11.7 (Include/cpython, Include/internal), by offsetof(). 3.11 and
 * 3.12 have no table of their own.
 */
static const struct ttmon_py_layout layout_3_11 = {
	.shape = TTMON_PY_3_11,
	.interp_head = 40,
	.interp_next = 0,
	.threads_head = 16,
	.ts_next = 8,
	.ts_thread = 152,
	.ts_frame = 56,
	.via_cframe = 1,
	.cframe_frame = 8,
	.co_firstlineno = 72,
	.co_code = 184,
	.text = 48,
	.text_other = 72,
};

/* The same of 3.12.1. */
static const struct ttmon_py_layout layout_3_12 = {
	.shape = TTMON_PY_3_12,
	.interp_head = 40,
	.interp_next = 0,
	.threads_head = 72,
	.ts_next = 8,
	.ts_thread = 136,
	.ts_frame = 56,
	.via_cframe = 1,
	.cframe_frame = 0,
	.co_firstlineno = 68,
	.co_code = 192,
	.text = 40,
	.text_other = 56,
};

/* struct _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h), in words. */
enum {
	W_COOKIE,
	W_VERSION,
	W_FREE_THREADED,
	W_INTERPRETERS_HEAD = 5,
	W_INTERP_NEXT = 8,
	W_THREADS_HEAD,
	W_THREAD_SIZE = 19,
	W_TS_NEXT = 21,
	W_TS_FRAME = 23,
	W_TS_THREAD,
	W_FRAME_SIZE = 28,
	W_F_PREVIOUS,
	W_F_CODE,
	W_F_IP,
	W_F_OWNER = 33,
	W_CODE_SIZE,
	W_CO_FILE,
	W_CO_QUALNAME = 37,
	W_CO_LINES,
	W_CO_FIRSTLINENO,
	W_CO_CODE = 43,
};

/* The probe relies on the first ones; the others have to lie within their structs. */
static bool is_3_13(const uint64_t *w)
{
	return w[W_F_PREVIOUS] == 8 && w[W_F_CODE] == 0 && w[W_F_IP] == 56 && w[W_F_OWNER] == 70 &&
	       w[W_FRAME_SIZE] >= 72 && w[W_FRAME_SIZE] <= 4096 && w[W_CO_FILE] == 112 && w[W_CO_QUALNAME] == 128 &&
	       w[W_CO_LINES] == 136 && w[W_CO_FIRSTLINENO] == 68 && w[W_CO_CODE] >= 144 &&
	       w[W_CO_CODE] <= w[W_CODE_SIZE] && w[W_CODE_SIZE] <= 4096 && w[W_TS_NEXT] < w[W_THREAD_SIZE] &&
	       w[W_TS_FRAME] < w[W_THREAD_SIZE] && w[W_TS_THREAD] < w[W_THREAD_SIZE] && w[W_THREAD_SIZE] <= 65536 &&
	       w[W_INTERPRETERS_HEAD] <= 65536 && w[W_INTERP_NEXT] <= 1u << 20 && w[W_THREADS_HEAD] <= 1u << 20;
}

static void take_3_13(const uint64_t *w, struct ttmon_python *ret)
{
	if (w[W_FREE_THREADED]) {
		ret->build = TTMON_PYTHON_THREADED;
		return;
	}
	if (!is_3_13(w)) {
		ret->build = TTMON_PYTHON_ODD;
		return;
	}
	ret->build = TTMON_PYTHON_KNOWN;
	ret->layout = (struct ttmon_py_layout){
		.shape = TTMON_PY_3_12,
		.interp_head = (uint32_t)w[W_INTERPRETERS_HEAD],
		.interp_next = (uint32_t)w[W_INTERP_NEXT],
		.threads_head = (uint32_t)w[W_THREADS_HEAD],
		.ts_next = (uint32_t)w[W_TS_NEXT],
		.ts_thread = (uint32_t)w[W_TS_THREAD],
		.ts_frame = (uint32_t)w[W_TS_FRAME],
		.co_firstlineno = 68,
		.co_code = (uint32_t)w[W_CO_CODE],
		.text = 40,
		.text_other = 56,
	};
}

void ttmon_python_of(uint32_t version, const uint64_t words[TTMON_PYTHON_WORDS], bool debug, struct ttmon_python *ret)
{
	bool has_table = words[W_COOKIE] == COOKIE;

	ret->build = TTMON_PYTHON_VERSION;
	ret->version = version;
	ret->layout = (struct ttmon_py_layout){ .shape = TTMON_PY_NONE };
	/* One that says two things is none. */
	if (!version || !IS_FINAL(version) || (has_table && words[W_VERSION] != version))
		return;
	if (debug) {
		ret->build = TTMON_PYTHON_DEBUG;
	} else if (MINOR(version) == 0x030d && has_table) {
		take_3_13(words, ret);
	} else if ((MINOR(version) == 0x030b || MINOR(version) == 0x030c) && !has_table) {
		ret->build = TTMON_PYTHON_KNOWN;
		ret->layout = MINOR(version) == 0x030b ? layout_3_11 : layout_3_12;
	}
}

const char *ttmon_python_refused(const struct ttmon_python *p)
{
	switch (p->build) {
	case TTMON_PYTHON_VERSION:
		return "a version whose frames are not known";
	case TTMON_PYTHON_THREADED:
		return "a free-threaded build";
	case TTMON_PYTHON_DEBUG:
		return "a debug build";
	case TTMON_PYTHON_ODD:
		return "a build whose structs are not those of its version";
	}
	return NULL;
}
