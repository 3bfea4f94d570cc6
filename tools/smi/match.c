// SPDX-License-Identifier: GPL-2.0-only
/*
 * match.c: matches files to chips, names the chips, and sorts them. Pure.
 *
 * A file of version 1 is named after (board id << 8) | location, which sysfs has. From version 2 on
 * the name is UMD's chip_unique_id, which an observer can compute for some cards only (tt-umd's
 * topology_discovery*.cpp, 3ed9cb6d). The rules are tried in this order: an exact id; the low word of
 * a Wormhole's id, which is the board's; the chips that the processes of the file have open. A rule
 * that fits two chips decides nothing. A file that is left over becomes a row of its own; without
 * tt-kmd all files are.
 */
#include <inttypes.h>

#include "tools/smi/smi.h"

const char *ttmon_smi_match_name(enum ttmon_smi_match match)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_SMI_MATCH_TABLE(X)
#undef X
	};

	return names[match];
}

const char *ttmon_smi_source_name(enum ttmon_smi_source source)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_SMI_SOURCE_TABLE(X)
#undef X
	};

	return names[source];
}

const char *ttmon_smi_status_name(enum ttmon_smi_status status)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_SMI_STATUS_TABLE(X)
#undef X
	};

	return names[status];
}

const char *ttmon_smi_arch_name(unsigned int arch)
{
	static const char *const names[TTMON_TT_ARCH_MAX] = {
		[TTMON_TT_GRAYSKULL] = "Grayskull",
		[TTMON_TT_WORMHOLE] = "Wormhole",
		[TTMON_TT_BLACKHOLE] = "Blackhole",
	};

	return arch < TTMON_TT_ARCH_MAX ? names[arch] : NULL;
}

/* ---- chips ---- */

static void chip_of_sys(struct ttmon_smi_chip *chip, const struct ttmon_ttsys_chip *sys)
{
	const struct ttmon_ev_tt_chip *fact = &sys->fact;

	chip->sys = sys;
	chip->board_id = fact->board_id;
	chip->unique_id = fact->unique_id;
	chip->key_v1 = fact->board_id ? fact->key_v1 : 0;
	chip->location = fact->location;
	chip->arch = fact->arch;
	chip->card = fact->card[0] ? fact->card : ttmon_ttsys_board(fact->board_id);
	chip->dram_total = fact->dram_bytes ? fact->dram_bytes : TTMON_SMI_UNKNOWN;
	chip->l1_total = fact->l1_bytes ? fact->l1_bytes : TTMON_SMI_UNKNOWN;
}

int ttmon_smi_begin(struct ttmon_smi *v)
{
	struct ttmon_smi_chip *chips = calloc(v->nr_sys + v->nr_shm + 1, sizeof(*chips));
	struct ttmon_smi_file *files = calloc(v->nr_shm + 1, sizeof(*files));

	if (!chips || !files) {
		free(chips);
		free(files);
		return -ENOMEM;
	}
	for (size_t i = 0; i < v->nr_sys; i++)
		chip_of_sys(&chips[i], &v->sys[i]);
	for (size_t i = 0; i < v->nr_shm; i++) {
		struct ttmon_smi_file *f = &files[i];

		f->shm = &v->shm[i];
		f->chip = TTMON_SMI_NONE;
		for (size_t p = 0; f->shm->status == TTMON_TTSHM_OK && p < f->shm->nr_processes; p++) {
			const struct ttmon_ttshm_process *proc = &f->shm->processes[p];

			f->live += proc->alive;
			f->dead += !proc->alive;
			for (unsigned int t = 0; !proc->alive && t < TTMON_TTSHM_TYPES; t++)
				if (proc->bytes[t] != TTMON_SMI_UNKNOWN)
					f->dead_bytes += proc->bytes[t];
		}
	}
	v->chips = chips;
	v->nr_chips = v->nr_sys;
	v->files = files;
	return 0;
}

/* ---- matching files to chips ---- */

static bool is_remote(const struct ttmon_smi_chip *chip)
{
	return chip->sys && chip->sys->fact.flags & TTMON_TT_CHIP_REMOTE;
}

/* Version 1 does not use UMD's id. For a file whose version could not be read all rules are tried. */
static bool by_unique(const struct ttmon_ttshm *shm)
{
	return shm->status != TTMON_TTSHM_OK || shm->version != 1;
}

/* Returns the board id in the form that the low word of a Wormhole's unique id has. */
static uint32_t mangled(uint64_t board_id)
{
	return (uint32_t)((board_id >> 4 & 0xf0000000) | (board_id & 0x0fffffff));
}

static bool fits(const struct ttmon_smi_chip *chip, const struct ttmon_ttshm *shm, enum ttmon_smi_match rule)
{
	uint64_t key = shm->key, board = chip->board_id;

	switch (rule) {
	case TTMON_SMI_MATCH_KEY_V1:
		return chip->key_v1 && key == chip->key_v1;
	case TTMON_SMI_MATCH_UNIQUE_ID:
		return by_unique(shm) && chip->unique_id && key == chip->unique_id;
	case TTMON_SMI_MATCH_ASIC_ID:
		return by_unique(shm) && chip->sys->fact.asic_id && key == chip->sys->fact.asic_id;
	case TTMON_SMI_MATCH_SERIAL:
		if (!by_unique(shm) || !board)
			return false;
		if (chip->arch == TTMON_TT_BLACKHOLE)
			return key == (board << 5 | (chip->location & 0x1f));
		return key == board; /* only for a single card; if two chips have this board id, none matches */
	case TTMON_SMI_MATCH_BOARD:
		return by_unique(shm) && board && chip->arch == TTMON_TT_WORMHOLE &&
		       !(chip->sys->fact.flags & TTMON_TT_CHIP_GALAXY) && key >> 32 && mangled(board) &&
		       mangled(board) == (uint32_t)key;
	default:
		return false;
	}
}

static void lead(struct ttmon_smi *v, struct ttmon_smi_file *f, size_t chip, enum ttmon_smi_match rule)
{
	f->chip = (uint32_t)chip;
	f->match = rule;
	if (!by_unique(f->shm))
		return;
	v->chips[chip].told = true;
	/* The id that a program uses is more reliable than the one derived from sysfs. */
	if (rule != TTMON_SMI_MATCH_KEY_V1)
		v->chips[chip].unique_id = f->shm->key;
}

static bool match_by(struct ttmon_smi *v, struct ttmon_smi_file *f, enum ttmon_smi_match rule)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < v->nr_sys; i++) {
		if (!fits(&v->chips[i], f->shm, rule))
			continue;
		if (found != SIZE_MAX)
			return false;
		found = i;
	}
	if (found == SIZE_MAX)
		return false;
	lead(v, f, found, rule);
	return true;
}

/*
 * The two chips of an N300 share the low word of the id. The high word was observed to be 2 for the
 * near chip and 3 for the far one. Of two files, the lower one is taken for the near chip; a single
 * file is matched only if it has one of these numbers.
 */
static void match_halves(struct ttmon_smi *v, struct ttmon_smi_file *f)
{
	uint32_t high = (uint32_t)(f->shm->key >> 32);
	bool lower = false, higher = false;

	for (size_t i = 0; i < v->nr_shm; i++) {
		const struct ttmon_smi_file *other = &v->files[i];
		uint32_t its = (uint32_t)(other->shm->key >> 32);

		if (other == f || (uint32_t)other->shm->key != (uint32_t)f->shm->key || !its ||
		    other->shm->status == TTMON_TTSHM_NOT_A_FILE)
			continue;
		lower = lower || its < high;
		higher = higher || its > high;
	}
	if (lower && higher)
		return;
	if (!lower && !higher) {
		if (high != 2 && high != 3)
			return;
		lower = high == 3;
	}
	for (size_t i = 0; i < v->nr_sys; i++) {
		struct ttmon_smi_chip *chip = &v->chips[i];

		if (is_remote(chip) != lower || chip->told || !fits(chip, f->shm, TTMON_SMI_MATCH_BOARD))
			continue;
		lead(v, f, i, TTMON_SMI_MATCH_BOARD);
		return;
	}
}

void ttmon_smi_match_keys(struct ttmon_smi *v)
{
	for (size_t i = 0; i < v->nr_shm; i++) {
		struct ttmon_smi_file *f = &v->files[i];

		if (f->shm->status == TTMON_TTSHM_NOT_A_FILE)
			continue;
		for (unsigned int rule = TTMON_SMI_MATCH_KEY_V1; rule <= TTMON_SMI_MATCH_BOARD; rule++)
			if (match_by(v, f, rule))
				break;
	}
	for (size_t i = 0; i < v->nr_shm; i++) {
		struct ttmon_smi_file *f = &v->files[i];

		if (f->chip == TTMON_SMI_NONE && by_unique(f->shm) && f->shm->status != TTMON_TTSHM_NOT_A_FILE)
			match_halves(v, f);
	}
}

bool ttmon_smi_wants_openings(const struct ttmon_smi *v, const struct ttmon_smi_file *f)
{
	if (f->chip != TTMON_SMI_NONE || f->shm->status != TTMON_TTSHM_OK || f->shm->version == 1 || !f->live)
		return false;
	for (size_t i = 0; i < v->nr_sys; i++)
		if (!v->chips[i].told)
			return true;
	return false;
}

/* Returns 1 if the process may use this chip, 0 if it has other chips open only, -1 if not known. */
static int may_use(const struct ttmon_smi *v, uint32_t pid, uint32_t ordinal)
{
	int answer = -1;

	for (size_t i = 0; i < v->nr_openings; i++) {
		if (v->openings[i].pid != pid)
			continue;
		if (v->openings[i].ordinal == ordinal)
			return 1;
		answer = 0;
	}
	return answer;
}

static bool candidate(const struct ttmon_smi *v, const struct ttmon_smi_file *f, const struct ttmon_smi_chip *chip)
{
	bool known = false;

	if (chip->told || chip->sys->fact.ordinal == TTMON_SMI_NONE)
		return false;
	for (size_t p = 0; p < f->shm->nr_processes; p++) {
		int uses;

		if (!f->shm->processes[p].alive || f->shm->processes[p].pid <= 0)
			continue;
		uses = may_use(v, (uint32_t)f->shm->processes[p].pid, chip->sys->fact.ordinal);
		if (!uses)
			return false;
		known = known || uses > 0;
	}
	return known;
}

void ttmon_smi_match_openings(struct ttmon_smi *v)
{
	bool again = true;

	/* A chip that is found for one file is not available to the others, which can decide these: repeat. */
	while (again) {
		again = false;
		for (size_t i = 0; i < v->nr_shm; i++) {
			size_t found = SIZE_MAX, n = 0;

			if (!ttmon_smi_wants_openings(v, &v->files[i]))
				continue;
			for (size_t c = 0; c < v->nr_sys; c++) {
				if (candidate(v, &v->files[i], &v->chips[c])) {
					found = c;
					n++;
				}
			}
			if (n != 1)
				continue;
			lead(v, &v->files[i], found, TTMON_SMI_MATCH_PROCESS);
			again = true;
		}
	}
}

/* ---- chips that are known from a file only ---- */

/* Derives the board from the key. A board id whose upper byte was shifted out still has its type. */
static void board_of_key(struct ttmon_smi_chip *chip, const struct ttmon_ttshm *shm)
{
	uint64_t key = shm->key, board;
	const char *card;

	if (shm->status == TTMON_TTSHM_OK && shm->version == 1) {
		chip->key_v1 = key;
		chip->location = key & 0xff;
		chip->board_id = key >> 8;
		chip->card = ttmon_ttsys_board(chip->board_id);
		return;
	}
	if (shm->status != TTMON_TTSHM_OK)
		return;
	chip->unique_id = key;
	/*
	 * The id of a single Wormhole card is its board id; of a Blackhole in a network it is the board id
	 * with the location.
	 */
	card = ttmon_ttsys_board(key);
	if (card && !strncmp(card, "n150", 4)) {
		chip->board_id = key;
		chip->card = card;
		return;
	}
	board = key >> 5;
	card = ttmon_ttsys_board(board);
	if (card && *card == 'p') {
		chip->board_id = board;
		chip->location = key & 0x1f;
		chip->card = card;
	}
}

static void add_file_chips(struct ttmon_smi *v)
{
	for (size_t i = 0; i < v->nr_shm; i++) {
		struct ttmon_smi_file *f = &v->files[i];
		struct ttmon_smi_chip *chip = &v->chips[v->nr_chips];
		uint64_t dram = 0, l1 = 0;

		if (f->chip != TTMON_SMI_NONE || f->shm->status == TTMON_TTSHM_NOT_A_FILE)
			continue;
		chip->location = TTMON_SMI_NONE;
		chip->source = TTMON_SMI_SOURCE_FILE;
		board_of_key(chip, f->shm);
		chip->arch = chip->card ? ttmon_ttsys_board_arch(chip->card) : TTMON_TT_ARCH_UNKNOWN;
		if (chip->card)
			ttmon_ttsys_memory(chip->board_id, chip->arch, chip->card, &dram, &l1);
		chip->dram_total = dram ? dram : TTMON_SMI_UNKNOWN;
		chip->l1_total = l1 ? l1 : TTMON_SMI_UNKNOWN;
		f->chip = (uint32_t)v->nr_chips++;
	}
}

/* ---- names ---- */

static void name_file_chip(struct ttmon_smi_chip *chip, const struct ttmon_ttshm *shm)
{
	if (!chip->key_v1)
		snprintf(chip->id, sizeof(chip->id), "%" PRIx64, shm->key);
	else if (chip->card && !strncmp(chip->card, "galaxy", 6))
		snprintf(chip->id, sizeof(chip->id), "T%u:N%u", chip->location >> 4, chip->location & 15);
	else
		snprintf(chip->id, sizeof(chip->id), "%" PRIx64 ":%u", chip->board_id, chip->location);
}

/* Returns the unique id of the board's chip that has a device node; 0: not known. */
static uint64_t id_of_near(const struct ttmon_smi *v, const struct ttmon_smi_chip *far)
{
	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_smi_chip *chip = &v->chips[i];

		if (chip->sys && !is_remote(chip) && chip->board_id && chip->board_id == far->board_id)
			return chip->unique_id;
	}
	return 0;
}

/*
 * Names chips as tt_smi does: UMD's id in hexadecimal, with an R for a remote chip. A chip without an
 * id of its own has its board's.
 */
static void name_chip(const struct ttmon_smi *v, struct ttmon_smi_chip *chip)
{
	const struct ttmon_ev_tt_chip *fact = &chip->sys->fact;
	const char *remote = is_remote(chip) ? "R" : "";

	if (fact->flags & TTMON_TT_CHIP_GALAXY) {
		chip->source = TTMON_SMI_SOURCE_SERIAL;
		snprintf(chip->id, sizeof(chip->id), "T%u:N%u", fact->tray, fact->chip);
	} else if (chip->unique_id) {
		chip->source = TTMON_SMI_SOURCE_UNIQUE_ID;
		snprintf(chip->id, sizeof(chip->id), "%" PRIx64 "%s", chip->unique_id, remote);
	} else if (*remote && id_of_near(v, chip)) {
		chip->source = TTMON_SMI_SOURCE_UNIQUE_ID;
		snprintf(chip->id, sizeof(chip->id), "%" PRIx64 "R", id_of_near(v, chip));
	} else if (fact->asic_id && !*remote) {
		chip->source = TTMON_SMI_SOURCE_ASIC_ID;
		snprintf(chip->id, sizeof(chip->id), "%" PRIx64, (uint64_t)fact->asic_id);
	} else if (chip->board_id) {
		chip->source = TTMON_SMI_SOURCE_SERIAL;
		snprintf(chip->id, sizeof(chip->id), "%" PRIx64 ":%u%s", chip->board_id, fact->location, remote);
	} else if (fact->bdf != TTMON_SMI_NONE) {
		snprintf(chip->id, sizeof(chip->id), "%04x:%02x:%02x.%u%s", fact->bdf >> 16, fact->bdf >> 8 & 0xff,
			 fact->bdf >> 3 & 0x1f, fact->bdf & 7, remote);
	} else {
		snprintf(chip->id, sizeof(chip->id), "chip %u%s", fact->ordinal, remote);
	}
}

/* ---- order ---- */

struct place {
	uint64_t rank;
	uint32_t chip;
};

static int by_rank(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->chip < y->chip ? -1 : x->chip > y->chip;
}

/*
 * Sorts by bus address, a remote chip behind its near one; on a Galaxy by tray and chip; chips known
 * from a file only come last.
 */
static uint64_t rank(const struct ttmon_smi *v, size_t i)
{
	const struct ttmon_smi_chip *chip = &v->chips[i];
	size_t first = i;

	if (!chip->sys)
		return UINT64_MAX;
	if (chip->sys->fact.flags & TTMON_TT_CHIP_GALAXY)
		return (uint64_t)chip->sys->fact.tray << 8 | chip->sys->fact.chip;
	for (size_t j = 0; chip->board_id && j < i; j++) {
		if (v->chips[j].sys && v->chips[j].board_id == chip->board_id) {
			first = j;
			break;
		}
	}
	return (uint64_t)(first + 1) << 32;
}

static int sort_chips(struct ttmon_smi *v)
{
	_cleanup_free_ struct place *places = calloc(v->nr_chips + 1, sizeof(*places));
	_cleanup_free_ uint32_t *now_at = calloc(v->nr_chips + 1, sizeof(*now_at));
	struct ttmon_smi_chip *sorted = calloc(v->nr_chips + 1, sizeof(*sorted));

	if (!places || !now_at || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < v->nr_chips; i++)
		places[i] = (struct place){ rank(v, i), (uint32_t)i };
	qsort(places, v->nr_chips, sizeof(*places), by_rank);
	for (size_t i = 0; i < v->nr_chips; i++) {
		sorted[i] = v->chips[places[i].chip];
		now_at[places[i].chip] = (uint32_t)i;
	}
	for (size_t i = 0; i < v->nr_shm; i++)
		if (v->files[i].chip != TTMON_SMI_NONE)
			v->files[i].chip = now_at[v->files[i].chip];
	free(v->chips);
	v->chips = sorted;
	return 0;
}

/* Entries of dead processes come last; within a chip the largest first. */
static int by_chip(const void *a, const void *b)
{
	const struct ttmon_smi_process *x = a, *y = b;
	uint64_t bx = 0, by = 0;

	if (x->chip != y->chip)
		return x->chip < y->chip ? -1 : 1;
	if (x->alive != y->alive)
		return x->alive ? -1 : 1;
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++) {
		bx = ttmon_smi_add(bx, x->bytes[t]);
		by = ttmon_smi_add(by, y->bytes[t]);
	}
	if (bx != by)
		return bx > by ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int ttmon_smi_finish(struct ttmon_smi *v)
{
	add_file_chips(v);
	if (sort_chips(v))
		return -ENOMEM;
	for (size_t i = 0; i < v->nr_shm; i++)
		if (v->files[i].chip != TTMON_SMI_NONE && !v->chips[v->files[i].chip].sys)
			name_file_chip(&v->chips[v->files[i].chip], v->files[i].shm);
	if (ttmon_smi_list(v))
		return -ENOMEM;
	for (size_t i = 0; i < v->nr_chips; i++) {
		if (v->chips[i].sys)
			name_chip(v, &v->chips[i]);
		if (ttmon_smi_fill(v, i))
			return -ENOMEM;
	}
	if (v->nr_procs)
		qsort(v->procs, v->nr_procs, sizeof(*v->procs), by_chip);
	return 0;
}
