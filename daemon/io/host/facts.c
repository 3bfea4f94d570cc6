// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/host/facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "lib/os/clock.h"
#include "lib/os/proc.h"

#define TEXT_MAX 4096

/* Sends a record with text at its end, from text_off on; the rest up to a multiple of 8 is zero. */
static void send_text(ttmon_fact_fn fn, void *ctx, void *rec, size_t text_off, const char *text, size_t len)
{
	char *buf = rec;
	size_t size = ROUND_UP(text_off + len, 8);

	memcpy(buf + text_off, text, len);
	memset(buf + text_off + len, 0, size - text_off - len);
	fn(ctx, rec, size);
}

void ttmon_fact_object(ttmon_fact_fn fn, void *ctx, const struct ttmon_object *o, const uint8_t *build_id, uint64_t dev,
		       uint64_t ino)
{
	union {
		struct ttmon_ev_object e;
		char space[sizeof(struct ttmon_ev_object) + TEXT_MAX + 8];
	} u = { .e = {
			.h = { .kind = TTMON_EV_OBJECT, .cpu = TTMON_CPU_DAEMON },
			.id = o->id,
			.flags = o->flags,
			.dev = dev,
			.ino = ino,
			.build_id_len = o->build_id_len,
		} };
	size_t len = strnlen(o->path, TEXT_MAX);

	memcpy(u.e.build_id, build_id, o->build_id_len);
	u.e.len = (uint32_t)len;
	send_text(fn, ctx, &u, offsetof(struct ttmon_ev_object, path), o->path, len);
}

void ttmon_fact_map(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t tgid, uint32_t tid,
		    const struct ttmon_mapping *m, uint32_t object)
{
	union {
		struct ttmon_ev_map e;
		char space[sizeof(struct ttmon_ev_map) + TEXT_MAX + 8];
	} u;
	size_t len = strnlen(m->name, TEXT_MAX);

	u.e = (struct ttmon_ev_map){
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_MAP, .cpu = TTMON_CPU_DAEMON, .tgid = tgid, .tid = tid },
		.start = m->start,
		.end = m->end,
		.pgoff = m->pgoff,
		.object = object,
		.prot = m->prot,
		.shared = m->shared,
		.len = (uint32_t)len,
	};
	send_text(fn, ctx, &u, offsetof(struct ttmon_ev_map, name), m->name, len);
}

void ttmon_fact_symbol(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t object, uint64_t offset, const char *name,
		       uint64_t delta)
{
	union {
		struct ttmon_ev_symbol e;
		char space[sizeof(struct ttmon_ev_symbol) + TEXT_MAX + 8];
	} u;
	size_t len = strnlen(name, TEXT_MAX);

	u.e = (struct ttmon_ev_symbol){
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_SYMBOL, .cpu = TTMON_CPU_DAEMON },
		.object = object,
		.len = (uint32_t)len,
		.offset = offset,
		.delta = delta,
	};
	send_text(fn, ctx, &u, offsetof(struct ttmon_ev_symbol, name), name, len);
}

static void tell_text(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t tgid, enum ttmon_text what,
		      const char *text, size_t len)
{
	union {
		struct ttmon_ev_text e;
		char space[sizeof(struct ttmon_ev_text) + TEXT_MAX + 8];
	} u;

	u.e = (struct ttmon_ev_text){
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_PROC_NAME, .cpu = TTMON_CPU_DAEMON, .tgid = tgid },
		.what = what,
		.len = (uint32_t)MIN(len, (size_t)TEXT_MAX),
	};
	send_text(fn, ctx, &u, offsetof(struct ttmon_ev_text, text), text, u.e.len);
}

void ttmon_fact_names(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t tgid)
{
	char buf[TEXT_MAX], path[64];
	uid_t uid;
	ssize_t n;

	/* /proc/PID belongs to the process's effective user (proc(5)), but to root if it may not be dumped. */
	if (ttmon_proc_owner(tgid, &uid, NULL)) {
		snprintf(buf, sizeof(buf), "%u", uid);
		tell_text(fn, ctx, ts_ns, tgid, TTMON_TEXT_UID, buf, strlen(buf));
	}
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	n = readlink(path, buf, sizeof(buf));
	if (n > 0)
		tell_text(fn, ctx, ts_ns, tgid, TTMON_TEXT_EXE, buf, (size_t)n);
	n = ttmon_proc_read(NULL, tgid, "cmdline", buf, sizeof(buf));
	if (n > 0) {
		/* Arguments are separated, and ended, by NULs (proc(5)). */
		while (n > 1 && !buf[n - 1])
			n--;
		for (ssize_t i = 0; i < n; i++)
			if (!buf[i])
				buf[i] = ' ';
		tell_text(fn, ctx, ts_ns, tgid, TTMON_TEXT_CMDLINE, buf, (size_t)n);
	}
	n = ttmon_proc_read(NULL, tgid, "cgroup", buf, sizeof(buf));
	if (n > 0) {
		char *v2;

		buf[n] = '\0';
		/* The line of the unified hierarchy: "0::/path". */
		v2 = !strncmp(buf, "0::", 3) ? buf : strstr(buf, "\n0::");
		if (v2) {
			v2 += *v2 == '\n' ? 4 : 3;
			tell_text(fn, ctx, ts_ns, tgid, TTMON_TEXT_CGROUP, v2, strcspn(v2, "\n"));
		}
	}
}

void ttmon_fact_clock(ttmon_fact_fn fn, void *ctx, uint32_t nr_cpus, uint32_t capture, uint32_t options)
{
	struct ttmon_ev_clock e = {
		.h = { .kind = TTMON_EV_CLOCK, .cpu = TTMON_CPU_DAEMON },
		.nr_cpus = nr_cpus,
		.page_size = (uint32_t)sysconf(_SC_PAGESIZE),
		.capture = capture,
		.options = options,
	};
	struct utsname u;

	e.mono_ns = e.h.ts_ns = ttmon_clock_ns(CLOCK_MONOTONIC);
	e.real_ns = ttmon_clock_ns(CLOCK_REALTIME);
	e.boot_ns = ttmon_clock_ns(CLOCK_BOOTTIME);
	if (!uname(&u)) {
		snprintf(e.hostname, sizeof(e.hostname), "%.63s", u.nodename);
		snprintf(e.release, sizeof(e.release), "%.63s", u.release);
	}
	fn(ctx, &e, sizeof(e));
}
