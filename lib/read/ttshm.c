// SPDX-License-Identifier: GPL-2.0-only
/*
 * lib/read/ttshm.c: see ttshm.h. Any process.
 *
 * These files have no lock: a file is read again until two reads are equal, at most 8 times. If a file
 * changes so often that they never are, it is still good if its contents are plausible: each figure is
 * one aligned word that was valid at its moment, and the words that changed are read once more
 * individually. A file is called torn only if it changes and is not plausible.
 *
 * Sizes: version 1 was also compiled without padding or alignment, with 9184 to 9280 bytes; a file of
 * more than three pages is of no known version.
 */
#include "lib/read/ttshm.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>

#include "lib/read/ttshm_int.h"
#include "lib/base/grow.h"
#include "lib/base/util.h"

#define MAX_BYTES (1ull << 50)
#define MAX_SIZE  (3 * 4096)
#define MIN_V1	  9184
#define MAX_READS 8
/* The most files that scan() returns: 10 MB. */
#define MAX_FILES   1024
#define NAME_FORMAT "tt_device_%" PRIu64 "_memory"

const char *ttmon_ttshm_status_text(enum ttmon_ttshm_status status)
{
	static const char *const texts[] = {
		[TTMON_TTSHM_OK] = "ok",
		[TTMON_TTSHM_UNREADABLE] = "cannot be read",
		[TTMON_TTSHM_NOT_A_FILE] = "not a regular file",
		[TTMON_TTSHM_TRUNCATED] = "too short",
		[TTMON_TTSHM_VERSION] = "of an unknown version",
		[TTMON_TTSHM_NOT_READY] = "being made",
		[TTMON_TTSHM_TORN] = "changed while it was read",
		[TTMON_TTSHM_NONSENSE] = "makes no sense",
	};

	return (size_t)status < ARRAY_SIZE(texts) ? texts[status] : "?";
}

bool ttmon_ttshm_parse_name(const char *name, uint64_t *key)
{
	char canonical[64];
	uint64_t k;

	/* The number must be in canonical form: no sign, space or leading zero, below 2^64. */
	if (sscanf(name, "tt_device_%20" SCNu64, &k) != 1)
		return false;
	snprintf(canonical, sizeof(canonical), NAME_FORMAT, k);
	if (strcmp(name, canonical) != 0)
		return false;
	*key = k;
	return true;
}

enum ttmon_ttshm_status ttmon_ttshm_open(int dir_fd, const char *name, int flags, int *ret, struct stat *st, int *err)
{
	_cleanup_close_ int fd = -1;

	/*
	 * Check the type before opening, because opening a device may have effects. If a pipe takes its place
	 * meanwhile, opening does not block.
	 */
	if (fstatat(dir_fd, name, st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISREG(st->st_mode))
			return TTMON_TTSHM_NOT_A_FILE;
		fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, st)) {
		*err = errno;
		return errno == ELOOP || errno == EISDIR || errno == ENXIO ? TTMON_TTSHM_NOT_A_FILE
									   : TTMON_TTSHM_UNREADABLE;
	}
	if (!S_ISREG(st->st_mode))
		return TTMON_TTSHM_NOT_A_FILE;
	*ret = TAKE_FD(fd);
	return TTMON_TTSHM_OK;
}

/* Determines the version and checks the contents. got: number of bytes read. */
static enum ttmon_ttshm_status check(const union ttmon_ttshm_words *img, size_t got, off_t size)
{
	const struct ttmon_tt_shm_layout *l;

	if (got < sizeof(img->v1.version))
		return TTMON_TTSHM_TRUNCATED;
	/* Versions 1 to 3 have no init_state: the file is created, then extended, then filled. */
	if (!img->v1.version)
		return TTMON_TTSHM_NOT_READY;
	l = ttmon_tt_shm_layout(img->v1.version);
	if (!l)
		return TTMON_TTSHM_VERSION;
	if (got < (img->v1.version == 1 ? (size_t)MIN_V1 : l->size))
		return TTMON_TTSHM_TRUNCATED;
	if (img->v1.version == 4 && img->v2.init_state != TTMON_TT_SHM_READY)
		return TTMON_TTSHM_NOT_READY;
	if (size > MAX_SIZE || img->v1.num_active_processes > TTMON_TT_SHM_PROCESSES)
		return TTMON_TTSHM_NONSENSE;
	for (size_t k = 0; k < l->types; k++) {
		if (img->words[l->totals / 8 + k] > MAX_BYTES)
			return TTMON_TTSHM_NONSENSE;
	}
	return TTMON_TTSHM_OK;
}

static ssize_t read_once(int fd, union ttmon_ttshm_words *ret)
{
	memset(ret, 0, sizeof(*ret));
	return pread(fd, ret, sizeof(*ret), 0);
}

/*
 * Reads one word. A copy of 8 bytes is atomic; a larger one may be made byte by byte (seen on Linux
 * 6.1 in QEMU).
 */
static void settle(int fd, size_t word, uint64_t *ret)
{
	uint64_t value = *ret, again;

	for (int i = 0; i < MAX_READS; i++) {
		if (pread(fd, &again, sizeof(again), (off_t)(word * sizeof(again))) != (ssize_t)sizeof(again))
			return;
		*ret = again;
		if (i && again == value)
			return;
		value = again;
	}
}

enum ttmon_ttshm_status ttmon_ttshm_read_words(int fd, off_t size, union ttmon_ttshm_words *ret, int *err)
{
	union ttmon_ttshm_words before;
	enum ttmon_ttshm_status status;
	ssize_t n = read_once(fd, ret), was;

	for (int i = 1; n >= 0 && i < MAX_READS; i++) {
		before = *ret;
		was = n;
		n = read_once(fd, ret);
		if (n == was && !memcmp(&before, ret, sizeof(before)))
			return check(ret, (size_t)n, size);
	}
	if (n < 0) {
		*err = errno;
		return TTMON_TTSHM_UNREADABLE;
	}
	for (size_t i = 0; i < (size_t)n / 8; i++) {
		if (ret->words[i] != before.words[i])
			settle(fd, i, &ret->words[i]);
	}
	status = check(ret, (size_t)n, size);
	return status == TTMON_TTSHM_OK ? status : TTMON_TTSHM_TORN;
}

static uint64_t figure(uint64_t value)
{
	return value > MAX_BYTES ? TTMON_TTSHM_UNKNOWN : value;
}

bool ttmon_ttshm_alive(int32_t pid)
{
	/* EPERM: the process exists, but belongs to another user. */
	return !kill(pid, 0) || errno == EPERM;
}

static void fill_processes(const union ttmon_ttshm_words *img, const struct ttmon_tt_shm_layout *l,
			   struct ttmon_ttshm *ret)
{
	for (size_t i = 0; i < TTMON_TT_SHM_PROCESSES; i++) {
		const uint64_t *e = img->words + (l->procs + i * l->proc_size) / 8;
		struct ttmon_ttshm_process *p = &ret->processes[ret->nr_processes];

		if ((int32_t)e[0] <= 0)
			continue;
		p->pid = (int32_t)e[0];
		for (size_t k = 0; k < TTMON_TTSHM_TYPES; k++)
			p->bytes[k] = k < l->types ? figure(e[1 + k]) : TTMON_TTSHM_UNKNOWN;
		p->last_update_ns = e[l->proc_time / 8];
		memcpy(p->name, e + l->proc_name / 8, sizeof(p->name) - 1);
		p->alive = ttmon_ttshm_alive(p->pid);
		ret->nr_processes++;
	}
}

static bool is_ours(const union ttmon_ttshm_words *img, const struct ttmon_tt_shm_layout *l, off_t size)
{
	return size == l->size && (l->init_state ? img->v2.mark.magic : img->v1.mark.magic) == TTMON_TT_SHM_MAGIC;
}

static void fill(const union ttmon_ttshm_words *img, off_t size, struct ttmon_ttshm *ret)
{
	const struct ttmon_tt_shm_layout *l = ttmon_tt_shm_layout(img->v1.version);

	ret->reference_count = img->v1.reference_count;
	ret->num_active = img->v1.num_active_processes;
	ret->board_serial = img->v1.board_serial;
	ret->asic_id = img->v1.asic_id;
	ret->last_update_ns = img->v1.last_update_ns;
	/* Unsigned from version 3 on: an id of 2^31 or more is not valid. */
	ret->device_id = img->v1.device_id;
	ret->ours = is_ours(img, l, size);
	if (ret->ours)
		ret->flags = l->init_state ? img->v2.mark.flags : img->v1.mark.flags;
	for (size_t k = 0; k < l->types; k++)
		ret->bytes[k] = figure(img->words[l->totals / 8 + k]);
	fill_processes(img, l, ret);
}

void ttmon_ttshm_read(int dir_fd, const char *name, struct ttmon_ttshm *ret)
{
	_cleanup_close_ int fd = -1;
	union ttmon_ttshm_words img;
	struct stat st = { .st_size = 0 };

	memset(ret, 0, sizeof(*ret));
	for (size_t k = 0; k < TTMON_TTSHM_TYPES; k++)
		ret->bytes[k] = TTMON_TTSHM_UNKNOWN;
	ret->device_id = -1;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	ttmon_ttshm_parse_name(name, &ret->key);
	ret->status = ttmon_ttshm_open(dir_fd, name, O_RDONLY, &fd, &st, &ret->err);
	ret->mode = st.st_mode;
	ret->uid = st.st_uid;
	if (ret->status != TTMON_TTSHM_OK)
		return;
	ret->status = ttmon_ttshm_read_words(fd, st.st_size, &img, &ret->err);
	if (ret->status == TTMON_TTSHM_UNREADABLE || ret->status == TTMON_TTSHM_TORN)
		return;
	ret->version = img.v1.version;
	if (ret->status == TTMON_TTSHM_OK || (ret->status == TTMON_TTSHM_NONSENSE && st.st_size <= MAX_SIZE))
		fill(&img, st.st_size, ret);
}

/* ---- directories ---- */

struct names {
	char (*name)[64];
	size_t n, cap;
};

static int add_name(struct names *names, uint64_t key)
{
	if (TTMON_GROW(names->name, names->cap, names->n + 1, 64))
		return -ENOMEM;
	snprintf(names->name[names->n++], sizeof(*names->name), NAME_FORMAT, key);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int list(DIR *d, struct names *names)
{
	struct dirent *e;
	uint64_t key;
	int err = 0;

	while (!err && names->n < MAX_FILES && (e = readdir(d))) {
		if (ttmon_ttshm_parse_name(e->d_name, &key))
			err = add_name(names, key);
	}
	return err;
}

int ttmon_ttshm_scan(const char *dir, struct ttmon_ttshm **ret, size_t *n)
{
	struct ttmon_ttshm *files = NULL;
	struct names names = { .n = 0 };
	DIR *d = opendir(dir);
	int err;

	if (!d)
		return -errno;
	err = list(d, &names);
	if (!err && names.n) {
		qsort(names.name, names.n, sizeof(*names.name), by_name);
		files = malloc(names.n * sizeof(*files));
		err = files ? 0 : -ENOMEM;
	}
	if (!err) {
		for (size_t i = 0; i < names.n; i++)
			ttmon_ttshm_read(dirfd(d), names.name[i], &files[i]);
		*ret = files;
		*n = names.n;
	}
	free(names.name);
	closedir(d);
	return err;
}
