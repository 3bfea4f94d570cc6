// SPDX-License-Identifier: GPL-2.0-only
/*
 * sys_board.c: decodes a board id: the type of the board, and the memory of its chips
 * (cluster_descriptor_types.hpp and the soc descriptors of tt-umd, 3ed9cb6d).
 *
 * A board id is 64 bits, bits 36 to 55 of it the type ("UPI"). The DRAM figure is channels x bank
 * size, the L1 figure the Tensix cores that are left after the harvesting of that board, times the L1
 * of one. Firmware may harvest other cores than the board's type says; only the chip's SoC descriptor
 * has the truth, and reading it needs the device to be opened.
 */
#include "daemon/io/tt/sys.h"

#define GIB	(1ULL << 30)
#define WH_L1	1499136ULL /* bytes of L1 of a Tensix core */
#define BH_L1	1572864ULL
#define WH_DRAM (12 * GIB) /* 6 channels of 2 GiB */
#define BH_DRAM (32 * GIB) /* 8 channels of 4 GiB */

static const struct board {
	const char *name;
	const char *card; /* tt_card_type begins with it */
	uint8_t arch;
	uint8_t upi[3];
	uint64_t dram, l1;
} boards[] = {
	{ "n150", "n150", TTMON_TT_WORMHOLE, { 0x18 }, WH_DRAM, 72 * WH_L1 },
	{ "n300", "n300", TTMON_TT_WORMHOLE, { 0x14 }, WH_DRAM, 64 * WH_L1 },
	{ "galaxy-wormhole", "galaxy-wormhole", TTMON_TT_WORMHOLE, { 0x35 }, WH_DRAM, 80 * WH_L1 },
	{ "p100", "p100", TTMON_TT_BLACKHOLE, { 0x36, 0x43 }, 28 * GIB, 120 * BH_L1 }, /* one channel is off */
	{ "p150", "p150", TTMON_TT_BLACKHOLE, { 0x40, 0x41, 0x42 }, BH_DRAM, 120 * BH_L1 },
	{ "p300", "p300", TTMON_TT_BLACKHOLE, { 0x44, 0x45, 0x46 }, BH_DRAM, 120 * BH_L1 },
	{ "galaxy-blackhole", "galaxy-blackhole", TTMON_TT_BLACKHOLE, { 0x47 }, BH_DRAM, 130 * BH_L1 },
};

static const struct board *by_id(uint64_t board_id)
{
	uint64_t upi = board_id >> 36 & 0xfffff;

	for (size_t i = 0; upi && i < ARRAY_SIZE(boards); i++)
		for (size_t j = 0; j < ARRAY_SIZE(boards[i].upi); j++)
			if (boards[i].upi[j] == upi)
				return &boards[i];
	return NULL;
}

static const struct board *by_card(const char *card)
{
	for (size_t i = 0; card && i < ARRAY_SIZE(boards); i++)
		if (!strncmp(card, boards[i].card, strlen(boards[i].card)))
			return &boards[i];
	return NULL;
}

const char *ttmon_ttsys_board(uint64_t board_id)
{
	const struct board *b = by_id(board_id);

	return b ? b->name : NULL;
}

const char *ttmon_ttsys_card_board(uint64_t board_id, const char *card)
{
	const struct board *b = by_id(board_id);

	if (!b)
		b = by_card(card);
	return b ? b->name : NULL;
}

unsigned int ttmon_ttsys_board_arch(const char *board)
{
	const struct board *b = by_card(board);

	return b ? b->arch : TTMON_TT_ARCH_UNKNOWN;
}

void ttmon_ttsys_memory(uint64_t board_id, unsigned int arch, const char *card, uint64_t *dram, uint64_t *l1)
{
	const struct board *b = by_id(board_id);

	if (!b)
		b = by_card(card);
	*dram = *l1 = 0;
	/* A board of another architecture than the chip's: one of the two is wrong. */
	if (b && (arch == TTMON_TT_ARCH_UNKNOWN || arch == b->arch)) {
		*dram = b->dram;
		*l1 = b->l1;
	} else if (arch == TTMON_TT_WORMHOLE) {
		*dram = WH_DRAM; /* the same for every board; L1 is not */
	} else if (arch == TTMON_TT_GRAYSKULL) {
		*dram = 8 * GIB;
		*l1 = 120ULL << 20;
	}
}
