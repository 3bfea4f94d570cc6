/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgroups.h: the path of a cgroup v2 by its id (as in bpf_get_current_cgroup_id()), which is kept
 * after the cgroup was removed. Cold thread.
 *
 * The id is the kernfs node's: open_by_handle_at() on the cgroup2 file system finds it (needs
 * CAP_DAC_READ_SEARCH). Paths are looked up soon after an id is first seen, since a removed cgroup has
 * none any more.
 */
#ifndef TTMON_CGROUPS_H
#define TTMON_CGROUPS_H

#include "lib/base/util.h"

struct ttmon_cgroups;

/*
 * root: where cgroup2 is mounted; NULL: look in /proc/self/mountinfo. A host without cgroup2 is no
 * error: no id has a path.
 */
int ttmon_cgroups_new(const char *root, struct ttmon_cgroups **ret) _must_check;
void ttmon_cgroups_free(struct ttmon_cgroups *c);
/* "/system.slice/ssh.service"; "" if unknown. Valid until the next call. */
const char *ttmon_cgroups_path(struct ttmon_cgroups *c, uint64_t id);
/* Drops those that were not requested since the last call of this. */
void ttmon_cgroups_sweep(struct ttmon_cgroups *c);

#endif
