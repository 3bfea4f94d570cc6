// SPDX-License-Identifier: GPL-2.0-only
/*
 * names.c: which row of the table ttmond would probe each CUDA function of an object by, for
 * tests/e2e/t_names.py.
 *
 *	names OBJECT
 *
 * Lines "NAME ROW": every function that the object defines whose name is one of CUDA's, and the
 * function that is probed at its address, "-" where none is.
 */
#include <fcntl.h>

#include "daemon/io/objects/objects.h"
#include "lib/base/names.h"
#include "lib/os/elf.h"

struct names {
	struct ttmon_elf *e;
	const Elf64_Shdr *strtab;
	const struct ttmon_elf_info *info;
};

static const char *row_at(const struct ttmon_elf_info *info, uint64_t addr)
{
	for (size_t i = 0; i < info->nr_targets; i++)
		if (info->targets[i].addr == addr)
			return ttmon_fn_name(info->targets[i].fn);
	return "-";
}

static int function(void *ctx, const Elf64_Sym *sym)
{
	const struct names *n = ctx;
	char name[128], *s = name;

	if (ttmon_elf_string(n->e, n->strtab, sym->st_name, name, sizeof(name)))
		return 0;
	name[strcspn(name, "@")] = '\0';
	s += strspn(s, "_");
	if (strncmp(s, "cu", 2))
		return 0;
	s += strncmp(s, "cuda", 4) ? 2 : 4;
	if (*s >= 'A' && *s <= 'Z')
		printf("%s %s\n", name, row_at(n->info, sym->st_value));
	return 0;
}

int main(int argc, char **argv)
{
	const char *slash = argc == 2 ? strrchr(argv[1], '/') : NULL;
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, err;
	struct ttmon_elf_info info = { 0 };
	struct ttmon_elf e;

	err = fd < 0 ? -EINVAL : ttmon_elf_read(fd, slash ? slash + 1 : argv[1], NULL, 0, &info);
	if (!err)
		err = ttmon_elf_open(fd, &e);
	for (uint32_t type = 0; !err && type <= SHT_DYNSYM; type++) {
		const Elf64_Shdr *table = type == SHT_SYMTAB || type == SHT_DYNSYM ? ttmon_elf_section(&e, type) : NULL;
		struct names n = { .e = &e, .strtab = table ? ttmon_elf_strtab(&e, table) : NULL, .info = &info };

		if (n.strtab)
			err = ttmon_elf_funcs(&e, table, function, &n);
	}
	if (err)
		fprintf(stderr, "names: %s\n", strerror(-err));
	return err ? 1 : 0;
}
