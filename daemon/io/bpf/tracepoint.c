// SPDX-License-Identifier: GPL-2.0-only
/*
 * tracepoint.c: links of programs at tracepoints. libbpf finds a tracepoint's number only where
 * tracefs is mounted; lib/os/tracefs.h finds it in any case.
 */
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/tracefs.h"

#define SECTION "tracepoint/"

static int open_event(const char *section)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_TRACEPOINT };
	_cleanup_close_ int dir = -1;
	uint64_t id;
	int err = strncmp(section, SECTION, strlen(SECTION)) ? -EINVAL : ttmon_tracefs_open(&dir), fd;

	if (!err)
		err = ttmon_tracefs_event_id(dir, section + strlen(SECTION), &id);
	if (err)
		return err;
	attr.config = id;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct bpf_link *ttmon_bpf_attach_tracepoint(struct bpf_program *p)
{
	int fd = open_event(bpf_program__section_name(p)), err;
	struct bpf_link *link;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	/* The link owns it. */
	link = bpf_program__attach_perf_event(p, fd);
	if (!link) {
		err = errno;
		close(fd);
		errno = err;
	}
	return link;
}
