/* SPDX-License-Identifier: GPL-2.0-only */
/* util.h: ownership macros and small helpers. libc only. */
#ifndef TTMON_UTIL_H
#define TTMON_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _must_check	   __attribute__((warn_unused_result))
#define _unused_	   __attribute__((unused)) /* may be unused */
#define _printf_(fmt, arg) __attribute__((format(printf, fmt, arg)))
#define ARRAY_SIZE(a)	   (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)	   ((a) < (b) ? (a) : (b))
#define MAX(a, b)	   ((a) > (b) ? (a) : (b))
#define ROUND_UP(x, a)	   (((x) + (a)-1) / (a) * (a))

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MS  1000000ULL
#define NSEC_PER_US  1000ULL

/* Compares times or slot numbers by their signed difference, because they may wrap. */
static inline bool ttmon_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* Returns the sum, limited to the largest number. */
static inline uint64_t ttmon_add_sat(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Pass on the ownership of a pointer or fd, so that the cleanup attribute does not free it. */
#define TAKE_PTR(p)                         \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})
#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

static inline void ttmon_freep(void *p)
{
	free(*(void **)p);
}

static inline void ttmon_closep(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
}

static inline void ttmon_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Defines the function for _cleanup_(name), which frees what a variable of that type points to. */
#define TTMON_FREEP(name, type, free_it)  \
	static inline void name(type **p) \
	{                                 \
		free_it(*p);              \
	}                                 \
	struct ttmon_freep_##name /* takes the semicolon */

#define _cleanup_(fn)	 __attribute__((cleanup(fn)))
#define _cleanup_free_	 _cleanup_(ttmon_freep)
#define _cleanup_close_	 _cleanup_(ttmon_closep)
#define _cleanup_fclose_ _cleanup_(ttmon_fclosep)

#endif
