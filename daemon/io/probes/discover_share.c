// SPDX-License-Identifier: GPL-2.0-only
/*
 * discover_share.c: limits the probed functions per user, by the owner of the files. Runs in the cold
 * thread.
 *
 * A probe costs memory of the kernel and of the daemon for as long as its file has a name, and any
 * user can make a library with thousands of functions with the right names. Beyond the share a user's
 * next file gets no probes; calls in that file are reported as not seen. When probes of that user are
 * removed, refused files are tried again when they are next mapped.
 */
#include "daemon/io/probes/discover_int.h"

/* 0: without owner. */
#define MAX_USER 32768u
#define MAX_ROOT 131072u

static struct share *share_of(struct ttmon_discover *d, uint32_t uid, bool create)
{
	struct share *v;

	for (uint32_t i = 0; i < d->nr_shares; i++)
		if (d->shares[i].uid == uid)
			return &d->shares[i];
	if (!create)
		return NULL;
	v = realloc(d->shares, (d->nr_shares + 1) * sizeof(*v));
	if (!v)
		return NULL;
	d->shares = v;
	v[d->nr_shares] = (struct share){ .uid = uid };
	return &v[d->nr_shares++];
}

static bool has_room(const struct ttmon_discover *d, const struct share *s, uint64_t n)
{
	uint64_t max = d->cfg.max_user_probes ? d->cfg.max_user_probes : MAX_USER;

	return s->probes + n <= (s->uid ? max : MAX_ROOT);
}

bool ttmon_share_take(struct ttmon_discover *d, struct object *o, uint32_t n)
{
	struct share *s = n ? share_of(d, o->st.uid, true) : NULL;

	if (!n)
		return true;
	if (!s || !has_room(d, s, n)) {
		o->over_share = n;
		if (s)
			s->refused++;
		return false;
	}
	s->probes += n;
	o->charged = n;
	return true;
}

void ttmon_share_give(struct ttmon_discover *d, struct object *o)
{
	struct share *s = o->charged ? share_of(d, o->st.uid, false) : NULL;

	if (s)
		s->probes -= MIN(s->probes, o->charged);
	o->charged = 0;
}

void ttmon_share_mapped(struct ttmon_discover *d, const struct object *o, uint32_t tgid)
{
	struct share *s = share_of(d, o->st.uid, false);

	if (s)
		s->tgid = tgid;
}

bool ttmon_share_has_room_again(struct ttmon_discover *d, const struct object *o)
{
	const struct share *s = o->over_share ? share_of(d, o->st.uid, false) : NULL;

	return s && has_room(d, s, o->over_share);
}

uint32_t ttmon_discover_quotas(const struct ttmon_discover *d, struct ttmon_quota_row *rows)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->nr_shares; i++)
		ttmon_quota_add(rows, &n,
				&(struct ttmon_quota_row){ .paid = d->shares[i].refused,
							   .uid = d->shares[i].uid,
							   .tgid = d->shares[i].tgid,
							   .what = TTMON_QUOTA_PROBES });
	return n;
}
