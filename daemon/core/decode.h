/* SPDX-License-Identifier: GPL-2.0-only */
/* decode.h: is this record what it claims to be? Pure; ring bytes and recordings are input. */
#ifndef TTMON_DECODE_H
#define TTMON_DECODE_H

#include <ttmon/event.h>

#include "util/util.h"

/* Why a record was refused. */
enum ttmon_decode_err {
	TTMON_DECODE_OK,
	TTMON_DECODE_SHORT,  /* shorter than its kind, or not a multiple of 8, or longer than TTMON_RECORD_MAX */
	TTMON_DECODE_KIND,   /* no such kind */
	TTMON_DECODE_CPU,    /* cpu not below nr_cpus (facts: not TTMON_CPU_DAEMON) */
	TTMON_DECODE_LENGTH, /* a length inside the record goes past its end */
	TTMON_DECODE_VALUE,  /* an enum out of range */
	TTMON_DECODE_MAX,
};

#define TTMON_RECORD_MAX 8192

/* Check one record. Everything that later code indexes by (kind, fn, method, dir, nframes, lengths) is in range after OK. */
enum ttmon_decode_err ttmon_decode(const void *rec, size_t size, uint32_t nr_cpus) _must_check;
/* Name of a kind ("alloc"), or NULL. In lower case, as in metrics and JSON. */
const char *ttmon_event_name(unsigned int kind);
/* Who used the CPUs, caches and memory bandwidth: no business of the history. */
static inline bool ttmon_event_is_cpu(unsigned int kind)
{
	return kind >= TTMON_EV_CPU_SLOT && kind <= TTMON_EV_RDT;
}
/* Fixed part of a kind's record in bytes, 0 for no such kind. */
size_t ttmon_event_min_size(unsigned int kind);
const char *ttmon_method_name(unsigned int method); /* "host_alloc"; NULL */
const char *ttmon_dir_name(unsigned int dir);	    /* "h2d"; NULL */
const char *ttmon_fn_name(unsigned int fn);	    /* "cudaHostAlloc", "user0".., "usdt:alloc"; NULL */
const char *ttmon_loss_name(unsigned int reason);
/* "cudaErrorMemoryAllocation" style name of an error code, or NULL; drv: a CUresult instead of a cudaError_t (equal numbers since CUDA 10.1). */
const char *ttmon_cuda_error_name(int err);
/* The same for the error of a function (tt-kmd: -errno). */
const char *ttmon_error_name(unsigned int fn, int err);

#endif
