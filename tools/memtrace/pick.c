// SPDX-License-Identifier: GPL-2.0-only
/*
 * pick.c: --kernel, --launch, --site, --space: selects the records that count. The result for each
 * launch and site is remembered.
 */
#include <fnmatch.h>

#include "tools/memtrace/tool.h"

#define ASK_SITE 3 /* for a launch without a name: use the kernel name of the site */

static bool parse_id(const char **p, uint64_t *ret)
{
	char *end;

	if (**p < '0' || **p > '9')
		return false;
	errno = 0;
	*ret = strtoull(*p, &end, 10);
	*p = end;
	return !errno;
}

bool ttmon_mt_pick_launches(struct ttmon_mt_pick *p, const char *text)
{
	uint64_t first = 0, last = UINT64_MAX;
	const char *at = text;

	if (*at != '-' && !parse_id(&at, &first))
		return false;
	if (!*at)
		last = first;
	else if (*at++ != '-' || (*at && (!parse_id(&at, &last) || *at)) || !strcmp(text, "-"))
		return false;
	if (first > last)
		return false;
	p->launches = text;
	p->first = first;
	p->last = last;
	return true;
}

bool ttmon_mt_pick_spaces(struct ttmon_mt_pick *p, const char *text)
{
	unsigned int spaces = 0;

	while (true) {
		size_t n = strcspn(text, ",");
		unsigned int s = 0;

		while (s < TTMON_MT_SPACE_MAX &&
		       (strlen(ttmon_mt_space_name(s)) != n || strncmp(text, ttmon_mt_space_name(s), n) != 0))
			s++;
		if (s == TTMON_MT_SPACE_MAX)
			return false;
		spaces |= 1u << s;
		if (!text[n])
			break;
		text += n + 1;
	}
	p->spaces = spaces;
	return true;
}

bool ttmon_mt_pick_is_all(const struct ttmon_mt_pick *p)
{
	return !p->kernel && !p->launches && !p->site && !p->spaces;
}

static bool has_name(struct ttmon_mt_pick *p, const char *kernel)
{
	_cleanup_free_ char *name = NULL;

	if (!p->kernel || p->name == kernel)
		return !p->kernel || p->has_name;
	p->name = kernel;
	p->has_name = fnmatch(p->kernel, kernel, 0) == 0;
	name = p->has_name ? NULL : ttmon_mt_short_name(kernel);
	if (name)
		p->has_name = fnmatch(p->kernel, name, 0) == 0;
	return p->has_name;
}

bool ttmon_mt_pick_launch(struct ttmon_mt_pick *p, const struct ttmon_mt_launch *l)
{
	if (p->launches && (l->id < p->first || l->id > p->last))
		return false;
	return !*l->kernel || has_name(p, l->kernel);
}

/* Remembers a result; if memory runs out, it is computed each time. */
static uint8_t keep(struct ttmon_mt_known *k, uint32_t i, uint8_t what)
{
	if (i >= k->nr) {
		size_t more = ROUND_UP((size_t)i + 1, 4096);
		uint8_t *q = realloc(k->of, more);

		if (!q)
			return what;
		memset(q + k->nr, 0, more - k->nr);
		k->of = q;
		k->nr = more;
	}
	k->of[i] = what;
	return what;
}

static uint8_t known(const struct ttmon_mt_known *k, uint32_t i)
{
	return i < k->nr ? k->of[i] : 0;
}

static uint8_t look_up(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, uint32_t i)
{
	const struct ttmon_mt_launch *l = &dict->launches[i];

	return keep(&p->launch_is, i, !ttmon_mt_pick_launch(p, l) ? 2 : p->kernel && !*l->kernel ? ASK_SITE : 1);
}

/* Returns whether --site selects this instruction, by its place or its opcode. */
static bool is_site(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, uint32_t i)
{
	const struct ttmon_mt_site *s = &dict->sites[i];
	uint8_t is = known(&p->site_is, i);
	char place[200];

	if (!is) {
		ttmon_mt_place_text(s, place, sizeof(place));
		is = keep(&p->site_is, i, fnmatch(p->site, place, 0) && fnmatch(p->site, s->opcode, 0) ? 2 : 1);
	}
	return is == 1;
}

static bool wanted(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	unsigned int spaces = 1u << rec->space | (rec->space == TTMON_MT_GENERIC ? 1u << TTMON_MT_GLOBAL : 0);
	uint8_t is = 1;

	if (p->spaces && !(p->spaces & spaces))
		return false;
	if (p->site && !is_site(p, dict, rec->site))
		return false;
	if (rec->launch < dict->nr_launches) {
		is = known(&p->launch_is, rec->launch) ?: look_up(p, dict, rec->launch);
	} else if (p->launches) {
		p->of_all_launches++;
		return false;
	} else if (p->kernel) {
		is = ASK_SITE;
	}
	return is == ASK_SITE ? has_name(p, dict->sites[rec->site].kernel) : is == 1;
}

bool ttmon_mt_pick_want(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	struct ttmon_mt_pick *p = ctx;
	bool got = wanted(p, dict, rec);

	p->asked++;
	p->taken += got;
	return got;
}

size_t ttmon_mt_pick_aggs(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, struct ttmon_mt_agg *to)
{
	size_t n = 0;

	for (size_t i = 0; i < dict->nr_aggs; i++) {
		const struct ttmon_mt_agg *a = &dict->aggs[i];
		struct ttmon_mt_rec rec = { .site = a->site, .launch = a->launch };

		if (a->site >= dict->nr_sites)
			continue;
		rec.space = dict->sites[a->site].space;
		if (ttmon_mt_pick_want(p, dict, &rec))
			to[n++] = *a;
	}
	return n;
}

void ttmon_mt_pick_say(const struct ttmon_mt_pick *p, const char *name, const char *path)
{
	char clean[600];

	path = strcmp(path, "-") ? ttmon_fmt_text(clean, sizeof(clean), path) : "standard input";
	if (p->of_all_launches)
		fprintf(stderr,
			"ttmon %s: %s: sums of the GPU are of all launches together, --launch leaves them out\n", name,
			path);
	else if (p->asked && !p->taken)
		fprintf(stderr, "ttmon %s: %s: no record is of these (--kernel, --launch, --site, --space)\n", name,
			path);
}

void ttmon_mt_pick_fini(struct ttmon_mt_pick *p)
{
	free(p->launch_is.of);
	free(p->site_is.of);
	p->launch_is = p->site_is = (struct ttmon_mt_known){ 0 };
}
