/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probes.h: the uprobes of one object: which program each function needs, one link a program, and the state of each.
 *
 * Runs in the cold thread. Detaching is closing the links: one multi link costs one grace period, however many functions it has.
 */
#ifndef TTMON_PROBES_H
#define TTMON_PROBES_H

#include "io/bpf.h"
#include "io/objects.h"

struct ttmon_probes_opts {
	bool copy_results; /* asynchronous copies get a return probe too */
	bool no_returns;
	const struct ttmon_user_row *user;
};

enum ttmon_probe_state { TTMON_PROBE_FOUND, TTMON_PROBE_ATTACHED, TTMON_PROBE_FAILED };
const char *ttmon_probe_state_name(enum ttmon_probe_state state);
/* What -errno means for a probe. */
const char *ttmon_probe_reason(int err);

struct ttmon_probe {
	char symbol[64];
	uint16_t fn;
	bool single_step;
	enum ttmon_prog prog;
	enum ttmon_probe_state state;
	int err; /* of the last attempt, 0 or -errno */
};

struct ttmon_probes {
	struct ttmon_bpf *bpf; /* whose links they are */
	struct ttmon_probe *probes;
	size_t n;
	int *links; /* one a program, more where the kernel refused some function of it */
	size_t nr_links;
	size_t attached, single_step;
};

/* Attach everything in info that has a program. A multi link is all or nothing: where the kernel refuses one, halves are tried, so that
 * only the functions it cannot probe are left in state FAILED, with the reason. -errno only when nothing could be attached. */
int ttmon_probes_attach(struct ttmon_bpf *b, int object_fd, const struct ttmon_elf_info *info,
			const struct ttmon_probes_opts *opts, struct ttmon_probes *ret) _must_check;
void ttmon_probes_detach(struct ttmon_probes *p);

#endif
