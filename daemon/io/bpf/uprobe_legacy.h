/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * uprobe_legacy.h: uprobes where the kernel has no uprobe_multi links (before Linux 6.6). Runs in the
 * cold thread.
 *
 * A perf link for each function takes 0.1 s to remove, host-wide and one after the other. So the
 * offsets of a set are put together under one tracefs uprobe event, which is one perf event and one
 * link. A link has one cookie, which cannot tell its functions apart, but the instruction pointer can:
 * a mapping begins at a page boundary in the file as in memory, so its lower bits are those of the
 * file offset. BPF looks the cookie up by (event, lower bits). Offsets of one set that agree in them,
 * up to three in NVIDIA's runtime, go into different events. Return probes need no lookup: the call in
 * flight is known.
 *
 * (bpf_find_vma() would give the whole offset, but fails while another thread holds the lock of the
 * address space: with one or two threads that map memory, 0.3 to 15 of 100 calls on Linux 6.1.)
 *
 * The events are named after the process that made them. Those of a daemon that was killed are removed
 * by the next one.
 */
#ifndef TTMON_UPROBE_LEGACY_H
#define TTMON_UPROBE_LEGACY_H

#include "daemon/io/bpf/bpf.h"

struct ttmon_uprobe_legacy;

/* Key of the map of cookies (bpf/call.bpf.h); the value is the 64-bit cookie. */
struct ttmon_uprobe_legacy_key {
	uint32_t event;
	uint32_t low; /* offset & (page - 1) */
};

/* cookies_fd: the map, borrowed. -ENOENT: tracefs is not mounted, or has no uprobe events. */
int ttmon_uprobe_legacy_new(int cookies_fd, struct ttmon_uprobe_legacy **ret) _must_check;
/* Detaches and removes everything. */
void ttmon_uprobe_legacy_free(struct ttmon_uprobe_legacy *l);
/* Attaches a program; object_fd is an open fd of the object. Returns an fd for detach, or -errno. */
int ttmon_uprobe_legacy_attach(struct ttmon_uprobe_legacy *l, int prog_fd, bool on_return, int object_fd,
			       const struct ttmon_uprobe_set *set) _must_check;
/* Takes the fd that attach returned. */
void ttmon_uprobe_legacy_detach(struct ttmon_uprobe_legacy *l, int fd);

/*
 * For the tests: sort offsets into groups in which no two agree in their lower bits. Returns the
 * number of groups.
 */
uint32_t ttmon_uprobe_legacy_group(const uint64_t *offsets, size_t n, uint64_t page, uint32_t *group);
/*
 * For the tests: the name (size n) in a line of uprobe_events that is one of ours, and the process
 * that made it.
 */
bool ttmon_uprobe_legacy_parse(const char *line, char *name, size_t n, uint32_t *pid, uint64_t *start);

#endif
