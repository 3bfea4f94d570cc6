// SPDX-License-Identifier: GPL-2.0-only
/*
 * chan.c: the program's side of <ttmon/mtchan.h>: one channel for each context. The shared memory and
 * the connection are made at the first launch, so that kernels that cannot be recorded are reported
 * too. The memory is registered with CUDA at the first launch that is recorded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "memtrace/inject/inj_chan.h"

#define ANSWER_WAIT 2000 /* ms for it to answer */
#define ALIGN(n)    (((n) + 4095) & ~(uint64_t)4095)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ttmon_inj_chan *chans; /* never freed: a launch may hold one */
static _Atomic bool nobody;	     /* there is no reader: do not try again at each launch */
static pid_t pid; /* process of the channels: a forked child has a copy of them in its memory, but no CUDA */

/* Calls to the driver here must not become part of a capture by the program. */
static int relax(int mode)
{
	CALL(cuThreadExchangeStreamCaptureMode, &mode);
	return mode;
}

/* ---- making one ---- */

static int connect_reader(int memfd, uint64_t bytes)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ttmon_mtc_hello hello = { .magic = TTMON_MTC_MAGIC, .version = TTMON_MTC_VERSION, .bytes = bytes };
	struct iovec iov = { .iov_base = &hello, .iov_len = sizeof(hello) };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof(control.buf)
	};
	struct timeval wait = { .tv_sec = ANSWER_WAIT / 1000 };
	const char *path = ttmon_inj_conf()->socket;
	struct ttmon_mtc_answer answer = { 0 };
	struct cmsghdr *cmsg;
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		ttmon_inj_say(false, "TTMON_MEMTRACE_SOCKET: a path of more than %zu bytes", sizeof(addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	cmsg = CMSG_FIRSTHDR(&msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &memfd, sizeof(int));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || sendmsg(fd, &msg, MSG_NOSIGNAL) < 0) {
		int err = errno;

		/* The usual case for a program that always has the library in its environment. */
		ttmon_inj_say(err == ENOENT || err == ECONNREFUSED, "%s: nobody reads: %s; nothing is recorded", path,
			      strerror(err));
		close(fd);
		return -err;
	}
	if (recv(fd, &answer, sizeof(answer), 0) != sizeof(answer) || answer.magic != TTMON_MTC_MAGIC ||
	    answer.status) {
		ttmon_inj_say(false, "%s: the reader does not want this channel: %s; nothing is recorded", path,
			      answer.status < 0 ? strerror(-answer.status) : "no answer");
		close(fd);
		return -EACCES;
	}
	return fd;
}

static int make(struct ttmon_inj_chan *c)
{
	const struct ttmon_inj_conf *conf = ttmon_inj_conf();
	uint64_t units = 1, tails, dict, rings;
	struct ttmon_mtc_head *h;
	int sms = 0, fd, err;

	if (CALL(cuCtxGetDevice, &c->device) ||
	    CALL(cuDeviceGetAttribute, &sms, 16 /* MULTIPROCESSOR_COUNT */, c->device) || sms < 1)
		return -ENODEV;
	c->nr_rings = sms < TTMON_MTC_MAX_RINGS ? (uint32_t)sms : TTMON_MTC_MAX_RINGS;
	while (units * 2 * TTMON_MTC_UNIT <= conf->ring_bytes)
		units *= 2;
	tails = ALIGN(sizeof(*h));
	dict = tails + ALIGN((uint64_t)c->nr_rings * sizeof(struct ttmon_mtc_tail));
	rings = dict + TTMON_INJ_DICT_BYTES;
	c->bytes = ALIGN(rings + units * TTMON_MTC_UNIT * c->nr_rings);
	fd = memfd_create("ttmon-memtrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	h = MAP_FAILED;
	if (!ftruncate(fd, (off_t)c->bytes) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		h = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED) {
		err = -errno;
		close(fd);
		return err;
	}
	*h = (struct ttmon_mtc_head){
		.magic = TTMON_MTC_MAGIC,
		.version = TTMON_MTC_VERSION,
		.head_bytes = sizeof(*h),
		.pid = (uint32_t)getpid(),
		.nr_rings = c->nr_rings,
		.bytes = c->bytes,
		.tails_off = tails,
		.dict_off = dict,
		.dict_bytes = TTMON_INJ_DICT_BYTES,
		.rings_off = rings,
		.units = (uint32_t)units,
		.mode = conf->aggregate ? TTMON_MTC_AGGREGATE : TTMON_MTC_STREAM,
		.device = (uint32_t)c->device,
		.sample = conf->sample,
		.state = TTMON_MTC_RUNNING,
	};
	h->ctx = 1;
	for (struct ttmon_inj_chan *o = chans; o; o = o->next)
		h->ctx++;
	c->tails_off = tails;
	c->dict_off = dict;
	c->rings_off = rings;
	c->units = (uint32_t)units;
	c->socket = connect_reader(fd, c->bytes);
	close(fd);
	if (c->socket < 0) {
		munmap(h, c->bytes);
		return c->socket;
	}
	c->head = h;
	return 0;
}

static void at_exit(void);

/*
 * Adds a channel for the current context; with list_lock held. If it cannot be made, the context has
 * none.
 */
static void add(struct ttmon_inj_chan *c, void *ctx)
{
	int err = make(c);

	pthread_mutex_init(&c->lock, NULL);
	c->ctx = ctx;
	c->gone = err;
	/* No socket, or no listener: the next context would find the same. */
	if ((err == -ENOENT || err == -ECONNREFUSED) && !chans)
		atomic_store(&nobody, true);
	c->next = chans;
	chans = c;
	/* After CUDA's own, so before it when they are called. */
	if (!pid) {
		pid = getpid();
		atexit(at_exit);
		pthread_atfork(NULL, NULL, ttmon_inj_give_up);
	}
}

struct ttmon_inj_chan *ttmon_inj_chan(void)
{
	static __thread struct ttmon_inj_chan *last;
	struct ttmon_inj_chan *c = last;
	void *ctx = NULL;

	if (atomic_load_explicit(&nobody, memory_order_relaxed) || CALL(cuCtxGetCurrent, &ctx) || !ctx)
		return NULL;
	if (c && __atomic_load_n(&c->ctx, __ATOMIC_ACQUIRE) == ctx)
		return c->gone ? NULL : c;
	pthread_mutex_lock(&list_lock);
	for (c = chans; c; c = c->next)
		if (c->ctx == ctx)
			break;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (c)
			add(c, ctx);
	}
	pthread_mutex_unlock(&list_lock);
	last = c;
	return c && !c->gone ? c : NULL;
}

int ttmon_inj_copy(void *to, uint64_t device, const void *from, size_t size)
{
	void *stream;
	int err = CALL(cuStreamCreate, &stream, 1 /* NON_BLOCKING */);

	if (err)
		return err;
	err = to ? CALL(cuMemcpyDtoHAsync_v2, to, device, size, stream)
		 : CALL(cuMemcpyHtoDAsync_v2, device, from, size, stream);
	err = err ? err : CALL(cuStreamSynchronize, stream);
	CALL(cuStreamDestroy_v2, stream);
	return err;
}

/* Device memory of size bytes with what is in from. */
static bool device_block(uint64_t *ret, const void *from, size_t size)
{
	if (CALL(cuMemAlloc_v2, ret, size))
		return false;
	if (!ttmon_inj_copy(NULL, *ret, from, size))
		return true;
	CALL(cuMemFree_v2, *ret);
	*ret = 0;
	return false;
}

static bool arm_aggregate(struct ttmon_inj_chan *c)
{
	struct ttmon_mtc_agg *aggs = calloc(TTMON_INJ_AGG_SITES, sizeof(*aggs));
	uint64_t *touch = calloc(TTMON_INJ_TOUCH_SLOTS, sizeof(*touch));
	bool ok = aggs && touch;

	ok = ok && device_block(&c->aggs, aggs, TTMON_INJ_AGG_SITES * sizeof(*aggs)) &&
	     device_block(&c->touch, touch, TTMON_INJ_TOUCH_SLOTS * sizeof(*touch));
	free(aggs);
	free(touch);
	return ok;
}

static void disarm(struct ttmon_inj_chan *c)
{
	if (c->armed)
		CALL(cuMemHostUnregister, c->head);
	if (c->ctl)
		CALL(cuMemFree_v2, c->ctl);
	if (c->aggs)
		CALL(cuMemFree_v2, c->aggs);
	if (c->touch)
		CALL(cuMemFree_v2, c->touch);
	c->ctl = c->aggs = c->touch = 0;
	c->armed = false;
}

/* The channel itself is pinned memory in use. */
static void tell_own(struct ttmon_inj_chan *c)
{
	struct ttmon_mtc_touch e = {
		.e.kind = TTMON_MTC_ENTRY_OWN, .addr = (uint64_t)c->head, .size = c->bytes, .writes = 1
	};

	(void)ttmon_inj_put(c, &e.e, sizeof(e), NULL, 0);
}

#define REGISTER_FLAGS 3 /* portable, mapped into the device's addresses */

/* Registers the memory with CUDA in the current context, and makes the control block. */
static bool arm(struct ttmon_inj_chan *c)
{
	const struct ttmon_inj_conf *conf = ttmon_inj_conf();
	size_t size = sizeof(struct ttmon_mtc_ctl) + c->nr_rings * sizeof(struct ttmon_mtc_ring);
	struct ttmon_mtc_ctl *ctl;
	uint64_t base = 0;
	int mode, err;

	if (c->armed || c->cannot_arm)
		return c->armed;
	ctl = calloc(1, size);
	mode = relax(2);
	err = ctl ? CALL(cuMemHostRegister_v2, c->head, c->bytes, REGISTER_FLAGS) : 2;
	c->armed = !err;
	if (!err)
		err = CALL(cuMemHostGetDevicePointer_v2, &base, c->head, 0);
	if (!err) {
		c->armed = !conf->aggregate || arm_aggregate(c);
		ctl->rings = base + c->rings_off;
		ctl->tails = base + c->tails_off;
		ctl->aggs = c->aggs;
		ctl->touch = c->touch;
		ctl->nr_rings = c->nr_rings;
		ctl->units = c->units;
		ctl->wait_ns = conf->wait_us * 1000;
		ctl->sample = conf->sample;
		ctl->agg_sites = conf->aggregate ? TTMON_INJ_AGG_SITES : 0;
		ctl->touch_slots = conf->aggregate ? TTMON_INJ_TOUCH_SLOTS : 0;
		err = !c->armed || !device_block(&c->ctl, ctl, size);
		c->armed = true;
	}
	if (err) {
		ttmon_inj_say(false,
			      "CUDA did not give or take the memory of the channel (%.1f MiB of the host's): error %d; "
			      "nothing is recorded in this context",
			      (double)c->bytes / (1 << 20), err);
		disarm(c);
		c->cannot_arm = true;
	}
	relax(mode);
	free(ctl);
	if (c->armed)
		tell_own(c);
	return c->armed;
}

/* ---- launches ---- */

bool ttmon_inj_announce(struct ttmon_inj_chan *c, struct ttmon_inj_kernel *k, const unsigned int grid[3],
			const unsigned int block[3], unsigned int shmem, const void *stream, uint32_t flags,
			uint64_t number, uint64_t *ctl)
{
	struct ttmon_mtc_launch e = {
		.e.kind = TTMON_MTC_ENTRY_LAUNCH, .shmem = shmem, .stream = (uint64_t)stream, .flags = flags
	};
	struct timespec now;
	bool ok;

	memcpy(e.grid, grid, sizeof(e.grid));
	memcpy(e.block, block, sizeof(e.block));
	clock_gettime(CLOCK_MONOTONIC, &now);
	e.time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	pthread_mutex_lock(&c->lock);
	ok = c->ctx && !ttmon_inj_reader_gone(c) && number < TTMON_MTC_MAX_LAUNCHES && arm(c) &&
	     ttmon_inj_announce_kernel(c, k);
	for (uint32_t i = 0; ok && i < k->nr_parts; i++)
		ok = ttmon_inj_announce_kernel(c, k->parts[i]);
	if (ok) {
		e.id = (uint32_t)number;
		ok = TTMON_INJ_PUT(c, e, k->name);
	}
	if (ok)
		*ctl = c->ctl;
	pthread_mutex_unlock(&c->lock);
	return ok;
}

/* ---- the end of one ---- */

/*
 * With the channel's lock held. The control block and the memory stay, unless the context ends with
 * all that may still use them.
 */
static void end(struct ttmon_inj_chan *c, bool cuda, bool ctx_goes)
{
	struct ttmon_mtc_head *h = c->head;

	__atomic_store_n(&h->state, TTMON_MTC_DONE, __ATOMIC_RELEASE);
	close(c->socket);
	c->socket = -1;
	c->gone = true;
	if (cuda && ctx_goes) {
		disarm(c);
		munmap(h, c->bytes);
		c->head = NULL;
	}
	__atomic_store_n(&c->ctx, NULL, __ATOMIC_RELEASE);
}

enum how { TELL, END_CTX, END_PROCESS };

/* ctx NULL: any; device -1: any. */
static void each(void *ctx, int device, enum how how)
{
	/* Checked before taking the lock, which a thread of the parent may have held. */
	if (pid != getpid())
		return;
	pthread_mutex_lock(&list_lock);
	for (struct ttmon_inj_chan *c = chans; c; c = c->next) {
		void *popped;
		bool cuda;
		int mode;

		if (!c->ctx || (ctx && c->ctx != ctx) || (device >= 0 && c->device != device))
			continue;
		if (!c->head) {
			if (how != TELL)
				__atomic_store_n(&c->ctx, NULL, __ATOMIC_RELEASE);
			continue;
		}
		mode = relax(2);
		cuda = !CALL(cuCtxPushCurrent_v2, c->ctx);
		pthread_mutex_lock(&c->lock);
		ttmon_inj_tell(c, cuda);
		if (how != TELL)
			end(c, cuda, how == END_CTX);
		pthread_mutex_unlock(&c->lock);
		if (cuda)
			CALL(cuCtxPopCurrent_v2, &popped);
		relax(mode);
	}
	pthread_mutex_unlock(&list_lock);
}

void ttmon_inj_destroying(void *ctx)
{
	if (ctx)
		each(ctx, -1, END_CTX);
}

void ttmon_inj_resetting(int device)
{
	each(NULL, device, END_CTX);
}

void ttmon_inj_releasing(int device)
{
	each(NULL, device, TELL);
}

void ttmon_inj_released(int device)
{
	unsigned int flags;
	int active = 1;

	if (pid != getpid() || CALL(cuDevicePrimaryCtxGetState, device, &flags, &active) || active)
		return;
	/*
	 * If it was the last release, the primary context is gone: its channels are those whose contexts are
	 * not valid any more.
	 */
	pthread_mutex_lock(&list_lock);
	for (struct ttmon_inj_chan *c = chans; c; c = c->next) {
		void *popped;

		if (!c->ctx || !c->head || c->device != device)
			continue;
		if (!CALL(cuCtxPushCurrent_v2, c->ctx)) {
			CALL(cuCtxPopCurrent_v2, &popped);
			continue;
		}
		pthread_mutex_lock(&c->lock);
		end(c, false, false);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&list_lock);
}

static void at_exit(void)
{
	each(NULL, -1, END_PROCESS);
}
