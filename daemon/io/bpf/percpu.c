// SPDX-License-Identifier: GPL-2.0-only
/*
 * percpu.c: see percpu.h. A program finds such a variable by name (__ksym) only where the kernel was
 * built with CONFIG_KALLSYMS_ALL. BTF has all of them, in the section .data..percpu.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "daemon/io/bpf/percpu.h"

static void find(const struct btf *btf, const struct btf_type *section, struct ttmon_percpu_var *vars, size_t n)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(section);

	for (uint16_t i = 0; i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);
		const char *name = var ? btf__name_by_offset(btf, var->name_off) : NULL;

		for (size_t k = 0; name && k < n; k++) {
			if (strcmp(name, vars[k].name))
				continue;
			vars[k].offset = v[i].offset;
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
