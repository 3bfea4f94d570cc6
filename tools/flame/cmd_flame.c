// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_flame.c: `ttmon flame`: call stacks by what they pin, copy and wait for, as one page for the
 * browser (tools/view/page/flame.html, flame.js) or as folded stacks for other programs.
 */
#include <sys/mman.h>

#include "lib/os/jsonw.h"
#include "lib/os/outfile.h"
#include "tools/cli/cmds.h"
#include "tools/flame/flame.h"
#include "tools/view/view.h"

TTMON_INCBIN(ttmon_flame_html, "tools/view/page/flame.html");
TTMON_INCBIN(ttmon_flame_js, "tools/view/page/flame.js");

static const struct {
	const char *word, *title, *unit, *about;
} of_table[TTMON_FLAME_MAX] = {
#define X(NAME, word, title, unit, about) { word, title, unit, about },
	TTMON_FLAME_TABLE(X)
#undef X
};

struct job {
	const struct ttmon_flame *flame;
	const struct ttmon_run *run;
	unsigned int of;
	bool plain;
};

/* ---- the page ---- */

static void write_head(struct ttmon_jsonw *w, const struct job *j)
{
	const struct ttmon_flame *f = j->flame;
	const char *file = strrchr(j->run->path, '/');

	ttmon_jsonw_key_str(w, "file", file ? file + 1 : j->run->path);
	ttmon_jsonw_key_str(w, "hostname", j->run->hostname);
	ttmon_jsonw_key_num(w, "length_ns", j->run->end_ns - MIN(j->run->start_ns, j->run->end_ns));
	ttmon_jsonw_key_bool(w, "complete", j->run->complete);
	ttmon_jsonw_key_str(w, "reasons", j->run->reasons);
	ttmon_jsonw_key_num(w, "unknown", f->unknown);
	ttmon_jsonw_key_known(w, "peak_ns", f->peak_ns, f->peak_ns - MIN(j->run->start_ns, f->peak_ns));
	ttmon_jsonw_key_num(w, "shown", j->of);
	ttmon_jsonw_key_open(w, "of", '[');
	for (unsigned int i = 0; i < TTMON_FLAME_MAX; i++) {
		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_name(w, "word", of_table[i].word);
		ttmon_jsonw_key_name(w, "title", of_table[i].title);
		ttmon_jsonw_key_name(w, "unit", of_table[i].unit);
		ttmon_jsonw_key_name(w, "about", of_table[i].about);
		ttmon_jsonw_key_known(w, "total", f->known[i], f->total[i]);
		ttmon_jsonw_key_bool(w, "at_least", f->at_least[i]);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

/* Names as [text, kind], nodes as [parent, name, self of each figure, ...] without the root. */
static int write_data(const struct job *j, int fd)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	const struct ttmon_flame *f = j->flame;
	int err = ttmon_jsonw_init(&w, fd, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	write_head(&w, j);
	ttmon_jsonw_key_open(&w, "names", '[');
	for (size_t i = 0; i < f->nr_names; i++) {
		ttmon_jsonw_row(&w, '[');
		ttmon_jsonw_str(&w, f->names[i]);
		ttmon_jsonw_num(&w, f->kinds[i]);
		ttmon_jsonw_close(&w, ']');
	}
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_key_open(&w, "nodes", '[');
	for (size_t i = 1; i < f->nr_nodes; i++) {
		ttmon_jsonw_row(&w, '[');
		ttmon_jsonw_num(&w, f->nodes[i].parent);
		ttmon_jsonw_num(&w, f->nodes[i].name);
		for (unsigned int k = 0; k < TTMON_FLAME_MAX; k++)
			ttmon_jsonw_num(&w, f->nodes[i].self[k]);
		ttmon_jsonw_close(&w, ']');
	}
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_close(&w, '}');
	return ttmon_jsonw_finish(&w);
}

static int write_page(int fd, bool gzip, void *ctx)
{
	_cleanup_close_ int data = memfd_create("ttmon-page", MFD_CLOEXEC);
	struct ttmon_page_part part = { .id = "stacks", .fd = data };
	const struct job *j = ctx;
	const struct ttmon_page page = {
		.body = ttmon_flame_html_start,
		.body_len = (size_t)(ttmon_flame_html_end - ttmon_flame_html_start),
		.script = ttmon_flame_js_start,
		.script_len = (size_t)(ttmon_flame_js_end - ttmon_flame_js_start),
		.parts = &part,
		.nr_parts = 1,
		.plain = j->plain,
	};
	int err;

	(void)gzip; /* the data is compressed already */
	if (data < 0)
		return -errno;
	err = write_data(j, data);
	return err ? err : ttmon_page_write(fd, &page);
}

/* ---- folded stacks ---- */

/* "main;train;load 4096": no name has a ; or a line's end in it. */
static void put_stack(FILE *out, const struct ttmon_flame *f, uint32_t node)
{
	const char *text;

	if (!node)
		return;
	put_stack(out, f, f->nodes[node].parent);
	if (f->nodes[node].parent)
		putc(';', out);
	for (text = f->names[f->nodes[node].name]; *text; text++)
		putc(*text == ';' ? ':' : *text, out);
}

static int write_folded(int fd, bool gzip, void *ctx)
{
	const struct job *j = ctx;
	const struct ttmon_flame *f = j->flame;
	int own = dup(fd), err = 0;
	FILE *out = own < 0 ? NULL : fdopen(own, "w");

	(void)gzip;
	if (!out) {
		err = -errno;
		if (own >= 0)
			close(own);
		return err;
	}
	for (uint32_t i = 1; i < f->nr_nodes; i++) {
		if (!f->nodes[i].self[j->of])
			continue;
		put_stack(out, f, i);
		fprintf(out, " %llu\n", (unsigned long long)f->nodes[i].self[j->of]);
	}
	errno = EIO;
	return fclose(out) ? -errno : 0;
}

/* ---- the command ---- */

struct opts {
	const char *out;
	unsigned int of;
	bool folded, plain;
};

static int run(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(ttmon_flame_freep) struct ttmon_flame *flame = NULL;
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = NULL;
	const struct opts *o = ctx;
	const char *out = o->out ? o->out : "-";
	struct job j = { .of = o->of, .plain = o->plain };
	size_t n = strlen(out);
	char why[5000];
	int err;

	if (!o->out && !o->folded)
		return ttmon_cli_bad(cli, "the page to write is missing: -o OUT.html, or --folded");
	if (n > 3 && !strcmp(out + n - 3, ".gz"))
		return ttmon_cli_bad(cli, "%s: it is not written as .gz", out);
	if (ttmon_flame_load(cli->words[0], &flame, &run, why, sizeof(why))) {
		fprintf(stderr, "ttmon flame: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	if (o->folded && !flame->known[o->of]) {
		fprintf(stderr, "ttmon flame: %s: no synchronous call was looked at\n", cli->words[0]);
		return TTMON_EXIT_ERROR;
	}
	j.flame = flame;
	j.run = run;
	if (o->folded && flame->at_least[o->of])
		fprintf(stderr, "ttmon flame: not all was seen%s%s: figures are lower bounds\n",
			*run->reasons ? ", " : "", run->reasons);
	err = ttmon_outfile_write(out, o->folded ? write_folded : write_page, &j);
	if (err)
		fprintf(stderr, "ttmon flame: cannot write %s: %s\n", ttmon_outfile_name(out), strerror(-err));
	return err ? TTMON_EXIT_ERROR : 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "output", 'o', "OUT", "the page to write; - is standard output, which folded stacks go to by themselves",
	  NULL, TTMON_CLI_TEXT(struct opts, out, ":file") },
	{ "of", 0, "WHAT",
	  "byte-seconds (default), peak, end: pinned memory; pageable: bytes\n"
	  "copied from or to pageable memory; pin: time to pin; wait: time in\n"
	  "synchronous calls",
	  "The page has them all and begins with this one. Folded stacks are in bytes, byte-seconds or ns.",
	  TTMON_CLI_WORD(struct opts, of, "byte-seconds peak end pageable pin wait") },
	{ "folded", 0, NULL, "folded stacks, a line each, for other programs", NULL,
	  TTMON_CLI_FLAG(struct opts, folded) },
	{ "plain", 0, NULL, "do not compress the data in the page: for browsers older than 2023", NULL,
	  TTMON_CLI_FLAG(struct opts, plain) },
};
const struct ttmon_cli_cmd ttmon_cmd_flame = {
	.name = "ttmon flame",
	.summary = "call stacks by what they pin, copy and wait for: a flame graph",
	.args = "[--of WHAT] -o OUT.html DATABASE\n"
		"--folded [--of WHAT] [-o OUT] DATABASE",
	.about = "Writes a flame graph of a database as one page that any browser opens, or as folded stacks.",
	.notes = "Exit status: 0 written, 2 not written.",
	TTMON_CLI_OPTS(options),
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
