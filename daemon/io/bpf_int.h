/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf_int.h: what io/bpf.c, the only one to know the skeleton, tells the other bpf_*.c. */
#ifndef TTMON_BPF_INT_H
#define TTMON_BPF_INT_H

#include "io/bpf.h"

/* Maps, borrowed. */
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

#endif
