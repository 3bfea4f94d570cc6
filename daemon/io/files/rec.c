// SPDX-License-Identifier: GPL-2.0-only
/*
 * rec.c: writes the recording file (format: <ttmon/rec.h>).
 *
 * The hot thread calls _record and _advance and fills one buffer; a thread of this module compresses
 * and writes those that are full, and does all file I/O up to the END block. The two share the `full`
 * flag of each buffer, which says which of them owns the buffer and may access it, and the order in
 * which buffers became full. Two buffers are enough while the thread keeps up; where traced programs
 * leave it no CPU, more are used, up to 16 of 4 MiB. When all are full the record is dropped and
 * counted; the hot thread never waits. A buffer is handed over when it is full or holds a second of
 * the stream, so that little is lost in a crash.
 *
 * The first write error is kept: later records count as dropped, the file is cut back to its last
 * whole block and still gets its END block if that can be written. A file with an END block is renamed
 * to PATH; one without stays PATH.tmp.PID until the next recording of that path begins: then the
 * youngest of them becomes PATH.cut, and the others are removed. This module does not interpret
 * records; rec_read.c reads them.
 */
#include "daemon/io/files/rec.h"
#include "lib/os/thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#define FLUSH_NS      NSEC_PER_SEC
#define ADVANCE_ENTRY 16u /* u32 0, u32 0, u64 watermark */
#define WRITER_THREAD "ttmon-rec"
#define WRITER_NICE   (-15)
#define NR_BUFS	      16u

struct rec_buf {
	uint8_t *data; /* allocated by the hot thread when it is first needed */
	size_t len;
	uint64_t records;
	atomic_bool full; /* owner: true the writer thread, false the hot thread */
};

struct ttmon_rec_writer {
	char *path, *tmp;
	int fd;
	pthread_t thread;
	bool running;
	sem_t work; /* one post for each full buffer; a post without a full buffer means the end */
	struct rec_buf buf[NR_BUFS];
	/* a ring: buffers in the order they became full; written before the post, read after the wait */
	uint8_t order[NR_BUFS];

	/* Used by the hot thread. */
	unsigned int cur, handed;
	uint64_t mono_flush_ns; /* watermark at which the current buffer is handed over even if it is not full */
	bool flush_set;
	_Atomic uint64_t taken, refused, raw_bytes;

	/* Used by the writer thread. */
	uint8_t *comp;
	size_t comp_size;
	uint64_t end_ns;	     /* written by close before the last post */
	_Atomic uint64_t file_bytes; /* end of the last whole block */
	_Atomic uint64_t failed;     /* records taken but not written because of a write error */
	_Atomic int error;	     /* the first one, -errno */
	bool ended;
};

/*
 * Counters with one writing thread need no locked instruction; readers see a value that was true at
 * some time.
 */
static void count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t value(const _Atomic uint64_t *c)
{
	return atomic_load_explicit((_Atomic uint64_t *)c, memory_order_relaxed);
}

/* ---- writer thread ---- */

static int pwrite_all(int fd, const void *data, size_t n, uint64_t off)
{
	const uint8_t *p = data;

	while (n) {
		ssize_t done = pwrite(fd, p, n, (off_t)off);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO;
		p += done;
		n -= (size_t)done;
		off += (uint64_t)done;
	}
	return 0;
}

static int write_block(struct ttmon_rec_writer *w, uint32_t type, const void *raw, size_t raw_len)
{
	struct ttmon_rec_block *head = (struct ttmon_rec_block *)w->comp;
	uint8_t *body = w->comp + sizeof(*head);
	uLongf comp_len = w->comp_size - sizeof(*head);
	uint64_t off = value(&w->file_bytes);
	int err;

	if (compress2(body, &comp_len, raw, raw_len, 1) != Z_OK)
		return -ENOMEM;
	*head = (struct ttmon_rec_block){
		.type = type,
		.raw_len = (uint32_t)raw_len,
		.comp_len = (uint32_t)comp_len,
		.crc = (uint32_t)crc32(0, body, (uInt)comp_len),
	};
	err = pwrite_all(w->fd, w->comp, sizeof(*head) + comp_len, off);
	if (err)
		return err;
	count(&w->file_bytes, sizeof(*head) + comp_len);
	return 0;
}

static void latch(struct ttmon_rec_writer *w, int err)
{
	if (err && !atomic_load(&w->error))
		atomic_store(&w->error, err);
}

static void write_end(struct ttmon_rec_writer *w)
{
	struct ttmon_rec_end end = {
		.records = value(&w->taken) - value(&w->failed),
		.dropped = value(&w->refused) + value(&w->failed),
		.end_ns = w->end_ns,
	};
	int err;

	err = write_block(w, TTMON_REC_END, &end, sizeof(end));
	/* A failed write may have left part of a block after the last whole one. */
	if (ftruncate(w->fd, (off_t)value(&w->file_bytes)) && !err)
		err = -errno;
	w->ended = !err;
	latch(w, err);
}

static void *writer_main(void *arg)
{
	struct ttmon_rec_writer *w = arg;

	/*
	 * The traced programs take the CPUs that this thread needs to keep up with them. If refused, it runs
	 * at ordinary priority.
	 */
	setpriority(PRIO_PROCESS, 0, WRITER_NICE);
	for (unsigned int next = 0;; next++) {
		struct rec_buf *b;

		while (sem_wait(&w->work))
			; /* EINTR */
		b = &w->buf[w->order[next % NR_BUFS]];
		if (!atomic_load_explicit(&b->full, memory_order_acquire))
			break;
		if (!atomic_load(&w->error))
			latch(w, write_block(w, TTMON_REC_DATA, b->data, b->len));
		if (atomic_load(&w->error))
			count(&w->failed, b->records);
		b->len = 0;
		b->records = 0;
		atomic_store_explicit(&b->full, false, memory_order_release);
	}
	write_end(w);
	return NULL;
}

/* ---- hot thread ---- */

static void hand_over(struct ttmon_rec_writer *w)
{
	w->order[w->handed++ % NR_BUFS] = (uint8_t)w->cur;
	atomic_store_explicit(&w->buf[w->cur].full, true, memory_order_release);
	sem_post(&w->work);
	w->flush_set = false;
}

static bool is_full(const struct rec_buf *b)
{
	return atomic_load_explicit(&b->full, memory_order_acquire);
}

/* True if no buffer waits for the writer thread. */
static bool writer_idle(const struct ttmon_rec_writer *w)
{
	for (unsigned int i = 0; i < NR_BUFS; i++)
		if (is_full(&w->buf[i]))
			return false;
	return true;
}

/* The first free one, so that no more buffers are used than needed. */
static bool take_buffer(struct ttmon_rec_writer *w)
{
	for (unsigned int i = 0; i < NR_BUFS; i++) {
		struct rec_buf *b = &w->buf[i];

		if (is_full(b))
			continue;
		if (!b->data)
			b->data = malloc(TTMON_REC_RAW_MAX);
		if (!b->data)
			return false;
		w->cur = i;
		return true;
	}
	return false;
}

/* Room for n bytes in the hot thread's buffer, or NULL if the writer thread has all buffers. */
static uint8_t *room(struct ttmon_rec_writer *w, size_t n)
{
	struct rec_buf *b = &w->buf[w->cur];

	if (!is_full(b)) {
		if (b->len + n <= TTMON_REC_RAW_MAX)
			return b->data + b->len;
		hand_over(w);
	}
	return take_buffer(w) ? w->buf[w->cur].data : NULL;
}

static void filled(struct ttmon_rec_writer *w, size_t n)
{
	w->buf[w->cur].len += n;
	count(&w->raw_bytes, n);
}

void ttmon_rec_writer_record(struct ttmon_rec_writer *w, const void *rec, size_t size)
{
	uint32_t head = (uint32_t)size;
	uint8_t *p = NULL;

	/*
	 * The format has no entry for a record of another size; the pipeline counts such a record as
	 * malformed.
	 */
	if (size && size % 8 == 0 && size <= TTMON_RECORD_MAX && !atomic_load_explicit(&w->error, memory_order_relaxed))
		p = room(w, sizeof(head) + size);
	if (!p) {
		count(&w->refused, 1);
		return;
	}
	memcpy(p, &head, sizeof(head));
	memcpy(p + sizeof(head), rec, size);
	filled(w, sizeof(head) + size);
	w->buf[w->cur].records++;
	count(&w->taken, 1);
}

void ttmon_rec_writer_advance(struct ttmon_rec_writer *w, uint64_t watermark_ns)
{
	uint8_t *p = room(w, ADVANCE_ENTRY);

	/* A watermark without room is no loss: the next one includes it. */
	if (!p)
		return;
	memset(p, 0, ADVANCE_ENTRY - sizeof(watermark_ns));
	memcpy(p + ADVANCE_ENTRY - sizeof(watermark_ns), &watermark_ns, sizeof(watermark_ns));
	filled(w, ADVANCE_ENTRY);
	if (!w->flush_set) {
		w->flush_set = true;
		w->mono_flush_ns = watermark_ns + FLUSH_NS;
	} else if (!ttmon_before(watermark_ns, w->mono_flush_ns) && writer_idle(w)) {
		hand_over(w);
	}
}

void ttmon_rec_writer_stats(const struct ttmon_rec_writer *w, struct ttmon_rec_stats *ret)
{
	uint64_t failed = value(&w->failed);

	*ret = (struct ttmon_rec_stats){
		.records = value(&w->taken) - failed,
		.dropped = value(&w->refused) + failed,
		.raw_bytes = value(&w->raw_bytes),
		.file_bytes = value(&w->file_bytes),
	};
}

/* ---- life of a writer, main thread ---- */

static void writer_free(struct ttmon_rec_writer *w)
{
	if (!w)
		return;
	if (w->running) {
		sem_post(&w->work);
		pthread_join(w->thread, NULL);
	}
	if (w->fd >= 0)
		close(w->fd);
	sem_destroy(&w->work);
	for (size_t i = 0; i < ARRAY_SIZE(w->buf); i++)
		free(w->buf[i].data);
	free(w->comp);
	free(w->path);
	free(w->tmp);
	free(w);
}

TTMON_FREEP(writer_freep, struct ttmon_rec_writer, writer_free);

/*
 * The target of a symbolic link, since rename() would replace the link. A device or a pipe must not be
 * replaced by a file.
 */
static int real_target(const char *path, char **ret)
{
	_cleanup_free_ char *target = realpath(path, NULL);
	struct stat st;

	if (!target) {
		if (errno != ENOENT)
			return -errno;
		target = strdup(path);
		if (!target)
			return -ENOMEM;
	} else {
		if (stat(target, &st))
			return -errno;
		if (!S_ISREG(st.st_mode))
			return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	}
	*ret = TAKE_PTR(target);
	return 0;
}

/*
 * Files that killed runs left for this path, and that are no longer written: the youngest is kept as
 * PATH.cut.
 */
static void keep_youngest(const char *path)
{
	_cleanup_free_ char *dir_name = strdup(path), *cut = NULL, *young = NULL;
	char *slash = dir_name ? strrchr(dir_name, '/') : NULL;
	const char *base = slash ? path + (slash - dir_name) + 1 : path;
	struct timespec newest = { 0 };
	size_t n = strlen(base);
	struct dirent *ent;
	DIR *dir;

	if (slash)
		slash[slash == dir_name] = '\0';
	dir = dir_name ? opendir(slash ? dir_name : ".") : NULL;
	while (dir && (ent = readdir(dir))) {
		_cleanup_free_ char *name = NULL;
		_cleanup_close_ int fd = -1;
		struct stat st;

		if (strncmp(ent->d_name, base, n) || strncmp(ent->d_name + n, ".tmp.", 5) || !ent->d_name[n + 5] ||
		    ent->d_name[n + 5 + strspn(ent->d_name + n + 5, "0123456789")])
			continue;
		fd = openat(dirfd(dir), ent->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB) ||
		    asprintf(&name, "%.*s%s", (int)(base - path), path, ent->d_name) < 0)
			continue;
		if (young && (st.st_mtim.tv_sec < newest.tv_sec ||
			      (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec))) {
			unlink(name);
			continue;
		}
		if (young)
			unlink(young);
		free(young);
		young = TAKE_PTR(name);
		newest = st.st_mtim;
	}
	if (dir)
		closedir(dir);
	if (young && asprintf(&cut, "%s.cut", path) >= 0)
		(void)!rename(young, cut);
}

int ttmon_rec_writer_new(const char *path, uint32_t nr_cpus, struct ttmon_rec_writer **ret)
{
	struct ttmon_rec_file file = {
		.version = TTMON_REC_VERSION,
		.bom = TTMON_REC_BOM,
		.nr_cpus = nr_cpus,
		.header_len = sizeof(file),
	};
	_cleanup_(writer_freep) struct ttmon_rec_writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->fd = -1;
	sem_init(&w->work, 0, 0);
	err = real_target(path, &w->path);
	if (err)
		return err;
	if (asprintf(&w->tmp, "%s.tmp.%d", w->path, (int)getpid()) < 0) {
		w->tmp = NULL;
		return -ENOMEM;
	}
	w->comp_size = sizeof(struct ttmon_rec_block) + compressBound(TTMON_REC_RAW_MAX);
	w->comp = malloc(w->comp_size);
	if (!w->comp || !take_buffer(w))
		return -ENOMEM;

	keep_youngest(w->path);
	/* Removes one that a crashed run with our pid left behind, which happens in a container. */
	unlink(w->tmp);
	w->fd = open(w->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return -errno;
	/* The lock shows later runs that the file is being written. */
	(void)!flock(w->fd, LOCK_EX | LOCK_NB);
	memcpy(file.magic, TTMON_REC_MAGIC, sizeof(file.magic));
	err = pwrite_all(w->fd, &file, sizeof(file), 0);
	if (!err) {
		count(&w->file_bytes, sizeof(file));
		err = ttmon_thread_start(&w->thread, NULL, WRITER_THREAD, writer_main, w);
		w->running = !err;
	}
	if (err) {
		unlink(w->tmp);
		return err;
	}
	*ret = TAKE_PTR(w);
	return 0;
}

/* The new name is durable only once the directory is written. */
static int sync_dir_of(const char *path)
{
	_cleanup_free_ char *dir = strdup(path);
	_cleanup_close_ int fd = -1;
	char *slash;

	if (!dir)
		return -ENOMEM;
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Some file systems cannot sync a directory: EINVAL, which is ignored. */
	return fsync(fd) && errno != EINVAL ? -errno : 0;
}

/* The complete file gets its name. */
static int publish(const struct ttmon_rec_writer *w)
{
	if (fsync(w->fd) || rename(w->tmp, w->path))
		return -errno;
	return sync_dir_of(w->path);
}

int ttmon_rec_writer_close(struct ttmon_rec_writer *w, uint64_t end_ns)
{
	struct rec_buf *b;
	int err;

	if (!w)
		return 0;
	b = &w->buf[w->cur];
	w->end_ns = end_ns;
	if (!atomic_load_explicit(&b->full, memory_order_acquire) && b->len)
		hand_over(w);
	sem_post(&w->work);
	pthread_join(w->thread, NULL);
	w->running = false;
	if (w->ended)
		latch(w, publish(w));
	err = atomic_load(&w->error);
	writer_free(w);
	return err;
}
