// SPDX-License-Identifier: GPL-2.0-only
/*
 * slotfile.c: see slotfile.h; the format is that of lib/read/slots.h.
 *
 * Between the hot thread and the writer's own thread lies a ring of 8 MiB with one producer and one
 * consumer: no lock, and the hot thread makes no system call but, when the ring gets half full, one
 * sem_post(). Slots wait there uncoded; the writer wakes 10 times a second, encodes, and writes a
 * block each second or 64 KiB. A slot without room is counted, and the next one in the file says so.
 *
 * The first write error is kept and returned by close. Later slots count as dropped; a plain file is
 * cut back to its last whole block, and gets its end if there is room for that.
 */
#include "daemon/io/files/slotfile.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <zlib.h>

#include "lib/read/slots.h"
#include "lib/os/clock.h"
#include "lib/os/soon.h"
#include "lib/os/thread.h"

#define RING	   (8u << 20) /* a power of two */
#define LOOK_NS	   (100 * NSEC_PER_MS)
#define BLOCK_NS   NSEC_PER_SEC
#define TURN	   16 /* slots, some 0.1 ms: then threads of the same priority, such as the hot thread, get the CPU */
#define THREAD	   "ttmon-slots"
#define GZIP_LEVEL "4"

/* An entry of the ring; slot.nr_rows rows follow. */
struct waiting {
	struct ttmon_slot slot;
	uint64_t missed;
};

struct ttmon_slotfile {
	uint8_t *ring;
	_Atomic uint64_t head, tail; /* bytes written by the hot thread, read by the writer */
	sem_t work;
	atomic_bool stop;
	pthread_t thread;

	/* Used by the hot thread. */
	uint64_t missed; /* since the last slot that had room */
	bool poked;
	_Atomic uint64_t refused, raw_bytes;

	/* Used by the writer. */
	int fd; /* uncompressed output */
	gzFile gz;
	bool regular;
	struct ttmon_slots_enc *enc;
	struct ttmon_slot_row *rows;
	size_t cap_rows;
	uint64_t block_ns;		   /* when its first slot was added */
	uint64_t block_slots, block_rows;  /* in the current block */
	_Atomic uint64_t slots, rows_done; /* in the file */
	_Atomic uint64_t failed, file_bytes;
	_Atomic int err; /* the first one, -errno */
};

/* Counters with one writing thread need no locked instruction. */
static void count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t value(_Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* ---- hot thread ---- */

static void ring_put(struct ttmon_slotfile *f, uint64_t at, const void *data, size_t n)
{
	size_t pos = at % RING, first = MIN(n, RING - pos);

	memcpy(f->ring + pos, data, first);
	memcpy(f->ring, (const uint8_t *)data + first, n - first);
}

bool ttmon_slotfile_put(struct ttmon_slotfile *f, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows,
			size_t n)
{
	struct waiting w = { .slot = *slot, .missed = f->missed };
	uint64_t head = value(&f->head), used = head - atomic_load_explicit(&f->tail, memory_order_acquire);
	size_t size = sizeof(w) + n * sizeof(*rows);

	if (n > TTMON_SLOTS_MAX_ROWS || size > RING - used || atomic_load_explicit(&f->err, memory_order_relaxed)) {
		f->missed++;
		count(&f->refused, 1);
		return false;
	}
	w.slot.nr_rows = (uint32_t)n;
	ring_put(f, head, &w, sizeof(w));
	if (n)
		ring_put(f, head + sizeof(w), rows, n * sizeof(*rows));
	atomic_store_explicit(&f->head, head + size, memory_order_release);
	f->missed = 0;
	count(&f->raw_bytes, size);
	if (used + size < RING / 2) {
		f->poked = false;
	} else if (!f->poked) {
		f->poked = true;
		sem_post(&f->work);
	}
	return true;
}

/* ---- the writer's thread ---- */

static void ring_get(const struct ttmon_slotfile *f, uint64_t at, void *to, size_t n)
{
	size_t pos = at % RING, first = MIN(n, RING - pos);

	memcpy(to, f->ring + pos, first);
	memcpy((uint8_t *)to + first, f->ring, n - first);
}

static int write_plain(struct ttmon_slotfile *f, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = write(f->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Flushes zlib, so that a reader of the growing file sees the block. */
static int write_gz(struct ttmon_slotfile *f, const uint8_t *p, size_t n)
{
	z_off_t at;

	errno = 0;
	if (gzwrite(f->gz, p, (unsigned int)n) != (int)n || gzflush(f->gz, Z_SYNC_FLUSH) != Z_OK)
		return errno ? -errno : -EIO;
	/* A pipe has no offset. */
	at = gzoffset(f->gz);
	atomic_store_explicit(&f->file_bytes, (uint64_t)MAX(at, 0), memory_order_relaxed);
	return 0;
}

static int write_bytes(struct ttmon_slotfile *f, const uint8_t *p, size_t n)
{
	int err;

	if (f->gz)
		return write_gz(f, p, n);
	err = write_plain(f, p, n);
	if (!err)
		count(&f->file_bytes, n);
	/* Part of a block may follow the last whole one. */
	else if (f->regular && (ftruncate(f->fd, (off_t)value(&f->file_bytes)) || lseek(f->fd, 0, SEEK_END) < 0))
		f->regular = false;
	return err;
}

static void latch(struct ttmon_slotfile *f, int err)
{
	if (err && !atomic_load(&f->err))
		atomic_store(&f->err, err);
}

static void flush_block(struct ttmon_slotfile *f)
{
	const uint8_t *block;
	size_t len;
	int err = ttmon_slots_enc_block(f->enc, &block, &len);

	if (!err && len && !atomic_load(&f->err))
		err = write_bytes(f, block, len);
	latch(f, err);
	if (atomic_load(&f->err)) {
		count(&f->failed, f->block_slots);
	} else {
		count(&f->slots, f->block_slots);
		count(&f->rows_done, f->block_rows);
	}
	f->block_slots = 0;
	f->block_rows = 0;
}

static void encode(struct ttmon_slotfile *f, const struct waiting *w)
{
	const struct ttmon_slots_item item = { .slot = w->slot, .missed = w->missed, .rows = f->rows };
	int err = atomic_load(&f->err) ? 0 : ttmon_slots_enc_add(f->enc, &item);

	latch(f, err);
	if (atomic_load(&f->err)) {
		count(&f->failed, 1);
		return;
	}
	if (!f->block_slots)
		f->block_ns = ttmon_mono_ns();
	f->block_slots++;
	f->block_rows += w->slot.nr_rows;
	if (ttmon_slots_enc_full(f->enc)) {
		flush_block(f);
		sched_yield();
	}
}

/* False: nothing waits. */
static bool take_one(struct ttmon_slotfile *f)
{
	uint64_t tail = value(&f->tail);
	struct waiting w;
	size_t bytes;

	if (tail == atomic_load_explicit(&f->head, memory_order_acquire))
		return false;
	ring_get(f, tail, &w, sizeof(w));
	bytes = w.slot.nr_rows * sizeof(*f->rows);
	if (w.slot.nr_rows > f->cap_rows) {
		free(f->rows);
		f->cap_rows = w.slot.nr_rows * 2;
		f->rows = malloc(f->cap_rows * sizeof(*f->rows));
		if (!f->rows) {
			f->cap_rows = 0;
			latch(f, -ENOMEM);
		}
	}
	if (f->rows)
		ring_get(f, tail + sizeof(w), f->rows, bytes);
	atomic_store_explicit(&f->tail, tail + sizeof(w) + bytes, memory_order_release);
	encode(f, &w);
	return true;
}

static void write_end(struct ttmon_slotfile *f)
{
	const struct ttmon_slots_end end = { .slots = value(&f->slots),
					     .rows = value(&f->rows_done),
					     .dropped = value(&f->refused) + value(&f->failed) };
	uint8_t buf[TTMON_SLOTS_END_MAX];

	/* In a compressed file, the last write may be incomplete at any point. */
	if (atomic_load(&f->err) && !f->regular)
		return;
	latch(f, write_bytes(f, buf, ttmon_slots_enc_end(&end, buf)));
}

static void wait_for_work(struct ttmon_slotfile *f)
{
	uint64_t until = ttmon_mono_ns() + LOOK_NS;
	struct timespec ts = { .tv_sec = (time_t)(until / NSEC_PER_SEC), .tv_nsec = (long)(until % NSEC_PER_SEC) };

	sem_clockwait(&f->work, CLOCK_MONOTONIC, &ts);
}

static void *writer_main(void *arg)
{
	struct ttmon_slotfile *f = arg;

	/* The traced programs take the CPUs that this thread needs to keep up. */
	(void)ttmon_thread_soon();
	for (;;) {
		bool stop = atomic_load(&f->stop);

		for (unsigned int n = 1; take_one(f); n++)
			if (n % TURN == 0)
				sched_yield();
		if (stop)
			break;
		if (f->block_slots && ttmon_mono_ns() - f->block_ns >= BLOCK_NS)
			flush_block(f);
		wait_for_work(f);
	}
	flush_block(f);
	write_end(f);
	return NULL;
}

/* ---- main thread ---- */

static void slotfile_free(struct ttmon_slotfile *f)
{
	if (!f)
		return;
	if (f->gz)
		gzclose(f->gz);
	if (f->fd >= 0)
		close(f->fd);
	sem_destroy(&f->work);
	ttmon_slots_enc_free(f->enc);
	free(f->rows);
	free(f->ring);
	free(f);
}

TTMON_FREEP(slotfile_freep, struct ttmon_slotfile, slotfile_free);

static int open_file(struct ttmon_slotfile *f, const char *path)
{
	size_t len = strlen(path);
	struct stat st;
	int flags;

	/* O_NONBLOCK: a pipe without a reader gives ENXIO instead of blocking. */
	f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (f->fd < 0 || fstat(f->fd, &st))
		return -errno;
	flags = fcntl(f->fd, F_GETFL);
	if (flags < 0 || fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK))
		return -errno;
	if (len > 3 && strcmp(path + len - 3, ".gz") == 0) {
		f->gz = gzdopen(f->fd, "wb" GZIP_LEVEL);
		if (!f->gz)
			return -ENOMEM;
		TAKE_FD(f->fd);
		return 0;
	}
	f->regular = S_ISREG(st.st_mode);
	return 0;
}

static int write_head(struct ttmon_slotfile *f, const struct ttmon_slotfile_info *info)
{
	struct ttmon_slots_info head = { .start_ns = info->start_ns,
					 .real_ns = info->real_ns,
					 .nr_cpus = info->nr_cpus };
	uint8_t buf[TTMON_SLOTS_HEAD];

	snprintf(head.hostname, sizeof(head.hostname), "%s", info->hostname ? info->hostname : "");
	snprintf(head.ttmond, sizeof(head.ttmond), "%s", info->version ? info->version : "");
	ttmon_slots_enc_head(&head, buf);
	return write_bytes(f, buf, sizeof(buf));
}

int ttmon_slotfile_new(const char *path, const struct ttmon_slotfile_info *info, struct ttmon_slotfile **ret)
{
	_cleanup_(slotfile_freep) struct ttmon_slotfile *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->fd = -1;
	sem_init(&f->work, 0, 0);
	f->ring = malloc(RING);
	if (!f->ring)
		return -ENOMEM;
	err = ttmon_slots_enc_new(&f->enc);
	if (!err)
		err = open_file(f, path);
	if (!err)
		err = write_head(f, info);
	if (!err)
		err = ttmon_thread_start(&f->thread, NULL, THREAD, writer_main, f);
	if (err)
		return err;
	*ret = TAKE_PTR(f);
	return 0;
}

void ttmon_slotfile_get_stats(struct ttmon_slotfile *f, struct ttmon_slotfile_stats *ret)
{
	*ret = (struct ttmon_slotfile_stats){
		.slots = value(&f->slots),
		.rows = value(&f->rows_done),
		.dropped = value(&f->refused) + value(&f->failed),
		.raw_bytes = value(&f->raw_bytes),
		.file_bytes = value(&f->file_bytes),
		.err = atomic_load(&f->err),
	};
}

int ttmon_slotfile_close(struct ttmon_slotfile *f)
{
	int err;

	if (!f)
		return 0;
	atomic_store(&f->stop, true);
	sem_post(&f->work);
	pthread_join(f->thread, NULL);
	if (f->gz) {
		errno = 0;
		if (gzclose(f->gz) != Z_OK)
			latch(f, errno ? -errno : -EIO);
		f->gz = NULL;
	} else {
		/* Some file systems report a full disk only here. */
		if (f->regular && fsync(f->fd))
			latch(f, -errno);
		if (close(TAKE_FD(f->fd)))
			latch(f, -errno);
	}
	err = atomic_load(&f->err);
	slotfile_free(f);
	return err;
}
