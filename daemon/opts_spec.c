// SPDX-License-Identifier: GPL-2.0-only
/* opts_spec.c: arguments that are more than a word or a number. */
#include "opts_int.h"

#include <ctype.h>
#include <stdarg.h>

int ttmon_opts_bad(const char *fmt, ...)
{
	va_list ap;

	fputs("ttmond: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(" (ttmond --help)\n", stderr);
	return -EINVAL;
}

/* key=N of a spec; "ret" is allowed for out. -EINVAL. */
static int spec_arg(char *field, const char *key, uint8_t *ret, bool *is_ret)
{
	size_t n = strlen(key);
	char *end;
	unsigned long v;

	if (strncmp(field, key, n) || field[n] != '=')
		return -ENOENT;
	if (is_ret && !strcmp(field + n + 1, "ret")) {
		*is_ret = true;
		return 0;
	}
	v = strtoul(field + n + 1, &end, 10);
	if (*end || v < 1 || v > 6)
		return -EINVAL;
	*ret = (uint8_t)v;
	return 0;
}

int ttmon_opts_user_fn(struct ttmon_opts *o, const char *opt, const char *spec, bool is_free)
{
	_cleanup_free_ char *copy = strdup(spec);
	char *save = NULL, *head, *colon, *field;
	uint8_t size = 0, out = 0, ptr = 0;
	struct ttmon_user_row *row;
	struct ttmon_user_fn *fn;
	bool is_ret = false;

	if (!copy)
		return -ENOMEM;
	if (o->nr_user == TTMON_FN_USER_MAX)
		return ttmon_opts_bad("--%s: at most %d functions", opt, TTMON_FN_USER_MAX);
	head = strtok_r(copy, ",", &save);
	colon = head ? strrchr(head, ':') : NULL;
	if (!colon || colon == head || !colon[1])
		return ttmon_opts_bad("--%s: \"%s\" does not begin with LIB:SYMBOL", opt, spec);
	*colon = '\0';
	while ((field = strtok_r(NULL, ",", &save))) {
		int err = is_free ? spec_arg(field, "ptr", &ptr, NULL) : spec_arg(field, "size", &size, NULL);

		if (err == -ENOENT && !is_free)
			err = spec_arg(field, "out", &out, &is_ret);
		if (err)
			return ttmon_opts_bad("--%s: \"%s\" in \"%s\" is not %s", opt, field, spec,
					      is_free ? "ptr=1..6" : "size=1..6, out=1..6 or out=ret");
	}
	if (is_free ? !ptr : !size || (!out && !is_ret))
		return ttmon_opts_bad("--%s: \"%s\" wants %s", opt, spec, is_free ? "ptr=" : "size= and out=");
	fn = &o->user[o->nr_user];
	row = &o->rows[o->nr_user];
	fn->lib = strdup(head);
	fn->symbol = strdup(colon + 1);
	fn->fn = (uint16_t)(TTMON_FN_USER + o->nr_user++);
	if (!fn->lib || !fn->symbol)
		return -ENOMEM;
	if (is_free)
		*row = (struct ttmon_user_row){ TTMON_CLS_FREE, ptr, 0 };
	else
		*row = (struct ttmon_user_row){ is_ret ? TTMON_CLS_ALLOC_RET : TTMON_CLS_ALLOC, is_ret ? 0 : out,
						size };
	return 0;
}

int ttmon_opts_pin_after(struct ttmon_opts *o, const char *opt, const char *text)
{
	static const char units[] = "KMGT";
	const char *unit;
	unsigned long long v;
	char *end;

	o->live_pin = !strcmp(text, "first") ? TTMON_PIN_FIRST : TTMON_PIN_GAIN;
	if (!strcmp(text, "gain") || !strcmp(text, "first"))
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (!isdigit((unsigned char)*text) || errno || !v || (*end && (!unit || end[1])) ||
	    (unit && v > UINT64_MAX >> (10 * (unit - units + 1))))
		return ttmon_opts_bad("--%s wants gain, first, a number of transfers, or bytes as in 64M, not \"%s\"",
				      opt, text);
	o->live_pin = unit ? TTMON_PIN_BYTES : TTMON_PIN_COPIES;
	o->live_threshold = unit ? v << (10 * (unit - units + 1)) : v;
	return 0;
}
