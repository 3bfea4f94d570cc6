// SPDX-License-Identifier: GPL-2.0-only
/*
 * family.c: families of probes in the kernel: the gate that each program looks at, the links that
 * belong to no object, and what the programs cost. Which program belongs to which family is a column
 * of the table in bpf.h. Cold thread, except for the gate.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/log.h"

enum ttmon_family_state ttmon_bpf_gate(const struct ttmon_bpf *b, enum ttmon_family family)
{
	return __atomic_load_n(&ttmon_bpf_family_states(b)[family], __ATOMIC_RELAXED);
}

void ttmon_bpf_set_gate(struct ttmon_bpf *b, enum ttmon_family family, enum ttmon_family_state state)
{
	__atomic_store_n(&ttmon_bpf_family_states(b)[family], state, __ATOMIC_SEQ_CST);
	/* Calls now in progress may return while the programs are off. */
	if (state == TTMON_FAMILY_OFF && !ttmon_bpf_legacy(b))
		__atomic_fetch_add(&ttmon_bpf_family_epochs(b)[family], 1, __ATOMIC_SEQ_CST);
}

int ttmon_bpf_attach(struct ttmon_bpf *b, char *why, size_t n)
{
	for (int i = TTMON_PROG_UPROBES; i < TTMON_PROG_MAX; i++) {
		int err;

		if (!ttmon_bpf_attaches(b, i) || ttmon_bpf_gate(b, ttmon_bpf_family(i)) == TTMON_FAMILY_OFF)
			continue;
		err = ttmon_bpf_attach_prog(b, i, why, n);
		if (err)
			return err;
	}
	ttmon_bpf_kmd_refresh(b);
	ttmon_bpf_nvpin_refresh(b);
	return 0;
}

static void detach(struct ttmon_bpf *b, enum ttmon_prog prog)
{
	struct bpf_link **link = ttmon_bpf_link(b, prog);

	bpf_link__destroy(*link);
	*link = NULL;
	ttmon_bpf_set_attached(b, prog, false);
}

/* Links at entries are listed before those at returns: a call that was entered can still end. */
void ttmon_bpf_detach_family(struct ttmon_bpf *b, enum ttmon_family family)
{
	for (int i = 0; i < TTMON_PROG_MAX; i++) {
		if (ttmon_bpf_family(i) != family)
			continue;
		if (i < TTMON_PROG_UPROBES && !ttmon_bpf_legacy(b))
			ttmon_bpf_set_attached(b, i, false);
		else if (ttmon_bpf_attaches(b, i) || (ttmon_bpf_attaches_traced(b, i) && *ttmon_bpf_link(b, i)))
			detach(b, i);
	}
	if (family == TTMON_FAMILY_TENSTORRENT) {
		ttmon_kmd_set_off(ttmon_bpf_kmd(b), true);
		ttmon_bpf_kmd_refresh(b);
	}
	if (family == TTMON_FAMILY_ALLOC) {
		ttmon_nvpin_set_off(ttmon_bpf_nvpin(b), true);
		ttmon_bpf_nvpin_refresh(b);
	}
}

int ttmon_bpf_attach_family(struct ttmon_bpf *b, enum ttmon_family family, char *why, size_t n)
{
	for (int i = TTMON_PROG_UPROBES; i < TTMON_PROG_MAX; i++) {
		int err;

		if (ttmon_bpf_family(i) != family || !ttmon_bpf_attaches(b, i) || *ttmon_bpf_link(b, i))
			continue;
		err = ttmon_bpf_attach_prog(b, i, why, n);
		if (err) {
			ttmon_bpf_detach_family(b, family);
			return err;
		}
	}
	if (family == TTMON_FAMILY_TENSTORRENT) {
		ttmon_kmd_set_off(ttmon_bpf_kmd(b), false);
		ttmon_bpf_kmd_refresh(b);
	}
	if (family == TTMON_FAMILY_ALLOC) {
		ttmon_nvpin_set_off(ttmon_bpf_nvpin(b), false);
		ttmon_bpf_nvpin_refresh(b);
	}
	return 0;
}

/* Several ticks, since programs that follow one another are common. */
#define TRACED_IDLE_TICKS 50

static void traced(struct ttmon_bpf *b, bool on)
{
	for (int i = TTMON_PROG_UPROBES; i < TTMON_PROG_MAX; i++) {
		bool is_on = ttmon_bpf_attaches_traced(b, i) && *ttmon_bpf_link(b, i);
		char why[256];

		if (!ttmon_bpf_attaches_traced(b, i) || is_on == on)
			continue;
		if (!on)
			detach(b, i);
		else if (ttmon_bpf_gate(b, ttmon_bpf_family(i)) != TTMON_FAMILY_OFF &&
			 ttmon_bpf_attach_prog(b, i, why, sizeof(why)))
			log_debug("%s: who makes calls wait is not known", why);
	}
}

void ttmon_bpf_traced_refresh(struct ttmon_bpf *b)
{
	uint32_t *idle = ttmon_bpf_traced_idle(b), tgid;
	bool any = !bpf_map_get_next_key(ttmon_bpf_procs_fd(b), NULL, &tgid);

	*idle = any ? 0 : *idle + 1;
	if (any || *idle == TRACED_IDLE_TICKS)
		traced(b, any);
}

void ttmon_bpf_family_runs(const struct ttmon_bpf *b, enum ttmon_family family, uint64_t *cnt, uint64_t *ns)
{
	*cnt = *ns = 0;
	for (int i = 0; i < TTMON_PROG_MAX; i++) {
		struct ttmon_prog_info info;

		if (ttmon_bpf_family(i) != family)
			continue;
		ttmon_bpf_prog_info(b, i, &info);
		*cnt += info.run_cnt;
		*ns += info.run_ns;
	}
}
