// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident_order.c: logical device ids by counting. Cold thread; nothing is read here.
 *
 * UMD numbers the chips that a process sees: first those with a device node, by bus address (since
 * early 2026, tt-umd #1915 and #2255; older ones by ASIC id or by N), then the far halves of N300
 * cards in the same order. TT_VISIBLE_DEVICES is a set: commas between numbers, which count in that
 * order over all chips that are there (#2057; in older versions they are N of /dev/tenstorrent/N), and
 * parts of bus addresses ("0000:c" is a tray of a Galaxy). The nodes that the process has open decide
 * between two readings of the variable, and show whether it was changed after the start, which is not
 * visible otherwise.
 */
#include "daemon/io/tt/ident_int.h"

static bool is_local(const struct ttmon_ev_tt_chip *f)
{
	return !(f->flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_REMOTE | TTMON_TT_CHIP_LEARNED));
}

static bool comes_before(const struct ttmon_ev_tt_chip *a, const struct ttmon_ev_tt_chip *b)
{
	return a->bdf != b->bdf ? a->bdf < b->bdf : a->ordinal < b->ordinal;
}

size_t ttmon_ttident_order(const struct ttmon_ttident *t, const bool *hidden, uint32_t *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->nr_chips; i++) {
		size_t j;

		if (!is_local(&t->chips[i].fact) || (hidden && hidden[i]))
			continue;
		/* Nearly sorted already: chips come in this order. */
		for (j = n; j > 0 && comes_before(&t->chips[i].fact, &t->chips[ret[j - 1]].fact); j--)
			ret[j] = ret[j - 1];
		ret[j] = i;
		n++;
	}
	return n;
}

static bool is_number(const char *s, size_t n, uint32_t *ret)
{
	uint32_t v = 0;

	if (!n || n > 9)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint32_t)(s[i] - '0');
	}
	*ret = v;
	return true;
}

/* Hex digits with at least one ':' or '.' among them. */
static bool is_bus_part(const char *s, size_t n)
{
	bool sep = false;

	for (size_t i = 0; i < n; i++) {
		if (s[i] == ':' || s[i] == '.')
			sep = true;
		else if (!((s[i] >= '0' && s[i] <= '9') || ((s[i] | 32) >= 'a' && (s[i] | 32) <= 'f')))
			return false;
	}
	return sep;
}

static bool set_by_bus(const struct ttmon_ttident *t, const char *s, size_t len, const uint32_t *order, size_t n,
		       bool *set)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		uint32_t b = t->chips[order[i]].fact.bdf;
		char text[16];

		if (b == 0xffffffffu)
			continue;
		snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", b >> 16, b >> 8 & 0xff, b >> 3 & 0x1f, b & 7);
		if (memmem(text, strlen(text), s, len)) {
			set[order[i]] = true;
			any = true;
		}
	}
	return any;
}

static bool set_by_number(const struct ttmon_ttident *t, uint32_t v, const uint32_t *order, size_t n, bool by_ordinal,
			  bool *set)
{
	for (size_t i = 0; i < n; i++) {
		if ((by_ordinal ? t->chips[order[i]].fact.ordinal : i) == v) {
			set[order[i]] = true;
			return true;
		}
	}
	return false;
}

int ttmon_ttident_parse_visible(const struct ttmon_ttident *t, const char *text, const uint32_t *order, size_t n,
				bool by_ordinal, bool *set)
{
	bool any = false;

	while (*text) {
		size_t len = strcspn(text, ","), skip = strspn(text, " \t");
		const char *s = text + MIN(skip, len);
		size_t m = len - MIN(skip, len);
		uint32_t v;

		while (m && (s[m - 1] == ' ' || s[m - 1] == '\t'))
			m--;
		if (m) {
			if (is_bus_part(s, m) ? !set_by_bus(t, s, m, order, n, set)
					      : !is_number(s, m, &v) || !set_by_number(t, v, order, n, by_ordinal, set))
				return -EINVAL;
			any = true;
		}
		text += len + (text[len] == ',');
	}
	return any ? 0 : -EINVAL;
}

static bool same(const bool *a, const bool *b, size_t n)
{
	return !memcmp(a, b, n * sizeof(*a));
}

static bool within(const bool *a, const bool *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] && !b[i])
			return false;
	return true;
}

/*
 * Set and empty: it selects no chip for newer versions, which then have no logical ids, and all chips
 * for older ones.
 */
static bool says_anything(const char *visible)
{
	return visible[strspn(visible, " \t,")] != '\0';
}

/* The chips that TT_VISIBLE_DEVICES selects. False: it is not set, or its value fits no chip. */
static bool by_variable(const struct ttmon_ttident *t, const struct ttident_info *info, const uint32_t *order, size_t n,
			bool *set)
{
	bool other[TTIDENT_CHIPS] = { false };
	bool counted, numbered;

	if (!says_anything(info->visible))
		return false;
	counted = !ttmon_ttident_parse_visible(t, info->visible, order, n, false, set);
	numbered = !ttmon_ttident_parse_visible(t, info->visible, order, n, true, other);
	if (!counted && !numbered)
		return false;
	if (!counted ||
	    (numbered && info->nr_open && !same(info->open, set, t->nr_chips) && same(info->open, other, t->nr_chips)))
		memcpy(set, other, sizeof(other));
	return !info->nr_open || within(info->open, set, t->nr_chips);
}

/* The logical id's chip among those in set: local ones by order, then the far halves. */
static uint32_t count_to(const struct ttmon_ttident *t, const uint32_t *order, size_t n, const bool *set,
			 uint32_t logical, size_t *locals)
{
	uint32_t left = logical, chip = 0;

	*locals = 0;
	for (size_t i = 0; i < n; i++) {
		if (!set[order[i]])
			continue;
		if (!left && !chip)
			chip = order[i] + 1;
		left -= !chip;
		(*locals)++;
	}
	for (size_t i = 0; i < n && !chip; i++) {
		if (!set[order[i]])
			continue;
		for (size_t j = 0; j < t->nr_chips; j++) {
			const struct ttmon_ev_tt_chip *f = &t->chips[j].fact;

			if (!(f->flags & TTMON_TT_CHIP_REMOTE) || f->flags & TTMON_TT_CHIP_GONE ||
			    t->extra[j].near != order[i] + 1)
				continue;
			if (!left)
				chip = (uint32_t)j + 1;
			else
				left--;
			break;
		}
	}
	return chip;
}

uint32_t ttmon_ttident_resolve(const struct ttmon_ttident *t, const struct ttident_info *info, uint32_t logical,
			       uint32_t *how, size_t *locals)
{
	bool set[TTIDENT_CHIPS] = { false };
	uint32_t order[TTIDENT_CHIPS], chip;
	size_t n = ttmon_ttident_order(t, info->hidden, order);

	*how = TTMON_TT_HOW_NONE;
	*locals = 0;
	if (!n)
		return 0;
	if (by_variable(t, info, order, n, set)) {
		*how = TTMON_TT_HOW_VISIBLE;
	} else if (info->nr_open) {
		memcpy(set, info->open, sizeof(set));
		*how = info->nr_open == 1 ? TTMON_TT_HOW_OPEN : TTMON_TT_HOW_ORDER;
	} else if (n == 1 || (info->env_known && !says_anything(info->visible))) {
		memset(set, 0, sizeof(set));
		for (size_t i = 0; i < n; i++)
			set[order[i]] = true;
		*how = n == 1 ? TTMON_TT_HOW_ONLY : TTMON_TT_HOW_ORDER;
	} else {
		return 0; /* several chips, and no way to decide */
	}
	chip = count_to(t, order, n, set, logical, locals);
	if (!chip)
		*how = TTMON_TT_HOW_NONE;
	return chip;
}
