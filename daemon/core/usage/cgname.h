/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgname.h: what a cgroup's path says: systemd unit, container, Kubernetes pod. Pure; the path is
 * chosen by whoever may make cgroups.
 */
#ifndef TTMON_CGNAME_H
#define TTMON_CGNAME_H

#include "lib/base/util.h"

/* What series are labelled with; the label's name is that of the value. Append-only. */
#define TTMON_GROUP_TABLE(X)                                                                                    \
	X(0, COMM, "comm", "name of the program")                                                               \
	X(1, CGROUP, "cgroup", "path of the cgroup")                                                            \
	X(2, UNIT, "unit", "systemd unit (service, scope, slice)")                                              \
	X(3, CONTAINER, "container",                                                                            \
	  "container: id, 12 digits (Docker, containerd, CRI-O, Podman), or name (LXC, Incus, systemd-nspawn)") \
	X(4, POD, "pod", "pod: uid (Kubernetes), or id, 12 digits (Podman)")
enum ttmon_group_by {
#define X(id, NAME, name, help) TTMON_GROUP_##NAME = id,
	TTMON_GROUP_TABLE(X)
#undef X
		TTMON_GROUP_MAX
};
const char *ttmon_group_by_name(unsigned int by); /* "comm", ... */

#define TTMON_CGNAME_MAX 512

/*
 * The innermost unit, container or pod of a path such as /system.slice/ssh.service or
 * /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123_4567.slice/cri-containerd-89ab....scope.
 * "" where the path has none; CGROUP gives the path itself. Names are as systemd writes them, with its
 * \xNN; pod uids have their '-'. Cut to TTMON_CGNAME_MAX - 1 bytes and to n - 1, not within a UTF-8
 * sequence; bytes that are none stay. False: nothing of that kind.
 */
bool ttmon_cgname(enum ttmon_group_by by, const char *path, char *buf, size_t n);

#endif
