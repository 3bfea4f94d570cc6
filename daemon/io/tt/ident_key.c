// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident_key.c: finds the chip of a file key, the number in /dev/shm/tt_device_KEY_memory. Cold thread.
 *
 * Version 1: (board id << 8) | location. Versions 2 and up: UMD's chip unique id
 * (topology_discovery*.cpp, 3ed9cb6d), which holds the board id on most boards, mangled to 32 bits
 * (Wormhole) or over 5 bits of location (Blackhole), is the ASIC id or the board id on a card without
 * links, and something of its own on a Galaxy; or, where UMD had none, the logical id itself. The
 * first word of the file is the version of the key.
 *
 * A process may claim any key. If the key contains the board id, a wrong claim is detected; else the
 * first claim for a chip is kept. A key that fits no chip becomes a chip of its own, identified by
 * that key.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include "daemon/io/tt/ident_int.h"

/* The version of the file of that key; 0: none, or none that can be read. */
static uint32_t file_version(const struct ttmon_ttident *t, uint64_t key)
{
	const char *dir = t->cfg.roots.dev_shm ? t->cfg.roots.dev_shm : "/dev/shm";
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	uint32_t version;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/tt_device_%" PRIu64 "_memory", dir, key) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || read(fd, &version, sizeof(version)) != sizeof(version))
		return 0;
	return version;
}

static const char *board(const struct ttmon_ev_tt_chip *f)
{
	const char *name = ttmon_ttsys_card_board(f->board_id, f->card);

	return name ? name : "";
}

/* True if a key of that chip contains its board id. */
static bool checkable(const struct ttmon_ev_tt_chip *f)
{
	return f->board_id && *board(f) && strncmp(board(f), "galaxy", 6);
}

static bool holds_board(const struct ttmon_ev_tt_chip *f, uint64_t key, bool v1)
{
	uint64_t b = f->board_id;

	if (v1)
		return b && key >> 8 == (b & UINT64_MAX >> 8);
	if (!checkable(f))
		return false;
	if (f->arch == TTMON_TT_BLACKHOLE)
		return key >> 5 == (b & UINT64_MAX >> 5);
	return f->arch == TTMON_TT_WORMHOLE && (uint32_t)key == ((b >> 4 & 0xf0000000) | (b & 0x0fffffff));
}

static void learn(struct ttmon_ttident *t, uint32_t chip, uint64_t key, bool v1)
{
	struct ttmon_ev_tt_chip *f = &t->chips[chip - 1].fact;
	struct ttident_extra *x = &t->extra[chip - 1];

	if (v1) {
		if (f->key_v1)
			return;
		f->key_v1 = key;
	} else {
		bool news = f->unique_id != key;

		x->learned_unique = true;
		if (!news)
			return;
		f->unique_id = key;
	}
	ttmon_ttident_tell_chip(t, chip - 1);
}

static bool key_is(const struct ttmon_ev_tt_chip *f, uint64_t key, unsigned int what)
{
	uint64_t of[] = { f->unique_id, f->key_v1, f->asic_id };

	return of[what] && of[what] == key;
}

/*
 * A chip that has this key already; a chip of sysfs before one known by key only, a present chip
 * before one that is gone.
 */
static uint32_t known(struct ttmon_ttident *t, uint64_t key, uint32_t guess)
{
	for (unsigned int what = 0; what < 3; what++) {
		uint32_t best = 0;

		for (uint32_t i = 1; i <= t->nr_chips; i++) {
			const struct ttmon_ev_tt_chip *f = &t->chips[i - 1].fact;

			if (!key_is(f, key, what))
				continue;
			if (!best ||
			    (f->flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_LEARNED)) <
				    (t->chips[best - 1].fact.flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_LEARNED)))
				best = i;
		}
		if (!best)
			continue;
		/* Writers of version 1 gave both chips of a P300 the same key, that of location 0. */
		if (what == 1 && guess && !strcmp(board(&t->chips[best - 1].fact), "p300") &&
		    t->chips[guess - 1].fact.board_id == t->chips[best - 1].fact.board_id)
			return guess;
		if (what != 1)
			learn(t, best, key, false);
		return best;
	}
	return 0;
}

/* Chooses among the chips whose board id is in the key. *any: there are such chips. */
static uint32_t by_board(const struct ttmon_ttident *t, uint64_t key, bool v1, uint32_t guess, uint32_t logical,
			 size_t locals, bool strict, bool *any)
{
	uint32_t near = 0, far = 0, placed = 0, n = 0, only = 0;

	*any = false;
	for (uint32_t i = 1; i <= t->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *f = &t->chips[i - 1].fact;

		if (f->flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_LEARNED) || !holds_board(f, key, v1))
			continue;
		*any = true;
		if (i == guess && !strict)
			return i;
		if (f->flags & TTMON_TT_CHIP_REMOTE)
			far = i;
		else
			near = i;
		if (!v1 && f->arch == TTMON_TT_BLACKHOLE && f->location == (key & 0x1f))
			placed = i;
		only = i;
		n++;
	}
	if (n == 1)
		return only;
	if (strict)
		return 0;
	/* The halves of an N300: near ones come first whatever the order among them. */
	if (n == 2 && near && far && locals)
		return logical < locals ? near : far;
	return placed;
}

static uint32_t new_chip(struct ttmon_ttident *t, uint64_t key, bool v1)
{
	struct ttmon_ttsys_chip c = {
		.fact = { .h = { .kind = TTMON_EV_TT_CHIP, .cpu = TTMON_CPU_DAEMON },
			  .flags = TTMON_TT_CHIP_LEARNED,
			  .ordinal = 0xffffffffu,
			  .bdf = 0xffffffffu },
		.temperature_mc = INT32_MIN,
		.power_uw = -1,
		.aiclk_mhz = -1,
		.numa_node = UINT32_MAX,
	};
	uint64_t dram, l1;
	size_t pos;

	if (!key || t->nr_learned == TTIDENT_LEARNED)
		return 0;
	if (v1) {
		c.fact.key_v1 = key;
		c.fact.board_id = key >> 8;
		c.fact.location = (uint8_t)key;
		c.fact.arch = (uint8_t)ttmon_ttsys_board_arch(ttmon_ttsys_board(key >> 8));
		ttmon_ttsys_memory(c.fact.board_id, c.fact.arch, NULL, &dram, &l1);
		c.fact.dram_bytes = dram;
		c.fact.l1_bytes = l1;
	} else {
		c.fact.unique_id = key;
	}
	pos = ttmon_ttident_add(t, &c);
	if (pos == SIZE_MAX)
		return 0;
	t->nr_learned++;
	ttmon_ttident_tell_chip(t, pos);
	return (uint32_t)pos + 1;
}

uint32_t ttmon_ttident_by_key(struct ttmon_ttident *t, const struct ttident_info *info, uint32_t logical, uint64_t key,
			      bool strict)
{
	bool v1, any, there = t->nr_chips > t->nr_learned;
	const struct ttmon_ev_tt_chip *f;
	size_t locals;
	uint32_t how, guess = ttmon_ttident_resolve(t, info, logical, &how, &locals);
	uint32_t chip = known(t, key, guess);

	if (chip)
		return chip;
	/* UMD had no id of the chip and used the logical one, which is no key. */
	if (key == logical)
		return 0;
	v1 = file_version(t, key) == 1;
	chip = by_board(t, key, v1, guess, logical, locals, strict, &any);
	if (chip) {
		learn(t, chip, key, v1);
		return chip;
	}
	if (any || (strict && there))
		return 0;
	f = guess ? &t->chips[guess - 1].fact : NULL;
	/*
	 * A card without links has a key without a board id; if an older driver does not report the ASIC id,
	 * it may be that one.
	 */
	if (f && (!checkable(f) || (f->arch == TTMON_TT_BLACKHOLE && !f->asic_id)) &&
	    !t->extra[guess - 1].learned_unique && !v1) {
		learn(t, guess, key, false);
		return guess;
	}
	return new_chip(t, key, v1);
}
