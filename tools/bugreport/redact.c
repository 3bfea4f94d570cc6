// SPDX-License-Identifier: GPL-2.0-only
/* redact.c: replaces names with pseudonyms; see redact.h. Pure: bytes in, bytes out. */
#include "tools/bugreport/redact.h"

#include <ttmon/fns.h>

#include "lib/base/names.h"

/* ---- the hash: SipHash-2-4 as its paper (Aumasson, Bernstein 2012) defines it ---- */

#define ROTL(x, n) ((x) << (n) | (x) >> (64 - (n)))

static uint64_t word64(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static void rounds(uint64_t v[4], unsigned int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = ROTL(v[1], 13) ^ v[0];
		v[3] = ROTL(v[3], 16) ^ v[2];
		v[0] = ROTL(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = ROTL(v[3], 21) ^ v[0];
		v[1] = ROTL(v[1], 17) ^ v[2];
		v[2] = ROTL(v[2], 32);
	}
}

void ttmon_redact_init(struct ttmon_redact *r, const uint8_t key[TTMON_REDACT_KEY])
{
	r->key[0] = word64(key, 8);
	r->key[1] = word64(key + 8, 8);
}

uint64_t ttmon_redact_hash(const struct ttmon_redact *r, const void *data, size_t n)
{
	uint64_t v[4] = { r->key[0] ^ 0x736f6d6570736575, r->key[1] ^ 0x646f72616e646f6d,
			  r->key[0] ^ 0x6c7967656e657261, r->key[1] ^ 0x7465646279746573 };
	const uint8_t *p = data;
	uint64_t m;

	for (size_t left = n; left >= 8; left -= 8, p += 8) {
		m = word64(p, 8);
		v[3] ^= m;
		rounds(v, 2);
		v[0] ^= m;
	}
	m = word64(p, n % 8) | (uint64_t)n << 56;
	v[3] ^= m;
	rounds(v, 2);
	v[0] ^= m;
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- names that stay ---- */

/*
 * Common parts of paths and cgroups, which identify no one, and words that metrics have in place of a
 * name.
 */
static const char *const common[] = {
	".",
	"..",
	"bin",
	"sbin",
	"lib",
	"lib32",
	"lib64",
	"usr",
	"local",
	"opt",
	"etc",
	"var",
	"run",
	"tmp",
	"home",
	"root",
	"srv",
	"mnt",
	"dev",
	"shm",
	"proc",
	"self",
	"sys",
	"fs",
	"cgroup",
	"libexec",
	"share",
	"stubs",
	"targets",
	"x86_64-linux",
	"sbsa-linux",
	"aarch64-linux-gnu",
	"x86_64-linux-gnu",
	"site-packages",
	"dist-packages",
	"cuda",
	"nvidia",
	"tenstorrent",
	"nvidiactl",
	"nvidia-uvm",
	"nvidia-uvm-tools",
	"zero",
	"null",
	"init.scope",
	"user.slice",
	"system.slice",
	"machine.slice",
	"kubepods.slice",
	"kubepods",
	"burstable",
	"besteffort",
	"docker",
	"other",
	"unknown",
	"[heap]",
	"[stack]",
	"[vdso]",
	"[vvar]",
	"[vvar_vclock]",
	"[vsyscall]",
	"[uprobes]",
};

/* Names of libraries, without ".so" and the version after it. */
static const char *const libraries[] = {
	"libcudart", "libcuda",	     "libtt_metal",	"_ttnncpp",	   "_ttnn", "libdevice",
	"libc",	     "libm",	     "libpthread",	"libdl",	   "librt", "libstdc++",
	"libgcc_s",  "libnvidia-ml", "ld-linux-x86-64", "ld-linux-aarch64"
};

/* Common endings of units, containers and libraries. */
static const char *const suffixes[] = { ".service", ".scope", ".slice", ".socket", ".mount", ".timer", ".so" };

static bool is(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(text, word, n);
}

static bool all_of(const char *text, size_t n, const char *set)
{
	for (size_t i = 0; i < n; i++)
		if (!text[i] || !strchr(set, text[i]))
			return false;
	return true;
}

/* Numbers, versions and addresses, such as "-12", "3.5", "0x7f00", are not names. */
static bool is_number(const char *text, size_t n)
{
	if (n > 2 && text[0] == '0' && text[1] == 'x')
		return all_of(text + 2, n - 2, "0123456789abcdef");
	return n && all_of(text, n, "+-.0123456789");
}

static bool is_library(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		size_t len = strlen(libraries[i]);

		if (n < len + 3 || memcmp(text, libraries[i], len) || memcmp(text + len, ".so", 3))
			continue;
		if (all_of(text + len + 3, n - len - 3, ".0123456789"))
			return true;
	}
	return false;
}

static bool stays(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (is(text, n, common[i]))
			return true;
	/* /dev/nvidia0 */
	if (n > 6 && !memcmp(text, "nvidia", 6) && is_number(text + 6, n - 6))
		return true;
	return is_number(text, n) || is_library(text, n);
}

static bool ends(const char *text, size_t n, const char *with)
{
	size_t len = strlen(with);

	return n > len && !memcmp(text + n - len, with, len);
}

bool ttmon_redact_is_cuda(const char *name, size_t n)
{
	static const char *const more[] = { "_ptds", "_ptsz", "_v2", "_v3", "_v4" };

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (ends(name, n, more[i]))
			n -= strlen(more[i]);
	for (unsigned int fn = 0; fn < TTMON_FN_COUNT; fn++) {
		const char *known = ttmon_fn_name(fn);

		if (known && !strncmp(known, "cu", 2) && is(name, n, known))
			return true;
	}
	return false;
}

/* ---- words and texts ---- */

void ttmon_redact_word(const struct ttmon_redact *r, const char *text, size_t n, char *buf, size_t size)
{
	const char *suffix = "";

	if (!n || stays(text, n)) {
		snprintf(buf, size, "%.*s", (int)n, text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (ends(text, n, suffixes[i]) && TTMON_REDACT_LEN + strlen(suffixes[i]) <= size)
			suffix = suffixes[i];
	snprintf(buf, size, "x%012llx%s", (unsigned long long)(ttmon_redact_hash(r, text, n) >> 16), suffix);
}

#define DELETED " (deleted)"

/* Length of a prefix that the kernel puts before a name chosen by a program. */
static size_t prefix_len(const char *text, size_t n)
{
	static const char *const prefixes[] = { "/memfd:", "[anon:", "[anon_shmem:" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (n > strlen(prefixes[i]) && !memcmp(text, prefixes[i], strlen(prefixes[i])))
			return strlen(prefixes[i]);
	return 0;
}

static bool separates(char c)
{
	return c == '/' || c == ' ' || !c;
}

struct out {
	char *buf;
	size_t len, size;
	bool full;
};

static void put(struct out *o, const char *text, size_t n)
{
	if (n >= o->size - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->buf + o->len, text, n);
	o->len += n;
}

static void put_words(const struct ttmon_redact *r, const char *text, size_t n, struct out *o)
{
	char word[TTMON_REDACT_LEN + 64];

	for (size_t at = 0; at < n && !o->full;) {
		size_t end = at;

		while (end < n && !separates(text[end]))
			end++;
		ttmon_redact_word(r, text + at, end - at, word, sizeof(word));
		put(o, word, strlen(word));
		if (end < n)
			put(o, text + end, 1);
		at = end + 1;
	}
}

size_t ttmon_redact_text(const struct ttmon_redact *r, const char *text, size_t n, char *buf, size_t size)
{
	struct out o = { .buf = buf, .size = size };
	size_t start = prefix_len(text, n), end = n;
	const char *after = "";

	if (ends(text, n, DELETED))
		after = DELETED;
	else if (start && text[0] == '[' && text[n - 1] == ']')
		after = "]";
	end -= strlen(after);
	put(&o, text, start);
	put_words(r, text + start, end - start, &o);
	put(&o, after, strlen(after));
	if (o.full) {
		/* An absolute path stays absolute. */
		buf[0] = '/';
		o.len = text[0] == '/';
		ttmon_redact_word(r, text, n, buf + o.len, size - o.len);
		return strlen(buf);
	}
	buf[o.len] = '\0';
	return o.len;
}
