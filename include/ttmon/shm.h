/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shm.h: the segment /dev/shm/ttmon.v1: the last closed slots of a running ttmond with their rows, and
 * a reader of it. C11 and C++, nothing to link; needs POSIX.1-2008 (gcc's default, or
 * -D_POSIX_C_SOURCE=200809L with -std=c11). docs/examples/ttmon-slots.c uses it.
 *
 *	offset 0            struct ttmon_shm_head
 *	head_size           entry 0: u64 sequence, struct ttmon_slot, then room for `rows` times
 *			struct ttmon_slot_row
 *	 + entry_size       entry 1 ...
 *
 * Slot number n since the start of ttmond (n = 0, 1, ...; not the slot's own number, which counts
 * milliseconds of CLOCK_MONOTONIC) is in entry n % entries. Its sequence is 2n + 1 while it is written
 * and 2n + 2 when it is complete. The writer does not wait for readers: a reader that is more than
 * `entries` slots behind has missed some, and gets their number.
 *
 *	writer   seq = 2n+1 | release fence | words, relaxed | seq = 2n+2, release | published =
 *		n+1, release
 *	reader   published, acquire | seq, acquire: 2n+2? | words, relaxed | acquire fence | seq,
 *		relaxed: still 2n+2?
 *
 * A reader that reads a word of a later slot has then synchronized with its release fence and sees
 * that slot's sequence. Everything is stored and read as aligned 8-byte words. Sizes are in the head,
 * so that later versions of ttmond can append fields to the head, to slots and to rows: a reader takes
 * the fields that it knows, and fields that the writer does not have are 0. `version` changes if that
 * is not enough. 0 copies can mean that they were not traced: check with ttmon_slot_knows() (slot.h),
 * which also recognizes slots of an older writer.
 *
 * When ttmond ends, it sets `state`. If it is killed, its heartbeat stops (ttmon_shm_age_ns()), until
 * the next ttmond takes over the name and sets the state of the old segment. Readers then open the
 * path again.
 */
#ifndef TTMON_SHM_H
#define TTMON_SHM_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <ttmon/slot.h>

#ifndef TTMON_SHM_PATH
#define TTMON_SHM_PATH "/dev/shm/ttmon.v1"
#endif
#define TTMON_SHM_MAGIC	  0x6d68736e6f6d7474ull /* "ttmonshm" */
#define TTMON_SHM_VERSION 1
/* Minimum sizes in version 1. */
#define TTMON_SHM_MIN_SLOT 120
#define TTMON_SHM_MIN_ROW  136

enum ttmon_shm_state { TTMON_SHM_RUNNING = 1, TTMON_SHM_ENDED = 2 };

struct ttmon_shm_head {
	__u64 magic;
	__u32 version;
	__u32 head_size; /* bytes: offset of the first entry */
	__u64 size;	 /* size of the segment */
	__u32 entries;
	__u32 entry_size;
	__u32 slot_size; /* size of struct ttmon_slot in the writer */
	__u32 row_size;
	__u32 rows;	  /* rows for which an entry has room */
	__u32 pid;	  /* of ttmond */
	__u64 pid_start;  /* field 22 of its /proc/PID/stat, to detect a reused pid */
	__u64 created_ns; /* CLOCK_MONOTONIC */
	char boot_id[40]; /* /proc/sys/kernel/random/boot_id */
	__u64 reserved[3];
	/* The fields from byte 128 on change. */
	__u64 state;	 /* enum ttmon_shm_state */
	__u64 published; /* number of slots so far */
	__u64 newest;	 /* slot number of the last one */
	/* CLOCK_MONOTONIC of that; a running ttmond publishes at least every 20 ms, even without events */
	__u64 heartbeat_ns;
	__u64 reserved2[4];
};

#ifdef __cplusplus
#define TTMON_SHM_ASSERT static_assert
#else
#define TTMON_SHM_ASSERT _Static_assert
#endif
TTMON_SHM_ASSERT(sizeof(struct ttmon_shm_head) == 192, "head");
TTMON_SHM_ASSERT(sizeof(struct ttmon_slot) % 8 == 0 && sizeof(struct ttmon_slot) >= TTMON_SHM_MIN_SLOT,
		 "slots are words");
TTMON_SHM_ASSERT(sizeof(struct ttmon_slot_row) % 8 == 0 && sizeof(struct ttmon_slot_row) >= TTMON_SHM_MIN_ROW,
		 "rows are words");
#undef TTMON_SHM_ASSERT

/* A reader. One thread at a time. The user may read `next` and `missed`. */
struct ttmon_shm_reader {
	const __u64 *map;
	__u64 size;
	__u32 head_size, entries, entry_size, slot_size, row_size, rows;
	__u64 next;   /* number of the next slot, since the start of ttmond */
	__u64 missed; /* set by the last -EOVERFLOW */
};

static inline __u64 ttmon_shm_word(const struct ttmon_shm_reader *r, __u64 offset)
{
	return __atomic_load_n(r->map + offset / 8, __ATOMIC_RELAXED);
}

/* Reads one word of the head with acquire ordering. */
#define TTMON_SHM_HEAD(r, field) \
	__atomic_load_n(&((const struct ttmon_shm_head *)(const void *)(r)->map)->field, __ATOMIC_ACQUIRE)

/*
 * Copies `want` bytes of a struct that has `have` bytes in the writer; the rest becomes 0. Both are
 * multiples of 8.
 */
static inline void ttmon_shm_copy(const struct ttmon_shm_reader *r, __u64 offset, void *to, __u32 want, __u32 have)
{
	char *p = (char *)to;
	__u32 at;

	for (at = 0; at < want; at += 8) {
		__u64 word = at < have ? ttmon_shm_word(r, offset + at) : 0;

		memcpy(p + at, &word, sizeof(word));
	}
}

/* Checks the head, which is not trusted: afterwards no access leaves the mapping. */
static inline int ttmon_shm_check(struct ttmon_shm_reader *r)
{
	const struct ttmon_shm_head *h = (const struct ttmon_shm_head *)(const void *)r->map;
	__u64 entry;

	if (__atomic_load_n(&h->magic, __ATOMIC_RELAXED) != TTMON_SHM_MAGIC)
		return -EBADMSG;
	if (__atomic_load_n(&h->version, __ATOMIC_RELAXED) != TTMON_SHM_VERSION)
		return -EPROTONOSUPPORT;
	r->head_size = __atomic_load_n(&h->head_size, __ATOMIC_RELAXED);
	r->entries = __atomic_load_n(&h->entries, __ATOMIC_RELAXED);
	r->entry_size = __atomic_load_n(&h->entry_size, __ATOMIC_RELAXED);
	r->slot_size = __atomic_load_n(&h->slot_size, __ATOMIC_RELAXED);
	r->row_size = __atomic_load_n(&h->row_size, __ATOMIC_RELAXED);
	r->rows = __atomic_load_n(&h->rows, __ATOMIC_RELAXED);
	if (r->head_size < sizeof(*h) || r->slot_size < TTMON_SHM_MIN_SLOT || r->row_size < TTMON_SHM_MIN_ROW ||
	    !r->entries || (r->head_size | r->entry_size | r->slot_size | r->row_size) % 8)
		return -EBADMSG;
	entry = 8 + (__u64)r->slot_size + (__u64)r->rows * r->row_size;
	if (r->entry_size < entry || r->head_size + (__u64)r->entries * r->entry_size > r->size)
		return -EBADMSG;
	return 0;
}

static inline void ttmon_shm_close(struct ttmon_shm_reader *r)
{
	if (r->map)
		munmap((void *)(__u64 *)r->map, (size_t)r->size);
	memset(r, 0, sizeof(*r));
}

/*
 * Opens the segment of a running ttmond (path NULL: TTMON_SHM_PATH), positioned at its newest slot.
 * Returns 0 or -errno: -ENOENT: no ttmond is running; -EACCES: no permission (the group ttmon may
 * read); -EPERM: it belongs neither to root nor to this user, so that its owner could truncate it
 * under a reader; -EBADMSG: another file, or damaged; -EPROTONOSUPPORT: another version.
 */
static inline int ttmon_shm_open(const char *path, struct ttmon_shm_reader *ret)
{
	struct ttmon_shm_reader r;
	struct stat st;
	void *map;
	__u64 published;
	int fd, err = 0;

	memset(&r, 0, sizeof(r));
	fd = open(path ? path : TTMON_SHM_PATH, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct ttmon_shm_head))
		err = -EBADMSG;
	else if (st.st_uid != 0 && st.st_uid != geteuid())
		err = -EPERM;
	if (!err) {
		r.size = (__u64)st.st_size;
		map = mmap(NULL, (size_t)r.size, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			err = -errno;
		else
			r.map = (const __u64 *)map;
	}
	close(fd);
	if (!err)
		err = ttmon_shm_check(&r);
	if (err) {
		ttmon_shm_close(&r);
		return err;
	}
	published = TTMON_SHM_HEAD(&r, published);
	r.next = published ? published - 1 : 0;
	*ret = r;
	return 0;
}

/* Moves to the oldest slot that is kept, to read the slots before the opening too. */
static inline void ttmon_shm_rewind(struct ttmon_shm_reader *r)
{
	__u64 published = TTMON_SHM_HEAD(r, published);

	r->next = published > r->entries ? published - r->entries : 0;
}

/*
 * Returns the ns since the newest slot was published; a running ttmond publishes at least every 20 ms.
 */
static inline __u64 ttmon_shm_age_ns(const struct ttmon_shm_reader *r)
{
	__u64 beat = TTMON_SHM_HEAD(r, heartbeat_ns), now;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (__u64)ts.tv_sec * 1000000000u + (__u64)ts.tv_nsec;
	return now > beat ? now - beat : 0;
}

/*
 * The slot at r->next was overwritten. Continues with a slot that will not be overwritten at once,
 * always forwards.
 */
static inline int ttmon_shm_overrun(struct ttmon_shm_reader *r, __u64 published)
{
	__u64 keep = r->entries - r->entries / 4, next = published > keep ? published - keep : 0;

	if (next <= r->next)
		next = r->next + 1;
	r->missed = next - r->next;
	r->next = next;
	return -EOVERFLOW;
}

/*
 * Reads the next slot. Returns 1: *slot and its first max_rows rows are filled; slot->nr_rows may be
 * more than max_rows; 0: there is no new slot yet; -EOVERFLOW: r->missed slots were overwritten before
 * they were read, call again; -EPIPE: ttmond has ended, and there are no more.
 */
static inline int ttmon_shm_next(struct ttmon_shm_reader *r, struct ttmon_slot *slot, struct ttmon_slot_row *rows,
				 __u32 max_rows)
{
	/* Read the state first: then all that was published before the end is seen. */
	__u64 state = TTMON_SHM_HEAD(r, state), published = TTMON_SHM_HEAD(r, published);
	__u64 at = r->head_size + r->next % r->entries * r->entry_size, whole = 2 * r->next + 2;
	__u32 i, n;

	if (published <= r->next)
		return state == TTMON_SHM_ENDED ? -EPIPE : 0;
	if (published - r->next > r->entries || __atomic_load_n(r->map + at / 8, __ATOMIC_ACQUIRE) != whole)
		return ttmon_shm_overrun(r, published);
	ttmon_shm_copy(r, at + 8, slot, sizeof(*slot), r->slot_size);
	if (slot->nr_rows > r->rows)
		slot->nr_rows = r->rows;
	n = slot->nr_rows < max_rows ? slot->nr_rows : max_rows;
	for (i = 0; i < n; i++) {
		ttmon_shm_copy(r, at + 8 + r->slot_size + (__u64)i * r->row_size, &rows[i], sizeof(rows[i]),
			       r->row_size);
		rows[i].comm[sizeof(rows[i].comm) - 1] = '\0';
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (ttmon_shm_word(r, at) != whole)
		return ttmon_shm_overrun(r, TTMON_SHM_HEAD(r, published));
	r->next++;
	return 1;
}

#endif
