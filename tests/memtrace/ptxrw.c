// SPDX-License-Identifier: GPL-2.0-only
/*
 * ptxrw.c: ptxrw IN OUT stream|aggregate[+apart] [KERNEL...]: a PTX text rewritten as
 * libttmon-memtrace.so does it, for tests that look at what ptxas or a stand-in GPU makes of it. OUT
 * "-": standard output has the text. Else it has a line for each kernel and site. +apart: the
 * recorder's own module goes to OUT.recorder.
 */
#include "memtrace/ptx/ptx.h"
#include "lib/base/util.h"

static bool named(void *ctx, const char *kernel)
{
	char **names = ctx;

	for (; *names; names++) {
		if (!strcmp(*names, kernel))
			return true;
	}
	return false;
}

static char *slurp(const char *path, size_t *len)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;

	if (!f)
		return NULL;
	*len = 0;
	do {
		if (*len == cap) {
			char *more = realloc(text, cap = cap ? cap * 2 : 1 << 16);

			if (!more)
				abort();
			text = more;
		}
		*len += fread(text + *len, 1, cap - *len, f);
	} while (!feof(f) && !ferror(f));
	return text;
}

/* Into path.recorder. */
static bool spill(const char *path, const char *text)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s.recorder", path);
	f = fopen(name, "we");
	if (!f)
		return false;
	fputs(text, f);
	return !fclose(f);
}

int main(int argc, char **argv)
{
	struct ttmon_ptx_opts opts = { .spaces = ~0u, .instr_end = UINT32_MAX };
	_cleanup_(ttmon_ptx_fini) struct ttmon_ptx_result r = { 0 };
	_cleanup_free_ char *text = NULL;
	char why[200] = "";
	size_t len = 0;
	FILE *out;

	if (argc < 4)
		return 2;
	opts.aggregate = !strncmp(argv[3], "aggregate", 9);
	opts.apart = strstr(argv[3], "+apart");
	if (argc > 4) {
		opts.select = named;
		opts.ctx = argv + 4;
	}
	text = slurp(argv[1], &len);
	if (!text || ttmon_ptx_rewrite(text, len, &opts, &r, why, sizeof(why))) {
		fprintf(stderr, "%s: %s\n", argv[1], text ? why : "cannot be read");
		return 1;
	}
	if (opts.apart && (!r.recorder || !spill(argv[2], r.recorder)))
		return 1;
	out = strcmp(argv[2], "-") ? fopen(argv[2], "we") : stdout;
	if (!out)
		return 1;
	if (r.text)
		fwrite(r.text, 1, r.len, out);
	if (out == stdout)
		return fflush(out) != 0;
	if (fclose(out))
		return 1;
	for (size_t i = 0; i < r.nr_kernels; i++)
		printf("kernel\t%s\t%s\tparams %u\tbytes %u\tsites %u+%u\tleft out %u\tindirect %u\n",
		       r.kernels[i].name, r.kernels[i].why, r.kernels[i].params, r.kernels[i].param_bytes,
		       r.kernels[i].first, r.kernels[i].sites, r.kernels[i].left_out, r.kernels[i].indirect);
	for (size_t i = 0; i < r.nr_sites; i++)
		printf("site\t%zu\t%s\t%s\t%s:%u\ttext %u\tspace %u\tkind %u\twidth %u\n", i, r.sites[i].kernel,
		       r.sites[i].opcode, r.sites[i].file, r.sites[i].line, r.sites[i].text_line, r.sites[i].space,
		       r.sites[i].kind, r.sites[i].width);
	return 0;
}
