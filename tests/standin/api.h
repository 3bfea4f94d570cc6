/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * api.h: how an exported function is written once and exported under its names. Each name is a
 * function of its own, at an address of its own, as in the real libraries (built with -fno-ipa-icf).
 *
 *	API(cudaFree, (void *p), (p)) { ... }           cudaFree
 *	API_PTSZ(cudaFreeAsync, (...), (...)) { ... }   cudaFreeAsync and cudaFreeAsync_ptsz
 *
 * The body begins with ENTER("name"): results on demand.
 */
#ifndef STANDIN_API_H
#define STANDIN_API_H

#include "model.h"

#define ENTER(fn)                             \
	do {                                  \
		int enter_ = model_enter(fn); \
		if (enter_)                   \
			return enter_;        \
	} while (0)

#define API_NAME(name, impl, params, args)           \
	API_RESULT name params;                      \
	API_RESULT name params                       \
	{                                            \
		return (API_RESULT)impl##_body args; \
	}
#define API(name, params, args)            \
	static int name##_body params;     \
	API_NAME(name, name, params, args) \
	static int name##_body params
#define API_PTDS(name, params, args)              \
	static int name##_body params;            \
	API_NAME(name, name, params, args)        \
	API_NAME(name##_ptds, name, params, args) \
	static int name##_body params
#define API_PTSZ(name, params, args)              \
	static int name##_body params;            \
	API_NAME(name, name, params, args)        \
	API_NAME(name##_ptsz, name, params, args) \
	static int name##_body params

#endif
