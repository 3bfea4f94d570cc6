// SPDX-License-Identifier: GPL-2.0-only
/* advice.c: decides what to do with an allocation: see enum ttmon_pin_why. Any thread, no lock. */
#include <stdatomic.h>

#include "preload/pin.h"

#define CLOSED 1024 /* the most closed sites; beyond that all sites are closed */

/* Keys are only ever added; 0 is a free place. */
static _Atomic uint64_t closed[CLOSED];
static atomic_bool all_closed;

static bool is_closed(uint64_t site)
{
	uint64_t key;

	if (atomic_load_explicit(&all_closed, memory_order_relaxed))
		return true;
	for (size_t i = 0; i < CLOSED; i++) {
		key = atomic_load_explicit(&closed[i], memory_order_relaxed);
		if (!key || key == site)
			return key != 0;
	}
	return false;
}

void ttmon_pin_close_site(uint64_t site)
{
	/* An allocation without a known site may belong to any. */
	if (!site) {
		atomic_store(&all_closed, true);
		return;
	}
	for (size_t i = 0; i < CLOSED; i++) {
		uint64_t key = 0;

		if (atomic_compare_exchange_strong(&closed[i], &key, site) || key == site)
			return;
	}
	atomic_store(&all_closed, true);
}

static bool wants_pageable(const struct ttmon_pin_conf *conf, unsigned int verdict)
{
	if (verdict == TTMON_VERDICT_UNKNOWN)
		return conf->mode == TTMON_PIN_MODE_NONE || conf->unknown_no_pin;
	return verdict == TTMON_VERDICT_NO_PIN;
}

void ttmon_pin_decide(uint64_t size, unsigned int flags, struct ttmon_pin_plan *ret)
{
	const struct ttmon_pin_conf *conf = ttmon_pin_conf();
	struct ttmon_answer a = { 0 };
	enum ttmon_pin_why why;

	/* Always look up the advice: an allocation that is left alone counts an ordinal too. */
	if (conf->adv)
		ttmon_advise_here(conf->adv, size, &a);
	if (flags & (HOST_PORTABLE | HOST_MAPPED | HOST_WRITE_COMBINED))
		why = TTMON_PIN_FLAGS;
	else if (conf->mode == TTMON_PIN_MODE_ALL && !conf->live)
		why = TTMON_PIN_DEFAULT;
	else if (!ttmon_pin_opted_in(conf, a.site))
		why = TTMON_PIN_NOT_OPTED_IN;
	else if (a.in_place)
		why = TTMON_PIN_IN_PLACE;
	else if (is_closed(a.site))
		why = TTMON_PIN_DEVICE_PTR;
	else
		why = wants_pageable(conf, a.verdict) ? TTMON_PIN_PAGEABLE : TTMON_PIN_PINNED;
	*ret = (struct ttmon_pin_plan){ why, a.site, a.verdict, a.match, a.alone, MAX(a.h2d_bytes, size) };
}
