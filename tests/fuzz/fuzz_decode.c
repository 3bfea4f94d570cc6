// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_decode.c: one record of any bytes. What the gate lets through is then used as the core uses it:
 * every index, length, frame and name is touched, so that a missing check is a report of a sanitizer.
 */
#include "daemon/core/stream/decode.h"

#define NR_CPUS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int touched; /* keeps the reads */

static void touch(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		touched += (unsigned char)p[i];
}

static void touch_name(const char *name)
{
	if (!name)
		abort();
	touch(name, strlen(name));
}

static void use_alloc(const struct ttmon_ev_alloc *ev)
{
	uint64_t frames[TTMON_MAX_FRAMES];

	touch_name(ttmon_fn_name(ev->fn));
	touch_name(ttmon_method_name(ev->method));
	for (unsigned int i = 0; i < ev->nframes; i++)
		frames[i] = ev->frames[i];
	touch((const char *)frames, ev->nframes * sizeof(frames[0]));
}

static void use_copy(unsigned int fn, unsigned int dir)
{
	touch_name(ttmon_fn_name(fn));
	touch_name(ttmon_dir_name(dir));
}

static void use_event(const struct ttmon_event *ev)
{
	static uint8_t cpus[NR_CPUS];

	cpus[ev->cpu]++;
	switch (ev->kind) {
	case TTMON_EV_ALLOC:
		use_alloc((const void *)ev);
		break;
	case TTMON_EV_FREE:
		touch_name(ttmon_fn_name(((const struct ttmon_ev_free *)ev)->fn));
		touch_name(ttmon_method_name(((const struct ttmon_ev_free *)ev)->method));
		break;
	case TTMON_EV_COPY:
		use_copy(((const struct ttmon_ev_copy *)ev)->fn, ((const struct ttmon_ev_copy *)ev)->dir);
		break;
	case TTMON_EV_COPY_RECT:
		use_copy(((const struct ttmon_ev_copy_rect *)ev)->fn, ((const struct ttmon_ev_copy_rect *)ev)->dir);
		break;
	case TTMON_EV_HINT:
		touch_name(ttmon_fn_name(((const struct ttmon_ev_hint *)ev)->fn));
		break;
	case TTMON_EV_RESET:
		touch_name(ttmon_fn_name(((const struct ttmon_ev_reset *)ev)->fn));
		break;
	case TTMON_EV_WAIT:
		touch_name(ttmon_fn_name(((const struct ttmon_ev_wait *)ev)->fn));
		break;
	case TTMON_EV_TAG:
		touch_name(((const struct ttmon_ev_tag *)ev)->tag);
		break;
	case TTMON_EV_CHECKPOINT:
		touch_name(((const struct ttmon_ev_checkpoint *)ev)->label);
		break;
	default:
		break;
	}
}

static void use_fact(const struct ttmon_event *ev)
{
	static uint8_t stats[NR_CPUS][TTMON_EV_FACT];

	switch (ev->kind) {
	case TTMON_EV_CLOCK:
		touch_name(((const struct ttmon_ev_clock *)ev)->hostname);
		touch_name(((const struct ttmon_ev_clock *)ev)->release);
		touched += (unsigned int)(ev->ts_ns % ((const struct ttmon_ev_clock *)ev)->page_size);
		break;
	case TTMON_EV_PROC_NAME:
		touch(((const struct ttmon_ev_text *)ev)->text, ((const struct ttmon_ev_text *)ev)->len);
		break;
	case TTMON_EV_OBJECT: {
		const struct ttmon_ev_object *e = (const void *)ev;
		uint8_t id[TTMON_BUILD_ID];

		memcpy(id, e->build_id, e->build_id_len);
		touch((const char *)id, e->build_id_len);
		touch(e->path, e->len);
		break;
	}
	case TTMON_EV_MAP:
		touch(((const struct ttmon_ev_map *)ev)->name, ((const struct ttmon_ev_map *)ev)->len);
		break;
	case TTMON_EV_SYMBOL:
		touch(((const struct ttmon_ev_symbol *)ev)->name, ((const struct ttmon_ev_symbol *)ev)->len);
		break;
	case TTMON_EV_LOST:
		stats[((const struct ttmon_ev_lost *)ev)->stat_cpu][((const struct ttmon_ev_lost *)ev)->stat_kind]++;
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that one byte too far is seen, and aligned. */
	_cleanup_free_ void *rec = malloc(size ? size : 1);
	const struct ttmon_event *ev = rec;

	if (!rec)
		return 0;
	if (size)
		memcpy(rec, data, size);
	if (ttmon_decode(rec, size, NR_CPUS) != TTMON_DECODE_OK)
		return 0;
	touch_name(ttmon_event_name(ev->kind));
	if (size < ttmon_event_min_size(ev->kind))
		abort();
	if (ev->kind < TTMON_EV_FACT)
		use_event(ev);
	else
		use_fact(ev);
	return 0;
}
