// SPDX-License-Identifier: GPL-2.0-only
/*
 * shm.c: writer of the segment (layout and protocol: <ttmon/shm.h>).
 *
 * Every user may write to /dev/shm. So the file is not created under its name: a new file beside it
 * gets its pages (all of them: a writer or reader on a full file system must not get SIGBUS), owner,
 * mode and head, and only then the name; renameat2(NOREPLACE) fails if the name is taken. An existing
 * file is replaced if it is a segment of ours whose daemon is gone. It is not written, except for one
 * word, by pwrite(), which shows its readers that it has ended; processes that map it keep their
 * mapping.
 *
 * Between the check of an old segment and the rename over it another daemon could replace it too. Two
 * daemons that start at once do not get that far: the socket is locked (io/http/usock.c), and the
 * loser's readers see that it ends.
 */
#define _GNU_SOURCE
#include "daemon/io/files/shm.h"

#include <ttmon/shm.h>

#include <grp.h>
#include <limits.h>

#include "lib/os/clock.h"
#include "lib/os/proc.h"

#define ROOT	  "/dev/shm"
#define NAME	  "ttmon.v1"
#define SLOTS	  128u
#define ROWS	  256u
#define MAX_SLOTS 65536u
#define MAX_ROWS  65536u
#define MAX_SIZE  (1ull << 30)
#define LINE	  64u /* bytes of a cache line: one prefetch each */

struct ttmon_shm {
	char *path;
	uint64_t *map;
	uint64_t size;
	struct ttmon_shm_head head; /* as it was created */
	dev_t dev;
	ino_t ino;
	uint64_t published;
};

static void cold_store(struct ttmon_shm *s, size_t offset, uint64_t value)
{
	__atomic_store_n(s->map + offset / 8, value, __ATOMIC_RELEASE);
}

#define SET(s, field, value) cold_store(s, offsetof(struct ttmon_shm_head, field), value)

/* ---- hot thread ---- */

/* Words that a reader may be reading: memcpy must not be used, since it may store a word in parts. */
static void put_words(uint64_t *to, const void *from, size_t bytes)
{
#pragma GCC unroll 8
	for (size_t at = 0; at < bytes; at += 8) {
		uint64_t word;

		memcpy(&word, (const char *)from + at, sizeof(word));
		__atomic_store_n(to + at / 8, word, __ATOMIC_RELAXED);
	}
}

static void add_row(struct ttmon_slot_row *sum, const struct ttmon_slot_row *row)
{
	sum->flags |= row->flags & ~TTMON_ROW_ENDED;
	sum->cpu_ns += row->cpu_ns;
	for (size_t i = 0; i < ARRAY_SIZE(sum->ctr); i++)
		sum->ctr[i] += row->ctr[i];
	sum->llc_bytes += row->llc_bytes;
	sum->mbm_total += row->mbm_total;
	sum->mbm_local += row->mbm_local;
	sum->rdt_ns = MAX(sum->rdt_ns, row->rdt_ns);
	sum->copies += row->copies;
	sum->copy_bytes += row->copy_bytes;
	sum->pinned_bytes += row->pinned_bytes;
	sum->switches += row->switches;
}

/* More rows than room: writes the first ones, idle (the last), and the sum of all others. */
static void put_cut(uint64_t *to, const struct ttmon_slot_row *rows, size_t n, size_t room)
{
	struct ttmon_slot_row other = { .cls = TTMON_ROW_OTHER };
	bool idle = room > 1 && rows[n - 1].cls == TTMON_ROW_IDLE;
	size_t keep = room - 1 - idle, kept = 0;

	for (size_t i = 0; i < n - idle; i++) {
		if (kept < keep && rows[i].cls != TTMON_ROW_OTHER)
			put_words(to + kept++ * sizeof(*rows) / 8, &rows[i], sizeof(*rows));
		else
			add_row(&other, &rows[i]);
	}
	if (idle)
		put_words(to + kept++ * sizeof(*rows) / 8, &rows[n - 1], sizeof(*rows));
	put_words(to + kept * sizeof(*rows) / 8, &other, sizeof(other));
}

/*
 * Prefetches the lines of the entry that is written next, assuming the same length, while the next
 * slot is made.
 */
static void fetch_next(const struct ttmon_shm *s, size_t bytes)
{
	const char *entry =
		(const char *)s->map + s->head.head_size + s->published % s->head.entries * s->head.entry_size;

	for (size_t at = 0; at < bytes; at += LINE)
		__builtin_prefetch(entry + at, 1);
}

void ttmon_shm_publish(struct ttmon_shm *s, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	uint64_t no = s->published, *entry;
	struct ttmon_slot copy = *slot;
	size_t room = s->head.rows;

	entry = s->map + (s->head.head_size + no % s->head.entries * s->head.entry_size) / 8;
	__atomic_store_n(entry, 2 * no + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	copy.nr_rows = (uint32_t)MIN(n, room);
	if (n > room)
		copy.flags |= TTMON_SLOT_ROWS_CUT;
	put_words(entry + 1, &copy, sizeof(copy));
	entry += 1 + sizeof(copy) / 8;
	if (n > room)
		put_cut(entry, rows, n, room);
	else
		put_words(entry, rows, n * sizeof(*rows));
	entry -= 1 + sizeof(copy) / 8;
	__atomic_store_n(entry, 2 * no + 2, __ATOMIC_RELEASE);
	SET(s, newest, slot->no);
	SET(s, heartbeat_ns, ttmon_mono_ns());
	s->published = no + 1;
	SET(s, published, s->published);
	fetch_next(s, 8 + sizeof(copy) + copy.nr_rows * sizeof(*rows));
}

/* ---- cold thread ---- */

static void boot_id(char *buf, size_t n)
{
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, buf, n - 1);

	memset(buf + MAX(got, 0), 0, n - (size_t)MAX(got, 0));
	buf[strcspn(buf, "\n")] = '\0';
}

/* True if its writer is alive. (From another pid namespace over the same /dev/shm it looks dead.) */
static bool writer_lives(const struct ttmon_shm_head *old, const struct ttmon_shm_head *own)
{
	return old->state != TTMON_SHM_ENDED && memcmp(old->boot_id, own->boot_id, sizeof(own->boot_id)) == 0 &&
	       old->pid_start && ttmon_proc_alive(old->pid) == old->pid_start;
}

/*
 * Checks what has the name. 0: nothing, or a segment that may be replaced (*st: which one), and its
 * readers were notified.
 */
static int look_at_old(const char *path, const struct ttmon_shm_head *own, struct stat *st, char *why, size_t n)
{
	_cleanup_close_ int fd = -1;
	struct ttmon_shm_head old;
	const uint64_t ended = TTMON_SHM_ENDED;

	if (lstat(path, st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || st->st_nlink != 1) {
		snprintf(why, n, "%s is there and is not ours; remove it", path);
		return -EEXIST;
	}
	fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() ||
	    pread(fd, &old, sizeof(old), 0) != (ssize_t)sizeof(old) || old.magic != TTMON_SHM_MAGIC) {
		snprintf(why, n, "%s is there and is no segment of ttmond; remove it", path);
		return -EEXIST;
	}
	if (writer_lives(&old, own)) {
		snprintf(why, n, "%s: another ttmond (pid %u) writes it", path, old.pid);
		return -EBUSY;
	}
	if (pwrite(fd, &ended, sizeof(ended), offsetof(struct ttmon_shm_head, state)) != (ssize_t)sizeof(ended))
		return -EIO;
	return 0;
}

static gid_t find_group(const char *name)
{
	struct group entry, *found = NULL;
	char buf[16384];

	if (!name || getgrnam_r(name, &entry, buf, sizeof(buf), &found) || !found)
		return (gid_t)-1;
	return found->gr_gid;
}

static int make_head(struct ttmon_shm *s, const struct ttmon_shm_cfg *cfg)
{
	struct ttmon_shm_head *h = &s->head;

	*h = (struct ttmon_shm_head){
		.magic = TTMON_SHM_MAGIC,
		.version = TTMON_SHM_VERSION,
		.head_size = 4096,
		.entries = cfg->slots ? cfg->slots : SLOTS,
		.rows = cfg->rows ? cfg->rows : ROWS,
		.slot_size = sizeof(struct ttmon_slot),
		.row_size = sizeof(struct ttmon_slot_row),
		.pid = (uint32_t)getpid(),
		.created_ns = ttmon_mono_ns(),
		.state = TTMON_SHM_RUNNING,
	};
	if (h->entries > MAX_SLOTS || h->rows > MAX_ROWS)
		return -EINVAL;
	/* Rounded up to whole cache lines: the writer and a reader never share one for different slots. */
	h->entry_size = ROUND_UP(8 + h->slot_size + h->rows * h->row_size, 64u);
	h->size = h->head_size + (uint64_t)h->entries * h->entry_size;
	h->pid_start = ttmon_proc_start(h->pid);
	h->heartbeat_ns = h->created_ns;
	boot_id(h->boot_id, sizeof(h->boot_id));
	return h->size > MAX_SIZE ? -EINVAL : 0;
}

/* Allocates the pages, writes the head, sets owner and mode. */
static int fill(struct ttmon_shm *s, int fd, const char *group)
{
	gid_t gid = find_group(group);
	struct stat st;
	void *map;
	int err;

	if ((gid != (gid_t)-1 && fchown(fd, (uid_t)-1, gid)) || fchmod(fd, gid == (gid_t)-1 ? 0600 : 0640))
		return -errno;
	/* ftruncate() alone would make a hole: on a full file system the first store into it is a SIGBUS. */
	do {
		err = posix_fallocate(fd, 0, (off_t)s->head.size);
	} while (err == EINTR);
	if (err)
		return -err;
	map = mmap(NULL, s->head.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	s->map = map;
	s->size = s->head.size;
	memcpy(map, &s->head, sizeof(s->head));
	if (fstat(fd, &st))
		return -errno;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

/* Renames tmp to the segment's name. */
static int take_name(struct ttmon_shm *s, const char *tmp, char *why, size_t n)
{
	struct stat old = { .st_ino = 0 }, now;
	int err;

	if (!renameat2(AT_FDCWD, tmp, AT_FDCWD, s->path, RENAME_NOREPLACE))
		return 0;
	if (errno != EEXIST)
		return -errno;
	err = look_at_old(s->path, &s->head, &old, why, n);
	if (err)
		return err;
	if (old.st_ino && !lstat(s->path, &now) && (now.st_ino != old.st_ino || now.st_dev != old.st_dev))
		return -EBUSY;
	return rename(tmp, s->path) ? -errno : 0;
}

static int make_file(struct ttmon_shm *s, const struct ttmon_shm_cfg *cfg, char *why, size_t n)
{
	const char *root = cfg->root ? cfg->root : ROOT;
	_cleanup_close_ int fd = -1;
	char tmp[PATH_MAX];
	int err;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s/.%s.%d", root, NAME, (int)getpid()) >= sizeof(tmp))
		return -ENAMETOOLONG;
	/* Removes the file of a killed ttmond with our pid. */
	unlink(tmp);
	fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = fill(s, fd, cfg->group);
	if (!err)
		err = take_name(s, tmp, why, n);
	if (err)
		unlink(tmp);
	return err;
}

int ttmon_shm_new(const struct ttmon_shm_cfg *cfg, struct ttmon_shm **ret, char *why, size_t n)
{
	struct ttmon_shm *s = calloc(1, sizeof(*s));
	int err;

	if (n)
		why[0] = '\0';
	if (!s)
		return -ENOMEM;
	if (asprintf(&s->path, "%s/%s", cfg->root ? cfg->root : ROOT, NAME) < 0) {
		free(s);
		return -ENOMEM;
	}
	err = make_head(s, cfg);
	if (!err)
		err = make_file(s, cfg, why, n);
	if (!err) {
		*ret = s;
		return 0;
	}
	if (n && !why[0])
		snprintf(why, n, "cannot make %s of %.1f MB: %s", s->path, (double)s->head.size / 1e6, strerror(-err));
	if (s->map)
		munmap(s->map, s->size);
	free(s->path);
	free(s);
	return err;
}

void ttmon_shm_free(struct ttmon_shm *s)
{
	struct stat st;

	if (!s)
		return;
	SET(s, state, TTMON_SHM_ENDED);
	/* Unless another process has put a file there. */
	if (!lstat(s->path, &st) && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	munmap(s->map, s->size);
	free(s->path);
	free(s);
}
