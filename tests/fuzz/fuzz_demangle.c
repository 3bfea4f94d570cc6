// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_demangle.c: a call site of hostile symbols, at some width: what is shown of it is clean,
 * fits, and is a whole number of names unless not even one fits.
 *
 * first byte: the columns; then the call site, "symbol+0x12 < symbol < .."
 */
#include <stdlib.h>

#include "lib/base/fmt.h"
#include "lib/demangle/demangle.h"
#include "lib/demangle/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_clean(const char *text)
{
	char again[TTMON_DEMANGLE_WHOLE];

	require(!strcmp(text, ttmon_fmt_text(again, sizeof(again), text)));
}

/* Names of which none has a '<' of its own, so that the pieces are known. */
static void check_whole(const char *const *names, size_t nr, size_t columns)
{
	char text[512], *p = text, *end;

	ttmon_site_join(text, sizeof(text), names, nr, columns);
	require(!columns || strlen(text) <= columns);
	for (; p; p = end ? end + 3 : NULL) {
		bool ok;

		end = strstr(p, " < ");
		if (end)
			*end = '\0';
		ok = !strcmp(p, "...");
		for (size_t i = 0; i < nr && !ok; i++) {
			size_t n = strlen(names[i]), len = strlen(p);

			ok = n >= len && !strcmp(names[i] + n - len, p) && (n == len || names[i][n - len - 1] == ':');
		}
		/* Cut: it is alone. */
		require(ok || (p == text && !end));
	}
}

static void check_join(const uint8_t *data, size_t size, size_t columns)
{
	static const char *const words[] = { "main", "_start", "at::native::copy_impl", "_PyEval_EvalFrameDefault",
					     "a::b", "x",      "THPVariable_copy_",	"cfunction_call" };
	const char *names[TTMON_SITE_FRAMES];
	size_t nr = MIN(size, (size_t)TTMON_SITE_FRAMES);

	for (size_t i = 0; i < nr; i++)
		names[i] = words[data[i] % ARRAY_SIZE(words)];
	if (nr)
		check_whole(names, nr, columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char whole[TTMON_SITE_WHOLE], fit[256], name[TTMON_DEMANGLE_WHOLE], *site;
	size_t columns = size ? data[0] : 0;

	if (!size)
		return 0;
	site = strndup((const char *)data + 1, size - 1);
	require(site != NULL);
	ttmon_demangle(name, sizeof(name), site);
	check_clean(name);
	if (strncmp(site, "_Z", 2) != 0 && strncmp(site, "_R", 2) != 0) {
		char as_it_is[TTMON_DEMANGLE_WHOLE];

		require(!strcmp(name, ttmon_fmt_text(as_it_is, sizeof(as_it_is), site)));
	}
	ttmon_site_show_text(whole, sizeof(whole), site, 0);
	check_clean(whole);
	ttmon_site_show_text(fit, sizeof(fit), site, columns);
	check_clean(fit);
	require(!columns || strlen(fit) <= columns);
	free(site);
	check_join(data + 1, size - 1, columns);
	return 0;
}
