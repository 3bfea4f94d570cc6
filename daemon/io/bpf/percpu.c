// SPDX-License-Identifier: GPL-2.0-only
/*
 * percpu.c: see percpu.h. A program finds such a variable by name (__ksym) only where the kernel was
 * built with CONFIG_KALLSYMS_ALL. BTF has all of them, in the section .data..percpu.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "daemon/io/bpf/percpu.h"

/* Looks for a member, also in anonymous structures and unions. *bits grows by its offset. */
static bool find_member(const struct btf *btf, uint32_t id, const char *name, uint32_t *bits)
{
	const struct btf_type *t = btf__type_by_id(btf, (uint32_t)btf__resolve_type(btf, id));

	if (!t || !btf_is_composite(t))
		return false;
	for (uint16_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = btf_members(t) + i;
		const char *found = btf__name_by_offset(btf, m->name_off);
		uint32_t at = *bits + btf_member_bit_offset(t, i);

		if ((found && !strcmp(found, name)) || ((!found || !*found) && find_member(btf, m->type, name, &at))) {
			*bits = at;
			return true;
		}
	}
	return false;
}

static void find(const struct btf *btf, const struct btf_type *section, struct ttmon_percpu_var *vars, size_t n)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(section);

	for (uint16_t i = 0; i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);
		const char *name = var ? btf__name_by_offset(btf, var->name_off) : NULL;

		for (size_t k = 0; name && k < n; k++) {
			uint32_t bits = 0;

			if (strcmp(name, vars[k].name) ||
			    (vars[k].member && !find_member(btf, var->type, vars[k].member, &bits)))
				continue;
			vars[k].offset = v[i].offset + bits / 8;
			vars[k].found = true;
		}
	}
}

int ttmon_percpu_find(struct ttmon_percpu_var *vars, size_t n)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id;

	if (libbpf_get_error(btf))
		return -ENOENT;
	id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	if (id > 0)
		find(btf, btf__type_by_id(btf, (uint32_t)id), vars, n);
	btf__free(btf);
	return id > 0 ? 0 : -ENOENT;
}
