// SPDX-License-Identifier: GPL-2.0-only
/*
 * shm.c: see shm.h. Cold thread; the clock is the caller's, and nothing is logged.
 *
 * Ownership of a file. Our files carry struct ttmon_tt_shm_mark in their last 32 bytes, which are
 * padding in every version, and the same in the extended attribute trusted.ttmond, which only root can
 * set. A file is ours
 *   - if it has the attribute, or
 *   - if it has the mark, is owned by us, and no other user may write to it, or
 *   - where such attributes do not work (not root, a tmpfs without them): if it has the mark and is
 *     owned by the user it is for. Forging this only gets a user's own file overwritten, with
 *     figures of that user's programs.
 * Anything else is foreign and only read, also when it is stale: its program may come back to it.
 *
 * The mark names its daemon by pid and start time: a file of a running daemon is left alone (-EBUSY),
 * one of a killed daemon is taken over.
 *
 * tt-metal attaches to an existing file of its version. That shows as a reference more than ours,
 * another version or an entry that we did not make, while a process holds the file for writing
 * (shm_file.c). We then remove our figures, as a program that detaches does, and only read until no
 * process holds it. Changes by readers that clean up (entries and totals that shrink) are repaired by
 * the next publish.
 *
 * reference_count is 1 while the file has figures of ours and 0 otherwise: with 0, tt-metal may make a
 * file of another version its own. All times are CLOCK_REALTIME, in version 1 too (its first variant
 * had CLOCK_MONOTONIC, its last one not).
 */
#include "daemon/io/tt/shm.h"
#include "lib/base/grow.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>

#include "daemon/io/tt/shm_int.h"
#include "lib/os/proc.h"

/* 16 boards of 32 chips, twice. Their images are 10 MB. */
#define MAX_FILES 1024
/* Files of others that are examined at the start: any user may make millions of them. */
#define MAX_FOREIGN 4096

struct file {
	uint64_t key;
	char name[48];
	unsigned int version;
	bool known; /* the file (dev, ino) holds img and is ours */
	bool away;  /* ours, but a program is attached */
	bool done;  /* it has no figures of ours, until its chip comes back */
	bool touched;
	dev_t dev;
	ino_t ino;
	union ttmon_ttshm_image img;
};

struct ttmon_ttshm_writer {
	char *dir;
	unsigned int version;
	bool xattrs, xattrs_asked;
	struct ttmon_tt_shm_mark self;
	struct file **files;
	size_t nr_files, cap_files;
	struct ttmon_ttshm_report *reports;
	size_t nr_reports, cap_reports;
};

static const struct ttmon_tt_shm_layout *layout_by_size(off_t size)
{
	return size == TTMON_TT_SHM_SIZE_V1   ? ttmon_tt_shm_layout(1)
	       : size == TTMON_TT_SHM_SIZE_V2 ? ttmon_tt_shm_layout(2)
					      : NULL;
}

/* ---- the table ---- */

static struct file *find_file(const struct ttmon_ttshm_writer *w, uint64_t key)
{
	for (size_t i = 0; i < w->nr_files; i++) {
		if (w->files[i]->key == key)
			return w->files[i];
	}
	return NULL;
}

static int add_file(struct ttmon_ttshm_writer *w, uint64_t key, struct file **ret)
{
	_cleanup_free_ struct file *f = NULL;

	if (w->nr_files == MAX_FILES)
		return -ENOSPC;
	if (TTMON_GROW(w->files, w->cap_files, w->nr_files + 1, 32))
		return -ENOMEM;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->key = key;
	f->version = w->version;
	snprintf(f->name, sizeof(f->name), "tt_device_%" PRIu64 "_memory", key);
	*ret = w->files[w->nr_files++] = TAKE_PTR(f);
	return 0;
}

static int open_dir(struct ttmon_ttshm_writer *w, int *ret)
{
	int fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!w->xattrs_asked) {
		w->xattrs = ttmon_ttshm_file_xattrs_work(fd);
		w->xattrs_asked = true;
	}
	*ret = fd;
	return 0;
}

/* ---- ownership ---- */

struct look {
	int fd;
	struct stat st;
	struct ttmon_tt_shm_mark mark;
	union ttmon_ttshm_image cur;
};

static bool is_users(const struct ttmon_ttshm_chip *chip, uid_t uid)
{
	for (size_t i = 0; i < chip->nr_users; i++) {
		if (chip->users[i].uid == uid)
			return true;
	}
	return false;
}

/* chip: the chip that the file is for; NULL: any. */
static bool is_marked(const struct ttmon_ttshm_writer *w, struct look *l, const struct ttmon_ttshm_chip *chip)
{
	const struct ttmon_tt_shm_layout *layout = layout_by_size(l->st.st_size);
	const struct ttmon_tt_shm_mark *inside = layout ? ttmon_ttshm_image_mark(&l->cur, layout) : NULL;
	uint32_t references = 0;

	if (inside && inside->magic == TTMON_TT_SHM_MAGIC) {
		l->mark = *inside;
		references = inside->references;
	} else {
		inside = NULL;
	}
	if (ttmon_ttshm_file_xattr(l->fd, &l->mark)) {
		l->mark.references = references;
		return true;
	}
	if (!inside)
		return false;
	if (l->st.st_uid == geteuid())
		return !(l->st.st_mode & 022);
	return !w->xattrs && layout->init_state && (!chip || is_users(chip, l->st.st_uid));
}

static bool is_other_daemons(const struct ttmon_ttshm_writer *w, const struct ttmon_tt_shm_mark *mark)
{
	if (!mark->pid || !mark->start || (mark->pid == w->self.pid && mark->start == w->self.start))
		return false;
	return ttmon_proc_alive(mark->pid) == mark->start;
}

static bool is_stale(const struct look *l)
{
	static const union ttmon_ttshm_image none;

	return !ttmon_ttshm_image_strangers(&l->cur, &none, true) && !ttmon_ttshm_file_held(l->fd);
}

static bool is_attached(const struct look *l, const union ttmon_ttshm_image *mine, unsigned int version)
{
	int held;

	if (l->cur.v1.reference_count <= l->mark.references && l->cur.v1.version == version &&
	    !ttmon_ttshm_image_strangers(&l->cur, mine, false))
		return false;
	held = ttmon_ttshm_file_held(l->fd);
	return held < 0 ? ttmon_ttshm_image_strangers(&l->cur, mine, true) : held;
}

static void withdraw(int dir_fd, struct file *f, struct look *l)
{
	_cleanup_close_ int fd = -1;
	union ttmon_ttshm_image left;

	if (l->cur.v1.version != f->version || ttmon_ttshm_file_writable(dir_fd, f->name, &l->st, &fd) ||
	    ttmon_ttshm_file_read(fd, &l->cur))
		return;
	left = l->cur;
	ttmon_ttshm_image_withdraw(&left, &f->img);
	if (ttmon_ttshm_image_store(fd, &l->cur, &left))
		f->known = false;
}

/* 0: ours, may be written; TTMON_TTSHM_FOREIGN; -errno: refused. */
static int examine(struct ttmon_ttshm_writer *w, int dir_fd, struct file *f, const struct ttmon_ttshm_chip *chip,
		   struct look *l)
{
	static const union ttmon_ttshm_image none;
	bool attached;
	int err = ttmon_ttshm_file_open(dir_fd, f->name, &l->fd, &l->st);

	if (!err)
		err = ttmon_ttshm_file_read(l->fd, &l->cur);
	if (err) {
		f->known = f->away = false;
		return err;
	}
	if (f->known && (f->dev != l->st.st_dev || f->ino != l->st.st_ino))
		f->known = false;
	if (f->known)
		l->mark = *ttmon_ttshm_image_mark(&f->img, ttmon_tt_shm_layout(f->version));
	else if (!is_marked(w, l, chip)) {
		f->away = false;
		return TTMON_TTSHM_FOREIGN;
	} else if (is_other_daemons(w, &l->mark))
		return -EBUSY;

	attached = is_attached(l, f->known ? &f->img : &none, f->known ? f->version : l->cur.v1.version);
	if (attached && f->known && !f->away) {
		uint32_t references = l->mark.references;

		withdraw(dir_fd, f, l);
		ttmon_ttshm_image_clear(&f->img, &w->self, 0);
		ttmon_ttshm_image_mark(&f->img, ttmon_tt_shm_layout(f->version))->references = references;
	}
	f->away = attached;
	return attached ? TTMON_TTSHM_FOREIGN : 0;
}

/* ---- writing ---- */

/* The file belongs to the chip's first user; when that one is gone, to the next user. */
static bool has_wrong_owner(const struct ttmon_ttshm_writer *w, const struct stat *st,
			    const struct ttmon_ttshm_chip *chip)
{
	if (w->version == 1)
		return st->st_uid != geteuid();
	return chip->nr_users && !is_users(chip, st->st_uid);
}

static int set_owner(const struct ttmon_ttshm_writer *w, int fd, const struct ttmon_ttshm_chip *chip)
{
	if (w->version == 1)
		return fchown(fd, geteuid(), getegid()) ? -errno : 0;
	return fchown(fd, chip->users[0].uid, chip->users[0].gid) ? -errno : 0;
}

static void remember(struct file *f, const struct stat *st, const union ttmon_ttshm_image *img)
{
	f->known = true;
	f->version = img->v1.version;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->img = *img;
}

static int create(const struct ttmon_ttshm_writer *w, int dir_fd, struct file *f, const struct ttmon_ttshm_chip *chip,
		  uint64_t now_ns, uint32_t *left_out)
{
	bool shared = w->version == 1;
	uid_t uid = shared ? geteuid() : chip->users[0].uid;
	gid_t gid = shared ? getegid() : chip->users[0].gid;
	union ttmon_ttshm_image img = { .words = { 0 } };
	struct stat st;
	int err;

	*left_out = ttmon_ttshm_image_set(&img, w->version, chip, &w->self, now_ns);
	err = ttmon_ttshm_file_create(dir_fd, f->name, &img, shared ? 0644 : 0600, uid, gid, &w->self, &st);
	if (!err)
		remember(f, &st, &img);
	return err;
}

/* img: new content. chip: gives the owner; NULL: the owner stays. */
static int write_file(struct ttmon_ttshm_writer *w, int dir_fd, struct file *f, struct look *l,
		      const struct ttmon_ttshm_chip *chip, const union ttmon_ttshm_image *img)
{
	off_t size = ttmon_tt_shm_layout(img->v1.version)->size;
	bool chown = chip && has_wrong_owner(w, &l->st, chip);
	_cleanup_close_ int fd = -1;
	bool known = f->known;
	int err = 0;

	f->known = false;
	if (l->st.st_size > size)
		return -EFBIG;
	if (!known || chown || l->st.st_size < size || memcmp(&l->cur, img, (size_t)size)) {
		err = ttmon_ttshm_file_writable(dir_fd, f->name, &l->st, &fd);
		if (!err && chown)
			err = set_owner(w, fd, chip);
		/* Its owner truncated it. */
		if (!err && l->st.st_size < size && fallocate(fd, 0, 0, size))
			err = -errno;
		if (!err && !known)
			ttmon_ttshm_file_set_xattr(fd, &w->self);
		if (!err)
			err = ttmon_ttshm_image_store(fd, &l->cur, img);
	}
	if (!err)
		remember(f, &l->st, img);
	return err;
}

static int update(struct ttmon_ttshm_writer *w, int dir_fd, struct file *f, const struct ttmon_ttshm_chip *chip,
		  uint64_t now_ns, struct ttmon_ttshm_report *report)
{
	struct look l = { .fd = -1 };
	union ttmon_ttshm_image img;
	int err;

	/* Twice, since the file may appear between the two steps. */
	for (int i = 0; i < 2; i++) {
		err = examine(w, dir_fd, f, chip, &l);
		if (err != -ENOENT)
			break;
		if (chip->unknown)
			return TTMON_TTSHM_UNKNOWN;
		if (w->version > 1 && !chip->nr_users)
			return TTMON_TTSHM_IDLE;
		err = create(w, dir_fd, f, chip, now_ns, &report->left_out);
		if (err != -EEXIST)
			return err;
	}
	if (err == TTMON_TTSHM_FOREIGN && !f->away && is_stale(&l))
		report->err = -ESTALE;
	/*
	 * Its zeros would be taken for figures. A file that a process has mapped stays, and its mark says what
	 * is wrong.
	 */
	if (!err && chip->unknown && !ttmon_ttshm_file_held(l.fd) && !unlinkat(dir_fd, f->name, 0)) {
		f->known = false;
		err = TTMON_TTSHM_UNKNOWN;
	}
	if (!err) {
		if (f->known && f->version == w->version)
			img = f->img;
		else
			memset(&img, 0, sizeof(img));
		report->left_out = ttmon_ttshm_image_set(&img, w->version, chip, &w->self, now_ns);
		err = write_file(w, dir_fd, f, &l, chip, &img);
	}
	ttmon_closep(&l.fd);
	return err;
}

/* The chip has no user any more, or an earlier daemon was killed. self: with pid 0 when we leave. */
static void clear(struct ttmon_ttshm_writer *w, int dir_fd, struct file *f, const struct ttmon_tt_shm_mark *self,
		  uint64_t now_ns)
{
	struct look l = { .fd = -1 };
	union ttmon_ttshm_image img;
	int err = examine(w, dir_fd, f, NULL, &l);

	if (!err) {
		const struct ttmon_tt_shm_layout *layout;

		img = f->known ? f->img : l.cur;
		layout = ttmon_tt_shm_layout(img.v1.version);
		if (layout) {
			ttmon_ttshm_image_clear(&img, self, now_ns);
			err = write_file(w, dir_fd, f, &l, NULL, &img);
		}
	}
	ttmon_closep(&l.fd);
	/* A file that another daemon or a program holds at the moment is checked again. */
	f->done = err != -EBUSY && !f->away;
}

static void report_on(struct ttmon_ttshm_writer *w, int dir_fd, int dir_err, const struct ttmon_ttshm_chip *chip,
		      uint64_t now_ns, struct ttmon_ttshm_report *r)
{
	struct file *f = find_file(w, chip->key);
	int err = dir_err;

	*r = (struct ttmon_ttshm_report){ .index = chip->index, .key = chip->key };
	snprintf(r->path, sizeof(r->path), "%s/tt_device_%" PRIu64 "_memory", w->dir, chip->key);
	if (!err && (!chip->key || (f && f->touched)))
		err = chip->key ? -EEXIST : -EINVAL;
	if (!err && !f)
		err = add_file(w, chip->key, &f);
	if (!err) {
		f->touched = true;
		f->done = false;
		err = update(w, dir_fd, f, chip, now_ns, r);
	}
	if (err >= 0) {
		r->state = (enum ttmon_ttshm_state)err;
		return;
	}
	r->state = TTMON_TTSHM_REFUSED;
	r->err = err;
}

void ttmon_ttshm_publish(struct ttmon_ttshm_writer *w, const struct ttmon_ttshm_chip *chips, size_t n, uint64_t now_ns)
{
	_cleanup_close_ int dir_fd = -1;
	int err = open_dir(w, &dir_fd);

	w->nr_reports = 0;
	if (TTMON_GROW(w->reports, w->cap_reports, n, 1))
		return;
	for (size_t i = 0; i < w->nr_files; i++)
		w->files[i]->touched = false;
	for (size_t i = 0; i < n; i++)
		report_on(w, dir_fd, err, &chips[i], now_ns, &w->reports[w->nr_reports++]);
	for (size_t i = 0; !err && i < w->nr_files; i++) {
		if (!w->files[i]->touched && !w->files[i]->done)
			clear(w, dir_fd, w->files[i], &w->self, now_ns);
	}
}

const struct ttmon_ttshm_report *ttmon_ttshm_reports(const struct ttmon_ttshm_writer *w, size_t *n)
{
	*n = w->nr_reports;
	return w->reports;
}

/* ---- start and end ---- */

/* Files of a killed daemon become ours; those that no chip claims are cleared at the first publish. */
/* Returns true if it is a file of another program. */
static bool adopt(struct ttmon_ttshm_writer *w, int dir_fd, const char *name)
{
	struct look l = { .fd = -1 };
	char canonical[48];
	struct file *f;
	bool foreign;
	uint64_t key;

	if (sscanf(name, "tt_device_%20" SCNu64, &key) != 1 || find_file(w, key))
		return false;
	snprintf(canonical, sizeof(canonical), "tt_device_%" PRIu64 "_memory", key);
	if (strcmp(canonical, name) != 0)
		return false;
	foreign = ttmon_ttshm_file_open(dir_fd, name, &l.fd, &l.st) || ttmon_ttshm_file_read(l.fd, &l.cur) ||
		  !is_marked(w, &l, NULL);
	if (!foreign && !add_file(w, key, &f))
		f->version = l.cur.v1.version;
	ttmon_closep(&l.fd);
	return foreign;
}

int ttmon_ttshm_writer_new(const char *dir, unsigned int version, struct ttmon_ttshm_writer **ret)
{
	struct ttmon_ttshm_writer *w;
	_cleanup_close_ int fd = -1;
	unsigned int foreign = 0;
	struct dirent *e;
	DIR *d;

	if (!ttmon_tt_shm_layout(version))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->version = version;
	w->self.magic = TTMON_TT_SHM_MAGIC;
	w->self.pid = (uint32_t)getpid();
	w->self.start = ttmon_proc_start(w->self.pid);
	w->dir = strdup(dir);
	if (!w->dir) {
		free(w);
		return -ENOMEM;
	}
	if (!open_dir(w, &fd) && (d = opendir(dir))) {
		while (foreign < MAX_FOREIGN && (e = readdir(d)))
			foreign += adopt(w, fd, e->d_name);
		closedir(d);
	}
	*ret = w;
	return 0;
}

void ttmon_ttshm_writer_free(struct ttmon_ttshm_writer *w)
{
	struct ttmon_tt_shm_mark left;
	_cleanup_close_ int dir_fd = -1;

	if (!w)
		return;
	left = w->self;
	left.pid = 0;
	if (!open_dir(w, &dir_fd)) {
		for (size_t i = 0; i < w->nr_files; i++) {
			/* Files that were cleared already still have our name in their mark. */
			if (w->files[i]->known || !w->files[i]->done)
				clear(w, dir_fd, w->files[i], &left, w->files[i]->img.v1.last_update_ns);
		}
	}
	for (size_t i = 0; i < w->nr_files; i++)
		free(w->files[i]);
	free(w->files);
	free(w->reports);
	free(w->dir);
	free(w);
}
