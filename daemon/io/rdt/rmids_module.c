// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmids_module.c: properties of an RMID module: the layout of its tracepoints from tracefs, and its
 * units from its procfs file (kmod/PROTOCOL.md) and CPUID. All of it is untrusted: sizes are bounded,
 * and invalid values are ignored.
 */
#include <fcntl.h>

#include "daemon/io/rdt/rmids_int.h"
#include "lib/os/proc.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define SYSTEM	 "memory_collector"
#define OLDER	 "memory_collector_" /* prefix of the names before February 2025 */
#define FIELDS	 12
#define FILE_MAX 8192

/* ---- the module's tracepoints ---- */

struct field {
	char name[32];
	unsigned int size;
};

struct layout {
	const char *event;
	bool required;
	struct field fields[FIELDS];
};

static const struct layout layouts[] = {
	{ "rmid_alloc", true, { { "rmid", 4 }, { "comm", 16 }, { "tgid", 4 }, { "timestamp", 8 } } },
	{ "rmid_existing", true, { { "rmid", 4 }, { "comm", 16 }, { "tgid", 4 }, { "timestamp", 8 } } },
	{ "rmid_free", true, { { "rmid", 4 }, { "timestamp", 8 } } },
	{ "rdt_sample",
	  false,
	  { { "rmid", 4 },
	    { "timestamp", 8 },
	    { "llc_occupancy_val", 8 },
	    { "llc_occupancy_err", 4 },
	    { "mbm_total_val", 8 },
	    { "mbm_total_err", 4 },
	    { "mbm_local_val", 8 },
	    { "mbm_local_err", 4 },
	    { "domain", 4 } } },
	{ "measure_perf_counters", false, { { "is_context_switch", 1 }, { "rmid", 4 } } },
};

/*
 * Parses name and size of "<tab>field:TYPE NAME[N];<tab>offset:O;<tab>size:S;<tab>signed:B;"; every
 * event has the common_ fields.
 */
static bool parse_field(const char *line, struct field *ret)
{
	const char *decl = strstr(line, "field:"), *end, *name, *size;
	size_t len;

	if (!decl)
		return false;
	decl += strlen("field:");
	end = strchr(decl, ';');
	size = strstr(decl, "size:");
	if (!end || !size || size < end)
		return false;
	for (name = end; name > decl && name[-1] != ' ' && name[-1] != '*'; name--)
		;
	len = strcspn(name, "[;");
	if (!len || len >= sizeof(ret->name) || !strncmp(name, "common_", 7))
		return false;
	memcpy(ret->name, name, len);
	ret->name[len] = '\0';
	ret->size = (unsigned int)strtoul(size + strlen("size:"), NULL, 10);
	return true;
}

/* Further fields at the end are ignored; all known ones must be there, except rdt_sample's domain. */
static bool format_fits(char *text, const struct layout *want, const char **missing)
{
	char *save = NULL;
	size_t i = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct field f;

		if (!parse_field(line, &f))
			continue;
		if (i == FIELDS || !want->fields[i].size)
			break;
		if (strcmp(f.name, want->fields[i].name) || f.size != want->fields[i].size)
			break;
		i++;
	}
	if (i == FIELDS || !want->fields[i].size || !strcmp(want->fields[i].name, "domain"))
		return true;
	*missing = want->fields[i].name;
	return false;
}

/* 0, -ENOENT: no such events, -EPROTO: an unknown layout. */
static int check_events(const char *folder, const char *prefix, char *why, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const char *missing = "";
		char path[512], text[FILE_MAX];
		ssize_t len;

		snprintf(path, sizeof(path), "%s/%s%s/format", folder, prefix, layouts[i].event);
		len = ttmon_proc_read_file(path, text, sizeof(text));
		if (len == -ENOENT && !i)
			return -ENOENT;
		if (len < 0 && layouts[i].required) {
			snprintf(why, n, "%s cannot be read: %s", path, strerror((int)-len));
			/*
			 * Without privileges no part of tracefs can be read: that is reported once, with the missing
			 * privileges.
			 */
			return len == -EACCES ? -EACCES : -EPROTO;
		}
		if (len < 0)
			continue;
		if (!format_fits(text, &layouts[i], &missing)) {
			snprintf(why, n,
				 "%s: the field %s is not where it was expected: not a version of the RMID module that "
				 "is known",
				 path, missing);
			return -EPROTO;
		}
	}
	return 0;
}

/* Sets the prefix of its events. -ENOENT, -EPROTO and why. */
int ttmon_rmids_find_module(const struct ttmon_rmids_cfg *cfg, char *prefix, size_t prefix_n, char *why, size_t n)
{
	const char *roots[] = { cfg->tracefs_root ? cfg->tracefs_root : "/sys/kernel/tracing",
				cfg->tracefs_root ? NULL : "/sys/kernel/debug/tracing" };
	const char *colon = cfg->module_system ? strchr(cfg->module_system, ':') : NULL;
	const char *prefixes[] = { colon ? colon + 1 : "", colon ? NULL : OLDER };
	const char *system = cfg->module_system ? cfg->module_system : SYSTEM;
	int len = colon ? (int)(colon - system) : (int)strlen(system), err = -ENOENT;

	snprintf(why, n,
		 "the RMID module is not loaded (no trace events %.*s:rmid_alloc): load it (modprobe ttmon_rmid), or "
		 "use --rmid auto",
		 len, system);
	/* Both become parts of a path, and of a tracepoint's name. */
	if (!len || memchr(system, '/', (size_t)len) || *system == '.' || strchr(prefixes[0], '/') ||
	    strlen(prefixes[0]) >= prefix_n)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(roots) && roots[i] && err == -ENOENT; i++)
		for (size_t j = 0; j < ARRAY_SIZE(prefixes) && prefixes[j] && err == -ENOENT; j++) {
			char folder[256];

			snprintf(folder, sizeof(folder), "%s/events/%.*s", roots[i], len, system);
			err = check_events(folder, prefixes[j], why, n);
			if (!err)
				snprintf(prefix, prefix_n, "%s", prefixes[j]);
		}
	return err;
}

/* ---- units ---- */

void ttmon_rmids_cpuid(struct ttmon_rmids_units *u)
{
	*u = (struct ttmon_rmids_units){ .max_rmid = 511, .width = 24, .scale = 1 };
#if defined(__x86_64__) || defined(__i386__)
	unsigned int a, b, c, d;

	if (!__get_cpuid_count(0xf, 0, &a, &b, &c, &d) || !(d & 2))
		return;
	if (!__get_cpuid_count(0xf, 1, &a, &b, &c, &d) || !c)
		return;
	u->max_rmid = MIN(c, TTMON_RMID_LIMIT - 1U);
	u->scale = MAX(b, 1U);
	u->width = MIN(24 + (a & 0xff), (unsigned int)TTMON_RMIDS_WIDTH);
	u->has = d & 7; /* the bits of TTMON_RMID_HAS_* */
	u->hardware = true;
#endif
}

bool ttmon_rmids_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*ret = v;
	return true;
}

/* Lines "name value"; unknown or invalid ones change nothing. Returns how many were taken. */
static size_t parse_units(char *text, struct ttmon_rmids_units *u)
{
	char *save = NULL;
	size_t taken = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, ' ');
		uint64_t v;

		if (!value)
			continue;
		*value++ = '\0';
		taken++;
		if (!strcmp(line, "version")) {
			size_t n = strcspn(value, "\r\t ");

			n = MIN(n, sizeof(u->version) - 1);
			for (size_t i = 0; i < n; i++)
				u->version[i] = value[i] > ' ' && value[i] < 0x7f ? value[i] : '?';
			u->version[n] = '\0';
		} else if (!strcmp(line, "mode")) {
			u->hardware = !strcmp(value, "hardware");
		} else if (!strcmp(line, "max_rmid") && ttmon_rmids_number(value, 1, TTMON_RMID_LIMIT - 1, &v)) {
			u->max_rmid = (uint32_t)v;
		} else if (!strcmp(line, "scale") && ttmon_rmids_number(value, 1, UINT32_MAX, &v)) {
			u->scale = v;
		} else if (!strcmp(line, "width") && ttmon_rmids_number(value, 24, TTMON_RMIDS_WIDTH, &v)) {
			u->width = (uint32_t)v;
		} else if (!strcmp(line, "events") && ttmon_rmids_number(value, 0, 7, &v)) {
			u->has = (uint32_t)v;
		} else if (!strcmp(line, "failed") && ttmon_rmids_number(value, 0, UINT64_MAX, &v)) {
			u->failed = v;
		} else if (!strcmp(line, "released") && ttmon_rmids_number(value, 0, 1, &v)) {
			u->released = v;
		} else {
			taken--;
		}
	}
	return taken;
}

/* The predecessor's file cannot be read. */
void ttmon_rmids_read_units(const struct ttmon_rmids_cfg *cfg, struct ttmon_rmids_units *u)
{
	const char *root = cfg->proc_root ? cfg->proc_root : "/proc";
	static const char *const names[] = { "ttmon_rmid", "unvariance_collector" };
	char text[FILE_MAX];
	bool there = false;

	ttmon_rmids_cpuid(u);
	for (size_t i = 0; i < ARRAY_SIZE(names) && !there; i++) {
		if (cfg->module_proc)
			snprintf(u->file, sizeof(u->file), "%s", cfg->module_proc);
		else
			snprintf(u->file, sizeof(u->file), "%s/%s", root, names[i]);
		there = !access(u->file, F_OK);
	}
	if (!there) {
		u->file[0] = '\0';
		snprintf(u->source, sizeof(u->source), "tracepoints");
	} else if (ttmon_proc_read_file(u->file, text, sizeof(text)) <= 0 || !parse_units(text, u)) {
		snprintf(u->source, sizeof(u->source), "%s",
			 strrchr(u->file, '/') ? strrchr(u->file, '/') + 1 : u->file);
	} else {
		snprintf(u->source, sizeof(u->source), "ttmon_rmid %s, %s", u->version,
			 u->hardware ? "hardware" : "emulated");
	}
}
