// SPDX-License-Identifier: GPL-2.0-only
/* caps.c: uses the system calls directly, since libcap would be a library for two calls. */
#include "daemon/io/host/caps.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define WORDS	 _LINUX_CAPABILITY_U32S_3
#define MAX_CAPS (32 * WORDS)

/* Before the sets shrink: CAP_SETPCAP is in them. */
static int shrink_bounding_set(uint64_t keep)
{
	for (int cap = 0; cap < MAX_CAPS; cap++) {
		int held = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (held < 0)
			break; /* past the last one that this kernel knows */
		if (!held || keep & (1ULL << cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return errno == EPERM ? 0 : -errno;
	}
	return 0;
}

int ttmon_caps_keep(const int *caps, size_t n)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];
	uint64_t keep = 0;
	int err;

	for (size_t i = 0; i < n; i++) {
		if (caps[i] < 0 || caps[i] >= MAX_CAPS)
			return -EINVAL;
		keep |= 1ULL << caps[i];
	}
	if (syscall(SYS_capget, &head, sets))
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = shrink_bounding_set(keep);
	if (err)
		return err;
	for (size_t i = 0; i < WORDS; i++) {
		sets[i].permitted &= (uint32_t)(keep >> (32 * i));
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0; /* and with it the ambient set */
	}
	return syscall(SYS_capset, &head, sets) ? -errno : 0;
}

bool ttmon_caps_perf_wants_admin(const char *root)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[4096];
	int level;

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/perf_event_paranoid", root);
	f = fopen(path, "re");
	return f && fscanf(f, "%d", &level) == 1 && level > 2;
}
