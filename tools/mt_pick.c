// SPDX-License-Identifier: GPL-2.0-only
/* mt_pick.c: --kernel, --launch, --space: which records count. What a launch's name says is looked up once. */
#include <fnmatch.h>

#include "tools/mt_tool.h"

#define ASK_SITE 3

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
	return !p->kernel && !p->launches && !p->spaces;
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

/* What is known of a launch; when out of memory it is looked at each time. */
static uint8_t look_up(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, uint32_t i)
{
	const struct ttmon_mt_launch *l = &dict->launches[i];
	uint8_t got = !ttmon_mt_pick_launch(p, l) ? 2 : p->kernel && !*l->kernel ? ASK_SITE : 1;

	if (i >= p->nr_known) {
		size_t more = ROUND_UP((size_t)i + 1, 4096);
		uint8_t *q = realloc(p->known, more);

		if (!q)
			return got;
		memset(q + p->nr_known, 0, more - p->nr_known);
		p->known = q;
		p->nr_known = more;
	}
	p->known[i] = got;
	return got;
}

static bool wanted(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	unsigned int spaces = 1u << rec->space | (rec->space == TTMON_MT_GENERIC ? 1u << TTMON_MT_GLOBAL : 0);
	uint8_t known = 1;

	if (p->spaces && !(p->spaces & spaces))
		return false;
	if (rec->launch < dict->nr_launches) {
		known = rec->launch < p->nr_known ? p->known[rec->launch] : 0;
		if (!known)
			known = look_up(p, dict, rec->launch);
	} else if (p->launches) {
		return false;
	} else if (p->kernel) {
		known = ASK_SITE;
	}
	return known == ASK_SITE ? has_name(p, dict->sites[rec->site].kernel) : known == 1;
}

bool ttmon_mt_pick_want(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	struct ttmon_mt_pick *p = ctx;
	bool got = wanted(p, dict, rec);

	p->asked++;
	p->taken += got;
	return got;
}

void ttmon_mt_pick_say(const struct ttmon_mt_pick *p, const char *name, const char *path)
{
	char clean[600];

	if (p->asked && !p->taken)
		fprintf(stderr, "ttmon %s: %s: no record is of these (--kernel, --launch, --space)\n", name,
			strcmp(path, "-") ? ttmon_fmt_text(clean, sizeof(clean), path) : "standard input");
}

void ttmon_mt_pick_fini(struct ttmon_mt_pick *p)
{
	free(p->known);
	p->known = NULL;
	p->nr_known = 0;
}
