// SPDX-License-Identifier: GPL-2.0-only
/*
 * drv_link.c: cuLink*(). A cubin is an ELF file for CUDA with one section, .gpusim_ptx, that contains
 * the texts of its inputs one after the other: gpu_parse() links them when it is loaded. Errors are
 * reported at the same time as by the real driver: syntax errors when an input is added, unresolved
 * names at the end.
 */
#include "drv.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTION ".gpusim_ptx"

struct CUlinkState_st {
	char *texts; /* NUL-terminated */
	size_t len;
	char *image;
	/* as the program gave them */
	unsigned int n;
	CUjit_option *opts;
	void **vals;
	int max_regs;
	size_t size[2], used[2]; /* of the information log, of the error log */
};

struct image {
	Elf64_Ehdr head;
	Elf64_Shdr sections[3];
	char names[sizeof("\0.shstrtab\0" SECTION)];
};

/*
 * Appends to a log, if the program requested one. The log's length is written to the place where the
 * program stored the maximum length.
 */
static void say(CUlinkState s, unsigned int which, const char *what, const char *text)
{
	static const int log_of[] = { 3, 5 }, size_of[] = { 4, 6 };
	char *log = NULL;

	for (unsigned int i = 0; i < s->n; i++)
		if ((int)s->opts[i] == log_of[which])
			log = s->vals[i];
	if (log && s->used[which] < s->size[which])
		s->used[which] +=
			(size_t)snprintf(log + s->used[which], s->size[which] - s->used[which], "%s: %s\n", what, text);
	if (s->used[which] > s->size[which])
		s->used[which] = s->size[which];
	for (unsigned int i = 0; i < s->n; i++)
		if ((int)s->opts[i] == size_of[which])
			s->vals[i] = (void *)s->used[which];
}

PUBLIC CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *opts, void **vals, CUlinkState *ret)
{
	CUlinkState s = calloc(1, sizeof(*s));
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (!s || !(s->opts = calloc(n + 1, sizeof(*opts))))
		abort();
	if (err) {
		free(s->opts);
		free(s);
		return err;
	}
	s->n = n;
	s->vals = vals;
	for (unsigned int i = 0; i < n; i++) {
		s->opts[i] = opts[i];
		if (opts[i] == 0)
			s->max_regs = (int)(intptr_t)vals[i];
		if (opts[i] == 4 || opts[i] == 6)
			s->size[opts[i] == 6] = (unsigned int)(uintptr_t)vals[i];
	}
	*ret = s;
	return CUDA_SUCCESS;
}

/* Adds a text. Whether it can be compiled is checked at once. */
static int add(CUlinkState s, const char *text, const char *name)
{
	struct gpu_module *m = gpu_parse_part(text, strlen(text));
	char *more, log[256];
	int err = 0;

	drv_keep_text(text);
	name = name && *name ? name : "<input>";
	if (drv_text_fails()) {
		say(s, 1, name, "GPUSIM_FAIL_LOAD says that this load fails");
		err = (int)drv_env_long("GPUSIM_FAIL_INPUT", CUDA_ERROR_INVALID_PTX);
	} else if (m->error || m->target > (uint32_t)drv_arch()) {
		say(s, 1, name, m->error ? m->error : "the text is for a newer GPU");
		err = CUDA_ERROR_INVALID_PTX;
	} else if (drv_text_refused(m, log, sizeof(log))) {
		say(s, 1, name, log);
		err = CUDA_ERROR_INVALID_PTX;
	} else {
		say(s, 0, name, "added");
	}
	gpu_module_free(m);
	if (err)
		return err;
	more = realloc(s->texts, s->len + strlen(text) + 2);
	if (!more)
		abort();
	s->texts = more;
	s->len += (size_t)sprintf(more + s->len, "%s\n", text);
	return CUDA_SUCCESS;
}

#define INPUT_CUBIN	0
#define INPUT_PTX	1
#define INPUT_FATBINARY 2

PUBLIC CUresult cuLinkAddData_v2(CUlinkState s, CUjitInputType type, void *data, size_t size, const char *name,
				 unsigned int n, CUjit_option *opts, void **vals)
{
	char *text = NULL;
	bool is_text;
	int err;

	(void)n;
	(void)opts;
	(void)vals;
	if (!s || s->image || !data || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != INPUT_CUBIN && type != INPUT_PTX && type != INPUT_FATBINARY)
		return CUDA_ERROR_NOT_SUPPORTED;
	err = drv_image(data, &text, &is_text);
	if (!err && is_text != (type == INPUT_PTX))
		err = CUDA_ERROR_INVALID_IMAGE;
	if (!err)
		err = add(s, text, name);
	free(text);
	return err;
}

PUBLIC CUresult cuLinkAddFile_v2(CUlinkState s, CUjitInputType type, const char *path, unsigned int n,
				 CUjit_option *opts, void **vals)
{
	char *data = drv_slurp(path);
	int err;

	if (!data)
		return CUDA_ERROR_FILE_NOT_FOUND;
	err = cuLinkAddData_v2(s, type, data, strlen(data) + 1, path, n, opts, vals);
	free(data);
	return err;
}

static char *make_image(const char *texts, size_t len, size_t *size)
{
	struct image *i = calloc(1, sizeof(*i) + len + 1);

	if (!i)
		abort();
	memcpy(i->head.e_ident, "\177ELF\2\1\1", 7);
	i->head.e_machine = 190;
	i->head.e_ehsize = sizeof(i->head);
	i->head.e_shoff = offsetof(struct image, sections);
	i->head.e_shentsize = sizeof(*i->sections);
	i->head.e_shnum = 3;
	i->head.e_shstrndx = 1;
	memcpy(i->names, "\0.shstrtab\0" SECTION, sizeof(i->names));
	i->sections[1] = (Elf64_Shdr){ .sh_name = 1,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct image, names),
				       .sh_size = sizeof(i->names) };
	i->sections[2] =
		(Elf64_Shdr){ .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = sizeof(*i), .sh_size = len + 1 };
	memcpy(i + 1, texts, len);
	*size = sizeof(*i) + len + 1;
	return (char *)i;
}

const char *drv_linked(const void *image)
{
	const struct image *i = image;

	if (i->head.e_machine != 190 || i->head.e_shnum != 3 ||
	    memcmp(i->names, "\0.shstrtab\0" SECTION, sizeof(i->names)))
		return NULL;
	return (const char *)(i + 1);
}

PUBLIC CUresult cuLinkComplete(CUlinkState s, void **cubin, size_t *size)
{
	static unsigned int links;
	struct gpu_module *m;
	size_t n;

	if (!s || !s->len)
		return CUDA_ERROR_INVALID_VALUE;
	if (__atomic_add_fetch(&links, 1, __ATOMIC_RELAXED) == drv_env_long("GPUSIM_FAIL_LINK", 0)) {
		say(s, 1, "link", "GPUSIM_FAIL_LINK says that this one fails");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	usleep((unsigned int)drv_env_long("GPUSIM_SLOW_COMPILER", 0) * 1000);
	m = gpu_parse(s->texts, s->len);
	if (m->error) {
		say(s, 1, "link", m->error);
		gpu_module_free(m);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	gpu_module_free(m);
	say(s, 0, "link", "done");
	free(s->image);
	s->image = make_image(s->texts, s->len, &n);
	*cubin = s->image;
	if (size)
		*size = n;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuLinkDestroy(CUlinkState s)
{
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	/* Makes a later read of this memory noticeable. */
	if (s->image)
		memset(s->image, 0xdd, sizeof(struct image) + s->len);
	free(s->image);
	free(s->texts);
	free(s->opts);
	free(s);
	return CUDA_SUCCESS;
}
