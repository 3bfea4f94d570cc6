/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kern.h: functions that the benchmarks of the kernel side share: clock, CPU, medians, copies of the
 * library of nothing.c, skipping.
 */
#ifndef TTMON_BENCH_KERN_H
#define TTMON_BENCH_KERN_H

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sched.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/io/probes/probes.h"

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) },
		  NULL);
}

/* The calling thread alone. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "cannot pin to CPU %d: %s\n", cpu, strerror(errno));
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* A benchmark that cannot run prints the reason and does not count as failed. */
static inline bool skipped(const char *name)
{
	if (!geteuid())
		return false;
	printf("SKIP %s: needs root\n", name);
	return true;
}

/* A file beside the program, or below its folder. */
static inline void beside(const char *file, char *path, size_t n)
{
	char self[PATH_MAX / 2];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len > 0 ? len : 0] = '\0';
	*(strrchr(self, '/') ?: self) = '\0';
	snprintf(path, n, "%s/%s", self, file);
}

/* An opened copy of the library of nothing.c. */
struct nothing {
	void *dl;
	int fd;
	void (*async)(unsigned int calls);
	void (*sync)(unsigned int calls);
	void (*launch)(unsigned int calls);
	void (*nested)(unsigned int calls);
	void (*alloc)(unsigned int calls, unsigned int frames);
};

static inline int nothing_open(const char *path, struct nothing *ret)
{
	struct nothing n = { .fd = open(path, O_RDONLY | O_CLOEXEC) };

	if (n.fd < 0)
		return -errno;
	n.dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!n.dl) {
		fprintf(stderr, "%s\n", dlerror());
		close(n.fd);
		return -ENOENT;
	}
	*(void **)&n.async = dlsym(n.dl, "nothing_async");
	*(void **)&n.sync = dlsym(n.dl, "nothing_sync");
	*(void **)&n.launch = dlsym(n.dl, "nothing_launch");
	*(void **)&n.nested = dlsym(n.dl, "nothing_nested");
	*(void **)&n.alloc = dlsym(n.dl, "nothing_alloc");
	if (!n.async || !n.sync || !n.launch || !n.nested || !n.alloc) {
		fprintf(stderr, "%s is no library of nothing\n", path);
		dlclose(n.dl);
		close(n.fd);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

/*
 * Copies a file, so that it has an inode of its own. to: a template of mkostemp(3); the caller unlinks
 * it.
 */
static inline int copy_file(const char *from, char *to)
{
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat st;
	int err;

	if (in < 0 || fstat(in, &st)) {
		err = -errno;
		fprintf(stderr, "cannot read %s: %s\n", from, strerror(-err));
		return err;
	}
	out = mkostemp(to, O_CLOEXEC);
	if (out < 0)
		return -errno;
	if (sendfile(out, in, NULL, (size_t)st.st_size) == st.st_size)
		return 0;
	unlink(to);
	return -EIO;
}

/* Makes a copy that is removed when the process ends. */
static inline int nothing_copy(struct nothing *ret)
{
	char from[PATH_MAX], to[] = "/tmp/ttmon-bench-XXXXXX";
	int err;

	beside("libnothing.so", from, sizeof(from));
	err = copy_file(from, to);
	if (err)
		return err;
	err = nothing_open(to, ret);
	unlink(to);
	return err;
}

static inline void nothing_close(struct nothing *n)
{
	if (!n->dl)
		return;
	dlclose(n->dl);
	close(n->fd);
}

/* Attaches all probes of an object with the base name `base`. */
static inline int attach_object(struct ttmon_bpf *b, int fd, const char *base, struct ttmon_probes *ret)
{
	const struct ttmon_probes_opts opts = { 0 };
	struct ttmon_elf_info info;
	int err = ttmon_elf_read(fd, base, NULL, 0, &info);

	if (err)
		return err;
	err = ttmon_probes_attach(b, fd, &info, &opts, ret);
	ttmon_elf_info_fini(&info);
	return err;
}

#endif
