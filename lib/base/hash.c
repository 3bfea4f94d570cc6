// SPDX-License-Identifier: GPL-2.0-only
/* hash.c: see hash.h. */
#include "lib/base/hash.h"

uint64_t ttmon_site_hash_frame(uint64_t hash, const uint8_t *build_id, uint8_t build_id_len, uint64_t offset)
{
	/* Without a build-id, another build of the file could not be distinguished. */
	if (!hash || !build_id_len)
		return 0;
	return ttmon_fnv_u64(ttmon_fnv(hash, build_id, build_id_len), offset);
}

/*
 * Leaves out the suffix that a compiler adds to a cloned function: another build may clone other
 * functions.
 */
static size_t plain_length(const char *name)
{
	static const char *const clones[] = { ".constprop.", ".isra.", ".part.",     ".cold",
					      ".lto_priv.",  ".llvm.", ".localalias" };

	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
		for (size_t i = 0; i < ARRAY_SIZE(clones); i++)
			if (dot != name && !strncmp(dot, clones[i], strlen(clones[i])))
				return (size_t)(dot - name);
	return strlen(name);
}

uint64_t ttmon_site_hash_name(uint64_t hash, const char *name)
{
	/* The hash includes a NUL at the end: "ab", "c" must differ from "a", "bc". */
	return ttmon_fnv(ttmon_fnv(hash, name, plain_length(name)), "", 1);
}

uint64_t ttmon_site_hash_near(uint64_t hash, const char *name, uint64_t delta)
{
	return ttmon_fnv_u64(ttmon_site_hash_name(hash, name), delta);
}

uint64_t ttmon_site_hash_python(uint64_t hash)
{
	static const char word[] = "lines of Python";

	return hash ? ttmon_fnv(hash, word, sizeof(word)) : 0;
}
