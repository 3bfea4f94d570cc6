/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgname.h: the names in the path of a cgroup: systemd unit, container, Kubernetes pod. Pure. The path
 * is untrusted: any process that may create cgroups chooses it.
 */
#ifndef TTMON_CGNAME_H
#define TTMON_CGNAME_H

#include "lib/base/util.h"

/* The values by which series are labelled; each is also the name of its label. Append-only. */
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
 * Finds the innermost unit, container or pod of a path such as /system.slice/ssh.service or
 * /kubepods.slice/kubepods-pod0123_4567.slice/cri-containerd-89ab....scope. CGROUP selects the path
 * itself. buf gets "" if the path has no such name. Names are as systemd writes them, including its
 * \xNN; uids of pods are written with '-'. The name is cut to TTMON_CGNAME_MAX - 1 bytes and to n - 1
 * bytes, not within a UTF-8 sequence; invalid bytes stay. Returns false if the path has no name of
 * that kind.
 */
bool ttmon_cgname(enum ttmon_group_by by, const char *path, char *buf, size_t n);

#endif
