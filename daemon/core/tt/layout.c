// SPDX-License-Identifier: GPL-2.0-only
/*
 * layout.c: see layout.h. Offsets as measured with g++ and clang on x86-64, of buffer.hpp of tt-metal
 * (4559357061, 00ef79b5, 60519870766); all little-endian.
 */
#include "daemon/core/tt/layout.h"

#include <assert.h>

#include "daemon/core/tt/tt.h"

#define NO 0xff

static const struct layout {
	const char *name, *checked;
	uint8_t device, size, type, layout, owns, allocator, status, hooked, address;
} layouts[TTMON_TT_LAYOUTS] = {
	[TTMON_TT_LAYOUT_NONE] = { "unknown", "unknown", NO, NO, NO, NO, NO, NO, NO, NO, NO },
	[TTMON_TT_LAYOUT_E0] = { "E0", "E0 checked", 0, 8, 24, 28, NO, NO, NO, NO, 16 },
	[TTMON_TT_LAYOUT_E1] = { "E1", "E1 checked", 0, 8, 16, 20, 27, 48, 56, NO, 64 },
	[TTMON_TT_LAYOUT_E2] = { "E2", "E2 checked", 16, 24, 32, 36, 43, 64, 72, 73, 80 },
	[TTMON_TT_LAYOUT_E4] = { "E4", "E4 checked", 0, 8, 16, 20, 27, 48, 56, 57, 64 },
};

/* TensorMemoryLayout: 0 interleaved to 5 ND. */
#define LAYOUT_MAX  5
#define ADDRESS_MAX (1ULL << 48)

static uint64_t word_at(const __u64 *w, unsigned int offset)
{
	return offset == NO ? 0 : w[offset / 8];
}

static uint32_t u32_at(const __u64 *w, unsigned int offset)
{
	return (uint32_t)(word_at(w, offset) >> (offset % 8 * 8));
}

static uint8_t byte_at(const __u64 *w, unsigned int offset)
{
	return offset == NO ? 0 : (uint8_t)(word_at(w, offset) >> (offset % 8 * 8));
}

void ttmon_tt_layout_read(enum ttmon_tt_layout layout, const __u64 *w, struct ttmon_tt_fields *f)
{
	const struct layout *l = &layouts[layout];

	assert(layout > TTMON_TT_LAYOUT_NONE && layout < TTMON_TT_LAYOUTS);
	*f = (struct ttmon_tt_fields){
		.device = word_at(w, l->device),
		.size = word_at(w, l->size),
		.address = word_at(w, l->address),
		.allocator = word_at(w, l->allocator),
		.type = u32_at(w, l->type),
		.layout = u32_at(w, l->layout),
		.owns = l->owns == NO ? 1 : byte_at(w, l->owns),
		.status = byte_at(w, l->status),
		.hooked = byte_at(w, l->hooked),
		.have = (uint8_t)((l->owns == NO ? 0 : TTMON_TT_FIELD_OWNS) |
				  (l->status == NO ? 0 : TTMON_TT_FIELD_STATUS) |
				  (l->hooked == NO ? 0 : TTMON_TT_FIELD_HOOKED) |
				  (l->allocator == NO ? 0 : TTMON_TT_FIELD_ALLOCATOR)),
	};
}

bool ttmon_tt_layout_sane(const struct ttmon_tt_fields *f)
{
	return f->type <= TTMON_TT_BUFFER_TRACE && f->layout <= LAYOUT_MAX && f->size <= TTMON_TT_SIZE_MAX &&
	       f->owns <= 1 && f->status <= 3;
}

bool ttmon_tt_layout_allocated(const struct ttmon_tt_fields *f)
{
	if (!ttmon_tt_layout_sane(f) || !f->owns || f->address >= ADDRESS_MAX)
		return false;
	return !(f->have & TTMON_TT_FIELD_STATUS) || f->status == 1 || f->status == 2;
}

unsigned int ttmon_tt_layout_fits(const __u64 *w, bool owning)
{
	unsigned int bits = 0;

	for (enum ttmon_tt_layout l = TTMON_TT_LAYOUT_E0; l <= TTMON_TT_LAYOUT_E1; l++) {
		struct ttmon_tt_fields f;

		ttmon_tt_layout_read(l, w, &f);
		if (!ttmon_tt_layout_sane(&f) || (owning && !f.owns))
			continue;
		/* E1: bottom_up_ and whether sub_device_id_ is engaged are bools. */
		if (l == TTMON_TT_LAYOUT_E1 && (byte_at(w, 24) > 1 || byte_at(w, 26) > 1))
			continue;
		bits |= 1U << l;
	}
	return bits;
}

bool ttmon_tt_layout_type(uint32_t buffer_type, uint8_t *type)
{
	static const uint8_t types[] = {
		[TTMON_TT_BUFFER_DRAM] = TTMON_TT_TYPE_DRAM,	   [TTMON_TT_BUFFER_L1] = TTMON_TT_TYPE_L1,
		[TTMON_TT_BUFFER_SYSTEM] = TTMON_TT_TYPES,	   [TTMON_TT_BUFFER_L1_SMALL] = TTMON_TT_TYPE_L1_SMALL,
		[TTMON_TT_BUFFER_TRACE] = TTMON_TT_TYPE_TRACE_BUF,
	};

	if (buffer_type >= ARRAY_SIZE(types) || types[buffer_type] == TTMON_TT_TYPES)
		return false;
	*type = types[buffer_type];
	return true;
}

enum ttmon_tt_status ttmon_tt_layout_status(enum ttmon_tt_numbering numbering, uint8_t status)
{
	static const uint8_t four[] = { TTMON_TT_STATUS_REQUESTED, TTMON_TT_STATUS_FAILED, TTMON_TT_STATUS_ALLOCATED,
					TTMON_TT_STATUS_DEALLOCATED };
	static const uint8_t three[] = { TTMON_TT_STATUS_REQUESTED, TTMON_TT_STATUS_ALLOCATED,
					 TTMON_TT_STATUS_DEALLOCATED, TTMON_TT_STATUS_UNKNOWN };

	if (numbering == TTMON_TT_NUMBERS_UNKNOWN || status > 3)
		return TTMON_TT_STATUS_UNKNOWN;
	return numbering == TTMON_TT_NUMBERS_FOUR ? four[status] : three[status];
}

const char *ttmon_tt_layout_name(enum ttmon_tt_layout layout, bool checked)
{
	return checked ? layouts[layout].checked : layouts[layout].name;
}
