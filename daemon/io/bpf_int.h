/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf_int.h: what io/bpf.c, the only one to know the skeleton, tells the other bpf_*.c. */
#ifndef TTMON_BPF_INT_H
#define TTMON_BPF_INT_H

#include "io/bpf.h"

/* Maps, borrowed. */
int ttmon_bpf_launches_fd(const struct ttmon_bpf *b);
int ttmon_bpf_tt_slots_fd(const struct ttmon_bpf *b);
int ttmon_bpf_tt_sums_fd(const struct ttmon_bpf *b);

struct bpf_program;
struct bpf_program *ttmon_bpf_program(const struct ttmon_bpf *b, enum ttmon_prog prog);
void ttmon_bpf_set_attached(struct ttmon_bpf *b, enum ttmon_prog prog, bool on);
/* Major number of /dev/tenstorrent/N, 0: no such driver now; whether the end of open files is seen. */
void ttmon_bpf_set_kmd(struct ttmon_bpf *b, uint32_t major, bool closes);
struct ttmon_kmd *ttmon_bpf_kmd(struct ttmon_bpf *b);

/* bpf_kmd.c: the links on tt-kmd. */
struct ttmon_kmd *ttmon_kmd_new(bool by_ioctl);
void ttmon_kmd_free(struct ttmon_kmd *k);
const char *ttmon_kmd_reason(const struct ttmon_kmd *k, enum ttmon_prog prog);

/* bpf_sched.c: counters, the mapped state. Made before the skeleton is loaded, which then asks for what it has to set. */
struct ttmon_sched;
struct ttmon_sched_setup {
	bool counters, timer, tp_btf;
};
int ttmon_sched_new(const struct ttmon_bpf_cfg *cfg, uint32_t cpus, struct ttmon_sched **ret,
		    struct ttmon_sched_setup *setup);
/* The skeleton is loaded: map cpu_states, put the counters into cpu_counters (fd, -1: none), start what needs a start. */
int ttmon_sched_loaded(struct ttmon_sched *s, int cpu_states_fd, int cpu_counters_fd, int init_prog_fd);
void ttmon_sched_free(struct ttmon_sched *s);
struct ttmon_sched *ttmon_bpf_sched(const struct ttmon_bpf *b);

/* bpf_rmid.c */
struct ttmon_rmid_links;
int ttmon_bpf_rmid_pool_fd(const struct ttmon_bpf *b); /* borrowed */
struct ttmon_rmid_links **ttmon_bpf_rmid_links(struct ttmon_bpf *b);
void ttmon_rmid_links_free(struct ttmon_rmid_links *l);

#endif
