// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttshm_clean.c: removes dead processes from a tt_device_<key>_memory file (`ttmon smi -c`). See
 * ttshm.h.
 *
 * Programs may write the file at the same time: every word is read again just before it is written,
 * and all subtractions stop at 0. If a program changes the same total within that microsecond, its
 * change is lost; a tool outside of tt-metal's protocol cannot avoid this.
 *
 * Entries are moved only if no program depends on their places: in version 1, whose readers only look
 * at the first num_active_processes entries, and in files that no process has open for writing. A
 * program of version 4 remembers the index of its entry, and readers from version 2 on look at all 64.
 * If no process has the file open and none is left in it, the rest belongs to programs that were
 * killed: the totals become 0, and so does reference_count, without which tt-metal would refuse the
 * file after an upgrade.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "lib/read/ttshm_int.h"
#include "lib/base/util.h"

#define MAX_BYTES (1ull << 50)
#define FIGURES	  1 /* first word of figures in an entry of a chip or a process */

struct edit {
	int fd, err;
	const struct ttmon_tt_shm_layout *l;
	bool held; /* a process has the file open or mapped for writing, or this could not be checked */
	uint32_t live, dead;
};

static uint64_t get(struct edit *e, size_t word)
{
	uint64_t value = 0;
	ssize_t r = e->err ? 0 : pread(e->fd, &value, sizeof(value), (off_t)(word * sizeof(value)));

	if (!e->err && r != (ssize_t)sizeof(value))
		e->err = r < 0 ? -errno : -EIO;
	return value;
}

static void put(struct edit *e, size_t word, uint64_t value)
{
	ssize_t r;

	if (get(e, word) == value || e->err)
		return;
	r = pwrite(e->fd, &value, sizeof(value), (off_t)(word * sizeof(value)));
	if (r != (ssize_t)sizeof(value))
		e->err = r < 0 ? -errno : -EIO;
}

static void take_off(struct edit *e, size_t word, uint64_t bytes)
{
	uint64_t value = get(e, word);

	put(e, word, value > bytes ? value - bytes : 0);
}

static size_t entry(const struct edit *e, size_t i)
{
	return (e->l->procs + i * e->l->proc_size) / 8;
}

static int32_t pid_at(struct edit *e, size_t i)
{
	return (int32_t)get(e, entry(e, i));
}

static void zero_entry(struct edit *e, size_t i)
{
	for (size_t k = 0; k < e->l->proc_size / 8; k++)
		put(e, entry(e, i) + k, 0);
}

static void remove_entry(struct edit *e, size_t i)
{
	uint64_t bytes[TTMON_TTSHM_TYPES];

	for (size_t k = 0; k < e->l->types; k++)
		bytes[k] = get(e, entry(e, i) + FIGURES + k);
	zero_entry(e, i);
	for (size_t k = 0; k < e->l->types; k++) {
		take_off(e, e->l->chips / 8 + FIGURES + k, bytes[k]);
		take_off(e, e->l->totals / 8 + k, bytes[k]);
	}
}

/* Moves the last entries into the gaps. */
static void compact(struct edit *e)
{
	size_t n = TTMON_TT_SHM_PROCESSES;

	for (size_t i = 0; i < n && !e->err; i++) {
		if (get(e, entry(e, i)))
			continue;
		while (n > i && !get(e, entry(e, n - 1)) && !e->err)
			n--;
		if (n <= i)
			break;
		for (size_t k = e->l->proc_size / 8; k-- > 0;)
			put(e, entry(e, i) + k, get(e, entry(e, n - 1) + k));
		zero_entry(e, --n);
	}
}

/*
 * Repairs a total that wrapped because of a clean-up that did not stop at 0: it becomes the sum of the
 * processes that are left.
 */
static void mend_totals(struct edit *e)
{
	for (size_t k = 0; k < e->l->types; k++) {
		uint64_t sum = 0;

		if (get(e, e->l->totals / 8 + k) <= MAX_BYTES)
			continue;
		for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
			uint64_t bytes = get(e, entry(e, i) + FIGURES + k);

			if (pid_at(e, i) > 0 && bytes <= MAX_BYTES)
				sum += bytes;
		}
		put(e, e->l->totals / 8 + k, MIN(sum, MAX_BYTES));
	}
}

static void mend_header(struct edit *e)
{
	uint64_t head = get(e, 0), references = get(e, 2);
	uint32_t refs = (uint32_t)references, left = refs > e->dead ? refs - e->dead : 0;

	put(e, 0, (uint32_t)head | (uint64_t)e->live << 32);
	if (e->live || e->held) {
		mend_totals(e);
		/* One reference for each process, but only one for all of ttmond's. */
		put(e, 2, (references & ~(uint64_t)UINT32_MAX) | MAX(left, MIN(refs, e->live)));
		return;
	}
	for (size_t i = 0; i < TTMON_TT_SHM_CHIPS; i++) {
		for (size_t k = 0; k < e->l->types; k++)
			put(e, (e->l->chips + i * e->l->chip_size) / 8 + FIGURES + k, 0);
	}
	for (size_t k = 0; k < e->l->types; k++)
		put(e, e->l->totals / 8 + k, 0);
	put(e, 2, references & ~(uint64_t)UINT32_MAX);
}

static int error_of(enum ttmon_ttshm_status status, int err)
{
	switch (status) {
	case TTMON_TTSHM_UNREADABLE:
		return -err;
	case TTMON_TTSHM_NOT_A_FILE:
		return -ELOOP;
	case TTMON_TTSHM_TRUNCATED:
		return -ENODATA;
	case TTMON_TTSHM_VERSION:
		return -EPROTONOSUPPORT;
	case TTMON_TTSHM_NOT_READY:
	case TTMON_TTSHM_TORN:
		return -EAGAIN;
	default:
		return -EINVAL;
	}
}

/*
 * As in daemon/io/tt/shm_file.c: the kernel refuses a read lease while a process has the file open or
 * mapped for writing.
 */
static bool is_held(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_RDLCK))
		return true;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

static bool has_figures(const union ttmon_ttshm_words *img, const struct ttmon_tt_shm_layout *l)
{
	for (size_t k = 0; k < l->types; k++) {
		if (img->words[l->totals / 8 + k])
			return true;
	}
	return img->v1.reference_count;
}

static int open_for_writing(int dir_fd, const char *name, const struct stat *was, int *ret)
{
	struct stat st;
	int err = 0;
	enum ttmon_ttshm_status status = ttmon_ttshm_open(dir_fd, name, O_RDWR, ret, &st, &err);

	if (status != TTMON_TTSHM_OK)
		return error_of(status, err);
	return st.st_dev == was->st_dev && st.st_ino == was->st_ino ? 0 : -ESTALE;
}

static int clean(struct edit *e)
{
	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		int32_t pid = pid_at(e, i);

		if (pid <= 0)
			continue;
		if (ttmon_ttshm_alive(pid)) {
			e->live++;
			continue;
		}
		remove_entry(e, i);
		e->dead++;
	}
	if (e->l->types == TTMON_TTSHM_TYPES || !e->held)
		compact(e);
	mend_header(e);
	return e->err ? e->err : (int)e->dead;
}

int ttmon_ttshm_cleanup(int dir_fd, const char *name)
{
	_cleanup_close_ int fd = -1, rw = -1;
	union ttmon_ttshm_words img;
	enum ttmon_ttshm_status status;
	bool live = false, dead = false;
	struct edit e = { .fd = -1 };
	struct stat st;
	uint64_t key;
	int err = 0;

	if (!ttmon_ttshm_parse_name(name, &key))
		return -EINVAL;
	status = ttmon_ttshm_open(dir_fd, name, O_RDONLY, &fd, &st, &err);
	if (status != TTMON_TTSHM_OK)
		return error_of(status, err);
	if (st.st_nlink != 1)
		return -EMLINK;
	/* Two clean-ups at the same time would subtract the same bytes twice. */
	if (flock(fd, LOCK_EX | LOCK_NB))
		return -EBUSY;
	status = ttmon_ttshm_read_words(fd, st.st_size, &img, &err);
	/* A total that wrapped looks like nonsense, and is repaired here. */
	if (status == TTMON_TTSHM_NONSENSE && st.st_size <= (off_t)sizeof(img))
		status = TTMON_TTSHM_OK;
	if (status != TTMON_TTSHM_OK)
		return error_of(status, err);
	e.l = ttmon_tt_shm_layout(img.v1.version);
	e.held = is_held(fd);
	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		int32_t pid = (int32_t)img.words[entry(&e, i)];

		if (pid > 0)
			*(ttmon_ttshm_alive(pid) ? &live : &dead) = true;
	}
	/* If there is nothing to do, do not require write permission. */
	if (!dead && (live || e.held || !has_figures(&img, e.l)))
		return 0;
	err = open_for_writing(dir_fd, name, &st, &rw);
	if (err)
		return err;
	e.fd = rw;
	return clean(&e);
}
