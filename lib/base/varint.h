/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * varint.h: LEB128: 64-bit numbers in bytes of seven bits, the lowest first; and differences, whose
 * sign is in bit 0. Pure.
 */
#ifndef TTMON_VARINT_H
#define TTMON_VARINT_H

#include "lib/base/util.h"

#define TTMON_VARINT_MAX 10 /* the most bytes of a number */

static inline uint64_t ttmon_zigzag(uint64_t diff)
{
	return diff << 1 ^ (uint64_t)((int64_t)diff >> 63);
}

static inline uint64_t ttmon_unzigzag(uint64_t z)
{
	return z >> 1 ^ -(z & 1);
}

/* Returns the byte after the number. */
static inline uint8_t *ttmon_varint_put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/*
 * Reads a number and moves *p behind it. Returns false if it is cut off at end (*p does not move) or
 * exceeds 64 bits.
 */
static inline bool ttmon_varint_get(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	const uint8_t *at = *p;
	uint64_t v = 0;

	for (unsigned int shift = 0; at < end && shift < 64; shift += 7) {
		uint64_t byte = *at++;

		v |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*p = at;
		*ret = v;
		/* The tenth byte has only one bit left. */
		return shift < 63 || byte < 2;
	}
	return false;
}

#endif
