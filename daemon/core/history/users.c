// SPDX-License-Identifier: GPL-2.0-only
/*
 * users.c: the share of each user in the history's tables. When a table is full, the user with the
 * most entries makes room, and of that user's processes the one with the most. Part of the history
 * (hot thread, pure).
 *
 * A process belongs to the user that the daemon reported for it, until then to its parent's user.
 * Users past TTMON_USERS_MAX, and processes of which nothing is known, share the first line.
 */
#include "daemon/core/history/history_int.h"

/*
 * The process that makes room is searched again after so many payments, or the 64th part of what it
 * has.
 */
#define PAYMENTS 64u
/* In a table from which nothing is evicted, a user may have this part (1/n). */
#define USERS_SHARE 4u

/* Index of the user whose figure is highest, of equals the first. */
#define MOST(h, figure)                                                       \
	({                                                                    \
		uint32_t most_ = 0;                                           \
                                                                              \
		for (uint32_t i_ = 1; i_ < (h)->nr_users; i_++)               \
			if ((h)->users[i_].figure > (h)->users[most_].figure) \
				most_ = i_;                                   \
		most_;                                                        \
	})

int ttmon_users_init(struct ttmon_history *h)
{
	h->users = calloc(1, sizeof(*h->users));
	if (!h->users)
		return -ENOMEM;
	h->nr_users = h->cap_users = 1;
	h->users[0] =
		(struct ttmon_user){ .uid = UINT32_MAX, .freed.elem = sizeof(uint64_t), .dead.elem = sizeof(uint32_t) };
	return 0;
}

void ttmon_users_fini(struct ttmon_history *h)
{
	for (uint32_t i = 0; i < h->nr_users; i++) {
		ttmon_fifo_fini(&h->users[i].freed);
		ttmon_fifo_fini(&h->users[i].dead);
	}
	free(h->users);
	ttmon_hmap_fini(&h->by_uid);
}

static uint32_t line_of(struct ttmon_history *h, uint32_t uid)
{
	uint64_t at = ttmon_hmap_get(&h->by_uid, uid);

	if (at != TTMON_HMAP_NONE)
		return (uint32_t)at;
	if (h->nr_users == TTMON_USERS_MAX)
		return 0;
	if (h->nr_users == h->cap_users) {
		uint32_t cap = h->cap_users * 2;
		struct ttmon_user *v = realloc(h->users, cap * sizeof(*v));

		if (!v)
			return 0;
		h->users = v;
		h->cap_users = cap;
	}
	if (ttmon_hmap_put(&h->by_uid, uid, h->nr_users) < 0)
		return 0;
	h->users[h->nr_users] =
		(struct ttmon_user){ .uid = uid, .freed.elem = sizeof(uint64_t), .dead.elem = sizeof(uint32_t) };
	return h->nr_users++;
}

static void move_to(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t user)
{
	struct ttmon_user *from = &h->users[p->user], *to = &h->users[user];

	from->records -= p->records;
	to->records += p->records;
	from->events -= p->events;
	to->events += p->events;
	from->errors -= p->nr_errors;
	to->errors += p->nr_errors;
	from->groups -= MIN(from->groups, p->nr_folded);
	to->groups += p->nr_folded;
	p->user = user;
}

void ttmon_users_set(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t uid)
{
	move_to(h, p, line_of(h, uid));
	p->pub.uid = uid;
}

void ttmon_users_inherit(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_hproc *parent)
{
	if (p->pub.uid == UINT32_MAX)
		move_to(h, p, parent->user);
}

bool ttmon_users_may_add(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t has, uint32_t max)
{
	if (has < max / USERS_SHARE)
		return true;
	ttmon_users_paid(h, p, TTMON_QUOTA_NAMES, 1);
	return false;
}

void ttmon_users_paid(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_quota what, uint64_t n)
{
	struct ttmon_user *u = &h->users[p->user];

	p->pub.limited = true;
	h->totals.limited = true;
	u->paid[what] += n;
	u->payer[what] = p->pub.tgid;
}

static void choose(struct ttmon_history *h)
{
	uint64_t most = 0;

	h->payer_user = MOST(h, records);
	h->payer = NULL;
	for (uint32_t i = 0; i < h->nr_procs; i++) {
		if (h->procs[i]->user != h->payer_user || h->procs[i]->records <= most)
			continue;
		most = h->procs[i]->records;
		h->payer = h->procs[i];
	}
	h->payments = MAX(PAYMENTS, (uint32_t)(most / PAYMENTS));
}

struct ttmon_hproc *ttmon_users_payer(struct ttmon_history *h, bool anew)
{
	if (anew || !h->payer || !h->payments || h->payer->user != h->payer_user || !h->payer->records)
		choose(h);
	else
		h->payments--;
	return h->payer;
}

uint32_t ttmon_users_most_freed(const struct ttmon_history *h)
{
	return MOST(h, freed.n);
}

uint32_t ttmon_users_most_dead(const struct ttmon_history *h)
{
	return MOST(h, dead.n);
}

uint32_t ttmon_users_most_events(const struct ttmon_history *h)
{
	return MOST(h, events);
}

uint32_t ttmon_history_quotas(const struct ttmon_history *h, struct ttmon_quota_row *rows)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->nr_users; i++) {
		const struct ttmon_user *u = &h->users[i];

		for (unsigned int what = 0; what < TTMON_QUOTA_MAX; what++)
			ttmon_quota_add(rows, &n,
					&(struct ttmon_quota_row){ .paid = u->paid[what],
								   .uid = u->uid,
								   .tgid = u->payer[what],
								   .what = (uint8_t)what });
	}
	return n;
}
