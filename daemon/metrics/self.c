// SPDX-License-Identifier: GPL-2.0-only
/* self.c: the daemon itself, the host, and the HTTP server. */
#include <dirent.h>
#include <sys/resource.h>

#include "daemon/metrics/metrics_int.h"
#include "daemon/run/serve.h"
#include "lib/os/clock.h"
#include "version.h"
#include "lib/os/proc.h"

uint64_t ttmon_metrics_start(void)
{
	struct ttmon_proc_stat st;
	uint64_t age_ns;

	if (ttmon_proc_read_stat(NULL, (uint32_t)getpid(), &st))
		return 0;
	age_ns = ttmon_clock_ns(CLOCK_BOOTTIME) - st.start * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	return ttmon_real_ns() - age_ns;
}

static void memory(struct ttmon_metrics *m)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long size, resident, page = (unsigned long long)sysconf(_SC_PAGESIZE);

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		return;
	TTMON_NUM(m, SELF_RSS, resident * page);
	TTMON_NUM(m, SELF_VSZ, size * page);
}

static void files(struct ttmon_metrics *m)
{
	DIR *dir = opendir("/proc/self/fd");
	struct rlimit limit;
	uint64_t n = 0;

	if (dir) {
		for (const struct dirent *d; (d = readdir(dir));)
			n += d->d_name[0] != '.';
		closedir(dir);
		/* Without the one opened for this count. */
		TTMON_NUM(m, SELF_FDS, n - 1);
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		TTMON_NUM(m, SELF_MAX_FDS, limit.rlim_cur);
}

static void http(struct ttmon_metrics *m)
{
	struct ttmon_http_stats s;

	ttmon_http_get_stats(ttmon_serve_http(m->c), &s);
	TTMON_NUM(m, HTTP_REQUESTS, s.requests);
	TTMON_NUM(m, HTTP_ERRORS, s.errors);
	TTMON_NUM(m, HTTP_CLOSED, s.slow, "slow");
	TTMON_NUM(m, HTTP_CLOSED, s.crowded, "crowded");
	TTMON_NUM(m, HTTP_LIMITED, s.held, "held");
	TTMON_NUM(m, HTTP_LIMITED, s.limited, "refused");
	TTMON_SECONDS(m, HTTP_CPU, ttmon_serve_spent_ns(m->c));
	TTMON_NUM(m, HTTP_BYTES, s.bytes);
	TTMON_NUM(m, HTTP_CONNECTIONS, s.open);
}

static void lacks(struct ttmon_metrics *m)
{
	size_t n;
	const struct ttmon_lack *l = ttmon_daemon_lacks(m->c, &n);

	for (size_t i = 0; i < n; i++)
		TTMON_NUM(m, DEGRADED, 1, ttmon_lack_key(l[i].lack));
}

void ttmon_metrics_self(struct ttmon_metrics *m)
{
	TTMON_NUM(m, BUILD_INFO, 1, TTMON_VERSION);
	if (*m->v.hostname)
		TTMON_NUM(m, HOST_INFO, 1, m->v.hostname, m->v.release);
	lacks(m);
	http(m);
	TTMON_SECONDS(m, SELF_CPU, ttmon_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	memory(m);
	files(m);
	if (m->start_real_ns)
		TTMON_SECONDS(m, SELF_START, m->start_real_ns);
}
