// SPDX-License-Identifier: GPL-2.0-only
/*
 * view.c: `ttmon memtrace view` analyses a trace and makes one HTML page. The page
 * (tools/view/page/memtrace.html, memtrace.js) only gets what `ttmon memtrace --json` prints.
 */
#include <sys/mman.h>

#include <jansson.h>

#include "lib/demangle/demangle.h"
#include "lib/demangle/site.h"
#include "lib/os/outfile.h"
#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/tool.h"
#include "tools/view/view.h"

#define MAX_ROWS 4096 /* the most rows of each table, the worst first: a browser reads 6 KiB of JSON for a launch */

TTMON_INCBIN(ttmon_mt_html, "tools/view/page/memtrace.html");
TTMON_INCBIN(ttmon_mt_js, "tools/view/page/memtrace.js");

static void name(json_t *names, const char *symbol, bool is_site)
{
	char text[TTMON_SITE_WHOLE];

	if ((!strstr(symbol, "_Z") && !strstr(symbol, "_R")) || json_object_get(names, symbol))
		return;
	if (is_site)
		ttmon_site_show_text(text, sizeof(text), symbol, 0);
	else
		ttmon_demangle(text, sizeof(text), symbol);
	if (strcmp(text, symbol) != 0)
		json_object_set_new(names, symbol, json_string(text));
}

/*
 * Writes the demangled names that the page shows: {"_Z4vaddPKfS0_Pfi": "vadd"}. The report only has
 * the symbols.
 */
static int write_names(const struct ttmon_mt_report *r, int fd)
{
	json_t *names = json_object();
	const struct ttmon_mt_alloc *allocs;
	size_t nr = 0;
	int err;

	for (size_t i = 0; i < r->dict->nr_sites; i++)
		name(names, r->dict->sites[i].kernel, false);
	for (size_t i = 0; i < r->dict->nr_launches; i++)
		name(names, r->dict->launches[i].kernel, false);
	for (size_t i = 0; i < r->dict->nr_kernels; i++)
		name(names, r->dict->kernels[i].name, false);
	allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;
	for (size_t i = 0; i < nr; i++)
		name(names, allocs[i].site, true);
	err = json_dumpfd(names, fd, JSON_COMPACT) ? -EIO : 0;
	json_decref(names);
	return err;
}

static int write_page(int fd, bool gzip, void *ctx)
{
	const struct ttmon_mt_report *r = ctx;
	struct ttmon_page_part parts[] = { { .id = "report" }, { .id = "names" } };
	_cleanup_close_ int data = memfd_create("ttmon-page", MFD_CLOEXEC);
	_cleanup_close_ int names = memfd_create("ttmon-page", MFD_CLOEXEC);
	struct ttmon_page page = {
		.body = ttmon_mt_html_start,
		.body_len = (size_t)(ttmon_mt_html_end - ttmon_mt_html_start),
		.script = ttmon_mt_js_start,
		.script_len = (size_t)(ttmon_mt_js_end - ttmon_mt_js_start),
		.parts = parts,
		.nr_parts = ARRAY_SIZE(parts),
		.plain = r->args->plain,
	};
	int err;

	(void)gzip; /* the parts are compressed already */
	if (data < 0 || names < 0)
		return -errno;
	err = ttmon_mt_json(r, data);
	err = err ? err : write_names(r, names);
	parts[0].fd = data;
	parts[1].fd = names;
	return err ? err : ttmon_page_write(fd, &page);
}

static int show(const struct ttmon_mt_report *r)
{
	int err = ttmon_outfile_write(r->args->out, write_page, (void *)r);

	if (err)
		fprintf(stderr, "ttmon %s: cannot write the page to %s: %s\n", r->args->name,
			ttmon_outfile_name(r->args->out), strerror(-err));
	return err;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct ttmon_mt_args *args = ctx;
	int status = ttmon_mt_args_check(cli, args);

	if (status)
		return status;
	if (strlen(args->out) > 3 && !strcmp(args->out + strlen(args->out) - 3, ".gz")) {
		fprintf(stderr, "ttmon %s: %s: a page is not written as .gz: its data is compressed already\n",
			args->name, args->out);
		status = TTMON_EXIT_ERROR;
	} else {
		args->has_lines = true;
		args->lines = MAX_ROWS;
		status = ttmon_mt_report_run(args, show);
	}
	ttmon_mt_pick_fini(&args->pick);
	return status;
}

const struct ttmon_cli_cmd ttmon_mt_cmd_view = {
	.name = "ttmon memtrace view",
	.summary = "write the report as one page for the browser",
	.args = "[OPTIONS] -o OUT.html FILE|-",
	.about = "Analyses a trace of the memory accesses of GPU kernels and writes one self-contained page that opens "
		 "in any browser.",
	TTMON_MT_ARGS(TTMON_MT_VIEW),
	.run = run,
};
