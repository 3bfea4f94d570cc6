// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmd.c: the programs of bpf/ttkmd.bpf.c on tt-kmd, which may be loaded, unloaded and loaded again
 * while we run. Cold thread.
 *
 * It uses a kprobe and kretprobe on the driver's ioctl function and a kprobe on the close of an open
 * file, which cost other programs nothing; the functions are looked up only when the module was loaded
 * again and is ready. With --tt-ioctl it uses the tracepoints of the ioctl system call instead.
 * Modules built by DKMS have no BTF, so fentry cannot be used. A module can be unloaded while it is
 * probed: the kernel disarms the probes, and we remove them when we notice.
 */
#include <bpf/libbpf.h>
#include <sys/stat.h>

#include "daemon/io/bpf/bpf.h"
#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/log.h"

#define FUNCTION "tt_cdev_ioctl"
#define RELEASE	 "tt_cdev_release"
#define MODULE	 "tenstorrent"

enum { ENTRY, RETURN, CLOSE, LINKS };
_Static_assert(LINKS == TTMON_KMD_LINKS, "as the header says");

struct ttmon_kmd {
	bool by_ioctl;
	bool off;     /* its family is off */
	bool tried;   /* attaching was tried with the present module */
	ino_t module; /* see ttmon_bpf_module_there() */
	struct bpf_link *links[LINKS];
	int err;
};

struct ttmon_kmd *ttmon_kmd_new(bool by_ioctl)
{
	struct ttmon_kmd *k = calloc(1, sizeof(*k));

	if (k)
		k->by_ioctl = by_ioctl;
	return k;
}

/* Entries first. */
static void detach(struct ttmon_kmd *k)
{
	for (size_t i = 0; i < ARRAY_SIZE(k->links); i++) {
		bpf_link__destroy(k->links[i]);
		k->links[i] = NULL;
	}
}

void ttmon_kmd_free(struct ttmon_kmd *k)
{
	if (!k)
		return;
	detach(k);
	free(k);
}

size_t ttmon_kmd_links(const struct ttmon_kmd *k, int *fds)
{
	size_t n = 0;

	for (size_t i = 0; k && i < LINKS; i++)
		if (k->links[i])
			fds[n++] = bpf_link__fd(k->links[i]);
	return n;
}

static uint32_t driver_major(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/devices", "re");
	char line[128], name[64];
	unsigned int major;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%u %63s", &major, name) == 2 && !strcmp(name, "tenstorrent"))
			return major;
	return 0;
}

/* /sys/module/NAME appears before the module has made its devices. A built-in one has no state. */
bool ttmon_bpf_module_there(const char *name, ino_t *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[96], state[16] = "";
	struct stat st;

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	if (stat(path, &st))
		return false;
	snprintf(path, sizeof(path), "/sys/module/%s/initstate", name);
	f = fopen(path, "re");
	if (f && (!fgets(state, sizeof(state), f) || strncmp(state, "live", 4)))
		return false;
	*ret = st.st_ino;
	return true;
}

void ttmon_kmd_set_off(struct ttmon_kmd *k, bool off)
{
	if (k)
		k->off = off;
}

const char *ttmon_kmd_reason(const struct ttmon_kmd *k, enum ttmon_prog prog)
{
	if (!k)
		return "";
	if (k->links[ENTRY])
		return prog == TTMON_PROG_KMD_CLOSE && !k->links[CLOSE]
			       ? "tt-kmd has no function " RELEASE
				 ": what an open file held is taken to last as long as the process"
			       : "";
	if (!k->tried)
		return "tt-kmd is not loaded";
	if (k->err == -ENOENT || k->err == -EADDRNOTAVAIL)
		return "tt-kmd has no function " FUNCTION;
	if (k->err == -EOPNOTSUPP || k->err == -ENODEV)
		return "this kernel has no kprobes: --tt-ioctl does without";
	return strerror(-k->err);
}

/* Returns are attached before entries: a return without its entry is ignored. */
static int attach(struct ttmon_bpf *b, struct ttmon_kmd *k)
{
	struct bpf_program *p;
	int err;

	if (k->by_ioctl) {
		k->links[RETURN] = ttmon_bpf_attach_tracepoint(ttmon_bpf_program(b, TTMON_PROG_KMD_SYS_RET));
		if (k->links[RETURN])
			k->links[ENTRY] = ttmon_bpf_attach_tracepoint(ttmon_bpf_program(b, TTMON_PROG_KMD_SYS));
	} else {
		p = ttmon_bpf_program(b, TTMON_PROG_KMD_CLOSE);
		k->links[CLOSE] = bpf_program__attach_kprobe(p, false, RELEASE);
		p = ttmon_bpf_program(b, TTMON_PROG_KMD_RET);
		k->links[RETURN] = bpf_program__attach_kprobe(p, true, FUNCTION);
		p = ttmon_bpf_program(b, TTMON_PROG_KMD);
		if (k->links[RETURN])
			k->links[ENTRY] = bpf_program__attach_kprobe(p, false, FUNCTION);
	}
	if (k->links[ENTRY])
		return 0;
	err = -errno;
	detach(k);
	return err;
}

static void show(struct ttmon_bpf *b, const struct ttmon_kmd *k)
{
	ttmon_bpf_set_attached(b, k->by_ioctl ? TTMON_PROG_KMD_SYS : TTMON_PROG_KMD, k->links[ENTRY]);
	ttmon_bpf_set_attached(b, k->by_ioctl ? TTMON_PROG_KMD_SYS_RET : TTMON_PROG_KMD_RET, k->links[RETURN]);
	if (!k->by_ioctl)
		ttmon_bpf_set_attached(b, TTMON_PROG_KMD_CLOSE, k->links[CLOSE]);
}

void ttmon_bpf_kmd_refresh(struct ttmon_bpf *b)
{
	struct ttmon_kmd *k = ttmon_bpf_kmd(b);
	ino_t module = 0;
	bool there;

	if (!k)
		return;
	there = !k->off && ttmon_bpf_module_there(MODULE, &module);
	if (k->tried && (!there || module != k->module)) {
		detach(k);
		ttmon_bpf_set_kmd(b, 0, false);
		k->tried = false;
	}
	if (there && !k->tried) {
		k->tried = true;
		k->module = module;
		k->err = attach(b, k);
		ttmon_bpf_set_kmd(b, driver_major(), k->links[CLOSE]);
		if (k->err)
			log_warn("cannot probe tt-kmd: %s, continuing without the host memory it pins",
				 ttmon_kmd_reason(k, k->by_ioctl ? TTMON_PROG_KMD_SYS : TTMON_PROG_KMD));
	}
	show(b, k);
}
