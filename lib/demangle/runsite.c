// SPDX-License-Identifier: GPL-2.0-only
/* runsite.c: see runsite.h. */
#include <inttypes.h>

#include "lib/base/fmt.h"
#include "lib/demangle/runsite.h"
#include "lib/demangle/site.h"

static char *frame_text(const struct ttmon_run *run, const struct ttmon_run_frame *f, bool first)
{
	const char *base = f->object == TTMON_RUN_NONE ? "?" : run->objects[f->object].base;
	char *text = NULL, line[512];
	const char *fn = ttmon_run_frame_name(run, f, line, sizeof(line));
	int len;

	if (fn && (!first || fn == line))
		return strdup(fn);
	len = asprintf(&text, "%s+0x%" PRIx64, f->fn ?: base, f->fn ? f->delta : f->offset);
	return len < 0 ? NULL : text;
}

char *ttmon_site_show_run(char *buf, size_t n, const struct ttmon_run *run, uint32_t site, size_t columns)
{
	const struct ttmon_run_site *s = site < run->nr_sites ? &run->sites[site] : NULL;
	size_t nr = s ? MIN(s->nframes, (uint32_t)TTMON_SITE_FRAMES) : 0;
	const char *frames[TTMON_SITE_FRAMES] = { 0 };
	char *own[TTMON_SITE_FRAMES];

	if (!nr)
		return ttmon_fmt_text(buf, n, "?");
	for (size_t i = 0; i < nr; i++) {
		own[i] = frame_text(run, &run->frames[s->frame + i], !i);
		frames[i] = own[i] ? own[i] : "?";
	}
	ttmon_site_show(buf, n, frames, nr, columns);
	for (size_t i = 0; i < nr; i++)
		free(own[i]);
	return buf;
}
