// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmid.c: RMIDs and their readings: creation and removal, units, totals, and the notes on odd events.
 * Hot thread, pure.
 */
#include "daemon/core/rmid/rmid_int.h"

int ttmon_rmid_new(struct ttmon_rmid **ret)
{
	struct ttmon_rmid *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->scale = 1;
	r->width = 64;
	r->gen = 1;
	*ret = r;
	return 0;
}

void ttmon_rmid_free(struct ttmon_rmid *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < TTMON_RMID_LIMIT; i++) {
		struct rmid_key *k = r->ids[i] ? r->ids[i]->keys : NULL;

		while (k) {
			struct rmid_key *next = k->next;

			free(k);
			k = next;
		}
		free(r->ids[i]);
	}
	free(r->facts);
	free(r);
}

struct rmid_one *ttmon_rmid_one(struct ttmon_rmid *r, uint32_t rmid)
{
	if (rmid >= TTMON_RMID_LIMIT)
		return NULL;
	if (!r->ids[rmid])
		r->ids[rmid] = calloc(1, sizeof(*r->ids[rmid]));
	return r->ids[rmid];
}

bool ttmon_rmid_not_yet(const struct ttmon_rmid *r, uint64_t ns)
{
	return r->has_closed && ttmon_before(r->closed_ns + RMID_AHEAD_NS, ns);
}

bool ttmon_rmid_settled(const struct ttmon_rmid *r, uint64_t ns)
{
	return r->settling && !ttmon_before(ns, r->settle_ns);
}

void ttmon_rmid_on_rmid_info(struct ttmon_rmid *r, const struct ttmon_ev_rmid_info *e)
{
	r->any = true;
	r->t.backend = e->backend;
	r->t.max_rmid = e->max_rmid;
	r->t.has = e->flags;
	r->scale = MAX(e->scale, 1);
	r->width = e->width >= 24 && e->width <= 64 ? e->width : 64;
	/*
	 * Earlier readings are in other units, or of a counter that was set up again: no difference is taken
	 * across.
	 */
	if (!++r->gen)
		r->gen = 1;
}

void ttmon_rmid_on_rdt(struct ttmon_rmid *r, const struct ttmon_ev_rdt *ev)
{
	ttmon_rmid_read(r, ev);
}

void ttmon_rmid_on_rdt_read(struct ttmon_rmid *r, const struct ttmon_ev_rdt *ev)
{
	ttmon_rmid_read(r, ev);
}

void ttmon_rmid_get_totals(const struct ttmon_rmid *r, struct ttmon_rmid_totals *ret)
{
	*ret = r->t;
}

void ttmon_rmid_note_odd(struct ttmon_rmid *r, enum ttmon_rmid_odd odd, uint32_t rmid, uint32_t tgid, uint32_t other,
			 uint64_t ns)
{
	r->t.odd[odd]++;
	if (r->noted & 1U << odd)
		return;
	r->noted |= 1U << odd;
	r->pending |= 1U << odd;
	r->said[odd] = (struct rmid_said){ .rmid = rmid, .tgid = tgid, .other = other, .ns = ns };
}

/* Appends the process in brackets, where it is known. */
static void add_process(char *buf, size_t n, uint32_t tgid)
{
	size_t len = strnlen(buf, n);

	if (tgid && len < n)
		snprintf(buf + len, n - len, " (process %u)", tgid);
}

static void say(enum ttmon_rmid_odd odd, const struct rmid_said *s, char *buf, size_t n)
{
	switch (odd) {
	case TTMON_RMID_ODD_SAMPLE_ON_FREE:
		snprintf(buf, n, "RMID %u was read while nobody had it", s->rmid);
		return;
	case TTMON_RMID_ODD_DOUBLE_FREE:
		snprintf(buf, n, "RMID %u was freed twice", s->rmid);
		break;
	case TTMON_RMID_ODD_LOST_ALLOC:
		snprintf(buf, n, "RMID %u is in use, but its allocation was not told", s->rmid);
		break;
	case TTMON_RMID_ODD_LOST_FREE:
		snprintf(buf, n, "RMID %u went from process %u to %u, but was not told to be freed", s->rmid, s->other,
			 s->tgid);
		return;
	case TTMON_RMID_ODD_SHARED:
		snprintf(buf, n, "RMID %u belongs to process %u, but process %u has it too", s->rmid, s->other,
			 s->tgid);
		return;
	case TTMON_RMID_ODD_REUSED_EARLY:
		snprintf(buf, n, "RMID %u was given out again %llu us after it was freed", s->rmid,
			 (unsigned long long)(s->ns / NSEC_PER_US));
		break;
	case TTMON_RMID_ODD_EXHAUSTED:
		snprintf(buf, n, "all RMIDs are in use");
		break;
	case TTMON_RMID_ODD_BAD_READING:
		snprintf(buf, n, "RMID %u has no reading: not available, an error or no counter assigned", s->rmid);
		return;
	case TTMON_RMID_ODD_DROPPED:
	case TTMON_RMID_ODD_MAX:
		snprintf(buf, n, "no room for readings or events of RMIDs");
		return;
	}
	add_process(buf, n, s->tgid);
}

bool ttmon_rmid_note(struct ttmon_rmid *r, char *buf, size_t n)
{
	enum ttmon_rmid_odd odd;

	if (!r->pending || !n)
		return false;
	odd = (enum ttmon_rmid_odd)__builtin_ctz(r->pending);
	r->pending &= r->pending - 1;
	say(odd, &r->said[odd], buf, n);
	return true;
}

const char *ttmon_rmid_odd_name(unsigned int odd)
{
	static const char *const names[] = {
#define X(NAME, name, help) [TTMON_RMID_ODD_##NAME] = name,
		TTMON_RMID_ODD_TABLE(X)
#undef X
	};

	return odd < ARRAY_SIZE(names) ? names[odd] : NULL;
}

const char *ttmon_rmid_backend_name(unsigned int backend)
{
	static const char *const names[] = {
#define X(id, NAME, name) [TTMON_RMID_##NAME] = name,
		TTMON_RMID_BACKEND_TABLE(X)
#undef X
	};

	if (backend == TTMON_RMID_AUTO)
		return "auto";
	return backend < ARRAY_SIZE(names) ? names[backend] : NULL;
}
