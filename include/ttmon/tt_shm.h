/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt_shm.h: /dev/shm/tt_device_<key>_memory, the shared-memory statistics of Tenstorrent chips,
 * versions 1 to 4. C11 and C++.
 *
 * Sizes and offsets are those of tt-metal's memory_stats_shm.hpp at 6fd17329, 480e740f, 040a27c1 and
 * 0dfca167,
 * little endian. key is decimal: version 1 (board_id << 8) | location, wrapping at 64 bits; from
 * version 2 on UMD's chip_unique_id.
 *
 * Every field is within one aligned 8-byte word, which is stored at once. There is no lock and no
 * sequence number: a reader may see words of different moments. In files that ttmond wrote, the last
 * 32 bytes, which are padding in every version, have its mark.
 */
#ifndef TTMON_TT_SHM_H
#define TTMON_TT_SHM_H

#include <stddef.h>
#include <stdint.h>

#define TTMON_TT_SHM_PROCESSES 64
#define TTMON_TT_SHM_CHIPS     16
#define TTMON_TT_SHM_NAME      64
#define TTMON_TT_SHM_SIZE_V1   9280
#define TTMON_TT_SHM_SIZE_V2   8576	   /* 2, 3 and 4 */
#define TTMON_TT_SHM_READY     0x52454459u /* version 4, init_state: stored last; 0 uninitialized, 1 in progress */
#define TTMON_TT_SHM_NO_CHIP   0xffffffffu /* versions 2 and up: chip_id of an unused entry (version 1: 0) */
#define TTMON_TT_SHM_MAGIC     0x3130646e6f6d7474ull /* "ttmond01" */
#define TTMON_TT_SHM_XATTR \
	"trusted.ttmond" /* a second copy of the mark that only root can write (daemon/io/tt/shm.h) */

/* Placed where tt-metal has no data and no reader looks. */
struct ttmon_tt_shm_mark {
	uint64_t magic;
	uint32_t pid;	     /* pid of the daemon that writes the file, 0: it has ended */
	uint32_t references; /* its own part of reference_count */
	uint64_t start;	     /* field 22 of its /proc/PID/stat, to detect a reused pid */
	/*
	 * TTMON_TT_F_* (daemon/core/tt/tt.h) of all running processes on the chip, also those without an entry
	 */
	uint32_t flags;
	uint32_t reserved;
};

struct ttmon_tt_shm_chip_v1 {
	uint32_t chip_id, is_remote;
	uint64_t dram, l1, l1_small, trace, cb, kernel;
};

struct ttmon_tt_shm_process_v1 {
	int32_t pid; /* 0: unused; used entries have no gaps between them */
	uint32_t pad;
	uint64_t dram, l1, l1_small, trace, cb, kernel;
	uint64_t last_update_ns;
	char name[TTMON_TT_SHM_NAME];
};

struct ttmon_tt_shm_v1 {
	uint32_t version; /* 1 */
	uint32_t num_active_processes;
	uint64_t last_update_ns;
	uint32_t reference_count, pad;
	uint64_t board_serial, asic_id; /* key >> 8, key & 0xff */
	int32_t device_id;
	uint32_t pad2;
	uint64_t total_dram, total_l1, total_l1_small, total_trace, total_cb, total_kernel;
	struct ttmon_tt_shm_chip_v1 chips[TTMON_TT_SHM_CHIPS];
	struct ttmon_tt_shm_process_v1 processes[TTMON_TT_SHM_PROCESSES];
	uint8_t padding[64];
	struct ttmon_tt_shm_mark mark;
};

struct ttmon_tt_shm_chip_v2 {
	uint32_t chip_id, is_remote;
	uint64_t dram, l1, l1_small, trace, cb;
};

struct ttmon_tt_shm_process_v2 {
	int32_t pid; /* <= 0: unused (version 4: negative while it is being released) */
	uint32_t pad;
	uint64_t dram, l1, l1_small, trace, cb;
	uint64_t last_update_ns; /* CLOCK_REALTIME */
	char name[TTMON_TT_SHM_NAME];
};

/* Versions 2, 3, 4. */
struct ttmon_tt_shm_v2 {
	uint32_t version;
	uint32_t num_active_processes;
	uint64_t last_update_ns;
	uint32_t reference_count, pad;
	uint64_t board_serial, asic_id; /* 0, the key */
	uint32_t device_id, pad2;
	uint64_t total_dram, total_l1, total_l1_small, total_trace, total_cb;
	struct ttmon_tt_shm_chip_v2 chips[TTMON_TT_SHM_CHIPS];
	struct ttmon_tt_shm_process_v2 processes[TTMON_TT_SHM_PROCESSES];
	uint32_t init_state; /* version 4; else padding */
	uint8_t padding[4];
	struct ttmon_tt_shm_mark mark;
};

#ifdef __cplusplus
#define TTMON_TT_SHM_ASSERT static_assert
#else
#define TTMON_TT_SHM_ASSERT _Static_assert
#endif
#define TTMON_TT_SHM_AT(version, field, offset) \
	TTMON_TT_SHM_ASSERT(offsetof(struct ttmon_tt_shm_##version, field) == (offset), #field)
TTMON_TT_SHM_ASSERT(sizeof(struct ttmon_tt_shm_v1) == TTMON_TT_SHM_SIZE_V1, "size of version 1");
TTMON_TT_SHM_ASSERT(sizeof(struct ttmon_tt_shm_chip_v1) == 56 && sizeof(struct ttmon_tt_shm_process_v1) == 128,
		    "strides");
TTMON_TT_SHM_AT(v1, reference_count, 16);
TTMON_TT_SHM_AT(v1, device_id, 40);
TTMON_TT_SHM_AT(v1, total_dram, 48);
TTMON_TT_SHM_AT(v1, total_kernel, 88);
TTMON_TT_SHM_AT(v1, chips, 96);
TTMON_TT_SHM_AT(v1, processes, 992);
TTMON_TT_SHM_AT(v1, padding, 9184);
TTMON_TT_SHM_AT(v1, mark, TTMON_TT_SHM_SIZE_V1 - 32);
TTMON_TT_SHM_ASSERT(sizeof(struct ttmon_tt_shm_v2) == TTMON_TT_SHM_SIZE_V2, "size of versions 2 to 4");
TTMON_TT_SHM_ASSERT(sizeof(struct ttmon_tt_shm_chip_v2) == 48 && sizeof(struct ttmon_tt_shm_process_v2) == 120,
		    "strides");
TTMON_TT_SHM_AT(v2, total_cb, 80);
TTMON_TT_SHM_AT(v2, chips, 88);
TTMON_TT_SHM_AT(v2, processes, 856);
TTMON_TT_SHM_AT(v2, init_state, 8536);
TTMON_TT_SHM_AT(v2, mark, TTMON_TT_SHM_SIZE_V2 - 32);
#undef TTMON_TT_SHM_AT

/*
 * The layout in numbers, for code that handles both: offsets, and how many of dram, l1, l1_small,
 * trace, cb, kernel exist.
 */
struct ttmon_tt_shm_layout {
	uint32_t size, types;
	uint32_t totals;	       /* then 8 bytes for each type */
	uint32_t chips, chip_size;     /* figures at byte 8 of an entry */
	uint32_t procs, proc_size;     /* figures at byte 8 of an entry */
	uint32_t proc_time, proc_name; /* in an entry */
	uint32_t init_state;	       /* versions 2 to 4; 0: none */
};

/* NULL: not a known version. */
static inline const struct ttmon_tt_shm_layout *ttmon_tt_shm_layout(uint32_t version)
{
	static const struct ttmon_tt_shm_layout v1 = { TTMON_TT_SHM_SIZE_V1, 6, 48, 96, 56, 992, 128, 56, 64, 0 };
	static const struct ttmon_tt_shm_layout v2 = { TTMON_TT_SHM_SIZE_V2, 5, 48, 88, 48, 856, 120, 48, 56, 8536 };

	return version == 1 ? &v1 : version >= 2 && version <= 4 ? &v2 : NULL;
}

#endif /* TTMON_TT_SHM_H */
