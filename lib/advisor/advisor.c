// SPDX-License-Identifier: GPL-2.0-only
/*
 * advisor.c: libttmon's advisor: open, ask, count, close. <ttmon/client.h> is its specification.
 *
 * The hot path is ask(), in this order: the return addresses of the caller, a lookup in the table of
 * known stacks, the next ordinal of (site, size), the lookup in the profile. A stack that is not in
 * the table is translated then, without allocating or locking. The only system calls are those of the
 * first walk in a thread, and of a walk deeper than any before (walk.c).
 */
#include <sched.h>

#include "lib/pin/groups.h"
#include "lib/advisor/advisor_int.h"

#define DATABASES_MAX 1024u
#define TAG_MAX	      32u /* bytes that the tracer keeps of a name, with its NUL */

/* ---- objects ---- */

bool ttmon_flag_take(_Atomic int *flag)
{
	int me = getpid(), was = 0;

	/*
	 * The flag is held by another process: it was inherited by fork(), and its owner does not exist here.
	 */
	return atomic_compare_exchange_strong(flag, &was, me) ||
	       (was != me && atomic_compare_exchange_strong(flag, &was, me));
}

static int refresh(struct ttmon_advisor *adv)
{
	struct ttmon_objs *now = atomic_load(&adv->objs), *next = NULL;
	int err = ttmon_objs_take(&adv->known, now, &adv->funcs, &next);

	if (err || !next)
		return err;
	atomic_store(&adv->objs, next);
	atomic_store(&adv->gen, next->gen);
	if (now) {
		now->next = adv->retired;
		adv->retired = now;
	}
	/*
	 * A thread that enters from now on uses the new list, so if no reader is inside, the old lists can be
	 * freed.
	 */
	while (adv->retired && !atomic_load(&adv->readers)) {
		struct ttmon_objs *old = adv->retired;

		adv->retired = old->next;
		ttmon_objs_free(old);
	}
	return 0;
}

int ttmon_advisor_refresh(struct ttmon_advisor *adv)
{
	int err;

	/* If another thread is refreshing, there is nothing to do. */
	if (!adv || !adv->profile || !ttmon_flag_take(&adv->refreshing))
		return 0;
	err = refresh(adv);
	ttmon_flag_drop(&adv->refreshing);
	return err;
}

/* ---- open and close ---- */

/*
 * Uses the given costs, else those of the pins in the runs, else the defaults: the same as every other
 * tool does with these databases.
 */
static struct ttmon_cost cost_of(const struct ttmon_run *const *runs, size_t n, const struct ttmon_cost *given)
{
	struct ttmon_cost c = TTMON_COST_DEFAULT;
	struct ttmon_cost_seen seen = { 0 };

	for (size_t i = 0; i < n; i++)
		ttmon_groups_see(runs[i], &seen);
	ttmon_cost_measured(&seen, &c);
	return (struct ttmon_cost){ given->pageable_bps ?: c.pageable_bps, given->pinned_bps ?: c.pinned_bps,
				    given->pinning_bps ?: c.pinning_bps, given->pin_call_ns ?: c.pin_call_ns,
				    given->unpin_call_ns ?: c.unpin_call_ns };
}

static int set_up(struct ttmon_advisor *adv, const struct ttmon_run *const *runs, size_t n,
		  const struct ttmon_advisor_opts *o)
{
	const struct ttmon_cost given = { o->pageable_bps, o->pinned_bps, o->pinning_bps, o->pin_call_ns,
					  o->unpin_call_ns };
	const struct ttmon_cost cost = cost_of(runs, n, &given);
	struct ttmon_profile_totals totals;
	uint64_t pages = 0;
	char why[256];
	int err = ttmon_profile_new(runs, n, &cost, &adv->profile);

	if (!err)
		err = ttmon_profile_peak(adv->profile, runs, n, o->sites, o->nr_sites, &pages);
	if (err)
		return err;
	ttmon_profile_get_totals(adv->profile, &totals);
	adv->entries = totals.entries;
	adv->sites = totals.sites;
	adv->peak_pin_bytes = pages * 4096;
	err = ttmon_known_init(&adv->known, adv->profile);
	if (!err)
		err = ttmon_run_plumbing(NULL, &adv->known.plumbing, why, sizeof(why));
	adv->ordinals.seed = adv->known.seed;
	for (size_t i = 0; i < n && !err; i++)
		err = ttmon_known_run(&adv->known, runs[i], &adv->ordinals);
	if (!err)
		err = ttmon_seens_init(&adv->seens, totals.sites);
	if (!err)
		err = ttmon_rows_init(&adv->rows);
	if (err)
		return err;
	adv->ordinals.count = calloc(adv->ordinals.index.n + 1, sizeof(*adv->ordinals.count));
	return adv->ordinals.count ? refresh(adv) : -ENOMEM;
}

static int load(struct ttmon_advisor *adv, const char *const *databases, size_t n, const struct ttmon_advisor_opts *o,
		char *why, size_t why_size)
{
	struct ttmon_run **runs = calloc(n, sizeof(*runs));
	int err = runs ? 0 : -ENOMEM;
	char text[1024] = "";

	for (size_t i = 0; i < n && !err; i++)
		err = databases[i] ? ttmon_run_load(databases[i], NULL, &runs[i], text, sizeof(text)) : -EINVAL;
	if (!err)
		err = ttmon_runs_align(runs, n);
	if (!err)
		err = set_up(adv, (const struct ttmon_run *const *)runs, n, o);
	for (size_t i = 0; runs && i < n; i++)
		ttmon_run_free(runs[i]);
	free(runs);
	if (err)
		snprintf(why, why_size, "%s", text[0] ? text : strerror(-err));
	return err;
}

static void advisor_freep(struct ttmon_advisor **adv)
{
	ttmon_advisor_close(*adv);
}

int ttmon_advisor_open(const char *const *databases, size_t n, const struct ttmon_advisor_opts *opts,
		       struct ttmon_advisor **ret, char *why, size_t why_size)
{
	_cleanup_(advisor_freep) struct ttmon_advisor *adv = NULL;
	struct ttmon_advisor_opts o = { 0 };
	int err;

	if (opts)
		memcpy(&o, opts, MIN(opts->size, sizeof(o)));
	if ((opts && opts->size < sizeof(opts->size)) || o.min_match >= TTMON_MATCH_MAX || n > DATABASES_MAX ||
	    (n && !databases)) {
		snprintf(why, why_size, "%s",
			 n > DATABASES_MAX ? "more than 1024 databases" : "the options make no sense");
		return n > DATABASES_MAX ? -E2BIG : -EINVAL;
	}
	adv = aligned_alloc(_Alignof(struct ttmon_advisor), sizeof(*adv));
	if (adv) {
		memset(adv, 0, sizeof(*adv));
		adv->socket = strdup(ttmon_socket_or(o.socket));
	}
	if (!adv || !adv->socket) {
		snprintf(why, why_size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	adv->min_match = o.min_match ? o.min_match : TTMON_MATCH_NAMES;
	err = n ? load(adv, databases, n, &o, why, why_size) : 0;
	if (err)
		return err;
	*ret = TAKE_PTR(adv);
	return 0;
}

void ttmon_advisor_close(struct ttmon_advisor *adv)
{
	if (!adv)
		return;
	ttmon_sub_free(atomic_load(&adv->sub));
	ttmon_objs_free(atomic_load(&adv->objs));
	while (adv->retired) {
		struct ttmon_objs *old = adv->retired;

		adv->retired = old->next;
		ttmon_objs_free(old);
	}
	ttmon_funcs_free(adv->funcs);
	ttmon_seens_fini(&adv->seens);
	ttmon_rows_fini(&adv->rows);
	ttmon_ordinals_fini(&adv->ordinals);
	ttmon_known_fini(&adv->known);
	if (adv->profile)
		ttmon_profile_free(adv->profile);
	free(adv->socket);
	free(adv);
}

/* ---- queries ---- */

/* Stacks of different threads are far apart, so their shards differ. */
static struct ttmon_shard *shard_of(struct ttmon_advisor *adv, const void *stack)
{
	return &adv->shards[ttmon_mix64((uint64_t)(uintptr_t)stack >> 16) % TTMON_SHARDS];
}

static enum ttmon_verdict answer(struct ttmon_advisor *adv, const struct ttmon_profile_key *key, uint64_t site,
				 struct ttmon_answer *ret)
{
	ttmon_profile_lookup(adv->profile, key, ret);
	ret->ordinal = key->ordinal;
	ret->site = site;
	if (ret->match < adv->min_match)
		ret->verdict = TTMON_VERDICT_UNKNOWN;
	atomic_fetch_add_explicit(&shard_of(adv, ret)->by_match[ret->match < TTMON_MATCH_MAX ? ret->match : 0], 1,
				  memory_order_relaxed);
	return (enum ttmon_verdict)ret->verdict;
}

/* Without a database there are no answers but the live ones. */
static bool knows_nothing(struct ttmon_advisor *adv, struct ttmon_answer *ret)
{
	*ret = (struct ttmon_answer){ .ordinal = TTMON_RUN_NONE };
	if (adv && adv->profile)
		return false;
	if (adv)
		atomic_fetch_add_explicit(&shard_of(adv, ret)->by_match[TTMON_MATCH_NONE], 1, memory_order_relaxed);
	return true;
}

/* Translates a stack to its hashes and stores it under key. gen: number of the list of objects. */
static void translate(struct ttmon_advisor *adv, const uint64_t *frames, unsigned int n, uint64_t gen, uint64_t key,
		      struct ttmon_where *ret)
{
	const struct ttmon_objs *objs;

	atomic_fetch_add(&adv->readers, 1);
	objs = atomic_load(&adv->objs);
	ttmon_where_of(&adv->known, objs, frames, n, ret);
	if (objs->gen == gen)
		ttmon_seens_put(&adv->seens, key, ret);
	atomic_fetch_sub(&adv->readers, 1);
}

static void where_of(struct ttmon_advisor *adv, const uint64_t *frames, unsigned int n, uint64_t gen,
		     struct ttmon_where *ret)
{
	uint64_t key = ttmon_seen_key(frames, n, gen);

	if (!ttmon_seens_get(&adv->seens, key, ret))
		translate(adv, frames, n, gen, key, ret);
}

/*
 * Finds the call site in the same way as the tracer: frames found by frame pointers are used if the
 * unwind tables confirm that each step was by frame pointer. Such stacks are confirmed once and then
 * found by frame pointers; the other stacks are unwound by the tables every time.
 */
static void where_here(struct ttmon_advisor *adv, const void *frame, uint64_t gen, struct ttmon_where *ret)
{
	uint64_t frames[TTMON_WALK_MAX], key;
	unsigned int n = ttmon_walk(frame, frames, TTMON_WALK_MAX);
	struct ttmon_uw_result r;

	r.guessed = false;
	key = ttmon_seen_key(frames, n, ~gen);
	if (adv->rows.v && ttmon_seens_get(&adv->seens, key, ret))
		return;
	if (!adv->rows.v || !ttmon_walk_tables(&adv->rows, gen, frame, &r))
		where_of(adv, frames, n, gen, ret);
	else if (ttmon_uw_confirms(&r, frames, n, n == TTMON_WALK_MAX))
		translate(adv, frames, n, gen, key, ret);
	else
		where_of(adv, r.pc, r.guessed ? 1 : MIN(r.n, TTMON_WALK_MAX), gen, ret);
	/* A stack that may be wrong does not identify a call site. */
	if (r.guessed)
		*ret = (struct ttmon_where){ .leaf = ret->leaf };
}

static enum ttmon_verdict ask(struct ttmon_advisor *adv, const struct ttmon_where *where, uint64_t size,
			      struct ttmon_answer *ret)
{
	struct ttmon_profile_key key = { .size = size, .order = TTMON_RUN_NONE };
	uint64_t inner = where->inner ? ttmon_known_inner(&adv->known, where->inner, size) : 0;

	key.names = where->names;
	key.near = where->near;
	key.leaf = where->leaf;
	key.exact = inner ? inner : where->exact;
	key.ordinal = key.exact ? ttmon_ordinals_next(&adv->ordinals, key.exact, size) : TTMON_RUN_NONE;
	if (!key.exact && !key.names && !key.leaf) {
		key.order = (uint32_t)atomic_fetch_add_explicit(&adv->order, 1, memory_order_relaxed);
		key.method = TTMON_METHOD_HOST_ALLOC;
	}
	return answer(adv, &key, key.exact, ret);
}

__attribute__((noinline)) enum ttmon_verdict ttmon_advise_here(struct ttmon_advisor *adv, uint64_t size,
							       struct ttmon_answer *ret)
{
	struct ttmon_where where;

	if (knows_nothing(adv, ret))
		return TTMON_VERDICT_UNKNOWN;
	where_here(adv, __builtin_frame_address(0), atomic_load_explicit(&adv->gen, memory_order_acquire), &where);
	return ask(adv, &where, size, ret);
}

enum ttmon_verdict ttmon_advise_stack(struct ttmon_advisor *adv, const void *const *stack, unsigned int n,
				      uint64_t size, struct ttmon_answer *ret)
{
	struct ttmon_where where = { 0 };
	uint64_t frames[TTMON_WALK_MAX];

	if (knows_nothing(adv, ret))
		return TTMON_VERDICT_UNKNOWN;
	n = stack ? MIN(n, TTMON_WALK_MAX) : 0;
	for (unsigned int i = 0; i < n; i++)
		frames[i] = (uint64_t)(uintptr_t)stack[i];
	if (n)
		where_of(adv, frames, n, atomic_load_explicit(&adv->gen, memory_order_acquire), &where);
	return ask(adv, &where, size, ret);
}

enum ttmon_verdict ttmon_advise_name(struct ttmon_advisor *adv, const char *name, uint64_t size,
				     struct ttmon_answer *ret)
{
	struct ttmon_profile_key key = { .size = size, .order = TTMON_RUN_NONE };
	char tag[TAG_MAX];
	uint64_t site;

	if (knows_nothing(adv, ret) || !name)
		return TTMON_VERDICT_UNKNOWN;
	snprintf(tag, sizeof(tag), "%s", name);
	site = ttmon_site_hash_name(TTMON_FNV_BASIS, tag);
	key.name = tag;
	key.ordinal = ttmon_ordinals_next(&adv->ordinals, site, size);
	return answer(adv, &key, site, ret);
}

void ttmon_advisor_get_stats(const struct ttmon_advisor *adv, struct ttmon_advisor_stats *ret)
{
	struct ttmon_sub *sub;

	*ret = (struct ttmon_advisor_stats){ 0 };
	if (!adv)
		return;
	for (size_t i = 0; i < TTMON_SHARDS; i++)
		for (size_t m = 0; m < TTMON_MATCH_MAX; m++)
			ret->by_match[m] += atomic_load_explicit(&adv->shards[i].by_match[m], memory_order_relaxed);
	for (size_t m = 0; m < TTMON_MATCH_MAX; m++)
		ret->lookups += ret->by_match[m];
	ret->entries = adv->entries;
	ret->sites = adv->sites;
	ret->peak_pin_bytes = adv->peak_pin_bytes;
	sub = ttmon_sub_of(adv);
	if (sub)
		ttmon_sub_stats(sub, ret);
}
