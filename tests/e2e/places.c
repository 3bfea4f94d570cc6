// SPDX-License-Identifier: GPL-2.0-only
/*
 * places.c: where ttmond would put the probe of every exported CUDA function of a library, for
 * tests/e2e/t_place.py.
 *
 *	places LIBRARY
 *
 * Lines "NAME ADDRESS SKIP STEPPED WHY": SKIP in bytes from the entry at ADDRESS, STEPPED 0, 1, or 2
 * where the kernel is thought to refuse it. To stderr: how long it took to find them.
 */
#include <fcntl.h>

#include "daemon/io/objects/place.h"
#include "lib/os/clock.h"

#define MAX_FOUND 8192u

struct found {
	struct ttmon_elf *e;
	const Elf64_Shdr *strtab;
	struct ttmon_place places[MAX_FOUND];
	char names[MAX_FOUND][96];
	size_t n;
};

static int function(void *ctx, const Elf64_Sym *sym)
{
	struct found *f = ctx;
	const struct ttmon_elf_seg *seg = ttmon_elf_seg_of(f->e, sym->st_value, true);
	char *name = f->names[f->n], *s = name;

	if (!seg || f->n == MAX_FOUND || ttmon_elf_string(f->e, f->strtab, sym->st_name, name, sizeof(f->names[0])))
		return 0;
	s += strspn(s, "_");
	if (strncmp(s, "cu", 2))
		return 0;
	s += strncmp(s, "cuda", 4) ? 2 : 4;
	if (*s < 'A' || *s > 'Z')
		return 0;
	f->places[f->n++] = (struct ttmon_place){
		.offset = sym->st_value - seg->vaddr + seg->off,
		.addr = sym->st_value,
		.size = sym->st_size,
	};
	return 0;
}

int main(int argc, char **argv)
{
	static struct found f;
	struct ttmon_elf e;
	const Elf64_Shdr *dynsym;
	uint64_t t0, t1;
	int fd, err;

	fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	err = fd < 0 ? -EINVAL : ttmon_elf_open(fd, &e);
	if (err) {
		fprintf(stderr, "places: cannot read it: %s\n", strerror(-err));
		return 1;
	}
	f.e = &e;
	dynsym = ttmon_elf_section(&e, SHT_DYNSYM);
	f.strtab = dynsym ? ttmon_elf_strtab(&e, dynsym) : NULL;
	if (!f.strtab)
		return 1;
	err = ttmon_elf_funcs(&e, dynsym, function, &f);
	t0 = ttmon_mono_ns();
	if (!err)
		err = ttmon_place_find(&e, f.places, f.n);
	t1 = ttmon_mono_ns();
	if (err) {
		fprintf(stderr, "places: %s\n", strerror(-err));
		return 1;
	}
	for (size_t i = 0; i < f.n; i++)
		printf("%s %llx %u %d %s\n", f.names[i], (unsigned long long)f.places[i].addr, f.places[i].skip,
		       f.places[i].refused ? 2 : f.places[i].single_step, ttmon_place_why_name(f.places[i].why));
	fprintf(stderr, "%zu functions in %.1f ms\n", f.n, (double)(t1 - t0) / 1e6);
	return 0;
}
