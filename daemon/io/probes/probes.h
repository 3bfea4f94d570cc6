/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probes.h: the uprobes of one object: the program for each function, one link per program, and the
 * state of each probe.
 *
 * Runs in the cold thread. Detaching is closing the links: one multi link costs one grace period,
 * however many functions it has.
 */
#ifndef TTMON_PROBES_H
#define TTMON_PROBES_H

#include "daemon/io/bpf/bpf.h"
#include "daemon/io/objects/objects.h"

/* Dispatches are frequent: AUTO probes those functions where it is cheap, without single-stepping. */
enum ttmon_tt_dispatch_mode { TTMON_TT_DISPATCH_AUTO, TTMON_TT_DISPATCH_ON, TTMON_TT_DISPATCH_OFF };

struct ttmon_probes_opts {
	bool copy_results; /* asynchronous copies get a return probe too */
	bool no_returns;
	const struct ttmon_user_row *user;
	enum ttmon_tt_dispatch_mode tt_dispatch;
	int tt_slot;  /* of the object, -1: none left */
	uint32_t off; /* families (1 << family) that get no probes now */
};

/*
 * REFUSED: by us, before the kernel was asked. SPARE: taken away, as the other ones of the object do.
 * OFF: its family is.
 */
enum ttmon_probe_state {
	TTMON_PROBE_FOUND,
	TTMON_PROBE_ATTACHED,
	TTMON_PROBE_FAILED,
	TTMON_PROBE_REFUSED,
	TTMON_PROBE_SPARE,
	TTMON_PROBE_OFF
};
const char *ttmon_probe_state_name(enum ttmon_probe_state state);
/* Why a probe is not attached, beside -errno. */
#define TTMON_PROBE_ESTEP   (-5001)
#define TTMON_PROBE_EOFF    (-5002)
#define TTMON_PROBE_ESLOT   (-5003)
#define TTMON_PROBE_ESPARE  (-5004)
#define TTMON_PROBE_EFAMILY (-5005)
#define TTMON_PROBE_ENOP    (-5006)
/* Why a file is not read. */
#define TTMON_PROBE_EUSERFS (-5007)
#define TTMON_PROBE_ELATE   (-5008)
/*
 * The kernel's own ENOTSUPP, which is no errno of user space: it can neither be emulated nor stepped.
 */
#define TTMON_PROBE_EINSN (-524)
/* What -errno, or one of the above, means for a probe. */
const char *ttmon_probe_reason(int err);

struct ttmon_probe {
	char symbol[64];
	char *mangled; /* owned; NULL where symbol is the whole name */
	uint16_t fn;
	uint8_t skip; /* bytes from the function's entry to where it stands */
	bool single_step;
	bool spare;   /* may be taken away: ttmon_probes_spare() */
	bool refused; /* by the kernel, it is thought: tried after the others, by itself */
	uint64_t cookie;
	enum ttmon_prog prog;
	enum ttmon_probe_state state;
	int err; /* of the last attempt, 0 or -errno */
};

struct ttmon_probes_link {
	int fd;
	enum ttmon_family family;
	bool spare;
};

struct ttmon_probes {
	struct ttmon_bpf *bpf; /* whose links they are */
	struct ttmon_probe *probes;
	size_t n;
	struct ttmon_probes_link *links; /* one a program, more where the kernel refused some function of it */
	size_t nr_links;
	size_t attached, single_step;
	uint64_t active_ns; /* since when all of those are that could be attached at first */
	uint32_t off;	    /* families (1 << family) whose probes are taken away */
	bool returns;
	/*
	 * Takes links to be closed, which waits for the kernel; all: of all there are, else in this order.
	 * NULL: they are closed at once.
	 */
	void (*close)(void *ctx, const int *links, size_t n, bool all);
	void *close_ctx;
};

/* Whose probe it is; of one that belongs to no program: of allocations. */
enum ttmon_family ttmon_probes_family_of(const struct ttmon_probe *q);

/*
 * Attach everything in info that has a program. A multi link is all or nothing: where the kernel
 * refuses one, halves are tried, so that only the functions it cannot probe are left in state FAILED,
 * with the reason. -errno only when nothing could be attached.
 */
int ttmon_probes_attach(struct ttmon_bpf *b, int object_fd, const struct ttmon_elf_info *info,
			const struct ttmon_probes_opts *opts, struct ttmon_probes *ret) _must_check;
void ttmon_probes_detach(struct ttmon_probes *p);
/*
 * The kernel checks an instruction when it writes its breakpoint there: while no process has the file
 * mapped it accepts any, and does not report a refusal later. So a helper maps the file to see where
 * breakpoints are. Places: file offsets of the functions' probes into ret, which has room for
 * info->nr_targets; returns their number. Misplaced: the result for each, 1: no breakpoint; these have
 * failed, unless there is none at all: then the file cannot be mapped for execution. Returns whether
 * any failed.
 */
size_t ttmon_probes_places(const struct ttmon_probes *p, const struct ttmon_elf_info *info, uint64_t *ret);
bool ttmon_probes_misplaced(struct ttmon_probes *p, const char *missing, size_t n);
/*
 * Hand the links over (links has room for p->nr_links), for ttmon_bpf_detach_many(). Returns how many.
 */
size_t ttmon_probes_give_links(struct ttmon_probes *p, int *links);

/*
 * Take the spare probes of tt-metal away (on false), or put them back, as they were. Without multi
 * links they stay, and -EOPNOTSUPP is
 * returned: removing one makes the whole host wait. With their family off they are put back when it is
 * on again.
 */
int ttmon_probes_spare(struct ttmon_probes *p, int object_fd, const struct ttmon_elf_info *info, bool on);
/*
 * Take the probes of a family away, or put them back, as they were: spare ones stay away, failed ones
 * are not tried again. Without multi links they stay, and -EOPNOTSUPP is returned; the family's gate
 * (io/bpf/bpf.h) does what can be done then.
 */
int ttmon_probes_family(struct ttmon_probes *p, int object_fd, const struct ttmon_elf_info *info,
			enum ttmon_family family, bool on);
/*
 * TTMON_TT_HAS_*: what can be seen of tt-metal through these probes. Spare ones count whether they are
 * attached now or not, and so do those whose family is off.
 */
uint32_t ttmon_probes_tt_has(const struct ttmon_probes *p, const struct ttmon_elf_info *info);

/*
 * For how many microseconds a process could call functions of a file that it mapped at mapped_ns (0:
 * when the trace began) and whose probes were active from active_ns on (0: never): 0 where it waited,
 * held, or where they were active first; -1: not known.
 */
int64_t ttmon_probes_gap_us(uint64_t mapped_ns, uint64_t active_ns, bool held);

#endif
