/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * producer.h: the program's side of <ttmon/mtchan.h> in C: warps are threads, what is in device memory
 * there is in this struct. P1 to P5 as the header says them, with C11's orders, and what is no tag is
 * stored plainly: TSan sees what is missing, where both sides use one mapping.
 */
#ifndef TTMON_TESTS_PRODUCER_H
#define TTMON_TESTS_PRODUCER_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ttmon/mtchan.h>

#include "memtrace/model/mt.h"

struct mtp {
	int fd;
	uint8_t *mem;
	struct ttmon_mtc_head *head;
	struct ttmon_mtc_ring *rings; /* device memory */
	uint32_t nr_rings, units;
	uint32_t spin; /* polls of a full ring */
	pthread_mutex_t lock;
	uint64_t dict_head;
};

static inline uint64_t mtp_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static inline int mtp_new(struct mtp *p, uint32_t nr_rings, uint32_t units, uint32_t dict_bytes)
{
	uint64_t tails = 4096, dict = tails + mtp_up(nr_rings * sizeof(struct ttmon_mtc_tail), 4096),
		 rings = dict + dict_bytes;
	uint64_t bytes = rings + mtp_up((uint64_t)nr_rings * units * TTMON_MTC_UNIT, 4096);
	void *mem;

	*p = (struct mtp){ .nr_rings = nr_rings, .units = units, .spin = 1000, .lock = PTHREAD_MUTEX_INITIALIZER };
	p->fd = memfd_create("ttmon-memtrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->fd < 0 || ftruncate(p->fd, (off_t)bytes) ||
	    fcntl(p->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (mem == MAP_FAILED)
		return -errno;
	p->mem = mem;
	p->head = mem;
	p->rings = calloc(nr_rings, sizeof(*p->rings));
	if (!p->rings)
		return -ENOMEM;
	*p->head = (struct ttmon_mtc_head){ .magic = TTMON_MTC_MAGIC,
					    .version = TTMON_MTC_VERSION,
					    .head_bytes = sizeof(*p->head),
					    .pid = (uint32_t)getpid(),
					    .nr_rings = nr_rings,
					    .bytes = bytes,
					    .tails_off = tails,
					    .dict_off = dict,
					    .dict_bytes = dict_bytes,
					    .rings_off = rings,
					    .units = units,
					    .ctx = 1,
					    .sample = 1,
					    .state = TTMON_MTC_RUNNING };
	return 0;
}

static inline void mtp_free(struct mtp *p)
{
	munmap(p->mem, p->head->bytes);
	close(p->fd);
	free(p->rings);
}

/* Entry e of size bytes (its e.kind is set) and texts up to a NULL. False: no room. */
static inline bool mtp_entry(struct mtp *p, void *e, size_t size, ...)
{
	struct ttmon_mtc_entry *head = e;
	uint64_t mask = p->head->dict_bytes - 1;
	uint8_t *dict = p->mem + p->head->dict_off;
	uint64_t buf[TTMON_MTC_MAX_ENTRY / 8] = { 0 };
	size_t n = size;
	const char *text;
	bool fits;
	va_list ap;

	va_start(ap, size);
	while ((text = va_arg(ap, const char *))) {
		memcpy((char *)buf + n, text, strlen(text) + 1);
		n += strlen(text) + 1;
	}
	va_end(ap);
	n = mtp_up(n, 8);
	head->bytes = (uint32_t)n;
	memcpy(buf, e, size);
	pthread_mutex_lock(&p->lock);
	fits = p->dict_head + n - __atomic_load_n(&p->head->dict_tail, __ATOMIC_ACQUIRE) <= p->head->dict_bytes;
	if (fits) {
		for (size_t i = 0; i < n / 8; i++)
			__atomic_store_n((uint64_t *)(void *)(dict + ((p->dict_head + i * 8) & mask)), buf[i],
					 __ATOMIC_RELAXED);
		p->dict_head += n;
		__atomic_store_n(&p->head->dict_head, p->dict_head, __ATOMIC_RELEASE);
	} else {
		__atomic_fetch_add(&p->head->dict_lost, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&p->lock);
	return fits;
}

static inline bool mtp_site(struct mtp *p, uint32_t id, unsigned int space, unsigned int kind, unsigned int width,
			    const char *kernel, const char *opcode)
{
	struct ttmon_mtc_site e = { .e.kind = TTMON_MTC_ENTRY_SITE,
				    .id = id,
				    .space = (uint8_t)space,
				    .kind = (uint8_t)kind,
				    .width = (uint8_t)width };

	return mtp_entry(p, &e, sizeof(e), kernel, opcode, "", "", NULL);
}

static inline bool mtp_launch(struct mtp *p, uint32_t id, const char *kernel)
{
	struct ttmon_mtc_launch e = {
		.e.kind = TTMON_MTC_ENTRY_LAUNCH, .id = id, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }
	};

	return mtp_entry(p, &e, sizeof(e), kernel, NULL);
}

static inline bool mtp_kernel(struct mtp *p, const char *name, uint64_t launches, uint64_t recorded, uint32_t sites,
			      const char *why)
{
	struct ttmon_mtc_kernel e = {
		.e.kind = TTMON_MTC_ENTRY_KERNEL, .launches = launches, .recorded = recorded, .sites = sites
	};

	return mtp_entry(p, &e, sizeof(e), name, "module.cubin", why, NULL);
}

static inline uint64_t *mtp_unit(const struct mtp *p, uint32_t ring, uint64_t pos)
{
	uint64_t unit = (uint64_t)ring * p->units + (pos & (p->units - 1));

	return (uint64_t *)(void *)(p->mem + p->head->rings_off + unit * TTMON_MTC_UNIT);
}

/* P1 and P2. ret: the first unit. *lost: there is a unit more. */
static inline bool mtp_reserve(struct mtp *p, uint32_t ring, unsigned int units, uint64_t *ret, bool *lost)
{
	struct ttmon_mtc_ring *r = &p->rings[ring];
	struct ttmon_mtc_tail *tails = (struct ttmon_mtc_tail *)(void *)(p->mem + p->head->tails_off);
	uint32_t polls = 0;

	for (;;) {
		uint64_t h = __atomic_load_n(&r->head, __ATOMIC_RELAXED), t;
		unsigned int n;

		*lost = __atomic_load_n(&r->lost, __ATOMIC_RELAXED);
		n = units + *lost;
		if ((int64_t)(h + n - __atomic_load_n(&r->seen, __ATOMIC_ACQUIRE)) > (int64_t)p->units) {
			t = __atomic_load_n(&tails[ring].tail, __ATOMIC_ACQUIRE);
			if ((int64_t)(h + n - t) > (int64_t)p->units) {
				if (t + 1 == __atomic_load_n(&r->stuck, __ATOMIC_RELAXED) || polls++ >= p->spin) {
					__atomic_store_n(&r->stuck, t + 1, __ATOMIC_RELAXED);
					__atomic_fetch_add(&r->lost, 1, __ATOMIC_RELAXED);
					return false;
				}
				sched_yield();
				continue;
			}
			__atomic_store_n(&r->seen, t, __ATOMIC_RELEASE);
		}
		if (__atomic_compare_exchange_n(&r->head, &h, h + n, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			*ret = h;
			return true;
		}
	}
}

static inline uint32_t mtp_tag(const struct mtp *p, unsigned int kind, unsigned int space, uint32_t site, uint64_t pos)
{
	return TTMON_MTC_COMMITTED | kind << 29 | space << 27 | (uint32_t)(pos / p->units & 31) << 22 | site;
}

/*
 * One record of a warp: affine, or with list the addresses of its active lanes. False: it was dropped.
 */
static inline bool mtp_put(struct mtp *p, uint32_t ring, struct ttmon_mtc_rec rec, unsigned int space, uint32_t site,
			   const uint64_t *list)
{
	unsigned int lanes = (unsigned int)__builtin_popcount(rec.mask);
	uint64_t pos, first, words[4];
	bool lost;

	if (!mtp_reserve(p, ring, list ? TTMON_MTC_LIST_UNITS(lanes) : 1, &pos, &lost))
		return false;
	first = pos;
	if (lost)
		*mtp_unit(p, ring, pos++) = __atomic_exchange_n(&p->rings[ring].lost, 0, __ATOMIC_RELAXED);
	for (unsigned int i = 0; list && i < lanes; i++)
		mtp_unit(p, ring, pos + 1 + i / 4)[i % 4] = list[i];
	rec.tag = 0;
	memcpy(words, &rec, sizeof(words));
	for (unsigned int i = 0; i < 3; i++)
		mtp_unit(p, ring, pos)[i] = words[i];
	((uint32_t *)(void *)mtp_unit(p, ring, pos))[6] = (uint32_t)words[3];
	if (lost)
		__atomic_store_n((uint32_t *)(void *)mtp_unit(p, ring, first) + 7,
				 mtp_tag(p, TTMON_MTC_LOST, 0, 0, first), __ATOMIC_RELEASE);
	__atomic_store_n((uint32_t *)(void *)mtp_unit(p, ring, pos) + 7,
			 mtp_tag(p, list ? TTMON_MTC_LIST : TTMON_MTC_AFFINE, space, site, pos), __ATOMIC_RELEASE);
	return true;
}

/* The end: what was dropped and not said, then that it is over. */
static inline void mtp_done(struct mtp *p)
{
	struct ttmon_mtc_lost e = { .e.kind = TTMON_MTC_ENTRY_LOST };

	for (uint32_t i = 0; i < p->nr_rings; i++)
		e.records += __atomic_exchange_n(&p->rings[i].lost, 0, __ATOMIC_RELAXED);
	if (e.records)
		mtp_entry(p, &e, sizeof(e), NULL);
	__atomic_store_n(&p->head->state, TTMON_MTC_DONE, __ATOMIC_RELEASE);
}

/* Connected to path, hello sent with fd (-1: none). The socket, or -errno. */
static inline int mtp_hello(const struct mtp *p, const char *path, int fd)
{
	struct ttmon_mtc_hello hello = { TTMON_MTC_MAGIC, p->head->version, p->head->bytes };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct iovec iov = { &hello, sizeof(hello) };
	union {
		struct cmsghdr c;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .c = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.c), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.room);
	}
	if (sock < 0 || connect(sock, (const struct sockaddr *)&addr, sizeof(addr)) ||
	    sendmsg(sock, &msg, MSG_NOSIGNAL) < 0) {
		int err = -errno;

		if (sock >= 0)
			close(sock);
		return err;
	}
	return sock;
}

/* What the other side says to it: 0, or -errno; -ECONNRESET: nothing. */
static inline int mtp_answer(int sock)
{
	struct ttmon_mtc_answer a;

	return recv(sock, &a, sizeof(a), 0) == sizeof(a) && a.magic == TTMON_MTC_MAGIC ? a.status : -ECONNRESET;
}

#endif
