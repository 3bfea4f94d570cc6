// SPDX-License-Identifier: GPL-2.0-only
/*
 * read.c: gathers what `ttmon smi` shows. It opens no device node: that would raise the chip's power
 * state and block resets.
 *
 * Chips and their openers are read below the roots that were given, mappings of processes always from
 * /proc. With --details the maps of all processes are read; without, at most those of the processes in
 * a file that no chip was found for.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tools/smi/smi.h"
#include "lib/os/clock.h"
#include "lib/os/maps.h"
#include "lib/os/proc.h"

#define OPENINGS_MAX 65536
#define PROBLEMS_MAX 256
#define DEVICE_PATH  "/dev/tenstorrent/"

void ttmon_smi_add_problem(struct ttmon_smi *v, bool fatal, const char *what, const char *text)
{
	struct ttmon_smi_problem *p;

	v->failed = v->failed || fatal;
	if (v->nr_problems >= PROBLEMS_MAX)
		return;
	p = reallocarray(v->problems, v->nr_problems + 1, sizeof(*p));
	if (!p)
		return;
	v->problems = p;
	p += v->nr_problems++;
	ttmon_term_clean(p->what, sizeof(p->what), what, SIZE_MAX, SIZE_MAX, true);
	ttmon_term_clean(p->text, sizeof(p->text), text, SIZE_MAX, SIZE_MAX, true);
}

int ttmon_smi_add_opening(struct ttmon_smi *v, uint32_t pid, uint32_t ordinal)
{
	struct ttmon_smi_opening *o;

	if (v->nr_openings == v->cap_openings) {
		size_t cap = v->cap_openings ? v->cap_openings * 2 : 64;

		if (cap > OPENINGS_MAX)
			return -ENOMEM;
		o = reallocarray(v->openings, cap, sizeof(*o));
		if (!o)
			return -ENOMEM;
		v->openings = o;
		v->cap_openings = cap;
	}
	v->openings[v->nr_openings++] = (struct ttmon_smi_opening){ pid, ordinal };
	return 0;
}

void ttmon_smi_fini(struct ttmon_smi *v)
{
	for (size_t i = 0; v->chips && i < v->nr_chips; i++)
		free(v->chips[i].open.pids);
	for (size_t i = 0; v->files && i < v->nr_shm; i++)
		free(v->files[i].mapped.pids);
	free(v->sys);
	free(v->shm);
	free(v->files);
	free(v->chips);
	free(v->procs);
	free(v->openings);
	free(v->listed);
	free(v->problems);
	free(v->busy);
	*v = (struct ttmon_smi){ 0 };
}

/* ---- chips ---- */

static bool same_place(const struct ttmon_ev_tt_chip *a, const struct ttmon_ev_tt_chip *b)
{
	return a->ordinal == b->ordinal && a->bdf == b->bdf && !((a->flags ^ b->flags) & TTMON_TT_CHIP_REMOTE);
}

/* Remembers a remote chip that is missing while its near chip does not report its type. */
static int remember_far(struct ttmon_smi *v, const struct ttmon_ttsys_chip *near, const struct ttmon_smi_memory *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct ttmon_ev_tt_chip *far = &m->chips[i].fact;
		struct ttmon_ttsys_chip *chips;

		if (!(far->flags & TTMON_TT_CHIP_REMOTE) || far->ordinal != near->fact.ordinal ||
		    far->board_id != near->fact.board_id)
			continue;
		chips = reallocarray(v->sys, v->nr_sys + 1, sizeof(*chips));
		if (!chips)
			return -ENOMEM;
		v->sys = chips;
		chips[v->nr_sys++] = (struct ttmon_ttsys_chip){
			.fact = *far, .resetting = true, .temperature_mc = INT32_MIN, .power_uw = -1, .aiclk_mhz = -1
		};
		break;
	}
	return 0;
}

/*
 * Restores the type of a chip in reset from the last reading; then remembers all chips for the next
 * one.
 */
static int remember(struct ttmon_smi *v, struct ttmon_smi_memory *m)
{
	struct ttmon_ttsys_chip *copy;
	size_t now = v->nr_sys;

	for (size_t i = 0; i < now; i++) {
		struct ttmon_ev_tt_chip *fact = &v->sys[i].fact;

		if (!v->sys[i].resetting || fact->board_id)
			continue;
		for (size_t k = 0; k < m->n; k++) {
			struct ttmon_ttsys_chip near;

			if (!same_place(fact, &m->chips[k].fact))
				continue;
			*fact = m->chips[k].fact;
			near = v->sys[i];
			if (remember_far(v, &near, m))
				return -ENOMEM;
			break;
		}
	}
	copy = malloc((v->nr_sys + 1) * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	if (v->nr_sys)
		memcpy(copy, v->sys, v->nr_sys * sizeof(*copy));
	free(m->chips);
	*m = (struct ttmon_smi_memory){ copy, v->nr_sys };
	return 0;
}

static void read_chips(struct ttmon_smi *v, const struct ttmon_ttsys_roots *roots)
{
	char path[PATH_MAX];
	int err = ttmon_ttsys_read(roots, &v->sys, &v->nr_sys);

	snprintf(path, sizeof(path), "%s/class/tenstorrent", roots->sysfs ? roots->sysfs : "/sys");
	if (err) {
		v->sys = NULL;
		v->nr_sys = 0;
		ttmon_smi_add_problem(v, true, path, strerror(-err));
	}
	v->no_driver = !v->nr_sys && access(path, F_OK);
}

static int read_open(struct ttmon_smi *v, const struct ttmon_ttsys_roots *roots)
{
	_cleanup_free_ uint32_t *pids = malloc(TTMON_SMI_PIDS_MAX * sizeof(*pids));

	if (!pids)
		return -ENOMEM;
	for (size_t i = 0; i < v->nr_sys; i++) {
		const struct ttmon_ev_tt_chip *fact = &v->sys[i].fact;
		struct ttmon_smi_pids *open = &v->chips[i].open;
		size_t n = 0;

		if (fact->ordinal == TTMON_SMI_NONE || fact->flags & TTMON_TT_CHIP_REMOTE ||
		    ttmon_ttsys_pids(roots, fact->ordinal, pids, TTMON_SMI_PIDS_MAX, &n))
			continue;
		open->known = true;
		if (!n)
			continue;
		open->pids = malloc(n * sizeof(*pids));
		if (!open->pids)
			return -ENOMEM;
		for (size_t p = 0; p < n; p++) {
			if (!pids[p])
				continue; /* a process of another pid namespace */
			open->pids[open->n++] = pids[p];
			if (ttmon_smi_add_opening(v, pids[p], fact->ordinal))
				break;
		}
	}
	return 0;
}

/* ---- files ---- */

static void drop_vanished(struct ttmon_smi *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->nr_shm; i++) {
		if (v->shm[i].status == TTMON_TTSHM_UNREADABLE && v->shm[i].err == ENOENT)
			continue;
		if (n != i)
			v->shm[n] = v->shm[i];
		n++;
	}
	v->nr_shm = n;
}

static int scan(struct ttmon_smi *v)
{
	free(TAKE_PTR(v->shm));
	v->nr_shm = 0;
	v->shm_err = ttmon_ttshm_scan(v->shm_dir, &v->shm, &v->nr_shm);
	if (v->shm_err == -ENOMEM)
		return -ENOMEM;
	if (v->shm_err) {
		v->shm = NULL;
		v->nr_shm = 0;
		ttmon_smi_add_problem(v, true, v->shm_dir, strerror(-v->shm_err));
	}
	drop_vanished(v);
	return 0;
}

static void tell_bad_files(struct ttmon_smi *v)
{
	for (size_t i = 0; i < v->nr_shm; i++) {
		const struct ttmon_ttshm *shm = &v->shm[i];
		bool passing = shm->status == TTMON_TTSHM_NOT_READY || shm->status == TTMON_TTSHM_TORN;
		char text[128], owner[48] = "";

		if (shm->status == TTMON_TTSHM_OK)
			continue;
		if (shm->status == TTMON_TTSHM_UNREADABLE && shm->err) {
			if (shm->mode)
				snprintf(owner, sizeof(owner), " (of user %u, mode %04o)", (unsigned int)shm->uid,
					 shm->mode & 07777);
			snprintf(text, sizeof(text), "%s%s", strerror(shm->err), owner);
		} else if (shm->status == TTMON_TTSHM_VERSION) {
			snprintf(text, sizeof(text), "%s %" PRIu32, ttmon_ttshm_status_text(shm->status), shm->version);
		} else {
			snprintf(text, sizeof(text), "%s", ttmon_ttshm_status_text(shm->status));
		}
		ttmon_smi_add_problem(v, !passing, shm->name, text);
	}
}

struct cleaned {
	char name[64];
	int result;
};

/*
 * Removes the entries of dead processes, then reads everything again. Returns the result for each
 * file.
 */
static int clean(struct ttmon_smi *v, struct cleaned **ret, size_t *n)
{
	_cleanup_free_ struct cleaned *done = calloc(v->nr_shm + 1, sizeof(*done));
	_cleanup_close_ int dir_fd = open(v->shm_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t used = 0;

	if (!done)
		return -ENOMEM;
	for (size_t i = 0; dir_fd >= 0 && i < v->nr_shm; i++) {
		const struct ttmon_ttshm *shm = &v->shm[i];
		char text[128];
		size_t dead = 0;

		for (size_t p = 0; shm->status == TTMON_TTSHM_OK && p < shm->nr_processes; p++)
			dead += !shm->processes[p].alive;
		if (!dead)
			continue;
		memcpy(done[used].name, shm->name, sizeof(done[used].name));
		done[used].result = ttmon_ttshm_cleanup(dir_fd, shm->name);
		if (done[used].result < 0) {
			snprintf(text, sizeof(text), "%zu entries of dead processes stay: %s", dead,
				 strerror(-done[used].result));
			ttmon_smi_add_problem(v, true, shm->name, text);
		}
		used++;
	}
	*ret = TAKE_PTR(done);
	*n = used;
	return used ? scan(v) : 0;
}

static void note_cleaned(struct ttmon_smi *v, const struct cleaned *done, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t f = 0; f < v->nr_shm; f++) {
			if (strcmp(v->shm[f].name, done[i].name))
				continue;
			v->files[f].removed = MAX(done[i].result, 0);
			v->files[f].clean_err = MIN(done[i].result, 0);
		}
	}
}

/* ---- processes ---- */

static int add_mapped(struct ttmon_smi_pids *pids, uint32_t pid)
{
	uint32_t *p;

	if (pids->n && pids->pids[pids->n - 1] == pid)
		return 0;
	if (pids->n >= TTMON_SMI_PIDS_MAX)
		return 0;
	p = reallocarray(pids->pids, pids->n + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	pids->pids = p;
	p[pids->n++] = pid;
	return 0;
}

static bool is_device(const struct ttmon_mapping *m, uint32_t *ret)
{
	const char *nr = m->name + strlen(DEVICE_PATH);
	unsigned long ordinal;
	char *end;

	if (strncmp(m->name, DEVICE_PATH, strlen(DEVICE_PATH)) || *nr < '0' || *nr > '9')
		return false;
	ordinal = strtoul(nr, &end, 10);
	if (*end || ordinal >= TTMON_SMI_NONE)
		return false;
	*ret = (uint32_t)ordinal;
	return true;
}

struct mapped {
	struct ttmon_smi *v;
	const struct stat *stats; /* the files to look for; NULL: none */
	uint32_t pid;
};

/*
 * Notes which chips a process has mapped: this works with drivers that do not list processes too. A
 * chip is mapped in hundreds of pieces.
 */
static int note_mapping(void *ctx, const struct ttmon_mapping *m)
{
	const struct mapped *at = ctx;
	struct ttmon_smi *v = at->v;
	const struct ttmon_smi_opening *last = v->nr_openings ? &v->openings[v->nr_openings - 1] : NULL;
	uint32_t ordinal;

	if (is_device(m, &ordinal) && !(last && last->pid == at->pid && last->ordinal == ordinal) &&
	    ttmon_smi_add_opening(v, at->pid, ordinal) && !at->stats)
		return -ENOMEM; /* else: there are too many; what was found so far is used */
	for (size_t i = 0; at->stats && i < v->nr_shm; i++)
		if (at->stats[i].st_ino == m->ino && at->stats[i].st_dev == makedev(m->dev_major, m->dev_minor) &&
		    m->ino && add_mapped(&v->files[i].mapped, at->pid))
			return -ENOMEM;
	return 0;
}

/* A process that has ended, or whose maps cannot be read, has none. */
static int look_at_mappings(struct ttmon_smi *v, const struct stat *stats, uint32_t pid)
{
	struct mapped at = { v, stats, pid };

	return ttmon_maps_read("/proc", pid, note_mapping, &at) == -ENOMEM ? -ENOMEM : 0;
}

static int learn(struct ttmon_smi *v)
{
	for (size_t i = 0; i < v->nr_shm; i++) {
		const struct ttmon_ttshm *shm = &v->shm[i];

		if (!ttmon_smi_wants_openings(v, &v->files[i]))
			continue;
		for (size_t p = 0; p < shm->nr_processes; p++) {
			bool known = false;

			if (!shm->processes[p].alive || shm->processes[p].pid <= 0)
				continue;
			for (size_t o = 0; o < v->nr_openings && !known; o++)
				known = v->openings[o].pid == (uint32_t)shm->processes[p].pid;
			if (!known && look_at_mappings(v, NULL, (uint32_t)shm->processes[p].pid))
				return 0; /* there are too many: what was found so far is used */
		}
	}
	ttmon_smi_match_openings(v);
	return 0;
}

/* Finds the processes that have the files mapped, as far as their maps can be read. */
static int read_mapped(struct ttmon_smi *v)
{
	_cleanup_free_ struct stat *stats = calloc(v->nr_shm + 1, sizeof(*stats));
	_cleanup_close_ int dir_fd = open(v->shm_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	DIR *dir;
	int err = 0;

	if (!stats)
		return -ENOMEM;
	if (!v->nr_shm || dir_fd < 0)
		return 0;
	for (size_t i = 0; i < v->nr_shm; i++)
		if (fstatat(dir_fd, v->shm[i].name, &stats[i], AT_SYMLINK_NOFOLLOW) || !S_ISREG(stats[i].st_mode))
			stats[i] = (struct stat){ 0 };
	dir = opendir("/proc");
	if (!dir)
		return 0;
	while (!err && (entry = readdir(dir))) {
		unsigned long pid = strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && pid <= INT32_MAX)
			err = look_at_mappings(v, stats, (uint32_t)pid);
	}
	closedir(dir);
	for (size_t i = 0; i < v->nr_shm; i++)
		v->files[i].mapped.known = true;
	return err;
}

/* Reads the names of processes that only tt-kmd lists. */
static void read_names(struct ttmon_smi *v)
{
	for (size_t i = 0; i < v->nr_procs; i++) {
		struct ttmon_smi_process *p = &v->procs[i];

		if (p->name[0] || p->file != TTMON_SMI_NONE)
			continue;
		if (ttmon_proc_read(NULL, p->pid, "comm", p->name, sizeof(p->name)) < 0)
			p->name[0] = '\0';
		p->name[strcspn(p->name, "\n")] = '\0';
	}
}

static int gather(const struct ttmon_smi_ask *ask, struct ttmon_smi *v)
{
	struct ttmon_ttsys_roots roots = { ask->roots.sysfs, ask->roots.proc, ask->roots.shm };
	_cleanup_free_ struct cleaned *cleaned = NULL;
	size_t nr_cleaned = 0;
	int err;

	v->real_ns = ttmon_clock_ns(CLOCK_REALTIME);
	v->mono_ns = ttmon_mono_ns();
	v->shm_dir = ask->roots.shm ? ask->roots.shm : "/dev/shm";
	v->details = ask->details;
	v->cleanup = ask->cleanup;
	read_chips(v, &roots);
	err = ask->memory ? remember(v, ask->memory) : 0;
	if (!err)
		err = scan(v);
	if (!err && ask->cleanup && !v->shm_err)
		err = clean(v, &cleaned, &nr_cleaned);
	if (!err)
		err = ttmon_smi_begin(v);
	if (err)
		return err;
	tell_bad_files(v);
	note_cleaned(v, cleaned, nr_cleaned);
	err = read_open(v, &roots);
	if (err)
		return err;
	ttmon_smi_match_keys(v);
	err = learn(v);
	if (!err && ask->details)
		err = read_mapped(v);
	if (!err)
		err = ttmon_smi_finish(v);
	if (!err)
		read_names(v);
	return err;
}

int ttmon_smi_read(const struct ttmon_smi_ask *ask, struct ttmon_smi *ret)
{
	struct ttmon_smi v = { 0 };
	int err = gather(ask, &v);

	if (err) {
		ttmon_smi_fini(&v);
		return err;
	}
	*ret = v;
	return 0;
}
