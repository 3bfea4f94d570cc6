// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/run/publish.h"

#include <time.h>

#include "lib/os/clock.h"
#include "lib/os/log.h"
#include "version.h"

static int open_file(struct ttmon_publish *p, const char *path, uint32_t nr_cpus)
{
	struct ttmon_slotfile_info info = { .nr_cpus = nr_cpus, .version = TTMON_VERSION };
	char host[256] = "";
	struct timespec real;
	int err;

	(void)!gethostname(host, sizeof(host) - 1);
	info.hostname = host;
	info.start_ns = ttmon_mono_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	info.real_ns = (uint64_t)real.tv_sec * NSEC_PER_SEC + (uint64_t)real.tv_nsec;
	err = ttmon_slotfile_new(path, &info, &p->file);
	if (err)
		return log_error_r(err, "cannot write %s: %s", path, strerror(-err));
	p->path = path;
	return 0;
}

int ttmon_publish_open(struct ttmon_publish *p, const struct ttmon_opts *opts, uint32_t nr_cpus)
{
	*p = (struct ttmon_publish){ 0 };
	return opts->slots_out ? open_file(p, opts->slots_out, nr_cpus) : 0;
}

int ttmon_publish_segment(const struct ttmon_opts *opts, struct ttmon_shm **ret, char *why, size_t n)
{
	struct ttmon_shm_cfg cfg = { .root = opts->shm_root, .group = "ttmon", .slots = opts->shm_slots };

	return opts->shm_slots ? ttmon_shm_new(&cfg, ret, why, n) : 0;
}

bool ttmon_publish_slot(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	struct ttmon_publish *p = ctx;

	if (p->shm)
		ttmon_shm_publish(p->shm, slot, rows, n);
	else if (!p->file)
		p->unpublished++;
	return !p->file || ttmon_slotfile_put(p->file, slot, rows, n);
}

int ttmon_publish_close(struct ttmon_publish *p)
{
	struct ttmon_slotfile_stats st;
	int err = 0;

	ttmon_shm_free(TAKE_PTR(p->shm));
	ttmon_shm_free(TAKE_PTR(p->late));
	if (!p->file)
		return 0;
	ttmon_slotfile_get_stats(p->file, &st);
	err = ttmon_slotfile_close(TAKE_PTR(p->file));
	if (err)
		log_error("%s was not written whole: %s", p->path, strerror(-err));
	else if (st.dropped)
		log_warn("%llu slots are missing in %s: they came faster than it could be written",
			 (unsigned long long)st.dropped, p->path);
	return err;
}
