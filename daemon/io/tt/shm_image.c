// SPDX-License-Identifier: GPL-2.0-only
/*
 * shm_image.c: the content of a tt_device_<key>_memory file, and the order in which it is stored. See
 * shm_int.h.
 *
 * Readers map the file and read at any time; nothing shows them that a change is in progress. Every
 * store is one aligned word of 8 bytes, and the order keeps what they see possible:
 *
 *   num_active_processes if it shrinks, totals that grow, figures of processes that shrink and entries
 *   that go (their pid first), figures that grow and entries that come (their pid last),
 *   num_active_processes if it grows, totals that shrink
 *
 * so that the processes never hold more than the chip does, num_active_processes never counts an entry
 * that is not there, and a process that moves to another entry is missing for a moment rather than
 * there twice. Version 4's init_state leaves READY only when a file of something else becomes one of
 * ours, and is stored last.
 *
 * A word is stored through a mapping: that is one store. pwrite() of 8 aligned bytes is not on CPUs
 * where the kernel copies by "rep movsb" (FSRM): unit/test_ttshm_write saw half a word once in some
 * thousand runs. A file whose owner cuts it short meanwhile, or whose folder is full, is SIGBUS for
 * the thread that stores: this thread then goes on with pwrite(), which makes the file longer or says
 * why not.
 */
#include "daemon/io/tt/shm_int.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

/* Words of an entry: pid, figures, time, name. */
#define ENTRY_TIME(l) (1 + (l)->types)
#define ENTRY_NAME(l) (2 + (l)->types)

static uint64_t *entry(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l, size_t i)
{
	return img->words + (l->procs + i * l->proc_size) / 8;
}

static const uint64_t *entry_of(const union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l, size_t i)
{
	return img->words + (l->procs + i * l->proc_size) / 8;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

struct ttmon_tt_shm_mark *ttmon_ttshm_image_mark(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l)
{
	return (struct ttmon_tt_shm_mark *)(img->words + (l->size - sizeof(struct ttmon_tt_shm_mark)) / 8);
}

static bool is_pid(uint32_t tgid)
{
	return tgid > 0 && tgid <= INT32_MAX;
}

static const struct ttmon_ttshm_user *user_of(const struct ttmon_ttshm_chip *chip, uint64_t pid)
{
	for (size_t i = 0; i < chip->nr_users; i++) {
		if (chip->users[i].tgid == pid)
			return &chip->users[i];
	}
	return NULL;
}

static size_t find(const union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l, size_t n, uint64_t pid)
{
	size_t i = 0;

	while (i < n && *entry_of(img, l, i) != pid)
		i++;
	return i;
}

/*
 * Removes the entries of ended processes and fills the holes with the last ones. Returns how many are
 * left.
 */
static size_t drop_ended(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l,
			 const struct ttmon_ttshm_chip *chip)
{
	size_t n = 0;

	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		uint64_t pid = *entry(img, l, i);

		if (pid)
			n = i + 1;
		if (pid && !user_of(chip, pid))
			*entry(img, l, i) = 0;
	}
	for (size_t i = 0; i < n; i++) {
		while (n > i && !*entry(img, l, n - 1))
			n--;
		if (n > i && !*entry(img, l, i)) {
			memcpy(entry(img, l, i), entry(img, l, n - 1), l->proc_size);
			n--;
		}
	}
	memset(entry(img, l, n), 0, (TTMON_TT_SHM_PROCESSES - n) * l->proc_size);
	return n;
}

static void set_entry(uint64_t *e, const struct ttmon_tt_shm_layout *l, const struct ttmon_ttshm_user *u,
		      const uint64_t *bytes, uint64_t now_ns)
{
	char name[TTMON_TT_SHM_NAME] = "";
	bool same;

	memcpy(name, u->name, sizeof(u->name) - 1);
	same = e[ENTRY_TIME(l)] && !memcmp(e + 1, bytes, l->types * sizeof(*bytes)) &&
	       !memcmp(e + ENTRY_NAME(l), name, sizeof(name));
	if (same)
		return;
	memcpy(e + 1, bytes, l->types * sizeof(*bytes));
	e[ENTRY_TIME(l)] = now_ns;
	memcpy(e + ENTRY_NAME(l), name, sizeof(name));
}

static uint32_t set_processes(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l,
			      const struct ttmon_ttshm_chip *chip, uint64_t now_ns)
{
	const struct ttmon_ttshm_user *users[TTMON_TT_SHM_PROCESSES] = { NULL };
	uint64_t bytes[TTMON_TT_SHM_PROCESSES][TTMON_TT_TYPES] = { { 0 } };
	size_t n = drop_ended(img, l, chip);
	uint32_t left_out = 0;

	for (size_t i = 0; i < chip->nr_users; i++) {
		const struct ttmon_ttshm_user *u = &chip->users[i];
		size_t at = find(img, l, n, u->tgid);

		if (!is_pid(u->tgid) || at == TTMON_TT_SHM_PROCESSES) {
			left_out++;
			continue;
		}
		if (at == n)
			*entry(img, l, n++) = u->tgid;
		users[at] = users[at] ? users[at] : u;
		for (size_t k = 0; k < TTMON_TT_TYPES; k++)
			bytes[at][k] = sum(bytes[at][k], u->bytes[k]);
	}
	for (size_t i = 0; i < n; i++)
		set_entry(entry(img, l, i), l, users[i], bytes[i], now_ns);
	img->v1.num_active_processes = (uint32_t)n;
	return left_out;
}

static void set_mark(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l,
		     const struct ttmon_tt_shm_mark *self, uint32_t references, uint32_t flags)
{
	struct ttmon_tt_shm_mark *mark = ttmon_ttshm_image_mark(img, l);

	*mark = *self;
	mark->references = references;
	mark->flags = flags;
	img->v1.reference_count = references;
}

/*
 * The first entry stands for the whole chip: its id, and whether it is a remote chip. If the id is
 * unknown, all entries stay unused.
 */
static void set_chip_stats(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l, int32_t device_id,
			   bool remote)
{
	uint64_t *first = img->words + l->chips / 8;

	memset(first, 0, (size_t)TTMON_TT_SHM_CHIPS * l->chip_size);
	for (size_t i = 0; l->init_state && i < TTMON_TT_SHM_CHIPS; i++)
		first[i * l->chip_size / 8] = TTMON_TT_SHM_NO_CHIP;
	if (device_id < 0)
		return;
	*first = (uint32_t)device_id | (uint64_t)remote << 32;
	memcpy(first + 1, img->words + l->totals / 8, l->types * sizeof(*first));
}

uint32_t ttmon_ttshm_image_set(union ttmon_ttshm_image *img, unsigned int version, const struct ttmon_ttshm_chip *chip,
			       const struct ttmon_tt_shm_mark *self, uint64_t now_ns)
{
	const struct ttmon_tt_shm_layout *l = ttmon_tt_shm_layout(version);
	union ttmon_ttshm_image old = *img;
	uint64_t *totals = img->words + l->totals / 8;
	uint32_t left_out = set_processes(img, l, chip, now_ns);

	img->v1.version = version;
	img->v1.board_serial = version == 1 ? chip->key >> 8 : 0;
	img->v1.asic_id = version == 1 ? chip->key & 0xff : chip->key;
	img->v1.device_id = chip->device_id;
	memset(totals, 0, l->types * sizeof(*totals));
	for (size_t i = 0; i < chip->nr_users; i++) {
		for (size_t k = 0; k < l->types; k++)
			totals[k] = sum(totals[k], chip->users[i].bytes[k]);
	}
	set_chip_stats(img, l, chip->device_id, chip->remote);
	if (l->init_state)
		img->v2.init_state = version == 4 ? TTMON_TT_SHM_READY : 0;
	set_mark(img, l, self, chip->nr_users ? 1 : 0, chip->flags);
	if (memcmp(img, &old, l->size))
		img->v1.last_update_ns = now_ns;
	return left_out;
}

void ttmon_ttshm_image_clear(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_mark *self, uint64_t now_ns)
{
	const struct ttmon_tt_shm_layout *l = ttmon_tt_shm_layout(img->v1.version);
	union ttmon_ttshm_image old = *img;

	img->v1.num_active_processes = 0;
	memset(img->words + l->totals / 8, 0, l->types * sizeof(img->words[0]));
	set_chip_stats(img, l, img->v1.device_id, img->words[l->chips / 8] >> 32 & 1);
	memset(entry(img, l, 0), 0, (size_t)TTMON_TT_SHM_PROCESSES * l->proc_size);
	if (l->init_state)
		img->v2.init_state = img->v1.version == 4 ? TTMON_TT_SHM_READY : 0;
	set_mark(img, l, self, 0, 0);
	if (memcmp(img, &old, l->size))
		img->v1.last_update_ns = now_ns;
}

void ttmon_ttshm_image_withdraw(union ttmon_ttshm_image *img, const union ttmon_ttshm_image *mine)
{
	const struct ttmon_tt_shm_layout *l = ttmon_tt_shm_layout(mine->v1.version);
	size_t totals = l->totals / 8, chip = l->chips / 8;

	for (size_t k = 0; k < l->types; k++) {
		img->words[totals + k] = less(img->words[totals + k], mine->words[totals + k]);
		img->words[chip + 1 + k] = less(img->words[chip + 1 + k], mine->words[chip + 1 + k]);
	}
	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		const uint64_t *was = entry_of(mine, l, i);
		uint64_t *is = entry(img, l, i), left = 0;

		if (!*was || *is != *was)
			continue;
		/* tt-metal adds to the entry with its pid: what exceeds our value is its own. */
		for (size_t k = 1; k <= l->types; k++) {
			is[k] = less(is[k], was[k]);
			left |= is[k];
		}
		if (left)
			continue;
		memset(is, 0, l->proc_size);
		if (img->v1.num_active_processes)
			img->v1.num_active_processes--;
	}
}

bool ttmon_ttshm_image_strangers(const union ttmon_ttshm_image *img, const union ttmon_ttshm_image *mine, bool alive)
{
	const struct ttmon_tt_shm_layout *l = ttmon_tt_shm_layout(img->v1.version);

	for (size_t i = 0; l && i < TTMON_TT_SHM_PROCESSES; i++) {
		int32_t pid = (int32_t)*entry_of(img, l, i);

		if (pid <= 0)
			continue;
		if (mine->v1.version && l == ttmon_tt_shm_layout(mine->v1.version) &&
		    find(mine, l, TTMON_TT_SHM_PROCESSES, (uint32_t)pid) < TTMON_TT_SHM_PROCESSES)
			continue;
		if (!alive || !kill(pid, 0) || errno == EPERM)
			return true;
	}
	return false;
}

/* ---- storing ---- */

struct store {
	int fd, err;
	uint64_t *map; /* NULL: uses pwrite() */
	union ttmon_ttshm_image *cur;
	const union ttmon_ttshm_image *img;
};

static void put_value(struct store *s, size_t word, uint64_t value)
{
	if (s->err || s->cur->words[word] == value)
		return;
	s->err = ttmon_ttshm_word_store(s->fd, s->map, word, value);
	if (!s->err)
		s->cur->words[word] = value;
}

static void put(struct store *s, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		put_value(s, i, s->img->words[i]);
}

static void put_growing(struct store *s, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++) {
		if (s->img->words[i] > s->cur->words[i])
			put(s, i, 1);
	}
}

static void put_entries(struct store *s, const struct ttmon_tt_shm_layout *l)
{
	size_t words = l->proc_size / 8;

	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		size_t at = l->procs / 8 + i * words;

		if (s->img->words[at] != s->cur->words[at])
			put_value(s, at, 0);
		for (size_t k = at + 1; k <= at + l->types; k++) {
			if (s->img->words[k] < s->cur->words[k])
				put(s, k, 1);
		}
	}
	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		size_t at = l->procs / 8 + i * words;

		put(s, at + 1, words - 1);
		put(s, at, 1);
	}
}

static void store_all(struct store *s, const struct ttmon_tt_shm_layout *l)
{
	union ttmon_ttshm_image *cur = s->cur;
	const union ttmon_ttshm_image *img = s->img;
	union ttmon_ttshm_image first = { .v1 = { .version = img->v1.version } };
	size_t mark = (l->size - sizeof(struct ttmon_tt_shm_mark)) / 8;

	if (img->v1.version == 4 && (cur->v1.version != 4 || cur->v2.init_state != TTMON_TT_SHM_READY))
		put_value(s, l->init_state / 8, 1);
	put(s, mark, sizeof(struct ttmon_tt_shm_mark) / 8);
	first.v1.num_active_processes = MIN(cur->v1.num_active_processes, img->v1.num_active_processes);
	put_value(s, 0, first.words[0]);
	put(s, 2, l->totals / 8 - 2);
	put_growing(s, l->totals / 8, l->types);
	put_growing(s, l->chips / 8, TTMON_TT_SHM_CHIPS * (size_t)l->chip_size / 8);
	put_entries(s, l);
	put(s, 0, 1);
	put(s, l->chips / 8, TTMON_TT_SHM_CHIPS * (size_t)l->chip_size / 8);
	put(s, l->totals / 8, l->types);
	put(s, 1, 1);
	/* All other words, and init_state last. */
	for (size_t i = 0; i < l->size / 8; i++) {
		if (!l->init_state || i != l->init_state / 8)
			put(s, i, 1);
	}
	if (l->init_state)
		put(s, l->init_state / 8, 1);
}

/* Where this thread continues after a SIGBUS during a store; NULL: it does not. */
static _Thread_local sigjmp_buf *volatile storing;

static void on_sigbus(int signo)
{
	if (storing)
		siglongjmp(*storing, 1);
	/* A fault elsewhere: it happens again, and ends the process as usual. */
	signal(signo, SIG_DFL);
}

/* False: the file was truncated, or there is no room for it. What was stored is in s->cur. */
static bool store_mapped(struct store *s, const struct ttmon_tt_shm_layout *l)
{
	struct sigaction ours = { .sa_handler = on_sigbus }, before;
	volatile bool whole = false;
	sigjmp_buf jump;

	sigaction(SIGBUS, &ours, &before);
	if (!sigsetjmp(jump, 1)) {
		storing = &jump;
		store_all(s, l);
		whole = true;
	}
	storing = NULL;
	sigaction(SIGBUS, &before, NULL);
	return whole;
}

int ttmon_ttshm_image_store(int fd, union ttmon_ttshm_image *cur, const union ttmon_ttshm_image *img)
{
	const struct ttmon_tt_shm_layout *l = ttmon_tt_shm_layout(img->v1.version);
	struct store s = { .fd = fd, .cur = cur, .img = img };
	void *map = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool whole = false;

	if (map != MAP_FAILED) {
		s.map = map;
		whole = store_mapped(&s, l);
		s.map = NULL;
		munmap(map, l->size);
	}
	if (!whole)
		store_all(&s, l);
	return s.err;
}
