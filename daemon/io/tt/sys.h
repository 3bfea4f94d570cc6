/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sys.h: the Tenstorrent chips of the host, from sysfs and procfs of tt-kmd. Used by the daemon (cold
 * thread) and by `ttmon smi`. It never opens a device node, which would raise the chip's power state
 * and block resets.
 *
 * Every attribute is optional, and no text is trusted: a value that cannot be parsed is unknown. A
 * chip in reset answers ENODATA or ENODEV.
 */
#ifndef TTMON_TTSYS_H
#define TTMON_TTSYS_H

#include <ttmon/event.h>

#include "lib/base/util.h"

#define TTMON_TTSYS_MAX 256

struct ttmon_ttsys_roots {
	const char *sysfs, *proc, *dev_shm; /* NULL: /sys, /proc, /dev/shm */
};

struct ttmon_ttsys_chip {
	struct ttmon_ev_tt_chip fact; /* index 0; identity, memory sizes, card */
	bool resetting;		      /* attributes answer ENODATA / ENODEV */
	int32_t temperature_mc;	      /* millidegrees; INT32_MIN: unknown */
	int64_t power_uw, aiclk_mhz;  /* -1: unknown */
	uint32_t numa_node;	      /* UINT32_MAX: unknown */
	char fw_bundle[24];	      /* "" unknown */
};

/*
 * All chips, in order of their bus address, the remote half of each N300 (an entry without a node)
 * after the others, as UMD numbers them. The caller frees *ret with free(). No driver: 0 chips. -errno
 * only if the tree itself cannot be read.
 */
int ttmon_ttsys_read(const struct ttmon_ttsys_roots *roots, struct ttmon_ttsys_chip **ret, size_t *n) _must_check;
/*
 * Processes that have chip N open, from /proc/driver/tenstorrent/N/pids, each once. *n 0 and -ENOENT
 * if the driver has no such file.
 */
int ttmon_ttsys_pids(const struct ttmon_ttsys_roots *roots, uint32_t ordinal, uint32_t *pids, size_t max,
		     size_t *n) _must_check;
/*
 * Board type from a board id: "n300", ...; NULL. DRAM and L1 bytes of a chip of that board (tt-umd
 * 3ed9cb6d), 0: unknown.
 */
const char *ttmon_ttsys_board(uint64_t board_id);
/* The same, from tt_card_type if the board id gives nothing; and the architecture of such a name. */
const char *ttmon_ttsys_card_board(uint64_t board_id, const char *card);
unsigned int ttmon_ttsys_board_arch(const char *board);
void ttmon_ttsys_memory(uint64_t board_id, unsigned int arch, const char *card, uint64_t *dram, uint64_t *l1);

#endif
