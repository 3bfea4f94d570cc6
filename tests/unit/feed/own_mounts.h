/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * own_mounts.h: a mount namespace for one child of a test, so that no other process sees what the
 * child mounts.
 */
#ifndef OWN_MOUNTS_H
#define OWN_MOUNTS_H

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>

#define NO_OWN_MOUNTS 77 /* exit status of a child that cannot have it here */

/*
 * Mount propagation is a property of mounts, so "/" must be one to become private. In a chroot to an
 * ordinary folder it is none, and mount(2) says EINVAL: there the child ends with NO_OWN_MOUNTS and
 * the test is skipped.
 */
static bool own_mounts(bool *not_here)
{
	*not_here = false;
	if (unshare(CLONE_NEWNS))
		return false;
	if (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return true;
	*not_here = errno == EINVAL;
	return false;
}

#endif /* OWN_MOUNTS_H */
