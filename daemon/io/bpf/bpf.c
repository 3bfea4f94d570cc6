// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/bpf/bpf.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "daemon/io/bpf/bpf_int.h"
#include "daemon/io/bpf/percpu.h"
#include "daemon/io/bpf/closer.h"
#include "daemon/io/host/caps.h"
#include "daemon/io/bpf/uprobe_legacy.h"
#include "lib/os/clock.h"
#include "lib/os/proc.h"
#include "lib/os/log.h"

/* The skeleton's view of the shared types. */
typedef uint64_t u64;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint8_t u8;
#include "ttmond.skel.h"

struct ttmon_bpf {
	struct ttmond_bpf *skel;
	struct ttmon_bpf_cfg cfg;
	uint32_t cpus;
	uint32_t nr_rings;
	struct ttmon_ring *rings;
	int *ring_fds;
	uint8_t *stats;
	size_t stats_bytes, stat_size;
	bool attached[TTMON_PROG_MAX];
	bool legacy; /* no uprobe_multi links */
	/* a program at a call decides at the entry whether it also runs at the return */
	bool session;
	struct ttmon_uprobe_legacy *uprobes; /* NULL unless legacy */
	struct ttmon_kmd *kmd;
	struct ttmon_nvpin *nvpin; /* NULL without cfg.nvidia_pins */
	struct ttmon_sched *sched; /* NULL without cfg.cpu */
	struct ttmon_sched_setup setup;
	struct ttmon_rmid_links *rmid_links;
	uint32_t traced_idle; /* ticks without a traced process */
	int runs_fd;	      /* kept open while the kernel keeps run times, else -1 */
	int closer;	      /* borrowed, from ttmon_bpf_leave() on; -1 before */
};

static const struct {
	const char *name, *kind;
	size_t off; /* of the program in the skeleton */
	enum ttmon_family family;
	enum ttmon_prog_attach attach;
	enum ttmon_prog_wanted wanted;
} rows[TTMON_PROG_MAX] = {
#define X(NAME, prog, kind, family, attach, wanted) \
	{ #prog,                                    \
	  kind,                                     \
	  offsetof(struct ttmond_bpf, progs.prog),  \
	  TTMON_FAMILY_##family,                    \
	  TTMON_ATTACH_##attach,                    \
	  TTMON_WANTED_##wanted },
	TTMON_PROG_TABLE(X)
#undef X
};

#define X(NAME, prog, kind, family, attach, wanted)                                                                \
	_Static_assert((TTMON_ATTACH_##attach == TTMON_ATTACH_OBJECT) == (TTMON_PROG_##NAME < TTMON_PROG_UPROBES), \
		       "programs at objects come first: " #prog);
TTMON_PROG_TABLE(X)
#undef X

struct bpf_program *ttmon_bpf_program(const struct ttmon_bpf *b, enum ttmon_prog prog)
{
	return *(struct bpf_program **)((char *)b->skel + rows[prog].off);
}

void ttmon_bpf_set_attached(struct ttmon_bpf *b, enum ttmon_prog prog, bool on)
{
	b->attached[prog] = on;
}

void ttmon_bpf_set_kmd(struct ttmon_bpf *b, uint32_t major, bool closes)
{
	__atomic_store_n(&b->skel->bss->kmd_major, major, __ATOMIC_RELAXED);
	__atomic_store_n(&b->skel->bss->kmd_closes, closes, __ATOMIC_RELAXED);
}

uint32_t *ttmon_bpf_family_states(const struct ttmon_bpf *b)
{
	return b->skel->bss->family_state;
}

uint32_t *ttmon_bpf_family_epochs(const struct ttmon_bpf *b)
{
	return b->skel->bss->family_epoch;
}

uint32_t *ttmon_bpf_trace_all(const struct ttmon_bpf *b)
{
	return &b->skel->bss->trace_all;
}

uint32_t *ttmon_bpf_nr_reduced(const struct ttmon_bpf *b)
{
	return &b->skel->bss->nr_reduced;
}

uint32_t *ttmon_bpf_nr_reduced_users(const struct ttmon_bpf *b)
{
	return &b->skel->bss->nr_reduced_users;
}

int ttmon_bpf_count_runs(struct ttmon_bpf *b)
{
	b->runs_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return b->runs_fd < 0 ? -errno : 0;
}

enum ttmon_family ttmon_bpf_family(enum ttmon_prog prog)
{
	return rows[prog].family;
}

struct ttmon_kmd *ttmon_bpf_kmd(struct ttmon_bpf *b)
{
	return b->kmd;
}

struct ttmon_nvpin *ttmon_bpf_nvpin(const struct ttmon_bpf *b)
{
	return b->nvpin;
}

struct ttmon_sched *ttmon_bpf_sched(const struct ttmon_bpf *b)
{
	return b->sched;
}

struct ttmon_rmid_links **ttmon_bpf_rmid_links(struct ttmon_bpf *b)
{
	return &b->rmid_links;
}

static bool wanted(const struct ttmon_bpf *b, enum ttmon_prog prog)
{
	const struct ttmon_bpf_cfg *cfg = &b->cfg;

	switch (rows[prog].wanted) {
	case TTMON_WANTED_ALWAYS:
		return true;
	case TTMON_WANTED_RETURNS:
		return !cfg->no_returns && !b->session;
	case TTMON_WANTED_USER:
		return cfg->nr_user;
	case TTMON_WANTED_USER_RET:
		return cfg->nr_user && !cfg->no_returns && !b->session;
	case TTMON_WANTED_CPU:
		return cfg->cpu;
	case TTMON_WANTED_CPU_BTF:
		return cfg->cpu && b->setup.tp_btf;
	case TTMON_WANTED_CPU_RAW:
		return cfg->cpu && !b->setup.tp_btf;
	case TTMON_WANTED_WAIT_SWITCH:
		return !cfg->cpu && !cfg->no_returns;
	case TTMON_WANTED_WHO:
		return !cfg->no_returns && (!cfg->cpu || b->setup.tp_btf);
	case TTMON_WANTED_CPU_MODULE:
		return cfg->cpu && cfg->rmid == TTMON_RMID_MODULE;
	case TTMON_WANTED_KMD_PROBE:
		return !cfg->tt_ioctl;
	case TTMON_WANTED_KMD_IOCTL:
		return cfg->tt_ioctl;
	case TTMON_WANTED_NVIDIA_PINS:
		return cfg->nvidia_pins;
	case TTMON_WANTED_MMAP:
		return cfg->mmap || cfg->mmap_later;
	}
	return false;
}

static enum ttmon_family_state initial_state(const struct ttmon_bpf *b, enum ttmon_family family)
{
	if (family == TTMON_FAMILY_RMID)
		return b->cfg.cpu && b->cfg.rmid ? TTMON_FAMILY_ON : TTMON_FAMILY_ABSENT;
	if (family == TTMON_FAMILY_MMAP && !b->cfg.mmap && b->cfg.mmap_later)
		return TTMON_FAMILY_OFF;
	for (int i = 0; i < TTMON_PROG_MAX; i++)
		if (rows[i].family == family && wanted(b, i))
			return TTMON_FAMILY_ON;
	return TTMON_FAMILY_ABSENT;
}

#define VERIFIER_TAIL 800 /* bytes */

_printf_(2, 0) static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	int n;

	/* Each failure is logged once, by us; libbpf's own lines are for debugging. */
	if (ttmon_log_get_level() < TTMON_LOG_DEBUG || level == LIBBPF_DEBUG)
		return 0;
	n = vasprintf(&text, fmt, ap);
	if (n < 0)
		return 0;
	if (n && text[n - 1] == '\n')
		text[--n] = '\0';
	/* The verifier's reason is at the end of its log. */
	log_debug("libbpf: %s%s", n > VERIFIER_TAIL ? "... " : "", n > VERIFIER_TAIL ? text + n - VERIFIER_TAIL : text);
	return 0;
}

/* Missing capabilities as text; empty if there are none. CAP_SYS_ADMIN includes BPF and PERFMON. */
static void missing_caps(char *buf, size_t n)
{
	static const struct {
		int cap;
		const char *name;
		bool admin_is_enough;
	} need[] = {
		{ CAP_BPF, "CAP_BPF", true },
		{ CAP_PERFMON, "CAP_PERFMON", true },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false },
		{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", false },
	};
	uint64_t eff;

	buf[0] = '\0';
	if (!ttmon_proc_status((uint32_t)getpid(), "CapEff:", 16, &eff))
		return;
	if (ttmon_caps_perf_wants_admin("") && !(eff & (1ULL << CAP_SYS_ADMIN)))
		snprintf(buf, n, "CAP_SYS_ADMIN (kernel.perf_event_paranoid is above 2)");
	for (size_t i = 0; i < ARRAY_SIZE(need); i++) {
		if (eff & (1ULL << need[i].cap) || (need[i].admin_is_enough && eff & (1ULL << CAP_SYS_ADMIN)))
			continue;
		snprintf(buf + strlen(buf), n - strlen(buf), "%s%s", buf[0] ? ", " : "", need[i].name);
	}
}

static int make_legacy(struct ttmon_bpf *b, char *why, size_t n)
{
	int err;

	if (!b->legacy)
		return 0;
	err = ttmon_uprobe_legacy_new(bpf_map__fd(b->skel->maps.legacy_cookies), &b->uprobes);
	if (err == -EPERM)
		snprintf(why, n,
			 "this kernel has no uprobe_multi links, and tracefs is not mounted: mount -t tracefs tracefs "
			 "/sys/kernel/tracing");
	else if (err)
		snprintf(why, n, "this kernel has no uprobe_multi links, and tracefs cannot be used: %s",
			 strerror(-err));
	else
		log_debug("no uprobe_multi links: uprobes through tracefs events");
	return err;
}

/*
 * Makes and maps a ring for each CPU that is online. A host may announce many more CPUs than it has
 * (128 for 4 in virtual machines): CPUs that come online later share a ring, which costs them
 * contention but no memory.
 */
static int make_rings(struct ttmon_bpf *b)
{
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	while (size < b->cfg.ring_bytes)
		size *= 2;
	b->cfg.ring_bytes = size;
	b->nr_rings = online > 0 && online < b->cpus ? (uint32_t)online : b->cpus;
	b->rings = calloc(b->nr_rings, sizeof(*b->rings));
	b->ring_fds = malloc(b->nr_rings * sizeof(*b->ring_fds));
	if (!b->rings || !b->ring_fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->nr_rings; i++)
		b->ring_fds[i] = -1;
	for (uint32_t i = 0; i < b->nr_rings; i++) {
		int err;

		b->ring_fds[i] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ttmon_ring", 0, 0, (uint32_t)size, NULL);
		if (b->ring_fds[i] < 0)
			return -errno;
		err = ttmon_ring_map(&b->rings[i], b->ring_fds[i], size);
		if (err)
			return err;
	}
	return 0;
}

/* ---- the array of rings ---- */

/*
 * The kernel waits for a grace period (8 to 13 ms) when a map is put into another, for each one or
 * once for a batch. So a thread does this while the programs are loaded.
 */
struct ring_array {
	const struct ttmon_bpf *b;
	pthread_t thread;
	bool started;
	int fd, err;
};

static int fill_array(const struct ttmon_bpf *b, int fd)
{
	_cleanup_free_ uint32_t *keys = malloc(b->cpus * sizeof(*keys));
	_cleanup_free_ int *values = malloc(b->cpus * sizeof(*values));
	uint32_t n = b->cpus;

	if (!keys || !values)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < b->cpus; cpu++) {
		keys[cpu] = cpu;
		values[cpu] = b->ring_fds[cpu % b->nr_rings];
	}
	/*
	 * Linux 5.19 has batches for arrays of maps (9263dddc7b6f), and since 6.8 it waits once for
	 * a batch (37ba5b59d6ad).
	 */
	if (!bpf_map_update_batch(fd, keys, values, &n, NULL))
		return 0;
	for (uint32_t cpu = 0; cpu < b->cpus; cpu++)
		if (bpf_map_update_elem(fd, &keys[cpu], &values[cpu], BPF_ANY))
			return -errno;
	return 0;
}

static void *run_fill(void *ctx)
{
	struct ring_array *a = ctx;

	a->err = fill_array(a->b, a->fd);
	return NULL;
}

/* Called before the load: the skeleton uses this map. */
static int start_array(struct ttmon_bpf *b, struct ring_array *a)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)b->ring_fds[0]);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, bpf_map__name(b->skel->maps.rings), sizeof(uint32_t),
				sizeof(uint32_t), b->cpus, &opts);
	int err;

	if (fd < 0)
		return -errno;
	err = bpf_map__reuse_fd(b->skel->maps.rings, fd);
	/* The skeleton has a copy of the descriptor. */
	close(fd);
	if (err)
		return err;
	a->b = b;
	a->fd = bpf_map__fd(b->skel->maps.rings);
	a->started = !pthread_create(&a->thread, NULL, run_fill, a);
	if (!a->started)
		run_fill(a);
	return 0;
}

static int wait_for_array(struct ring_array *a)
{
	if (a->started)
		pthread_join(a->thread, NULL);
	return a->err;
}

static int map_stats(struct ttmon_bpf *b)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	b->stat_size = ROUND_UP(sizeof(struct ttmon_cpu_stat), 8);
	b->stats_bytes = ROUND_UP(b->stat_size * b->cpus, page);
	p = mmap(NULL, b->stats_bytes, PROT_READ, MAP_SHARED, bpf_map__fd(b->skel->maps.cpu_stat), 0);
	if (p == MAP_FAILED)
		return -errno;
	b->stats = p;
	return 0;
}

/* How a program is attached to functions of objects. */
static uint32_t attach_type(const struct ttmon_bpf *b, enum ttmon_prog prog)
{
	bool both_ends = prog == TTMON_PROG_CALL || prog == TTMON_PROG_COPY || prog == TTMON_PROG_SYNC ||
			 prog == TTMON_PROG_USER_CALL || prog == TTMON_PROG_ENQUEUE || prog == TTMON_PROG_BATCH ||
			 prog == TTMON_PROG_LAUNCH || prog == TTMON_PROG_NOTE;

	return both_ends && b->session ? TTMON_ATTACH_UPROBE_SESSION : TTMON_ATTACH_UPROBE_MULTI;
}

/* Where the variables of a CPU are that show whether an interrupt runs, and a timer. */
static void set_percpu(struct ttmond_bpf *s)
{
	struct ttmon_percpu_var v[] = {
		{ .name = "runqueues" },
		{ .name = "__preempt_count" },
		{ .name = "pcpu_hot", .member = "preempt_count" }, /* Linux 6.2 to 6.14 */
		{ .name = "hrtimer_bases" },
		{ .name = "timer_bases" },
	};
	int err = ttmon_percpu_find(v, ARRAY_SIZE(v));

	if (err || !v[0].found) {
		log_debug("the kernel's BTF does not show the variables of a CPU: who wakes a thread is unknown");
		return;
	}
	for (unsigned int i = 1; i <= 2; i++)
		if (v[i].found)
			s->rodata->cfg_preempt_off = v[i].offset - v[0].offset;
	s->rodata->cfg_hrtimers_off = v[3].found ? v[3].offset - v[0].offset : 0;
	s->rodata->cfg_timers_off = v[4].found ? v[4].offset - v[0].offset : 0;
}

static void configure(struct ttmon_bpf *b)
{
	struct ttmond_bpf *s = b->skel;

	s->bss->trace_all = b->cfg.all;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		s->bss->family_state[i] = initial_state(b, i);
	s->rodata->cfg_legacy = b->legacy;
	s->rodata->cfg_no_returns = b->cfg.no_returns;
	s->rodata->cfg_session = b->session;
	s->rodata->cfg_stack_frames = b->cfg.stack_frames;
	s->rodata->cfg_counters = b->setup.counters;
	s->rodata->cfg_cpu_timer = b->setup.timer;
	s->rodata->cfg_rmid = b->cfg.rmid;
	s->rodata->cfg_max_rmid = b->cfg.max_rmid;
	s->rodata->cfg_wake_bytes = b->cfg.ring_bytes / 2;
	s->rodata->cfg_page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	for (size_t i = 0; i < b->cfg.nr_user && i < TTMON_FN_USER_MAX; i++) {
		struct ttmon_fn_desc *d = (struct ttmon_fn_desc *)&s->rodata->fns[TTMON_FN_USER + i];

		d->cls = b->cfg.user[i].cls;
		d->aux = TTMON_METHOD_CUSTOM;
		d->arg[0] = b->cfg.user[i].arg0;
		d->arg[1] = b->cfg.user[i].arg1;
	}
	((struct ttmon_fn_desc *)&s->rodata->fns[TTMON_FN_USDT_FREE])->aux = TTMON_METHOD_CUSTOM;
	if (!b->legacy)
		bpf_map__set_max_entries(s->maps.legacy_cookies, 1);
	if (wanted(b, TTMON_PROG_WHO_WAKING))
		set_percpu(s);
	if (!b->cfg.nvidia_pins)
		bpf_map__set_max_entries(s->maps.nvpin_calls, 1);
	bpf_map__set_max_entries(s->maps.cpu_stat, b->cpus);
	bpf_map__set_max_entries(s->maps.cpu_states, b->cfg.cpu ? b->cpus : 1);
	bpf_map__set_max_entries(s->maps.cpu_runs, b->cfg.no_returns ? 1 : b->cpus);
	bpf_map__set_max_entries(s->maps.cpu_counters, b->setup.counters ? b->cpus * TTMON_CTR_MAX : 1);
	bpf_map__set_max_entries(s->maps.cpu_timers, b->setup.timer ? b->cpus : 1);
	bpf_program__set_autoload(s->progs.cpu_timer_init, b->setup.timer);
	for (int i = 0; i < TTMON_PROG_MAX; i++) {
		struct bpf_program *p = ttmon_bpf_program(b, i);

		bpf_program__set_autoload(p, wanted(b, i));
		if (rows[i].attach == TTMON_ATTACH_OBJECT && !b->legacy)
			bpf_program__set_expected_attach_type(p, (enum bpf_attach_type)attach_type(b, i));
	}
}

/*
 * Why the kernel refused every program. A lockdown is reported only in the kernel's own log;
 * securityfs may not be mounted.
 */
static void say_refused(int err, char *why, size_t n)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	char line[64];

	if (f && fgets(line, sizeof(line), f) && strstr(line, "[confidentiality]"))
		snprintf(why, n,
			 "this kernel is locked down (lockdown=confidentiality): no BPF program may read its memory, "
			 "which tracing needs; under lockdown=integrity it may");
	else
		snprintf(why, n, "the kernel refused the BPF programs: %s (--log-level debug shows why)",
			 strerror(-err));
}

int ttmon_bpf_new(const struct ttmon_bpf_cfg *cfg, struct ttmon_bpf **ret, char *why, size_t n)
{
	struct ring_array array = { 0 };
	struct ttmon_bpf *b;
	char caps[128];
	int err;

	missing_caps(caps, sizeof(caps));
	if (caps[0]) {
		snprintf(why, n, "missing %s: run as root or give the process these capabilities", caps);
		return -EPERM;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		snprintf(why, n, "this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF=y");
		return -ENOENT;
	}
	libbpf_set_print(print_libbpf);
	b = calloc(1, sizeof(*b));
	if (!b) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	b->cfg = *cfg;
	b->runs_fd = b->closer = -1;
	b->kmd = ttmon_kmd_new(cfg->tt_ioctl);
	b->nvpin = cfg->nvidia_pins ? ttmon_nvpin_new() : NULL;
	err = libbpf_num_possible_cpus();
	if (err < 0) {
		snprintf(why, n, "cannot count CPUs: %s", strerror(-err));
		goto fail;
	}
	b->cpus = (uint32_t)err;
	b->skel = ttmond_bpf__open();
	if (!b->skel) {
		err = -errno;
		snprintf(why, n, "cannot open the BPF object: %s", strerror(-err));
		goto fail;
	}
	/* procs.c has the structure a second time: a lookup would write past the end of a shorter one. */
	if (bpf_map__value_size(b->skel->maps.procs) != ttmon_bpf_procs_bytes()) {
		err = -EPROTO;
		snprintf(why, n, "the table of processes has values of another size than procs.c");
		goto fail;
	}
	if (cfg->cpu) {
		err = ttmon_sched_new(cfg, b->cpus, &b->sched, &b->setup);
		if (err) {
			snprintf(why, n, "cannot measure CPU time: %s", strerror(-err));
			goto fail;
		}
	}
	b->legacy = getenv("TTMOND_NO_UPROBE_MULTI") || !ttmon_bpf_has_multi();
	b->session = !b->legacy && !cfg->no_returns && !getenv("TTMOND_NO_UPROBE_SESSION") && ttmon_bpf_has_session();
	configure(b);
	err = make_rings(b);
	if (!err)
		err = start_array(b, &array);
	if (!err) {
		int err2 = ttmond_bpf__load(b->skel);

		err = wait_for_array(&array);
		if (err2) {
			err = err2;
			say_refused(err, why, n);
			goto fail;
		}
	}
	if (err) {
		snprintf(why, n, "cannot make %u rings of %llu KiB: %s", b->nr_rings,
			 (unsigned long long)cfg->ring_bytes / 1024, strerror(-err));
		goto fail;
	}
	err = make_legacy(b, why, n);
	if (err)
		goto fail;
	err = map_stats(b);
	if (!err && b->sched)
		err = ttmon_sched_loaded(b->sched, bpf_map__fd(b->skel->maps.cpu_states),
					 bpf_map__fd(b->skel->maps.cpu_counters),
					 bpf_program__fd(b->skel->progs.cpu_timer_init));
	if (err) {
		snprintf(why, n, "cannot map the counters: %s", strerror(-err));
		goto fail;
	}
	*ret = b;
	return 0;
fail:
	ttmon_bpf_free(b);
	return err;
}

bool ttmon_bpf_attaches(const struct ttmon_bpf *b, enum ttmon_prog prog)
{
	return rows[prog].attach == TTMON_ATTACH_START && wanted(b, prog);
}

bool ttmon_bpf_attaches_traced(const struct ttmon_bpf *b, enum ttmon_prog prog)
{
	return rows[prog].attach == TTMON_ATTACH_TRACED && wanted(b, prog);
}

uint32_t *ttmon_bpf_traced_idle(struct ttmon_bpf *b)
{
	return &b->traced_idle;
}

struct bpf_link **ttmon_bpf_link(struct ttmon_bpf *b, enum ttmon_prog prog)
{
	return (struct bpf_link **)((char *)&b->skel->links + (rows[prog].off - offsetof(struct ttmond_bpf, progs)));
}

int ttmon_bpf_attach_prog(struct ttmon_bpf *b, enum ttmon_prog prog, char *why, size_t n)
{
	struct bpf_program *p = ttmon_bpf_program(b, prog);
	bool tracepoint = !strcmp(rows[prog].kind, "tracepoint");
	struct bpf_link *link = tracepoint ? ttmon_bpf_attach_tracepoint(p) : bpf_program__attach(p);
	int err = -errno;

	if (link) {
		*ttmon_bpf_link(b, prog) = link;
		b->attached[prog] = true;
		return 0;
	}
	snprintf(why, n, "cannot attach %s: %s%s", rows[prog].name, strerror(-err),
		 rows[prog].wanted == TTMON_WANTED_MMAP && err == -EPERM
			 ? " (tracefs is not mounted, and to do without takes CAP_SYS_ADMIN: mount -t tracefs tracefs "
			   "/sys/kernel/tracing, or --no-mmap)"
			 : "");
	return err;
}

void ttmon_bpf_activate(struct ttmon_bpf *b, bool on)
{
	__atomic_store_n(&b->skel->bss->active, on, __ATOMIC_RELEASE);
}

/*
 * Links based on a perf event, whose last close waits for grace periods. The link holds the event, so
 * its descriptor is enough. Links of tp_btf and raw_tp do not wait.
 */
static size_t slow_links(struct ttmon_bpf *b, int *fds)
{
	size_t n = 0;

	for (int i = TTMON_PROG_UPROBES; i < TTMON_PROG_MAX; i++) {
		const struct bpf_link *link = *ttmon_bpf_link(b, i);

		if (link && !strcmp(rows[i].kind, "tracepoint"))
			fds[n++] = bpf_link__fd(link);
	}
	n += ttmon_kmd_links(b->kmd, fds + n);
	return n + ttmon_nvpin_links(b->nvpin, fds + n);
}

void ttmon_bpf_leave(struct ttmon_bpf *b, int closer)
{
	int fds[TTMON_PROG_MAX + TTMON_KMD_LINKS + TTMON_NVPIN_LINKS], err;

	if (!b)
		return;
	ttmon_bpf_activate(b, false);
	b->closer = closer;
	err = ttmon_closer_give(closer, TTMON_CLOSE_IN_TURN, fds, slow_links(b, fds));
	if (err)
		log_debug("nobody else closes the links: %s", strerror(-err));
}

void ttmon_bpf_free(struct ttmon_bpf *b)
{
	if (!b)
		return;
	if (b->rings)
		for (uint32_t i = 0; i < b->nr_rings; i++)
			ttmon_ring_unmap(&b->rings[i]);
	if (b->ring_fds)
		for (uint32_t i = 0; i < b->nr_rings; i++)
			if (b->ring_fds[i] >= 0)
				close(b->ring_fds[i]);
	if (b->stats)
		munmap(b->stats, b->stats_bytes);
	if (b->runs_fd >= 0)
		close(b->runs_fd);
	ttmon_uprobe_legacy_free(b->uprobes);
	ttmon_kmd_free(b->kmd);
	ttmon_nvpin_free(b->nvpin);
	ttmon_rmid_links_free(b->rmid_links);
	ttmon_sched_free(b->sched);
	ttmond_bpf__destroy(b->skel);
	free(b->rings);
	free(b->ring_fds);
	free(b);
}

uint32_t ttmon_bpf_cpus(const struct ttmon_bpf *b)
{
	return b->cpus;
}

int ttmon_bpf_stack_ring(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.stack_ring);
}

void ttmon_bpf_stacks(struct ttmon_bpf *b, enum ttmon_stack_copying on)
{
	__atomic_store_n(&b->skel->bss->stacks_on, on, __ATOMIC_RELEASE);
}

void ttmon_bpf_stack_counts(const struct ttmon_bpf *b, uint64_t *copied, uint64_t *lost)
{
	*copied = __atomic_load_n(&b->skel->bss->stacks_copied, __ATOMIC_ACQUIRE);
	*lost = __atomic_load_n(&b->skel->bss->stacks_lost, __ATOMIC_ACQUIRE);
}

void ttmon_bpf_confirm_chain(struct ttmon_bpf *b, uint64_t chain)
{
	uint8_t one = 1;

	/* If there is no room, its stacks are copied again. */
	if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.chains), &chain, &one, BPF_ANY))
		log_debug("cannot note a chain of frame pointers: %s", strerror(errno));
}

uint32_t ttmon_bpf_rings(const struct ttmon_bpf *b)
{
	return b->nr_rings;
}

struct ttmon_ring *ttmon_bpf_ring(struct ttmon_bpf *b, uint32_t i)
{
	return &b->rings[i];
}

int ttmon_bpf_ring_fd(const struct ttmon_bpf *b, uint32_t i)
{
	return b->ring_fds[i];
}

uint64_t ttmon_bpf_ring_bytes(const struct ttmon_bpf *b)
{
	return b->cfg.ring_bytes;
}

const struct ttmon_cpu_stat *ttmon_bpf_stat(const struct ttmon_bpf *b, uint32_t cpu)
{
	return (const struct ttmon_cpu_stat *)(b->stats + cpu * b->stat_size);
}

void ttmon_bpf_prog_info(const struct ttmon_bpf *b, enum ttmon_prog prog, struct ttmon_prog_info *ret)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_program__fd(ttmon_bpf_program(b, prog));

	*ret = (struct ttmon_prog_info){
		.name = rows[prog].name,
		.kind = rows[prog].kind,
		.family = rows[prog].family,
		.wanted = wanted(b, prog),
		.loaded = fd >= 0,
		.attached = b->attached[prog],
		.reason = "",
	};
	if (ret->wanted && rows[prog].attach == TTMON_ATTACH_KMD)
		ret->reason = ttmon_kmd_reason(b->kmd, prog);
	else if (ret->wanted && rows[prog].attach == TTMON_ATTACH_NVPIN)
		ret->reason = ttmon_nvpin_reason(b->nvpin);
	if (b->skel->bss->family_state[ret->family] == TTMON_FAMILY_OFF && !ret->attached)
		ret->reason = "its family is off";
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len)) {
		ret->run_cnt = info.run_cnt;
		ret->run_ns = info.run_time_ns;
	}
}

int ttmon_bpf_attach_uprobes(struct ttmon_bpf *b, int object_fd, const struct ttmon_uprobe_set *set)
{
	int prog_fd = bpf_program__fd(ttmon_bpf_program(b, set->prog));
	bool ret = !strcmp(rows[set->prog].kind, "uretprobe");
	int fd = b->legacy ? ttmon_uprobe_legacy_attach(b->uprobes, prog_fd, ret, object_fd, set)
			   : ttmon_bpf_link_multi(prog_fd, attach_type(b, set->prog), ret, object_fd, set);

	/* Also called by the thread that attaches. */
	if (fd >= 0)
		__atomic_store_n(&b->attached[set->prog], true, __ATOMIC_RELAXED);
	return fd;
}

void ttmon_bpf_detach_uprobes(struct ttmon_bpf *b, int link)
{
	if (b->legacy)
		ttmon_uprobe_legacy_detach(b->uprobes, link);
	else
		close(link);
}

void ttmon_bpf_detach_many(struct ttmon_bpf *b, const int *links, size_t n)
{
	if (!b->legacy && b->closer >= 0 && !ttmon_closer_give(b->closer, TTMON_CLOSE_TOGETHER, links, n))
		for (size_t i = 0; i < n; i++)
			close(links[i]);
	else if (!b->legacy)
		ttmon_bpf_close_links(links, n);
	for (size_t i = 0; b->legacy && i < n; i++)
		ttmon_uprobe_legacy_detach(b->uprobes, links[i]);
}

bool ttmon_bpf_legacy(const struct ttmon_bpf *b)
{
	return b->legacy;
}

bool ttmon_bpf_kernel_has(const char *name, unsigned int kind)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = !libbpf_get_error(btf) && btf__find_by_name_kind(btf, name, kind) > 0;

	btf__free(btf);
	return has;
}

bool ttmon_bpf_kernel_has_function(const char *name)
{
	return ttmon_bpf_kernel_has(name, BTF_KIND_FUNC);
}

bool ttmon_bpf_session(const struct ttmon_bpf *b)
{
	return b->session;
}

int ttmon_bpf_switchers_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.switchers);
}

uint32_t *ttmon_bpf_any_switcher(const struct ttmon_bpf *b)
{
	return &b->skel->bss->any_switcher;
}

int ttmon_bpf_set_python(struct ttmon_bpf *b, uint32_t tgid, const struct ttmon_py_layout *layout)
{
	int fd = bpf_map__fd(b->skel->maps.pythons);

	if (!layout)
		return bpf_map_delete_elem(fd, &tgid) && errno != ENOENT ? -errno : 0;
	if (bpf_map_update_elem(fd, &tgid, layout, BPF_ANY))
		return -errno;
	__atomic_store_n(&b->skel->bss->any_python, 1, __ATOMIC_RELEASE);
	return 0;
}

void ttmon_bpf_codes_again(struct ttmon_bpf *b)
{
	__atomic_store_n(&b->skel->bss->codes_since, ttmon_mono_ns(), __ATOMIC_RELEASE);
}

int ttmon_bpf_nvpin_sums_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.nvpin_sums);
}

int ttmon_bpf_tt_slots_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.tt_slots);
}

int ttmon_bpf_procs_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.procs);
}

int ttmon_bpf_reduced_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.reduced);
}

int ttmon_bpf_reduced_users_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.reduced_users);
}

int ttmon_bpf_user_hits_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.user_hits);
}

int ttmon_bpf_rmid_pool_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.rmid_pool);
}

int ttmon_bpf_tt_sums_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.tt_dispatches);
}

int ttmon_bpf_launches_fd(const struct ttmon_bpf *b)
{
	return bpf_map__fd(b->skel->maps.launches);
}
