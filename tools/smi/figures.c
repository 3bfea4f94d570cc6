// SPDX-License-Identifier: GPL-2.0-only
/*
 * figures.c: computes the memory in use of a chip, and of each process, from the files that were
 * matched to it. Pure.
 *
 * The totals of a file include what dead processes held until the file is cleaned; that part is
 * subtracted here, as cleaning would. A chip can have several files: one of ttmond, one that tt-metal
 * writes itself, one that an older version left. Files with different living processes are added up.
 * Of files with the same process, the one with more information is taken.
 *
 * A 0 is shown only if the files are known to have everything. That is not so if a process that is in
 * no file has the chip open (ttmond did not see it, or could not read its buffers), or if ttmond
 * marked the file as partial. A process that is in the file of another chip is not counted as missing:
 * a program opens all chips of the host, even those that it does not use.
 */
#include "tools/smi/smi.h"

const char *ttmon_smi_why_text(enum ttmon_smi_why why)
{
	static const char *const texts[TTMON_SMI_WHY_MAX] = {
		[TTMON_SMI_WHY_NOBODY] =
			"no program has published its memory (no tt_device_*_memory file), and none has it open",
		[TTMON_SMI_WHY_SILENT] =
			"open in a program that publishes nothing: its tt-metal is too old for that or is told not to "
			"(TT_METAL_SHM_TRACKING_DISABLED), and no ttmond traces it",
		[TTMON_SMI_WHY_NO_FILE] = "no program has published its memory (no tt_device_*_memory file)",
		[TTMON_SMI_WHY_UNMATCHED] =
			"one of the files that no chip was found for may belong to it: its name in tt-metal is not "
			"known here",
		[TTMON_SMI_WHY_FILE] = "its file has no usable figures",
		[TTMON_SMI_WHY_NO_DIR] = "the folder of the tt_device_*_memory files could not be read",
		[TTMON_SMI_WHY_UNLISTED] =
			"open in a program that is in no file: it started before ttmond and was not seen yet, the "
			"layout of its buffers is not known, or it publishes nothing",
		[TTMON_SMI_WHY_UNSEEN] = "its file shows no memory, and is marked as incomplete",
	};

	return texts[why];
}

uint64_t ttmon_smi_add(uint64_t a, uint64_t b)
{
	if (a == TTMON_SMI_UNKNOWN)
		return b;
	if (b == TTMON_SMI_UNKNOWN)
		return a;
	return a + b;
}

/*
 * ttmond does not see kernel memory. The field exists only in version 1, and has what could be seen.
 */
static bool is_unseen_kernel(const struct ttmon_ttshm *shm, unsigned int type, uint64_t bytes)
{
	return type == TTMON_TT_TYPE_KERNEL && shm->ours && !bytes;
}

/*
 * Returns what cleaning would leave. From version 2 on, the sum of circular buffers is the value that
 * one process stored last, not a sum.
 */
static uint64_t figure(const struct ttmon_smi_file *f, unsigned int type)
{
	uint64_t total = f->shm->bytes[type], dead = 0;

	if (is_unseen_kernel(f->shm, type, total))
		return TTMON_SMI_UNKNOWN;
	if (total == TTMON_SMI_UNKNOWN || (type == TTMON_TT_TYPE_CB && f->shm->version > 1 && f->live))
		return total;
	for (size_t p = 0; p < f->shm->nr_processes; p++)
		if (!f->shm->processes[p].alive && f->shm->processes[p].bytes[type] != TTMON_SMI_UNKNOWN)
			dead += f->shm->processes[p].bytes[type];
	return total - MIN(total, dead);
}

static struct ttmon_smi_process *find_process(struct ttmon_smi *v, size_t from, uint32_t pid)
{
	for (size_t i = from; i < v->nr_procs; i++)
		if (v->procs[i].pid == pid)
			return &v->procs[i];
	return NULL;
}

static struct ttmon_smi_process *new_process(struct ttmon_smi *v, size_t chip, uint32_t pid)
{
	struct ttmon_smi_process *p;

	if (v->nr_procs == v->cap_procs) {
		size_t cap = v->cap_procs ? v->cap_procs * 2 : 64;

		p = realloc(v->procs, cap * sizeof(*p));
		if (!p)
			return NULL;
		v->procs = p;
		v->cap_procs = cap;
	}
	p = &v->procs[v->nr_procs++];
	*p = (struct ttmon_smi_process){ .chip = (uint32_t)chip, .file = TTMON_SMI_NONE, .pid = pid, .alive = true };
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		p->bytes[t] = TTMON_SMI_UNKNOWN;
	return p;
}

/*
 * Takes the first good file for the figures of the chip, and adds other files that have none of its
 * living processes.
 */
static int take_file(struct ttmon_smi *v, size_t chip, size_t file, size_t first_proc)
{
	struct ttmon_smi_file *f = &v->files[file];
	struct ttmon_smi_chip *c = &v->chips[chip];
	bool take = c->files == 0 || f->live;

	for (size_t i = 0; i < f->shm->nr_processes; i++)
		if (f->shm->processes[i].alive && find_process(v, first_proc, (uint32_t)f->shm->processes[i].pid))
			take = false;
	for (size_t i = 0; i < f->shm->nr_processes; i++) {
		const struct ttmon_ttshm_process *from = &f->shm->processes[i];
		struct ttmon_smi_process *p;

		if (from->pid <= 0 || find_process(v, first_proc, (uint32_t)from->pid))
			continue;
		p = new_process(v, chip, (uint32_t)from->pid);
		if (!p)
			return -ENOMEM;
		p->file = (uint32_t)file;
		p->alive = from->alive;
		p->last_update_ns = from->last_update_ns;
		memcpy(p->name, from->name, sizeof(p->name));
		memcpy(p->bytes, from->bytes, sizeof(p->bytes));
		if (is_unseen_kernel(f->shm, TTMON_TT_TYPE_KERNEL, p->bytes[TTMON_TT_TYPE_KERNEL]))
			p->bytes[TTMON_TT_TYPE_KERNEL] = TTMON_SMI_UNKNOWN;
		c->dead += !from->alive;
		c->live += from->alive;
	}
	if (!take)
		return 0;
	f->counted = true;
	c->files++;
	c->flags |= f->shm->flags;
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		c->bytes[t] = ttmon_smi_add(c->bytes[t], figure(f, t));
	return 0;
}

/* Returns whether file a has more information than file b of the same chip. */
static bool better(const struct ttmon_smi_file *a, const struct ttmon_smi_file *b)
{
	if (!a->live != !b->live)
		return a->live;
	if (!a->shm->reference_count != !b->shm->reference_count)
		return a->shm->reference_count;
	return a->shm->version > b->shm->version;
}

/*
 * A driver that does not list the openers of the chip: the mappings of processes are used instead, as
 * far as they were read.
 */
static int take_mapped(struct ttmon_smi *v, size_t chip, size_t first_proc)
{
	const struct ttmon_ttsys_chip *sys = v->chips[chip].sys;

	if (!sys || v->chips[chip].open.known || sys->fact.flags & TTMON_TT_CHIP_REMOTE ||
	    sys->fact.ordinal == TTMON_SMI_NONE)
		return 0;
	for (size_t i = 0; i < v->nr_openings; i++) {
		const struct ttmon_smi_opening *o = &v->openings[i];

		if (o->ordinal != sys->fact.ordinal || ttmon_smi_is_listed(v, o->pid) ||
		    find_process(v, first_proc, o->pid))
			continue;
		if (!new_process(v, chip, o->pid))
			return -ENOMEM;
	}
	return 0;
}

static int take_files(struct ttmon_smi *v, size_t chip, bool *bad)
{
	_cleanup_free_ uint32_t *files = malloc((v->nr_shm + 1) * sizeof(*files));
	size_t n = 0, first_proc = v->nr_procs;

	if (!files)
		return -ENOMEM;
	for (size_t i = 0; i < v->nr_shm; i++) {
		size_t at = n;

		if (v->files[i].chip != chip)
			continue;
		if (v->files[i].shm->status != TTMON_TTSHM_OK) {
			*bad = true;
			continue;
		}
		while (at && better(&v->files[i], &v->files[files[at - 1]])) {
			files[at] = files[at - 1];
			at--;
		}
		files[at] = (uint32_t)i;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		if (take_file(v, chip, files[i], first_proc))
			return -ENOMEM;
	for (size_t i = 0; i < v->chips[chip].open.n; i++) {
		uint32_t pid = v->chips[chip].open.pids[i];
		struct ttmon_smi_process *p = find_process(v, first_proc, pid);

		p = p ? p : new_process(v, chip, pid);
		if (!p)
			return -ENOMEM;
		p->open = true;
	}
	return take_mapped(v, chip, first_proc);
}

static enum ttmon_smi_why why_none(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip)
{
	if (v->shm_err)
		return TTMON_SMI_WHY_NO_DIR;
	for (size_t i = 0; !chip->told && i < v->nr_shm; i++) {
		const struct ttmon_smi_file *f = &v->files[i];

		/* The row of a file that no chip was found for; it has no chip of sysfs. */
		if (f->match == TTMON_SMI_MATCH_NONE && f->shm->status != TTMON_TTSHM_NOT_A_FILE &&
		    (f->shm->status != TTMON_TTSHM_OK || f->shm->version != 1))
			return TTMON_SMI_WHY_UNMATCHED;
	}
	if (!chip->open.known)
		return TTMON_SMI_WHY_NO_FILE;
	return chip->open.n ? TTMON_SMI_WHY_SILENT : TTMON_SMI_WHY_NOBODY;
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int ttmon_smi_list(struct ttmon_smi *v)
{
	size_t n = 0, live = 0;

	for (size_t i = 0; i < v->nr_shm; i++)
		live += v->files[i].live;
	v->listed = malloc((live + 1) * sizeof(*v->listed));
	if (!v->listed)
		return -ENOMEM;
	for (size_t i = 0; i < v->nr_shm; i++) {
		const struct ttmon_ttshm *shm = &v->shm[i];

		for (size_t p = 0; shm->status == TTMON_TTSHM_OK && p < shm->nr_processes; p++)
			if (shm->processes[p].alive)
				v->listed[n++] = (uint32_t)shm->processes[p].pid;
	}
	qsort(v->listed, n, sizeof(*v->listed), by_pid);
	v->nr_listed = n;
	return 0;
}

bool ttmon_smi_is_listed(const struct ttmon_smi *v, uint32_t pid)
{
	return bsearch(&pid, v->listed, v->nr_listed, sizeof(pid), by_pid);
}

/* The remote chip of a board has no device node: programs use it through the near chip's node. */
static bool has_unlisted(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip)
{
	for (size_t i = 0; i < chip->open.n; i++)
		if (!ttmon_smi_is_listed(v, chip->open.pids[i]))
			return true;
	for (size_t i = 0; chip->sys && chip->sys->fact.ordinal != TTMON_SMI_NONE && i < v->nr_openings; i++)
		if (v->openings[i].ordinal == chip->sys->fact.ordinal && !ttmon_smi_is_listed(v, v->openings[i].pid))
			return true;
	return false;
}

static uint64_t not_nothing(uint64_t bytes)
{
	return bytes ? bytes : TTMON_SMI_UNKNOWN;
}

/*
 * What the files do not have may be anything: a 0 becomes unknown, other figures become lower bounds.
 */
static void doubt(struct ttmon_smi_chip *chip)
{
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		chip->bytes[t] = not_nothing(chip->bytes[t]);
	chip->dram_used = not_nothing(chip->dram_used);
	chip->l1_used = not_nothing(chip->l1_used);
}

int ttmon_smi_fill(struct ttmon_smi *v, size_t i)
{
	struct ttmon_smi_chip *chip = &v->chips[i];
	bool bad = false, used;

	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		chip->bytes[t] = TTMON_SMI_UNKNOWN;
	if (take_files(v, i, &bad))
		return -ENOMEM;
	if (chip->sys && chip->sys->resetting) {
		/* The chip is being reset: the figures of the files are from before. */
		for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
			chip->bytes[t] = TTMON_SMI_UNKNOWN;
		chip->status = TTMON_SMI_RESETTING;
	} else if (!chip->files) {
		chip->status = bad ? TTMON_SMI_BAD_FILE : TTMON_SMI_NO_TRACKING;
		chip->why = bad ? TTMON_SMI_WHY_FILE : why_none(v, chip);
	}
	chip->dram_used = chip->l1_used = TTMON_SMI_UNKNOWN;
	if (chip->bytes[TTMON_TT_TYPE_DRAM] != TTMON_SMI_UNKNOWN)
		chip->dram_used = ttmon_smi_add(chip->bytes[TTMON_TT_TYPE_DRAM], chip->bytes[TTMON_TT_TYPE_TRACE_BUF]);
	if (chip->bytes[TTMON_TT_TYPE_L1] != TTMON_SMI_UNKNOWN)
		chip->l1_used =
			ttmon_smi_add(ttmon_smi_add(chip->bytes[TTMON_TT_TYPE_L1], chip->bytes[TTMON_TT_TYPE_L1_SMALL]),
				      chip->bytes[TTMON_TT_TYPE_CB]);
	if (chip->status == TTMON_SMI_RESETTING || !chip->files)
		return 0;
	used = (chip->dram_used != TTMON_SMI_UNKNOWN && chip->dram_used) ||
	       (chip->l1_used != TTMON_SMI_UNKNOWN && chip->l1_used);
	chip->unattributed = used && !chip->live;
	chip->status = used || chip->live ? TTMON_SMI_IN_USE : chip->dead ? TTMON_SMI_STALE : TTMON_SMI_IDLE;
	chip->unlisted = has_unlisted(v, chip);
	if (!chip->unlisted && !(chip->flags & (TTMON_TT_F_PARTIAL | TTMON_TT_F_UNCALIBRATED)))
		return 0;
	doubt(chip);
	if (chip->status != TTMON_SMI_IN_USE) {
		chip->status = TTMON_SMI_NO_TRACKING;
		chip->why = chip->unlisted ? TTMON_SMI_WHY_UNLISTED : TTMON_SMI_WHY_UNSEEN;
	}
	return 0;
}
