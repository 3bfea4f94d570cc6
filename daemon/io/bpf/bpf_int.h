/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bpf_int.h: functions of io/bpf/bpf.c, which alone includes the skeleton, for the other files of
 * io/bpf.
 */
#ifndef TTMON_BPF_INT_H
#define TTMON_BPF_INT_H

#include "daemon/io/bpf/bpf.h"

/* Maps, borrowed. */
int ttmon_bpf_launches_fd(const struct ttmon_bpf *b);
int ttmon_bpf_tt_slots_fd(const struct ttmon_bpf *b);
int ttmon_bpf_tt_sums_fd(const struct ttmon_bpf *b);
int ttmon_bpf_procs_fd(const struct ttmon_bpf *b);
/* Returns the bytes of a value of the table of processes as procs.c knows it. */
size_t ttmon_bpf_procs_bytes(void);
int ttmon_bpf_reduced_fd(const struct ttmon_bpf *b);
int ttmon_bpf_reduced_users_fd(const struct ttmon_bpf *b);
int ttmon_bpf_user_hits_fd(const struct ttmon_bpf *b);

/* In .bss: read by the programs while we write them. */
uint32_t *ttmon_bpf_family_states(const struct ttmon_bpf *b); /* enum ttmon_family_state, by family */
uint32_t *ttmon_bpf_family_epochs(const struct ttmon_bpf *b); /* number of times it was switched off */
uint32_t *ttmon_bpf_trace_all(const struct ttmon_bpf *b);
int ttmon_bpf_switchers_fd(const struct ttmon_bpf *b); /* borrowed */
uint32_t *ttmon_bpf_any_switcher(const struct ttmon_bpf *b);
uint32_t *ttmon_bpf_nr_reduced(const struct ttmon_bpf *b); /* processes in the map of reduced ones */
uint32_t *ttmon_bpf_nr_reduced_users(const struct ttmon_bpf *b);

struct bpf_program;
struct bpf_program *ttmon_bpf_program(const struct ttmon_bpf *b, enum ttmon_prog prog);
void ttmon_bpf_set_attached(struct ttmon_bpf *b, enum ttmon_prog prog, bool on);
/* Programs that are attached by themselves: not to an object, driver or module. */
bool ttmon_bpf_attaches(const struct ttmon_bpf *b, enum ttmon_prog prog);
/* True if the program is attached while there is a traced process. */
bool ttmon_bpf_attaches_traced(const struct ttmon_bpf *b, enum ttmon_prog prog);
uint32_t *ttmon_bpf_traced_idle(struct ttmon_bpf *b); /* ticks without a traced process */
struct bpf_link **ttmon_bpf_link(struct ttmon_bpf *b, enum ttmon_prog prog);
int ttmon_bpf_attach_prog(struct ttmon_bpf *b, enum ttmon_prog prog, char *why, size_t n) _must_check;
/*
 * Major number of /dev/tenstorrent/N, 0: the driver is not loaded; closes: whether the close of open
 * files is seen.
 */
void ttmon_bpf_set_kmd(struct ttmon_bpf *b, uint32_t major, bool closes);
struct ttmon_kmd *ttmon_bpf_kmd(struct ttmon_bpf *b);

/* uprobe.c: whether the kernel has multi links; and makes one: its fd or -errno. */
#define TTMON_ATTACH_UPROBE_MULTI   48 /* BPF_TRACE_UPROBE_MULTI of Linux 6.6, 89ae89f53d20 */
#define TTMON_ATTACH_UPROBE_SESSION 57 /* BPF_TRACE_UPROBE_SESSION of Linux 6.13, d920179b3d4842 */
bool ttmon_bpf_has_multi(void);
bool ttmon_bpf_has_session(void);
/* True if the kernel's BTF has something of this kind (BTF_KIND_*) and name. */
bool ttmon_bpf_kernel_has(const char *name, unsigned int kind);
/* type: one of the two above. */
int ttmon_bpf_link_multi(int prog_fd, uint32_t type, bool on_return, int object_fd, const struct ttmon_uprobe_set *set);

/* tracepoint.c: attaches a program of a section "tracepoint/..."; NULL: errno is set. */
struct bpf_link *ttmon_bpf_attach_tracepoint(struct bpf_program *p);

/* closer.c: closes links, each in a thread, since closing waits for the kernel. */
void ttmon_bpf_close_links(const int *fds, size_t n);

/* kmd.c: the links on tt-kmd. */
struct ttmon_kmd *ttmon_kmd_new(bool by_ioctl);
void ttmon_kmd_free(struct ttmon_kmd *k);
/*
 * Removes the probes and keeps them off, or allows them again; done by the next
 * ttmon_bpf_kmd_refresh().
 */
void ttmon_kmd_set_off(struct ttmon_kmd *k, bool off);
/* For a selected program: why it is not attached, else "". */
const char *ttmon_kmd_reason(const struct ttmon_kmd *k, enum ttmon_prog prog);
/* Descriptors of its links, borrowed; fds has room for TTMON_KMD_LINKS. Returns their number. */
#define TTMON_KMD_LINKS 3
size_t ttmon_kmd_links(const struct ttmon_kmd *k, int *fds);
/*
 * True if this kernel module is loaded and ready. ret: the inode of its /sys/module, which changes
 * each time it is loaded.
 */
bool ttmon_bpf_module_there(const char *name, ino_t *ret);

/* nvpin.c: the links on NVIDIA's module, like those on tt-kmd. NULL unless requested. */
struct ttmon_nvpin;
struct ttmon_nvpin *ttmon_nvpin_new(void);
void ttmon_nvpin_free(struct ttmon_nvpin *v);
void ttmon_nvpin_set_off(struct ttmon_nvpin *v, bool off);
/* Like ttmon_kmd_links(). */
#define TTMON_NVPIN_LINKS (2 * TTMON_NVPIN_MAX)
size_t ttmon_nvpin_links(const struct ttmon_nvpin *v, int *fds);
const char *ttmon_nvpin_reason(const struct ttmon_nvpin *v);
struct ttmon_nvpin *ttmon_bpf_nvpin(const struct ttmon_bpf *b);
int ttmon_bpf_nvpin_sums_fd(const struct ttmon_bpf *b); /* borrowed */

/*
 * sched.c: counters and the mapped state. Made before the skeleton is loaded; setup says what the
 * skeleton has to set.
 */
struct ttmon_sched;
struct ttmon_sched_setup {
	bool counters, timer, tp_btf;
};
int ttmon_sched_new(const struct ttmon_bpf_cfg *cfg, uint32_t cpus, struct ttmon_sched **ret,
		    struct ttmon_sched_setup *setup);
/*
 * The skeleton is loaded: maps cpu_states, puts the counters into cpu_counters (fd, -1: none), starts
 * the timers.
 */
int ttmon_sched_loaded(struct ttmon_sched *s, int cpu_states_fd, int cpu_counters_fd, int init_prog_fd);
void ttmon_sched_free(struct ttmon_sched *s);
struct ttmon_sched *ttmon_bpf_sched(const struct ttmon_bpf *b);

/* rmid.c */
struct ttmon_rmid_links;
int ttmon_bpf_rmid_pool_fd(const struct ttmon_bpf *b); /* borrowed */
struct ttmon_rmid_links **ttmon_bpf_rmid_links(struct ttmon_bpf *b);
void ttmon_rmid_links_free(struct ttmon_rmid_links *l);

#endif
