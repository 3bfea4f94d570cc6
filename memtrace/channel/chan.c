// SPDX-License-Identifier: GPL-2.0-only
/*
 * chan.c: the rings of a channel. Every word of the shared memory is read once, into memory of our
 * own, and checked there: the program may change it at any time. Loads and stores are atomic, so that
 * the compiler neither repeats nor splits them.
 */
#include "memtrace/channel/chan_int.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define QUOTA 256 /* records of a ring before the next has its turn */
#define WORDS (TTMON_MTC_UNIT / 8)
/* What one record, and a header, may say: a lie spoils no sum for good. */
#define MAX_LOST   (1ull << 32)
#define MAX_SAMPLE (1u << 24)

_Static_assert(sizeof(struct ttmon_mtc_head) == 384 && sizeof(struct ttmon_mtc_tail) == 128 &&
		       sizeof(struct ttmon_mtc_rec) == TTMON_MTC_UNIT,
	       "the layout of the channel");
_Static_assert(sizeof(struct ttmon_mtc_site) == 24 && sizeof(struct ttmon_mtc_launch) == 64 &&
		       sizeof(struct ttmon_mtc_kernel) == 32 && sizeof(struct ttmon_mtc_agg_entry) == 1120 &&
		       sizeof(struct ttmon_mtc_touch) == 40 && sizeof(struct ttmon_mtc_lost) == 24,
	       "the layout of the dictionary");

static bool is_power(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* A part of the memory: begins at a page, lies in it whole. */
static bool lies_in(const struct ttmon_mtc_head *h, uint64_t off, uint64_t bytes)
{
	return off % 4096 == 0 && off >= sizeof(*h) && off <= h->bytes && bytes <= h->bytes - off;
}

static const char *check_head(const struct ttmon_mtc_head *h, uint64_t bytes)
{
	if (h->magic != TTMON_MTC_MAGIC)
		return "no channel: its header is something else";
	if (h->version != TTMON_MTC_VERSION || h->head_bytes != sizeof(*h))
		return "another version of the channel: ttmon and libttmon-memtrace.so are not of one build";
	if (h->bytes != bytes)
		return "its header lies about its size";
	if (!h->nr_rings || h->nr_rings > TTMON_MTC_MAX_RINGS || !is_power(h->units) ||
	    h->units < TTMON_MTC_MIN_UNITS || h->units > TTMON_MTC_MAX_UNITS)
		return "an absurd number or size of rings";
	if (!is_power(h->dict_bytes) || h->dict_bytes < TTMON_MTC_MIN_DICT || h->dict_bytes > TTMON_MTC_MAX_DICT)
		return "an absurd size of the dictionary";
	if (!lies_in(h, h->tails_off, h->nr_rings * sizeof(struct ttmon_mtc_tail)) ||
	    !lies_in(h, h->dict_off, h->dict_bytes) ||
	    !lies_in(h, h->rings_off, (uint64_t)h->nr_rings * h->units * TTMON_MTC_UNIT))
		return "a part of it lies outside of it";
	return NULL;
}

/* Can it be mapped without ever faulting? Only a memfd that cannot shrink, of plain pages. */
static const char *check_fd(int fd, uint64_t *bytes)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return "its memory is no memfd that is sealed against shrinking";
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "its memory is no memfd of plain pages";
	if ((uint64_t)st.st_size < sizeof(struct ttmon_mtc_head) || (uint64_t)st.st_size > TTMON_MTC_MAX_BYTES)
		return "its memory has an absurd size";
	*bytes = (uint64_t)st.st_size;
	return NULL;
}

static struct ttmon_mtc_head *shared(const struct ttmon_mt_chan *c)
{
	return (struct ttmon_mtc_head *)(void *)c->mem;
}

TTMON_FREEP(ttmon_mt_chan_freep, struct ttmon_mt_chan, ttmon_mt_chan_free);

int ttmon_mt_chan_open(int fd, struct ttmon_mt_chan **ret, char *why, size_t n)
{
	_cleanup_(ttmon_mt_chan_freep) struct ttmon_mt_chan *c = calloc(1, sizeof(*c));
	const char *wrong;
	uint64_t bytes;
	void *mem;

	if (!c) {
		close(fd);
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	c->fd = fd;
	wrong = check_fd(fd, &bytes);
	if (wrong) {
		snprintf(why, n, "%s", wrong);
		return -EINVAL;
	}
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		int err = -errno;

		snprintf(why, n, "its memory cannot be mapped: %s", strerror(-err));
		return err;
	}
	c->mem = mem;
	c->head.bytes = bytes;
	for (size_t i = 0; i < sizeof(c->head) / 8; i++)
		((uint64_t *)(void *)&c->head)[i] = __atomic_load_n((const uint64_t *)mem + i, __ATOMIC_RELAXED);
	wrong = check_head(&c->head, bytes);
	c->head.bytes = bytes;
	if (wrong) {
		snprintf(why, n, "%s", wrong);
		return -EINVAL;
	}
	c->rings = calloc(c->head.nr_rings, sizeof(*c->rings));
	if (!c->rings) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	c->pid = c->head.pid;
	__atomic_store_n(&shared(c)->consumer, 1, __ATOMIC_RELEASE);
	*ret = TAKE_PTR(c);
	return 0;
}

void ttmon_mt_chan_set_pid(struct ttmon_mt_chan *c, uint32_t pid)
{
	c->pid = pid;
}

void ttmon_mt_chan_set_names(struct ttmon_mt_chan *c, struct ttmon_mt_names *names)
{
	c->names = names;
}

/* ---- rings ---- */

static uint64_t *unit_at(const struct ttmon_mt_chan *c, uint32_t ring, uint64_t pos)
{
	uint64_t unit = (uint64_t)ring * c->head.units + (pos & (c->head.units - 1));

	return (uint64_t *)(void *)(c->mem + c->head.rings_off + unit * TTMON_MTC_UNIT);
}

static void tell(struct ttmon_mt_chan *c, uint32_t ring)
{
	struct ttmon_mtc_tail *tails = (struct ttmon_mtc_tail *)(void *)(c->mem + c->head.tails_off);

	if (c->rings[ring].told == c->rings[ring].tail)
		return;
	c->rings[ring].told = c->rings[ring].tail;
	__atomic_store_n(&tails[ring].tail, c->rings[ring].told, __ATOMIC_RELEASE);
}

static void clear(uint64_t *unit)
{
	for (unsigned int i = 0; i < WORDS; i++)
		__atomic_store_n(unit + i, 0, __ATOMIC_RELAXED);
}

/* The addresses of a LIST, each to the place of its lane; clears their units. */
static void take_list(struct ttmon_mt_chan *c, uint32_t ring, uint64_t pos, uint32_t mask, uint64_t *addr)
{
	uint64_t *unit = NULL;

	for (unsigned int i = 0; mask; i++, mask &= mask - 1) {
		if (i % WORDS == 0)
			unit = unit_at(c, ring, pos + 1 + i / WORDS);
		addr[__builtin_ctz(mask)] = __atomic_load_n(unit + i % WORDS, __ATOMIC_RELAXED);
		__atomic_store_n(unit + i % WORDS, 0, __ATOMIC_RELAXED);
	}
}

/* C1 to C3 for one record of ring. 1: taken; 0: nothing there; -EBADMSG. */
static int take_one(struct ttmon_mt_chan *c, uint32_t ring, size_t at, char *why, size_t n)
{
	uint64_t pos = c->rings[ring].tail, *unit = unit_at(c, ring, pos);
	uint32_t tag = __atomic_load_n((uint32_t *)(void *)unit + 7, __ATOMIC_ACQUIRE),
		 lap = (uint32_t)(pos / c->head.units) & 31, cta;
	struct ttmon_mt_raw *r = &c->raw[at];
	uint64_t word;

	if (!tag)
		return 0;
	if (!(tag & TTMON_MTC_COMMITTED) || !TTMON_MTC_KIND(tag) || TTMON_MTC_LAP(tag) != lap) {
		snprintf(why, n, "ring %u, unit %llu: what is there (tag 0x%x) is no record of lap %u", ring,
			 (unsigned long long)pos, tag, lap);
		return -EBADMSG;
	}
	r->tag = tag;
	r->base = __atomic_load_n(unit, __ATOMIC_RELAXED);
	word = __atomic_load_n(unit + 1, __ATOMIC_RELAXED);
	r->mask = (uint32_t)word;
	r->stride = (int32_t)(word >> 32);
	word = __atomic_load_n(unit + 2, __ATOMIC_RELAXED);
	r->launch_warp = (uint32_t)word;
	r->cta_x = (uint32_t)(word >> 32);
	cta = __atomic_load_n((uint32_t *)(void *)unit + 6, __ATOMIC_RELAXED);
	r->cta_y = (uint16_t)cta;
	r->cta_z = (uint16_t)(cta >> 16);
	clear(unit);
	pos++;
	if (TTMON_MTC_KIND(tag) == TTMON_MTC_LIST) {
		unsigned int lanes = (unsigned int)__builtin_popcount(r->mask);

		take_list(c, ring, pos - 1, r->mask, c->lists[at]);
		pos += TTMON_MTC_LIST_UNITS(lanes) - 1;
	}
	c->rings[ring].tail = pos;
	if (pos - c->rings[ring].told >= c->head.units / 4)
		tell(c, ring);
	return 1;
}

/* Up to a batch of records, a quota of each ring by turns. Their number; *err: what ended it early. */
static size_t take(struct ttmon_mt_chan *c, int *err, char *why, size_t n)
{
	uint32_t idle = 0;
	size_t nr = 0;

	while (idle < c->head.nr_rings && nr < TTMON_MT_CHAN_BATCH && !*err) {
		uint32_t ring = c->next;
		unsigned int quota = QUOTA;
		int got = 1;

		while (quota && nr < TTMON_MT_CHAN_BATCH && (got = take_one(c, ring, nr, why, n)) > 0) {
			quota--;
			nr++;
		}
		tell(c, ring);
		idle = quota == QUOTA ? idle + 1 : 0;
		c->next = ring + 1 == c->head.nr_rings ? 0 : ring + 1;
		*err = got < 0 ? got : 0;
	}
	return nr;
}

/* ---- records ---- */

/* 1: ret is a record; 0: none (a loss, or it names nothing that is known); -errno. */
static int interpret(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, const struct ttmon_mt_raw *raw,
		     const uint64_t *list, struct ttmon_mt_rec *ret)
{
	uint32_t id = TTMON_MTC_SITE(raw->tag), launch = raw->launch_warp >> 6;
	const struct ttmon_mt_chan_site *s = id < c->nr_sites ? &c->sites[id] : NULL;

	if (TTMON_MTC_KIND(raw->tag) == TTMON_MTC_LOST) {
		sink->stats->produced += MIN(raw->base, MAX_LOST);
		sink->stats->dropped += MIN(raw->base, MAX_LOST);
		return 0;
	}
	sink->stats->produced++;
	if (!s || !s->index || !raw->mask) {
		sink->stats->malformed++;
		return 0;
	}
	if (!c->has_last || launch != c->last_launch) {
		int64_t index = ttmon_mt_chan_launch(c, sink, launch);

		if (index == -E2BIG) {
			sink->stats->malformed++;
			return 0;
		}
		if (index < 0)
			return (int)index;
		c->last_index = (uint32_t)index;
		c->last_launch = launch;
		c->has_last = true;
	}
	if (!sink->light && c->last_index + 1 == c->made_up)
		sink->stats->no_launch++;
	*ret = (struct ttmon_mt_rec){
		.base = raw->base,
		.stride = raw->mask & (raw->mask - 1) ? raw->stride : 0,
		.seq = sink->seq++,
		.mask = raw->mask,
		.site = s->index - 1,
		.launch = c->last_index,
		.cta = { raw->cta_x, raw->cta_y, raw->cta_z },
		.warp = raw->launch_warp & 63,
		.sm = TTMON_MT_NO_SM,
		.space = TTMON_MTC_SPACE(raw->tag) ? (uint8_t)TTMON_MTC_SPACE(raw->tag) : s->space,
		.width = s->width,
	};
	if (TTMON_MTC_KIND(raw->tag) == TTMON_MTC_LIST) {
		ret->addr = list;
		ret->stride = 0;
		ret->base = list[__builtin_ctz(raw->mask)];
	}
	return 1;
}

static uint64_t launch_ns(const struct ttmon_mt_chan *c, const struct ttmon_mt_raw *raw)
{
	uint32_t id = raw->launch_warp >> 6;
	const struct ttmon_mt_chan_recent *r = &c->recent[id % TTMON_MT_CHAN_RECENT];

	return r->id == id ? r->ns : 0;
}

static int give(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, size_t nr)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < nr && err >= 0; i++) {
		err = interpret(c, sink, &c->raw[i], c->lists[i], &c->recs[n]);
		if (sink->light && err > 0)
			c->launch_ns[n] = launch_ns(c, &c->raw[i]);
		n += err > 0;
	}
	if (n) {
		int said;

		sink->launch_ns = c->launch_ns;
		said = sink->recs(sink->ctx, c->recs, n, c->pid);

		sink->stats->records += n;
		sink->stats->bytes += n * TTMON_MTC_UNIT;
		err = said < 0 ? said : err;
	}
	return MIN(err, 0);
}

int ttmon_mt_chan_read(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, size_t max, char *why, size_t n)
{
	size_t total = 0, nr;
	int err, bad = 0;

	if (c->broken) {
		snprintf(why, n, "it is broken");
		return -EBADMSG;
	}
	sink->stats->sample = MAX(sink->stats->sample, MIN(c->head.sample, MAX_SAMPLE));
	do {
		nr = take(c, &bad, why, n);
		err = ttmon_mt_chan_read_dict(c, sink, why, n);
		if (err == -EBADMSG)
			bad = err;
		else if (err)
			return err;
		err = give(c, sink, nr);
		if (err) {
			snprintf(why, n, "%s", strerror(-err));
			return err;
		}
		total += nr;
	} while (!bad && nr == TTMON_MT_CHAN_BATCH && total < max);
	c->broken = bad;
	return bad ?: nr == TTMON_MT_CHAN_BATCH;
}

bool ttmon_mt_chan_done(const struct ttmon_mt_chan *c)
{
	return __atomic_load_n(&shared(c)->state, __ATOMIC_ACQUIRE) == TTMON_MTC_DONE;
}

void ttmon_mt_chan_free(struct ttmon_mt_chan *c)
{
	if (!c)
		return;
	if (c->rings)
		__atomic_store_n(&shared(c)->consumer, 0, __ATOMIC_RELEASE);
	if (c->mem)
		munmap(c->mem, c->head.bytes);
	if (c->fd >= 0)
		close(c->fd);
	free(c->rings);
	ttmon_mt_chan_dict_free(c);
	free(c);
}
