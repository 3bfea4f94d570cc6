// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_promw.c: hostile label values and Accept headers. What stands between the quotes is one line of
 * valid UTF-8 without control characters, and is the cleaned text again once the escapes are taken
 * out.
 */
#include <stdlib.h>

#include "lib/os/promw.h"

#define HEAD "# HELP a_info A\n# TYPE a_info gauge\na_info{x=\""

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Back to what was cleaned; the closing quote has to be the last but the value. */
static void check_line(const char *line, const char *clean)
{
	const char *p = line + strlen(HEAD);

	require(!strncmp(line, HEAD, strlen(HEAD)));
	for (; *clean; clean++, p++) {
		require(*p != '"' && *p != '\n');
		p += *p == '\\';
		require(*p == *clean);
	}
	require(!strcmp(p, "\"} 1\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ttmon_prom_metric metric = { "a_info", TTMON_PROM_INFO, "", "x", "A" };
	size_t room = 3 * size + 1, len;
	char *text = malloc(size + 1), *clean = malloc(room), *twice = malloc(room), *line = NULL;
	struct ttmon_promw w = { .f = open_memstream(&line, &len) };

	require(text && clean && twice && w.f);
	memcpy(text, data, size);
	text[size] = '\0';
	ttmon_prom_clean(clean, room, text);
	for (const char *p = clean; *p; p++)
		require((unsigned char)*p >= ' ' && *p != 0x7f);
	require(!strcmp(ttmon_prom_clean(twice, room, clean), clean));
	ttmon_promw_metric(&w, &metric);
	ttmon_promw_num(&w, 1, (const char *const[]){ text });
	require(!fclose(w.f));
	check_line(line, clean);
	ttmon_prom_wants_openmetrics(text);
	free(text);
	free(clean);
	free(twice);
	free(line);
	return 0;
}
