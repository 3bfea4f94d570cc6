// SPDX-License-Identifier: GPL-2.0-only
/*
 * quotas.c: see quotas.h. Checked once a second. The log names a user when entries of the user begin
 * to be dropped, and again while that goes on, at most every ten minutes: no user must be able to fill
 * the log.
 */
#include "daemon/run/quotas.h"

#include "daemon/io/probes/discover.h"
#include "daemon/run/families.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"
#include "lib/os/proc.h"

#define LOOK_TICKS 10
#define AGAIN_NS   (600 * NSEC_PER_SEC)
#define TOLD_MAX   64u

struct told {
	uint64_t paid, ns;
	uint32_t uid;
	uint8_t what;
};

struct quotas {
	struct ttmon_daemon *c;
	struct told told[TOLD_MAX];
	uint32_t nr_told;
};

uint32_t ttmon_quotas_get(const struct ttmon_daemon *c, struct ttmon_quota_row *rows)
{
	struct ttmon_quota_row others[TTMON_QUOTA_ROWS];
	struct ttmon_snapshot s;
	uint32_t n, more = 0;

	ttmon_daemon_snapshot(c, &s);
	n = s.nr_quotas;
	memcpy(rows, s.quotas, n * sizeof(*rows));
	if (ttmon_daemon_discover(c))
		more = ttmon_discover_quotas(ttmon_daemon_discover(c), others);
	for (uint32_t i = 0; i < more; i++)
		ttmon_quota_add(rows, &n, &others[i]);
	more = ttmon_families_quotas(c, others);
	for (uint32_t i = 0; i < more; i++)
		ttmon_quota_add(rows, &n, &others[i]);
	return n;
}

static struct told *told_of(struct quotas *q, const struct ttmon_quota_row *row)
{
	struct told *oldest = &q->told[0];

	for (uint32_t i = 0; i < q->nr_told; i++) {
		if (q->told[i].uid == row->uid && q->told[i].what == row->what)
			return &q->told[i];
		if (ttmon_before(q->told[i].ns, oldest->ns))
			oldest = &q->told[i];
	}
	if (q->nr_told < TOLD_MAX)
		oldest = &q->told[q->nr_told++];
	*oldest = (struct told){ .uid = row->uid, .what = row->what };
	return oldest;
}

static void tell(const struct ttmon_quota_row *row, uint64_t more)
{
	char comm[TTMON_COMM_LEN], user[16] = "not known", who[64] = "";

	if (row->uid != UINT32_MAX)
		snprintf(user, sizeof(user), "%u", row->uid);
	if (row->tgid)
		snprintf(who, sizeof(who), ", the last of process %u (%.16s)", row->tgid,
			 ttmon_proc_comm(row->tgid, comm));
	log_warn("user %s has its share of what is kept, and makes room: %llu %s%s; others keep theirs", user,
		 (unsigned long long)more, ttmon_quota_help(row->what), who);
}

static void tick(void *state)
{
	struct ttmon_quota_row rows[TTMON_QUOTA_ROWS];
	struct quotas *q = state;
	uint64_t now = ttmon_mono_ns();
	uint32_t n;

	if (ttmon_daemon_ticks(q->c) % LOOK_TICKS)
		return;
	n = ttmon_quotas_get(q->c, rows);
	for (uint32_t i = 0; i < n; i++) {
		struct told *t = told_of(q, &rows[i]);

		/* Reductions by the budget are logged by families.c. */
		if (rows[i].what == TTMON_QUOTA_BUDGET || rows[i].paid == t->paid || (t->ns && now - t->ns < AGAIN_NS))
			continue;
		tell(&rows[i], rows[i].paid - t->paid);
		t->paid = rows[i].paid;
		t->ns = now;
	}
}

static int start(struct ttmon_daemon *c, void **state)
{
	struct quotas *q = calloc(1, sizeof(*q));

	if (!q)
		return log_error_r(-ENOMEM, "out of memory");
	q->c = c;
	*state = q;
	return 0;
}

const struct ttmon_part ttmon_part_quotas = {
	.name = "quotas",
	.in = TTMON_IN_BOTH,
	.start = start,
	.tick = tick,
	.free = free,
};
