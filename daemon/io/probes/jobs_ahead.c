// SPDX-License-Identifier: GPL-2.0-only
/*
 * jobs_ahead.c: which libraries lie under the usual paths of a root, for discover_ahead.c. Runs in a
 * helper.
 *
 * Paths are resolved within the root they are looked for in (openat2, RESOLVE_IN_ROOT): a link in a
 * container leads nowhere else. All is bounded; what is not found here is found when it is mapped.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include "daemon/io/probes/jobs.h"
#include "daemon/io/probes/jobs_int.h"

#define MAX_FOUND   256
#define MAX_DIRS    512	  /* of one root */
#define MAX_ENTRIES 20000 /* of one folder */

/*
 * Names by which programs are linked with CUDA's runtime and driver (docs.nvidia.com, the soname of
 * each), and tt-metal's library.
 */
static const char *const names[] = { "libcudart*.so*", "libcuda.so*", "libtt_metal*.so*" };

/* Where distributions, NVIDIA's own packages, its container toolkit, WSL, conda and pip put them. */
static const char *const dirs[] = {
	"usr/lib/x86_64-linux-gnu",
	"usr/lib/aarch64-linux-gnu",
	"usr/lib64",
	"usr/lib",
	"usr/local/lib",
	"usr/local/cuda*/lib64",
	"usr/local/cuda*/lib",
	"usr/local/cuda*/targets/*/lib",
	"usr/local/cuda*/compat",
	"usr/local/nvidia/lib64",
	"usr/lib/wsl/lib",
	"opt/conda/lib",
	"opt/tenstorrent/lib",
	"usr/lib/python3*/dist-packages/nvidia/*/lib",
	"usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"usr/local/lib/python3*/*-packages/torch/lib",
	"usr/local/lib/python3*/*-packages/ttnn/build/lib",
	"opt/*/lib/python3*/site-packages/nvidia/*/lib",
	"opt/*/lib/python3*/site-packages/torch/lib",
};

struct walk {
	struct ttmon_helper_out *out;
	int root;
	unsigned int dirs, found;
};

/* One file that has such a name. */
static void take(struct walk *w, const char *path)
{
	_cleanup_close_ int fd = ttmon_job_open_in(w->root, path, O_PATH);
	struct ttmon_file_stat now;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	w->found++;
	now = (struct ttmon_file_stat){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.nlink = st.st_nlink,
		.uid = st.st_uid,
		.ctim = st.st_ctim,
		.mtim = st.st_mtim,
	};
	ttmon_helper_put(w->out, &now, sizeof(now));
	ttmon_helper_put(w->out, "/", 1);
	ttmon_helper_put(w->out, path, strlen(path) + 1);
}

bool ttmon_object_is_named(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!fnmatch(names[i], name, 0))
			return true;
	return false;
}

/*
 * at: what is resolved already, "" or "usr/lib/"; rest: components, each a pattern, "" when all are.
 */
static void walk(struct walk *w, const char *at, const char *rest)
{
	size_t len = strcspn(rest, "/");
	char part[NAME_MAX + 1], path[PATH_MAX];
	struct dirent *e;
	DIR *dir;
	int fd;

	if (len >= sizeof(part) || w->dirs >= MAX_DIRS)
		return;
	memcpy(part, rest, len);
	part[len] = '\0';
	rest += len + (rest[len] == '/');
	if (len && !strpbrk(part, "*?[")) {
		if (snprintf(path, sizeof(path), "%s%s/", at, part) < (int)sizeof(path))
			walk(w, path, rest);
		return;
	}
	w->dirs++;
	fd = ttmon_job_open_in(w->root, *at ? at : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	for (unsigned int i = 0; dir && i < MAX_ENTRIES && (e = readdir(dir)); i++) {
		bool more = len != 0;

		if (e->d_name[0] == '.' || w->found >= MAX_FOUND ||
		    (more ? fnmatch(part, e->d_name, 0) : !ttmon_object_is_named(e->d_name)))
			continue;
		if (snprintf(path, sizeof(path), "%s%s%s", at, e->d_name, more ? "/" : "") >= (int)sizeof(path))
			continue;
		if (more)
			walk(w, path, rest);
		else
			take(w, path);
	}
	if (dir)
		closedir(dir);
}

int ttmon_job_ahead(const void *ctx, const void *in, size_t n, int fd _unused_, struct ttmon_helper_out *out)
{
	const struct ttmon_jobs_cfg *cfg = ctx;
	struct walk w = { .out = out, .root = -1 };
	const char *root = in;

	if (!n || root[n - 1])
		return -EINVAL;
	w.root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.root < 0)
		return -errno;
	for (size_t i = 0; !strcmp(root, "/") && i < cfg->nr_ahead; i++)
		walk(&w, "", cfg->ahead[i] + strspn(cfg->ahead[i], "/"));
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		walk(&w, "", dirs[i]);
	close(w.root);
	return 0;
}
