// SPDX-License-Identifier: GPL-2.0-only
/*
 * degraded.c: parts of a run that were requested and are missing. A service is started by other
 * programs, at boot and after a crash: a file that another user has put into a world-writable folder,
 * or a full file system, is no reason to end. It runs without the part, reports that in the log, in
 * /v1/status, to systemd and as a metric, and tries again. Cold thread.
 */
#include "daemon/run/daemon_int.h"

#include "daemon/run/families.h"
#include "lib/os/clock.h"
#include "lib/os/tracefs.h"

const char *ttmon_lack_key(enum ttmon_lacking lack)
{
	static const char *const keys[] = {
#define X(NAME, key, what) key,
		TTMON_LACK_TABLE(X)
#undef X
	};

	return keys[lack];
}

const char *ttmon_lack_what(enum ttmon_lacking lack)
{
	static const char *const words[] = {
#define X(NAME, key, what) what,
		TTMON_LACK_TABLE(X)
#undef X
	};

	return words[lack];
}

static struct ttmon_lack *find(struct ttmon_daemon *c, enum ttmon_lacking lack)
{
	for (size_t i = 0; i < c->nr_lacks; i++)
		if (c->lacks[i].lack == lack)
			return &c->lacks[i];
	return NULL;
}

void ttmon_daemon_degrade(struct ttmon_daemon *c, enum ttmon_lacking lack, const char *why)
{
	struct ttmon_lack *l = find(c, lack);

	if (l && !strcmp(l->why, why))
		return;
	if (!l) {
		l = &c->lacks[c->nr_lacks++];
		*l = (struct ttmon_lack){ .lack = lack, .since_ns = ttmon_mono_ns() };
	}
	snprintf(l->why, sizeof(l->why), "%s", why);
	log_warn("DEGRADED: without %s, until that changes: %s", ttmon_lack_what(lack), why);
}

void ttmon_daemon_blame(struct ttmon_daemon *c, enum ttmon_lacking lack, const char *who)
{
	struct ttmon_lack *l = find(c, lack);

	if (!l)
		return;
	snprintf(l->who, sizeof(l->who), "%s", who);
	if (who[0])
		log_warn("without %s because of %s", ttmon_lack_what(lack), who);
}

void ttmon_daemon_restore(struct ttmon_daemon *c, enum ttmon_lacking lack)
{
	struct ttmon_lack *l = find(c, lack);

	if (!l)
		return;
	log_info("no longer without %s", ttmon_lack_what(lack));
	*l = c->lacks[--c->nr_lacks];
}

const struct ttmon_lack *ttmon_daemon_lacks(const struct ttmon_daemon *c, size_t *n)
{
	*n = c->nr_lacks;
	return c->lacks;
}

int ttmon_daemon_segment(struct ttmon_daemon *c)
{
	char why[256];
	int err = ttmon_publish_segment(c->opts, &c->publish.shm, why, sizeof(why));

	if (!err || !c->opts->service)
		return err ? log_error_r(err, "%s", why) : 0;
	ttmon_daemon_degrade(c, TTMON_LACK_SEGMENT, why);
	return 0;
}

/* Runs in the hot thread, which publishes. */
static int hand_over(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_daemon *c = ctx;

	(void)p;
	(void)now_ns;
	c->publish.shm = TAKE_PTR(c->publish.late);
	return 0;
}

static void take_up_segment(struct ttmon_daemon *c)
{
	char why[256];

	if (!c->publish.late && ttmon_publish_segment(c->opts, &c->publish.late, why, sizeof(why)))
		ttmon_daemon_degrade(c, TTMON_LACK_SEGMENT, why);
	else if (!ttmon_daemon_call(c, hand_over, c))
		ttmon_daemon_restore(c, TTMON_LACK_SEGMENT);
}

static void take_up_mmap(struct ttmon_daemon *c)
{
	_cleanup_close_ int fd = -1;
	char why[256];

	if (!ttmon_tracefs_open(&fd) &&
	    !ttmon_families_set(c, TTMON_FAMILY_MMAP, TTMON_FAMILY_ON, geteuid(), why, sizeof(why)))
		ttmon_daemon_restore(c, TTMON_LACK_MMAP);
}

void ttmon_daemon_take_up(struct ttmon_daemon *c)
{
	if (find(c, TTMON_LACK_SEGMENT))
		take_up_segment(c);
	if (find(c, TTMON_LACK_MMAP))
		take_up_mmap(c);
}
