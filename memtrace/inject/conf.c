// SPDX-License-Identifier: GPL-2.0-only
/* conf.c: what the environment says, once. The names without TTMON are NVBit's. */
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memtrace/inject/inj.h"

static struct ttmon_inj_conf conf;

void ttmon_inj_say(bool verbose, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	if (verbose && !conf.verbose)
		return;
	n = snprintf(line, sizeof(line), "libttmon-memtrace: ");
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

/* false and a line: not a number in [low, high]. Unset: *ret stays. */
static bool number(const char *name, uint64_t low, uint64_t high, uint64_t *ret)
{
	const char *text = getenv(name);
	unsigned long long v;
	char *end;

	if (!text || !*text)
		return true;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || *end || *text == '-' || v < low || v > high) {
		ttmon_inj_say(false, "%s=%s: not a number from %llu to %llu: nothing is recorded", name, text,
			      (unsigned long long)low, (unsigned long long)high);
		return false;
	}
	*ret = v;
	return true;
}

/* "A-B", "A-", "-B", "A": from A to B, both in. */
static bool range(const char *name, uint64_t max, uint64_t *begin, uint64_t *end)
{
	const char *text = getenv(name), *p = text;
	unsigned long long a = 0, b = max;
	char *q;

	if (!text || !*text)
		return true;
	errno = 0;
	if (*p != '-') {
		a = strtoull(p, &q, 10);
		if (q == p)
			goto bad;
		p = q;
	}
	if (*p == '-' && p[1]) {
		b = strtoull(p + 1, &q, 10);
		p = q;
	} else if (*p == '-') {
		p++;
	} else {
		b = a;
	}
	if (*p || errno || a > b || b > max)
		goto bad;
	*begin = a;
	*end = b < max ? b + 1 : max;
	return true;
bad:
	ttmon_inj_say(false, "%s=%s: not a range such as 0-9: nothing is recorded", name, text);
	return false;
}

static bool spaces(uint32_t *ret)
{
	const char *text = getenv("TTMON_MEMTRACE_SPACES");
	uint32_t bits = 0;

	if (!text || !*text)
		return true;
	while (*text) {
		size_t n = strcspn(text, ",");

		if (n == 6 && !memcmp(text, "global", 6))
			bits |= 1u << TTMON_MT_GLOBAL;
		else if (n == 6 && !memcmp(text, "shared", 6))
			bits |= 1u << TTMON_MT_SHARED;
		else if (n == 5 && !memcmp(text, "local", 5))
			bits |= 1u << TTMON_MT_LOCAL;
		else {
			ttmon_inj_say(
				false,
				"TTMON_MEMTRACE_SPACES: %.*s is none of global, shared, local: nothing is recorded",
				(int)n, text);
			return false;
		}
		text += n + (text[n] == ',');
	}
	*ret = bits;
	return true;
}

static bool parse(void)
{
	const char *mode = getenv("TTMON_MEMTRACE_MODE"), *text;
	uint64_t verbose = 0, all = 0, sample = 1, wait_us = 500000, begin = 0, end = UINT32_MAX;

	/* Copies: a program may use the memory of its environment for something else. */
	text = getenv("TTMON_MEMTRACE_SOCKET");
	conf.socket = text && *text ? strdup(text) : TTMON_MTC_SOCKET;
	text = getenv("TTMON_MEMTRACE_KERNELS");
	conf.kernels = text && *text ? strdup(text) : NULL;
	if (!conf.socket || (text && *text && !conf.kernels))
		return false;
	conf.launch_end = UINT64_MAX;
	/*
	 * By default what can be made better by moving memory; PTX's local accesses may be none in the machine
	 * code (docs).
	 */
	conf.spaces = 1u << TTMON_MT_GLOBAL | 1u << TTMON_MT_SHARED;
	conf.ring_bytes = 1u << 20;
	conf.compile_ms = 60000;
	if (!number("TOOL_VERBOSE", 0, 9, &verbose) || !number("TTMON_MEMTRACE_ALL", 0, 1, &all))
		return false;
	conf.verbose = verbose;
	conf.all_modules = all;
	if (mode && *mode && strcmp(mode, "stream") && strcmp(mode, "aggregate")) {
		ttmon_inj_say(false, "TTMON_MEMTRACE_MODE=%s: neither stream nor aggregate: nothing is recorded", mode);
		return false;
	}
	conf.aggregate = mode && !strcmp(mode, "aggregate");
	if (!number("START_GRID_NUM", 0, UINT64_MAX, &conf.launch_begin) ||
	    !number("END_GRID_NUM", 0, UINT64_MAX, &conf.launch_end) ||
	    !range("TTMON_MEMTRACE_LAUNCHES", UINT64_MAX, &conf.launch_begin, &conf.launch_end))
		return false;
	if (!number("INSTR_BEGIN", 0, UINT32_MAX, &begin) || !number("INSTR_END", 0, UINT32_MAX, &end) ||
	    !range("TTMON_MEMTRACE_INSTR", UINT32_MAX, &begin, &end))
		return false;
	conf.instr_begin = (uint32_t)begin;
	conf.instr_end = (uint32_t)end;
	if (!number("TTMON_MEMTRACE_SAMPLE", 1, 1u << 24, &sample) ||
	    !number("TTMON_MEMTRACE_WAIT_US", 1, 4000000, &wait_us) ||
	    !number("TTMON_MEMTRACE_COMPILE_MS", 1, 3600000, &conf.compile_ms) ||
	    !number("TTMON_MEMTRACE_RING", 4096, (uint64_t)TTMON_MTC_MAX_UNITS * TTMON_MTC_UNIT, &conf.ring_bytes) ||
	    !spaces(&conf.spaces))
		return false;
	conf.sample = (uint32_t)sample;
	conf.wait_us = (uint32_t)wait_us;
	text = getenv("NOBANNER");
	if (conf.verbose && !(text && *text == '1'))
		ttmon_inj_say(true, "%s mode, socket %s", conf.aggregate ? "aggregate" : "stream", conf.socket);
	return true;
}

static void once(void)
{
	conf.off = !parse();
}

const struct ttmon_inj_conf *ttmon_inj_conf(void)
{
	static pthread_once_t done = PTHREAD_ONCE_INIT;

	pthread_once(&done, once);
	return &conf;
}

void ttmon_inj_give_up(void)
{
	conf.off = true;
}

bool ttmon_inj_kernel_wanted(const char *name)
{
	const char *globs = ttmon_inj_conf()->kernels;
	char glob[1024];

	if (!globs)
		return true;
	while (*globs) {
		size_t n = strcspn(globs, ",");

		if (n && n < sizeof(glob)) {
			memcpy(glob, globs, n);
			glob[n] = '\0';
			if (!fnmatch(glob, name, 0))
				return true;
		}
		globs += n + (globs[n] == ',');
	}
	return false;
}

bool ttmon_inj_module_name(const void *p, char *buf, size_t n)
{
	static const char *const left_alone[] = { "libcublas",	 "libcudnn",	"libcufft", "libcusparse",
						  "libcusolver", "libnpp",	"libnccl",  "libcurand",
						  "libnvjpeg",	 "libcutensor", "libnvrtc", "libcuda.so" };
	const char *base;
	Dl_info info;

	if (!dladdr(p, &info) || !info.dli_fname) {
		snprintf(buf, n, "memory");
		return true;
	}
	base = strrchr(info.dli_fname, '/');
	base = base ? base + 1 : info.dli_fname;
	snprintf(buf, n, "%s", base);
	for (size_t i = 0; i < sizeof(left_alone) / sizeof(*left_alone); i++)
		if (!strncmp(base, left_alone[i], strlen(left_alone[i])))
			return ttmon_inj_conf()->all_modules;
	return true;
}
