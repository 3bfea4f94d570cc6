// SPDX-License-Identifier: GPL-2.0-only
/*
 * cgname.c: the names that the managers of cgroups give to cgroups. The path is searched from its
 * innermost part outwards.
 *
 *	containers	[RUNTIME-]ID[.scope], ID: 64 hexadecimal digits; RUNTIME: docker, cri-containerd,
 *			crio, libpod, libpod-payload, nerdctl, ...
 *			SLICE:RUNTIME:ID (containerd is configured for systemd, runc is not)
 *			lxc.payload.NAME, lxc/NAME; machine-NAME.scope, systemd-nspawn@NAME.service
 *			conmon, the monitor of a container of Podman or CRI-O, is not part of it
 *	pods		[kubepods-[QOS-]]podUID[.slice], UID: a UUID, with '_' or '-', or the 32 digits
 *			of a static pod
 *			[SLICE-]libpod_pod_ID[.slice]
 *	units		as in systemd.unit(5); a unit whose name looks like a file of the kernel
 *			(cpu.service) has a '_' before it
 */
#include "daemon/core/usage/cgname.h"

static const char *const names[TTMON_GROUP_MAX] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_GROUP_TABLE(X)
#undef X
};

const char *ttmon_group_by_name(unsigned int by)
{
	return by < TTMON_GROUP_MAX ? names[by] : "?";
}

#define ID_DIGITS    64 /* of a container */
#define SHORT_DIGITS 12 /* number of digits that its manager shows */
#define UID_LEN	     36
#define STATIC_LEN   32 /* of a static pod, which comes from a file of the node: its uid is a hash */
#define UNIT_MAX     255

/* A part of the path, not terminated. */
struct part {
	const char *s;
	size_t n;
};

static struct part part(const char *s, size_t n)
{
	return (struct part){ s, n };
}

static bool ends_with(struct part p, const char *end)
{
	size_t n = strlen(end);

	return p.n >= n && !memcmp(p.s + p.n - n, end, n);
}

static bool begins_with(struct part p, const char *begin)
{
	size_t n = strlen(begin);

	return p.n >= n && !memcmp(p.s, begin, n);
}

static struct part without_end(struct part p, const char *end)
{
	return ends_with(p, end) ? part(p.s, p.n - strlen(end)) : p;
}

static struct part behind(struct part p, const char *begin)
{
	return part(p.s + strlen(begin), p.n - strlen(begin));
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool all_hex(struct part p, size_t digits)
{
	if (p.n != digits)
		return false;
	for (size_t i = 0; i < p.n; i++)
		if (!is_hex(p.s[i]))
			return false;
	return true;
}

/* Returns the part that ends at `end`. colons: ':' separates parts too. */
static struct part part_at(const char *path, const char *end, bool colons)
{
	const char *s = end;

	while (s > path && s[-1] != '/' && (s[-1] != ':' || !colons))
		s--;
	return part(s, (size_t)(end - s));
}

/* Accepts a name of a systemd unit of a kind that has processes, or of a slice. */
static bool unit(struct part p, struct part *ret)
{
	static const char *const kinds[] = { ".service", ".scope", ".slice", ".socket", ".mount", ".swap" };

	p = p.n && *p.s == '_' ? behind(p, "_") : p;
	for (size_t i = 0; i < p.n; i++)
		if (!(p.s[i] >= 'a' && p.s[i] <= 'z') && !(p.s[i] >= 'A' && p.s[i] <= 'Z') &&
		    !(p.s[i] >= '0' && p.s[i] <= '9') && !memchr(":-_.\\@", p.s[i], 6))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (p.n <= UNIT_MAX && p.n > strlen(kinds[i]) && ends_with(p, kinds[i])) {
			*ret = p;
			return true;
		}
	return false;
}

/* Accepts a container id: 64 digits after the last '-'. */
static bool container_id(struct part p, struct part *ret)
{
	p = without_end(p, ".scope");
	if (p.n < ID_DIGITS)
		return false;
	*ret = part(p.s + p.n - ID_DIGITS, ID_DIGITS);
	if (!all_hex(*ret, ID_DIGITS) || (p.n > ID_DIGITS && ret->s[-1] != '-'))
		return false;
	ret->n = SHORT_DIGITS;
	return true;
}

static bool is_monitor(struct part p)
{
	return begins_with(p, "crio-conmon") || begins_with(p, "libpod-conmon") || begins_with(p, "lxc.monitor");
}

/* Accepts a container. parent: the part before p. */
static bool container(struct part p, struct part parent, struct part *ret)
{
	static const struct {
		const char *begin, *end;
	} named[] = { { "lxc.payload.", "" }, { "machine-", ".scope" }, { "systemd-nspawn@", ".service" } };

	if (is_monitor(p))
		return false;
	if (container_id(p, ret))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (begins_with(p, named[i].begin) && ends_with(p, named[i].end)) {
			*ret = behind(p, named[i].begin);
			*ret = without_end(*ret, named[i].end);
			return ret->n > 0;
		}
	*ret = p;
	return p.n && ((parent.n == 3 && begins_with(parent, "lxc")) ||
		       (parent.n == 11 && begins_with(parent, "lxc.payload")));
}

static bool pod_uid(struct part p)
{
	if (p.n != UID_LEN)
		return all_hex(p, STATIC_LEN);
	for (size_t i = 0; i < p.n; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? p.s[i] != '-' && p.s[i] != '_' : !is_hex(p.s[i]))
			return false;
	return true;
}

static bool pod(struct part p, struct part *ret)
{
	static const char podman[] = "libpod_pod_";

	p = without_end(p, ".slice");
	for (size_t i = p.n; i-- > 0;) {
		struct part rest = part(p.s + i, p.n - i);

		if (i && p.s[i - 1] != '-')
			continue;
		if (begins_with(rest, "pod") && pod_uid(behind(rest, "pod"))) {
			*ret = behind(rest, "pod");
			return true;
		}
		if (begins_with(rest, podman) && all_hex(behind(rest, podman), ID_DIGITS)) {
			*ret = part(rest.s + strlen(podman), SHORT_DIGITS);
			return true;
		}
	}
	return false;
}

static bool find(enum ttmon_group_by by, const char *path, struct part *ret)
{
	/*
	 * The ':' is allowed in the name of a unit, but separates the parts of the names of some containers.
	 */
	bool colons = by != TTMON_GROUP_UNIT;
	struct part p, parent;

	if (by == TTMON_GROUP_CGROUP) {
		*ret = part(path, strlen(path));
		return ret->n > 0;
	}
	p = part_at(path, path + strlen(path), colons);
	for (;; p = parent) {
		parent = p.s > path ? part_at(path, p.s - 1, colons) : part(path, 0);
		if ((by == TTMON_GROUP_UNIT && unit(p, ret)) ||
		    (by == TTMON_GROUP_CONTAINER && container(p, parent, ret)) ||
		    (by == TTMON_GROUP_POD && pod(p, ret)))
			return true;
		if (p.s == path)
			return false;
	}
}

bool ttmon_cgname(enum ttmon_group_by by, const char *path, char *buf, size_t n)
{
	struct part p = part("", 0);
	bool found = find(by, path, &p);
	size_t max = MIN(n, (size_t)TTMON_CGNAME_MAX);

	if (!n)
		return found;
	if (!found)
		p.n = 0;
	if (p.n >= max) {
		p.n = max - 1;
		for (int i = 0; i < 3 && p.n && ((unsigned char)p.s[p.n] & 0xc0) == 0x80; i++)
			p.n--;
	}
	memcpy(buf, p.s, p.n);
	buf[p.n] = '\0';
	/*
	 * Systemd does not allow '-' inside the part of a slice's name, so the uid of a pod has '_' there.
	 */
	for (size_t i = 0; by == TTMON_GROUP_POD && i < p.n; i++)
		buf[i] = buf[i] == '_' ? '-' : buf[i];
	return found;
}
