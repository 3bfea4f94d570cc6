/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * layout.h: the fields of a Buffer of tt-metal (its buffer.hpp at commits 4559357061, 00ef79b5,
 * 60519870766). Pure, without state.
 *
 * The place of the device pointer shows the generation: at byte 16 it is E2, behind the pointer at
 * byte 16 it is E4. At byte 0 it may be E0 or E1, and only the other words show which:
 * ttmon_tt_layout_fits() returns what one event allows.
 */
#ifndef TTMON_TT_LAYOUT_H
#define TTMON_TT_LAYOUT_H

#include <ttmon/event.h>

#include "lib/base/util.h"

enum ttmon_tt_layout {
	TTMON_TT_LAYOUT_NONE,
	TTMON_TT_LAYOUT_E0, /* up to the end of 2024 */
	TTMON_TT_LAYOUT_E1, /* first half of 2025 */
	TTMON_TT_LAYOUT_E2, /* mid 2025 to Aug 2026, and later */
	TTMON_TT_LAYOUT_E4, /* the impl of a Buffer */
	TTMON_TT_LAYOUTS
};

/* Fields that a layout has. */
#define TTMON_TT_FIELD_OWNS	 (1 << 0)
#define TTMON_TT_FIELD_STATUS	 (1 << 1)
#define TTMON_TT_FIELD_HOOKED	 (1 << 2) /* only in part of E2; elsewhere the byte may be padding */
#define TTMON_TT_FIELD_ALLOCATOR (1 << 3)

struct ttmon_tt_fields {
	uint64_t device, size, address, allocator;
	uint32_t type;	 /* tt-metal's BufferType */
	uint32_t layout; /* tt-metal's TensorMemoryLayout */
	uint8_t owns, status, hooked;
	uint8_t have; /* TTMON_TT_FIELD_* */
};

/* tt-metal's BufferType. */
enum {
	TTMON_TT_BUFFER_DRAM,
	TTMON_TT_BUFFER_L1,
	TTMON_TT_BUFFER_SYSTEM,
	TTMON_TT_BUFFER_L1_SMALL,
	TTMON_TT_BUFFER_TRACE
};

/*
 * Converts tt-metal's BufferType to ours; false: SYSTEM_MEMORY, which is not counted, or no valid
 * type.
 */
bool ttmon_tt_layout_type(uint32_t buffer_type, uint8_t *type);

#define TTMON_TT_SIZE_MAX (1ULL << 46) /* of a buffer in bytes: more than any device has */

/* How allocation_status_ is numbered: with "failed" in between (E1) or without (E2). */
enum ttmon_tt_numbering { TTMON_TT_NUMBERS_UNKNOWN, TTMON_TT_NUMBERS_FOUR, TTMON_TT_NUMBERS_THREE };
enum ttmon_tt_status {
	TTMON_TT_STATUS_UNKNOWN,
	TTMON_TT_STATUS_REQUESTED,
	TTMON_TT_STATUS_FAILED,
	TTMON_TT_STATUS_ALLOCATED,
	TTMON_TT_STATUS_DEALLOCATED
};

/*
 * Reads the fields. w: TTMON_TT_BUFFER_WORDS words of the Buffer or of its impl. The layout must not
 * be NONE.
 */
void ttmon_tt_layout_read(enum ttmon_tt_layout layout, const __u64 *w, struct ttmon_tt_fields *f);
/* True if such a Buffer is possible. */
bool ttmon_tt_layout_sane(const struct ttmon_tt_fields *f);
/* True if this is an owning Buffer that was allocated (for events at which it must be one). */
bool ttmon_tt_layout_allocated(const struct ttmon_tt_fields *f);
/*
 * Bits 1 << layout of those of E0 and E1 that the words allow. For an owning Buffer they allow one at
 * most: the byte that E1 has as owns_data_ is the highest byte of E0's type.
 */
unsigned int ttmon_tt_layout_fits(const __u64 *w, bool owning);
enum ttmon_tt_status ttmon_tt_layout_status(enum ttmon_tt_numbering numbering, uint8_t status);
/* "E2", or "E2 checked". */
const char *ttmon_tt_layout_name(enum ttmon_tt_layout layout, bool checked);

#endif
