// SPDX-License-Identifier: GPL-2.0-only
/*
 * mmap2.c: see mmap2.h. Runs in the cold thread.
 *
 * A buffer is a header page and 2^n data pages, shared with the kernel: it moves data_head (read with
 * acquire), we move data_tail (written with release), both count bytes for ever. Records are multiples
 * of 8 bytes and wrap at the end. The records that we take:
 *
 *	MMAP2	header(8) pid tid(4) addr len pgoff(8) maj min(4) ino generation(8) prot flags(4)
 *		name[] (8-aligned) time(8)
 *	LOST	header(8) id lost(8) time(8)
 *
 * Losses: read(2) of the event counts them at once where the kernel can (PERF_FORMAT_LOST, 6.0); a
 * LOST record only comes with the next record that found room. One of the two is used, never both.
 */
#define _GNU_SOURCE
#include "daemon/io/objects/mmap2.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define MAX_CPUS 8192
#define ONLINE	 "/sys/devices/system/cpu/online"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)
#endif

struct mmap2_body {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

struct lost_body {
	struct perf_event_header h;
	uint64_t id, lost;
};

struct cpu_buf {
	uint32_t cpu;
	int fd;
	struct perf_event_mmap_page *page; /* followed by the data */
};

struct ttmon_mmap2 {
	int epoll;
	bool can_read_lost;
	uint64_t data_bytes, page_bytes;
	struct cpu_buf *bufs;
	size_t nr_bufs;
	uint64_t lost_before; /* of closed buffers */
	struct ttmon_mmap2_stats stats;
	uint8_t *bounce;
};

static bool take_mmap2(const struct mmap2_body *b, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx)
{
	size_t n = b->h.size - sizeof(uint64_t), name = offsetof(struct mmap2_body, filename);
	struct ttmon_mmap2_rec rec;

	if (n <= name || !memchr(b->filename, 0, n - name))
		return false;
	rec = (struct ttmon_mmap2_rec){
		.addr = b->addr,
		.len = b->len,
		.pgoff = b->pgoff,
		.ino = b->ino,
		.ino_generation = b->ino_generation,
		.pid = b->pid,
		.tid = b->tid,
		.maj = b->maj,
		.min = b->min,
		.prot = b->prot,
		.flags = b->flags,
		.filename = b->filename,
	};
	memcpy(&rec.ts_ns, (const char *)b + n, sizeof(rec.ts_ns));
	cb(ctx, &rec);
	return true;
}

uint64_t ttmon_mmap2_consume(const uint8_t *data, uint64_t size, uint64_t tail, uint64_t head, uint8_t *bounce,
			     bool loss_records, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx,
			     struct ttmon_mmap2_stats *stats)
{
	/*
	 * The kernel writes well-formed records, but all later code relies on these sizes, and checking costs
	 * nothing.
	 */
	while (tail != head) {
		uint64_t left = head - tail, at = tail & (size - 1), front = size - at;
		const struct perf_event_header *h = (const void *)(data + at);
		bool ok = true;

		if (left > size || left < sizeof(*h) || h->size > left || h->size < sizeof(*h) + sizeof(uint64_t) ||
		    h->size % 8) {
			stats->malformed++;
			return head;
		}
		if (h->size > front) {
			uint16_t whole = h->size;

			memcpy(bounce, data + at, front);
			memcpy(bounce + front, data, whole - front);
			h = (const void *)bounce;
		}
		tail += h->size;
		if (h->type == PERF_RECORD_MMAP2) {
			ok = !(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && take_mmap2((const void *)h, cb, ctx);
			stats->records += ok;
		} else if (h->type == PERF_RECORD_LOST && loss_records) {
			ok = h->size >= sizeof(struct lost_body);
			stats->lost += ok ? ((const struct lost_body *)(const void *)h)->lost : 0;
		}
		stats->malformed += !ok;
	}
	return tail;
}

int ttmon_mmap2_parse_cpus(const char *text, bool *set, size_t n)
{
	memset(set, 0, n * sizeof(*set));
	while (*text && *text != '\n') {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to = from;

		if (end == text || *text < '0' || *text > '9')
			return -EBADMSG;
		if (*end == '-') {
			text = end + 1;
			to = strtoul(text, &end, 10);
			if (end == text || *text < '0' || *text > '9')
				return -EBADMSG;
		}
		if (to < from || to >= n || (*end && *end != ',' && *end != '\n'))
			return -EBADMSG;
		for (unsigned long cpu = from; cpu <= to; cpu++)
			set[cpu] = true;
		text = end + (*end == ',');
	}
	return 0;
}

static int read_online(bool *set, size_t n)
{
	_cleanup_fclose_ FILE *f = fopen(ONLINE, "re");
	char line[4096];

	if (!f)
		return -errno;
	if (!fgets(line, sizeof(line), f))
		return -EBADMSG;
	return ttmon_mmap2_parse_cpus(line, set, n);
}

static int perf_open(uint32_t cpu, bool read_lost)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.read_format = read_lost ? PERF_FORMAT_LOST : 0,
		.mmap = 1, /* executable ones; the others would come with mmap_data */
		.mmap2 = 1,
		.sample_id_all = 1, /* that is where the time comes from */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int open_cpu(struct ttmon_mmap2 *m, uint32_t cpu)
{
	struct epoll_event ev = { .events = EPOLLIN };
	_cleanup_close_ int fd = perf_open(cpu, m->can_read_lost);
	struct cpu_buf *bufs;
	void *page;

	if (fd == -EINVAL && m->can_read_lost) {
		m->can_read_lost = false;
		fd = perf_open(cpu, false);
	}
	if (fd < 0)
		return fd;
	bufs = realloc(m->bufs, (m->nr_bufs + 1) * sizeof(*bufs));
	if (!bufs)
		return -ENOMEM;
	m->bufs = bufs;
	page = mmap(NULL, m->page_bytes + m->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	if (epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &ev)) {
		int err = -errno;

		munmap(page, m->page_bytes + m->data_bytes);
		return err;
	}
	bufs[m->nr_bufs++] = (struct cpu_buf){ cpu, TAKE_FD(fd), page };
	return 0;
}

static uint64_t read_lost(const struct ttmon_mmap2 *m, const struct cpu_buf *b)
{
	struct {
		uint64_t value, lost;
	} v;

	return m->can_read_lost && read(b->fd, &v, sizeof(v)) == sizeof(v) ? v.lost : 0;
}

static void close_cpu(struct ttmon_mmap2 *m, size_t i)
{
	struct cpu_buf *b = &m->bufs[i];

	m->lost_before += read_lost(m, b);
	munmap(b->page, m->page_bytes + m->data_bytes);
	close(b->fd);
	*b = m->bufs[--m->nr_bufs];
}

void ttmon_mmap2_free(struct ttmon_mmap2 *m)
{
	if (!m)
		return;
	while (m->nr_bufs)
		close_cpu(m, m->nr_bufs - 1);
	if (m->epoll >= 0)
		close(m->epoll);
	free(m->bufs);
	free(m->bounce);
	free(m);
}

static void freep(struct ttmon_mmap2 **m)
{
	ttmon_mmap2_free(*m);
}

int ttmon_mmap2_refresh(struct ttmon_mmap2 *m)
{
	_cleanup_free_ bool *online = calloc(MAX_CPUS, sizeof(*online));
	int err;

	if (!online)
		return -ENOMEM;
	err = read_online(online, MAX_CPUS);
	if (err)
		return err;
	for (size_t i = m->nr_bufs; i-- > 0;) {
		uint32_t cpu = m->bufs[i].cpu;

		if (!online[cpu])
			close_cpu(m, i);
		online[cpu] = false;
	}
	/* The rest is new. A CPU that goes offline again just now gives ENODEV. */
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++) {
		err = online[cpu] ? open_cpu(m, cpu) : 0;
		if (err && err != -ENODEV)
			return err;
	}
	return 0;
}

int ttmon_mmap2_new(uint32_t pages, struct ttmon_mmap2 **ret)
{
	_cleanup_(freep) struct ttmon_mmap2 *m = NULL;
	int err;

	if (!pages || (pages & (pages - 1)))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->can_read_lost = true;
	m->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	m->data_bytes = pages * m->page_bytes;
	m->bounce = malloc(TTMON_MMAP2_BOUNCE);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll < 0)
		return -errno;
	if (!m->bounce)
		return -ENOMEM;
	err = ttmon_mmap2_refresh(m);
	if (err)
		return err;
	*ret = TAKE_PTR(m);
	return 0;
}

int ttmon_mmap2_fd(const struct ttmon_mmap2 *m)
{
	return m->epoll;
}

uint32_t ttmon_mmap2_cpus(const struct ttmon_mmap2 *m)
{
	return (uint32_t)m->nr_bufs;
}

void ttmon_mmap2_peek(struct ttmon_mmap2 *m, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx)
{
	struct ttmon_mmap2_stats not_counted = { 0 };

	for (size_t i = 0; i < m->nr_bufs; i++) {
		struct perf_event_mmap_page *page = m->bufs[i].page;
		uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

		if (page->data_tail != head)
			ttmon_mmap2_consume((const uint8_t *)page + m->page_bytes, m->data_bytes, page->data_tail, head,
					    m->bounce, false, cb, ctx, &not_counted);
	}
}

void ttmon_mmap2_drain(struct ttmon_mmap2 *m, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx)
{
	for (size_t i = 0; i < m->nr_bufs; i++) {
		struct perf_event_mmap_page *page = m->bufs[i].page;
		const uint8_t *data = (const uint8_t *)page + m->page_bytes;
		uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		uint64_t tail = page->data_tail;

		if (tail == head)
			continue;
		tail = ttmon_mmap2_consume(data, m->data_bytes, tail, head, m->bounce, !m->can_read_lost, cb, ctx,
					   &m->stats);
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

void ttmon_mmap2_get_stats(const struct ttmon_mmap2 *m, struct ttmon_mmap2_stats *ret)
{
	*ret = m->stats;
	ret->lost += m->lost_before;
	for (size_t i = 0; i < m->nr_bufs; i++)
		ret->lost += read_lost(m, &m->bufs[i]);
}
