// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/run/memtrace.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttmon/event.h>

#include "memtrace/channel/chan.h"
#include "memtrace/channel/preload.h"
#include "memtrace/model/shape.h"
#include "memtrace/stream/stream.h"
#include "memtrace/analyse/use.h"
#include "lib/os/clock.h"
#include "lib/base/fmt.h"
#include "lib/os/log.h"
#include "lib/os/thread.h"

#define USE_PAGES 65536
/*
 * A use is reported at most this late: if the memory was freed and allocated again meanwhile, it is
 * not attributed.
 */
#define TELL_EVERY_NS (5 * NSEC_PER_MS)
/*
 * Intervals of reading the rings in ms: while records come; after 100 ms without; after a second
 * without; and without a channel.
 */
#define BUSY_MS	 1
#define QUIET_MS 5
#define STILL_MS 20
#define IDLE_MS	 100
/* Limits of reported uses: this many at once, and so many more each ms. */
#define TELL_BURST 20000
#define TELL_A_MS  400

struct ttmon_mtrun {
	const struct ttmon_opts *opts;
	char path[108]; /* of the socket */
	char dir[64];	/* folder made for it, or "" */
	struct ttmon_mt_listen *listen;
	struct ttmon_mt_use *use;
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	struct ttmon_mt_sink sink;
	struct ttmon_mt_out *out;
	int fd;
	uint64_t told_ns;
	uint64_t room, room_ns; /* uses that may be reported now; since when it grows */
	uint64_t left_out;
	uint32_t of;		/* process of the latest use */
	uint64_t of_room;	/* its share of room */
	uint64_t touches;	/* touches so far */
	uint64_t came, came_ns; /* total when records last came, and when that was */
	void (*fact)(void *ctx, const void *rec, size_t size);
	void *ctx;

	pthread_t thread;
	bool running, stop; /* stop: atomic */
	pthread_mutex_t lock;
	struct ttmon_mtrun_stats shown;
};

/* ---- reporting ---- */

static void tell_range(void *ctx, const struct ttmon_mt_used *used)
{
	struct ttmon_mtrun *m = ctx;
	struct ttmon_ev_gpu_use e = {
		.h = { .ts_ns = used->ns, .kind = TTMON_EV_GPU_USE, .cpu = TTMON_CPU_DAEMON, .tgid = used->pid },
		.addr = used->addr,
		.size = used->size,
		.reads = used->reads,
		.writes = used->writes,
		.sectors = used->sectors,
	};

	/* Uses come sorted by process: one with many leaves half of the room to those after it. */
	if (used->pid != m->of) {
		m->of = used->pid;
		m->of_room = (m->room + 1) / 2;
	}
	if (!m->of_room) {
		m->left_out++;
		return;
	}
	m->of_room--;
	m->room--;
	m->fact(m->ctx, &e, sizeof(e));
}

static void tell_all(struct ttmon_mtrun *m)
{
	uint64_t now = ttmon_mono_ns(), more = (now - m->room_ns) / NSEC_PER_MS * TELL_A_MS;

	if (more) {
		m->room = MIN(m->room + more, TELL_BURST);
		m->room_ns += (now - m->room_ns) / NSEC_PER_MS * NSEC_PER_MS;
	}
	m->of = 0;
	m->of_room = (m->room + 1) / 2;
	ttmon_mt_use_tell(m->use, tell_range, m);
}

static void touched(void *ctx, const struct ttmon_mt_touch *t)
{
	uint64_t now = ttmon_mono_ns();
	struct ttmon_mtrun *m = ctx;

	m->touches++;
	if (ttmon_mt_use_touch(m->use, t, now))
		return;
	tell_all(m);
	(void)ttmon_mt_use_touch(m->use, t, now);
}

static void note(void *ctx, uint32_t pid, const char *text)
{
	(void)ctx;
	log_info("memory accesses of process %u: %s", pid, text);
}

/*
 * When record i was written: at its launch, or later. A time in the future, which a program may write,
 * counts as now.
 */
static uint64_t used_ns(const struct ttmon_mtrun *m, const struct ttmon_mt_rec *rec, size_t i, uint64_t now)
{
	uint64_t ns;

	if (m->sink.light) {
		ns = m->sink.launch_ns[i];
	} else {
		const struct ttmon_mt_launch *l = &m->dict.dict.launches[rec->launch];

		ns = l->flags & TTMON_MT_LAUNCH_GRAPH ? 0 : l->time_ns;
	}
	return ns && ns < now ? ns : now;
}

static int records(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid)
{
	uint64_t now = ttmon_mono_ns();
	struct ttmon_mtrun *m = ctx;
	int err;

	for (size_t i = 0; i < n; i++) {
		unsigned int kind = m->dict.dict.sites[recs[i].site].kind;
		uint64_t ns = used_ns(m, &recs[i], i, now);

		if (ttmon_mt_use_add(m->use, pid, &recs[i], kind, ns))
			continue;
		tell_all(m);
		(void)ttmon_mt_use_add(m->use, pid, &recs[i], kind, ns);
	}
	err = m->out && !m->shown.file_err ? ttmon_mt_out_put(m->out, &m->dict.dict, recs, n) : 0;
	if (err) {
		log_error("%s: %s: no more is written to it; what is in it stays readable", m->opts->memtrace_out,
			  err == -EFBIG ? "it has reached its limit" : strerror(-err));
		m->shown.file_err = err;
	}
	return 0;
}

/* ---- the thread ---- */

static void show(struct ttmon_mtrun *m)
{
	pthread_mutex_lock(&m->lock);
	m->shown.channels = ttmon_mt_listen_channels(m->listen);
	m->shown.seen = ttmon_mt_listen_seen(m->listen);
	m->shown.records = m->stats.records;
	m->shown.dropped = m->stats.dropped;
	m->shown.malformed = m->stats.malformed;
	m->shown.refused = ttmon_mt_listen_refused(m->listen);
	m->shown.left_out = m->left_out;
	m->shown.written = m->out ? ttmon_mt_out_bytes(m->out) : 0;
	pthread_mutex_unlock(&m->lock);
}

static void tell(struct ttmon_mtrun *m)
{
	m->told_ns = ttmon_mono_ns();
	tell_all(m);
	show(m);
}

/* How long to wait before the rings are read again. */
static int pause_ms(struct ttmon_mtrun *m)
{
	uint64_t now = ttmon_mono_ns(), came = m->stats.produced + m->touches + ttmon_mt_listen_seen(m->listen);

	if (!ttmon_mt_listen_channels(m->listen))
		return IDLE_MS;
	if (came != m->came) {
		m->came = came;
		m->came_ns = now;
	}
	if (now - m->came_ns < 100 * NSEC_PER_MS)
		return BUSY_MS;
	return now - m->came_ns < NSEC_PER_SEC ? QUIET_MS : STILL_MS;
}

static void *loop(void *arg)
{
	struct ttmon_mtrun *m = arg;

	while (!__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE)) {
		struct pollfd fd = { .fd = ttmon_mt_listen_fd(m->listen), .events = POLLIN };
		int more = ttmon_mt_listen_work(m->listen, &m->sink);

		if (more < 0)
			log_error("memory accesses: %s", strerror(-more));
		if (ttmon_mono_ns() - m->told_ns >= TELL_EVERY_NS)
			tell(m);
		if (more <= 0)
			(void)poll(&fd, 1, pause_ms(m));
	}
	return NULL;
}

/* ---- life ---- */

/* Makes CMD load the library. */
static int preload(const struct ttmon_mtrun *m)
{
	const char *before = getenv("LD_PRELOAD");
	char lib[4096], all[8192], why[4400];
	int err = ttmon_mt_library(lib, sizeof(lib), why, sizeof(why));

	if (err)
		return log_error_r(err, "%s", why);
	snprintf(all, sizeof(all), "%s%s%s", lib, before && *before ? ":" : "", before ? before : "");
	if (setenv("LD_PRELOAD", all, 1) || setenv("TTMON_MEMTRACE_SOCKET", m->path, 1))
		return -ENOMEM;
	return 0;
}

static int open_file(struct ttmon_mtrun *m)
{
	const char *path = m->opts->memtrace_out;
	int err;

	if (!path)
		return 0;
	m->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (m->fd < 0)
		return log_error_r(-errno, "cannot write %s: %s", path, strerror(errno));
	err = ttmon_mt_out_new(m->fd, &(struct ttmon_mt_out_opts){ 0 }, &m->out);
	return err ? log_error_r(err, "cannot write %s: %s", path, strerror(-err)) : 0;
}

static int bind_socket(struct ttmon_mtrun *m)
{
	char why[256];
	int err;

	if (m->opts->memtrace_socket) {
		if (strlen(m->opts->memtrace_socket) >= sizeof(m->path))
			return log_error_r(-ENAMETOOLONG, "--memtrace-socket: a path of more than %zu bytes",
					   sizeof(m->path) - 1);
		strcpy(m->path, m->opts->memtrace_socket);
	} else if (m->opts->cmd) {
		strcpy(m->dir, "/tmp/ttmond-XXXXXX");
		if (!mkdtemp(m->dir)) {
			*m->dir = '\0';
			return log_error_r(-errno, "cannot make a folder in /tmp: %s", strerror(errno));
		}
		snprintf(m->path, sizeof(m->path), "%s/memtrace.sock", m->dir);
	} else {
		strcpy(m->path, TTMON_MTC_SOCKET);
	}
	/* A program writes into a channel only about its own memory, so every user may connect. */
	err = ttmon_mt_listen_new(m->path, m->opts->cmd && *m->dir ? 0600 : 0666, &m->listen, why, sizeof(why));
	return err ? log_error_r(err, "%s", why) : 0;
}

/* Reads the rest, reports it, ends the file. -errno: of the file, logged. */
static int mtrun_stop(void *state)
{
	struct ttmon_mtrun *m = state;
	int err;

	if (!m->running)
		return 0;
	__atomic_store_n(&m->stop, true, __ATOMIC_RELEASE);
	pthread_join(m->thread, NULL);
	m->running = false;
	err = ttmon_mt_listen_finish(m->listen, &m->sink);
	if (err)
		log_error("memory accesses: %s", strerror(-err));
	tell(m);
	if (!m->out || m->shown.file_err)
		return m->shown.file_err;
	err = ttmon_mt_out_end(m->out, &m->dict.dict, &m->stats);
	show(m);
	return err ? log_error_r(err, "%s was not written whole: %s", m->opts->memtrace_out, strerror(-err)) : 0;
}

static void mtrun_free(void *state)
{
	struct ttmon_mtrun *m = state;

	(void)!mtrun_stop(m);
	ttmon_mt_listen_free(m->listen);
	if (*m->dir)
		rmdir(m->dir);
	ttmon_mt_out_free(m->out);
	if (m->fd >= 0)
		close(m->fd);
	ttmon_mt_use_free(m->use);
	ttmon_mt_dict_fini(&m->dict);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/*
 * Binds the socket of the options, or a private one for CMD; puts the library into the environment of
 * this process, which CMD inherits.
 */
static int mtrun_new(const struct ttmon_opts *opts, struct ttmon_mtrun **ret)
{
	struct ttmon_mtrun *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->opts = opts;
	m->fd = -1;
	m->room = TELL_BURST;
	m->room_ns = ttmon_mono_ns();
	pthread_mutex_init(&m->lock, NULL);
	m->sink = (struct ttmon_mt_sink){ .dict = &m->dict,
					  .stats = &m->stats,
					  .recs = records,
					  .note = note,
					  .touch = touched,
					  .light = !opts->memtrace_out,
					  .shared = !opts->cmd || opts->memtrace_socket,
					  .ctx = m };
	err = ttmon_mt_use_new(USE_PAGES, &m->use);
	err = err ? err : open_file(m);
	err = err ? err : bind_socket(m);
	if (!err && opts->cmd)
		err = preload(m);
	if (err) {
		mtrun_free(m);
		return err;
	}
	*ret = m;
	return 0;
}

static int configure(struct ttmon_daemon *c, void **state, struct ttmon_bpf_cfg *cfg)
{
	struct ttmon_mtrun *m;
	int err;

	(void)cfg;
	if (!ttmon_daemon_opts(c)->memtrace)
		return 0;
	err = mtrun_new(ttmon_daemon_opts(c), &m);
	if (err)
		return err;
	m->fact = ttmon_daemon_fact;
	m->ctx = c;
	*state = m;
	return 0;
}

/* It reads what programs write, so it begins after capabilities were dropped. */
static int go(void *state)
{
	struct ttmon_mtrun *m = state;
	int err = ttmon_thread_start(&m->thread, NULL, "memtrace", loop, m);

	if (err)
		return log_error_r(err, "cannot start a thread: %s", strerror(-err));
	m->running = true;
	return 0;
}

static void get(struct ttmon_mtrun *m, struct ttmon_mtrun_stats *ret)
{
	pthread_mutex_lock(&m->lock);
	*ret = m->shown;
	pthread_mutex_unlock(&m->lock);
}

bool ttmon_mtrun_get(const struct ttmon_daemon *c, struct ttmon_mtrun_stats *ret)
{
	struct ttmon_mtrun *m = ttmon_daemon_part(c, &ttmon_part_memtrace);

	if (m)
		get(m, ret);
	return m != NULL;
}

json_t *ttmon_mtrun_status(const struct ttmon_daemon *c, uint64_t gone)
{
	struct ttmon_mtrun *m = ttmon_daemon_part(c, &ttmon_part_memtrace);
	struct ttmon_mtrun_stats s;

	if (!m)
		return json_null();
	get(m, &s);
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "socket", m->path, "channels",
			 (json_int_t)s.channels, "channels_seen", (json_int_t)s.seen, "records", (json_int_t)s.records,
			 "dropped", (json_int_t)s.dropped, "malformed", (json_int_t)s.malformed, "refused",
			 (json_int_t)s.refused, "left_out", (json_int_t)s.left_out, "gone", (json_int_t)gone,
			 "written_bytes", (json_int_t)s.written);
}

/* A line after the summary. */
static void summary(void *state, FILE *f)
{
	struct ttmon_mtrun *m = state;
	char records[TTMON_FMT_LEN], dropped[TTMON_FMT_LEN], bytes[TTMON_FMT_LEN];
	struct ttmon_mtrun_stats s;

	get(m, &s);
	if (!s.seen) {
		fprintf(f, "memory accesses of GPU kernels: no program opened a channel\n");
		return;
	}
	fprintf(f, "memory accesses of GPU kernels: %s requests from %llu contexts, %s dropped",
		ttmon_fmt_count(records, sizeof(records), s.records), (unsigned long long)s.seen,
		ttmon_fmt_count(dropped, sizeof(dropped), s.dropped));
	if (s.left_out)
		fprintf(f, ", %s uses left out", ttmon_fmt_count(bytes, sizeof(bytes), s.left_out));
	if (s.refused)
		fprintf(f, ", %s refused", ttmon_fmt_count(bytes, sizeof(bytes), s.refused));
	if (m->out)
		fprintf(f, ", %s in %s", ttmon_fmt_bytes(bytes, sizeof(bytes), s.written), m->opts->memtrace_out);
	fputc('\n', f);
}

const struct ttmon_part ttmon_part_memtrace = {
	.name = "memory accesses",
	.in = TTMON_IN_LIVE,
	.configure = configure,
	.go = go,
	.stop = mtrun_stop,
	.summary = summary,
	.free = mtrun_free,
};
