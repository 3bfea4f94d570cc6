// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cgname.c: units, containers and pods in paths of cgroups, as their managers write them, and in
 * invented paths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/usage/cgname.h"

#define A64	"0123456789ab0123456789abcdef0123456789abcdef0123456789abcdef0123"
#define A12	"0123456789ab"
#define B64	"fedcba98765400000000000000000000000000000000000000000000000000ff"
#define B12	"fedcba987654"
#define UID	"2c48913c-b29f-11e7-9350-020968147796"
#define UID_	"2c48913c_b29f_11e7_9350_020968147796"
#define STATIC	"b0c3a1e2d4f5968778695a4b3c2d1e0f"
#define POD	"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"
#define USER	"/user.slice/user-1000.slice/user@1000.service"
#define MACHINE "/machine.slice"

static const struct {
	const char *path, *unit, *container, *pod;
} paths[] = {
	{ "/", "", "", "" },
	{ "/init.scope", "init.scope", "", "" },
	{ "/system.slice/ssh.service", "ssh.service", "", "" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", "", "" },
	{ "/system.slice/nvidia-persistenced.service/helper/x", "nvidia-persistenced.service", "", "" },
	{ "/system.slice/var-lib-my\\x2dthings.mount", "var-lib-my\\x2dthings.mount", "", "" },
	{ "/system.slice/cups.socket", "cups.socket", "", "" },
	{ "/system.slice/_cpu.service", "cpu.service", "", "" },
	{ "/system.slice/__x.service", "_x.service", "", "" },
	{ "/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "", "" },
	{ USER "/init.scope", "init.scope", "", "" },
	{ USER "/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1a.scope", "vte-spawn-1a.scope", "", "" },
	{ USER "/app.slice", "app.slice", "", "" },
	{ "/system.slice/.service", "system.slice", "", "" },
	{ "/system.slice/a b.service", "system.slice", "", "" },
	{ "/system.slice/caf\xc3\xa9.service", "system.slice", "", "" },
	{ "/system.slice/x.timer", "system.slice", "", "" },
	/* Docker */
	{ "/docker/" A64, "", A12, "" },
	{ "/" A64, "", A12, "" },
	{ "/ecs/0123456789abcdef/" A64, "", A12, "" },
	{ "/system.slice/docker-" A64 ".scope", "docker-" A64 ".scope", A12, "" },
	{ "/system.slice/docker-" A64 ".scope/system.slice/nginx.service", "nginx.service", A12, "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A64 ".scope", "docker-" A64 ".scope", A12,
	  "" },
	{ "/system.slice/nerdctl-" A64 ".scope", "nerdctl-" A64 ".scope", A12, "" },
	{ "/system.slice/docker-" A64 "0.scope", "docker-" A64 "0.scope", "", "" },
	{ "/docker/" A64 "//", "", A12, "" },
	{ "/docker/0" A64, "", "", "" },
	{ "/docker/" A12, "", "", "" },
	/* Kubernetes */
	{ POD "/cri-containerd-" A64 ".scope", "cri-containerd-" A64 ".scope", A12, UID },
	{ POD "/crio-" A64 ".scope", "crio-" A64 ".scope", A12, UID },
	{ POD "/crio-" A64 ".scope/container", "crio-" A64 ".scope", A12, UID },
	{ POD "/crio-conmon-" A64 ".scope", "crio-conmon-" A64 ".scope", "", UID },
	{ POD "/docker-" A64 ".scope", "docker-" A64 ".scope", A12, UID },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A64 ".scope", "cri-containerd-" A64 ".scope",
	  A12, UID },
	{ "/kubepods/burstable/pod" UID "/" A64, "", A12, UID },
	{ "/kubepods/pod" UID "/crio-" A64, "", A12, UID },
	{ "/kubepods/besteffort/pod" UID, "", "", UID },
	{ "/kubepods/burstable/pod" STATIC "/" A64, "", A12, STATIC },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC ".slice/cri-containerd-" A64
	  ".scope",
	  "cri-containerd-" A64 ".scope", A12, STATIC },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" A64,
	  "containerd.service", A12, UID },
	{ "/kubepods-besteffort-pod" UID ".slice:cri-containerd:" A64, "", A12, UID },
	{ "/../../pod" UID "/" A64, "", A12, UID },
	/* kind: a node is a container; its containers are inside it. */
	{ "/docker/" B64 "/kubelet/kubepods/burstable/pod" UID "/" A64, "", A12, UID },
	{ "/system.slice/docker-" B64 ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice"
	  "/kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" A64 ".scope",
	  "cri-containerd-" A64 ".scope", A12, UID },
	{ "/docker/" B64 "/system.slice/containerd.service", "containerd.service", B12, "" },
	{ POD "/cri-containerd-" A64 ".scope/docker/" B64, "cri-containerd-" A64 ".scope", B12, UID },
	/* Podman */
	{ MACHINE "/libpod-" A64 ".scope", "libpod-" A64 ".scope", A12, "" },
	{ MACHINE "/libpod-" A64 ".scope/container", "libpod-" A64 ".scope", A12, "" },
	{ MACHINE "/libpod-conmon-" A64 ".scope", "libpod-conmon-" A64 ".scope", "", "" },
	{ MACHINE "/machine-libpod_pod_" B64 ".slice/libpod-" A64 ".scope", "libpod-" A64 ".scope", A12, B12 },
	{ MACHINE "/machine-libpod_pod_" B64 ".slice", "machine-libpod_pod_" B64 ".slice", "", B12 },
	{ USER "/user.slice/user-libpod_pod_" B64 ".slice/libpod-" A64 ".scope/container", "libpod-" A64 ".scope", A12,
	  B12 },
	{ USER "/app.slice/web.service/libpod-payload-" A64, "web.service", A12, "" },
	{ "/libpod_parent/libpod-" A64, "", A12, "" },
	{ "/libpod_parent/libpod_pod_" B64 "/libpod-" A64, "", A12, B12 },
	{ "/docker/" B64 "/libpod_parent/libpod-conmon-" A64, "", B12, "" },
	/* LXC, Incus, systemd-nspawn */
	{ "/lxc.payload.web-1/system.slice/nginx.service", "nginx.service", "web-1", "" },
	{ "/lxc.payload.", "", "", "" },
	{ "/lxc.payload/web", "", "web", "" },
	{ "/lxc/104/ns/init.scope", "init.scope", "104", "" },
	{ "/lxc/", "", "", "" },
	{ "/lxc.monitor.web-1", "", "", "" },
	{ "/lxc.payload.outer/lxc.monitor.inner", "", "outer", "" },
	{ "/lxc.payload.outer/lxc.payload.inner", "", "inner", "" },
	{ MACHINE "/machine-deb\\x2d12.scope/payload/init.scope", "init.scope", "deb\\x2d12", "" },
	{ MACHINE "/systemd-nspawn@deb.service/payload", "systemd-nspawn@deb.service", "deb", "" },
	/* Near misses, and paths without any known form. */
	{ "", "", "", "" },
	{ "pod" UID "/x", "", "", UID },
	{ "/tripod" UID, "", "", "" },
	{ "/pod2c48913c-b29f-11e7-9350-02096814779", "", "", "" },
	{ "/pod2c48913cxb29f-11e7-9350-020968147796", "", "", "" },
	{ "/pod2c48913c-b29f-11e7-9350-02096814779g", "", "", "" },
	{ "/docker-0123456789AB0123456789abcdef0123456789abcdef0123456789abcdef0123", "", "", "" },
	{ ":::///", "", "", "" },
	{ "ssh.service", "ssh.service", "", "" },
	{ "/system.slice/\xff\xfe/" A64, "system.slice", A12, "" },
};

static void as_their_managers_write_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *const should[TTMON_GROUP_MAX] = { [TTMON_GROUP_COMM] = "",
							      [TTMON_GROUP_CGROUP] = paths[i].path,
							      [TTMON_GROUP_UNIT] = paths[i].unit,
							      [TTMON_GROUP_CONTAINER] = paths[i].container,
							      [TTMON_GROUP_POD] = paths[i].pod };

		for (unsigned int by = 0; by < TTMON_GROUP_MAX; by++) {
			char buf[TTMON_CGNAME_MAX];
			bool found = ttmon_cgname(by, paths[i].path, buf, sizeof(buf));

			if (strcmp(buf, should[by]) != 0)
				print_message("%s of %s\n", ttmon_group_by_name(by), paths[i].path);
			assert_string_equal(buf, should[by]);
			assert_int_equal(found, *should[by] != '\0');
		}
	}
}

static void names_of_the_ways(void **state)
{
	(void)state;
	assert_string_equal(ttmon_group_by_name(TTMON_GROUP_COMM), "comm");
	assert_string_equal(ttmon_group_by_name(TTMON_GROUP_POD), "pod");
	assert_string_equal(ttmon_group_by_name(TTMON_GROUP_MAX), "?");
}

static void cut_to_what_there_is_room_for(void **state)
{
	static char path[5000];
	char buf[TTMON_CGNAME_MAX + 10];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	assert_true(ttmon_cgname(TTMON_GROUP_CGROUP, path, buf, sizeof(buf)));
	assert_int_equal(strlen(buf), TTMON_CGNAME_MAX - 1);
	/* U+20AC has three bytes: a name is never cut within them. */
	for (size_t i = 1; i + 3 < sizeof(path); i += 3)
		memcpy(path + i, "\xe2\x82\xac", 3);
	for (size_t n = 2; n < 12; n++) {
		assert_true(ttmon_cgname(TTMON_GROUP_CGROUP, path, buf, n));
		assert_int_equal(strlen(buf), 1 + (n - 2) / 3 * 3);
	}
	/* An invalid sequence was in the path: it stays. */
	assert_true(ttmon_cgname(TTMON_GROUP_CGROUP, "/\x80\x80\x80\x80\x80\x80\x80", buf, 7));
	assert_int_equal(strlen(buf), 3);
	assert_true(ttmon_cgname(TTMON_GROUP_UNIT, "/a.service", buf, 1));
	assert_string_equal(buf, "");
	buf[0] = 'x';
	assert_true(ttmon_cgname(TTMON_GROUP_UNIT, "/a.service", buf, 0));
	assert_int_equal(buf[0], 'x');
	/* A unit's name has at most 255 bytes. */
	snprintf(path, sizeof(path), "/a.slice/%0247d.service", 1);
	assert_true(ttmon_cgname(TTMON_GROUP_UNIT, path, buf, TTMON_CGNAME_MAX));
	assert_string_equal(buf, path + 9);
	snprintf(path, sizeof(path), "/a.slice/%0248d.service", 1);
	assert_true(ttmon_cgname(TTMON_GROUP_UNIT, path, buf, TTMON_CGNAME_MAX));
	assert_string_equal(buf, "a.slice");
}

/*
 * Pieces of all forms in any order, in a block of exactly the size: the result is part of the path,
 * and has the right form.
 */
static void made_up(void **state)
{
	static const char *const pieces[] = { "/",	     "/",	 ":",	 "-",	    "pod",	"pod" UID,
					      "pod" UID_,    A64,	 B64,	 "docker-", ".scope",	".slice",
					      ".service",    "lxc/",	 "_",	 "x",	    "machine-", "\xff",
					      "libpod_pod_", "\xc3\xa9", "0123", "conmon",  "@",	"\\x2d" };
	uint32_t seed = 1;
	unsigned int found[TTMON_GROUP_MAX] = { 0 };

	(void)state;
	for (int run = 0; run < 20000; run++) {
		char line[4096] = "", buf[TTMON_CGNAME_MAX], *path;

		seed = seed * 1664525 + 1013904223;
		for (uint32_t n = (seed >> 8) % (run % 100 ? 8 : 60); n; n--) {
			seed = seed * 1664525 + 1013904223;
			strcat(line, pieces[(seed >> 8) % ARRAY_SIZE(pieces)]);
		}
		path = strdup(line);
		assert_non_null(path);
		for (unsigned int by = 0; by < TTMON_GROUP_MAX; by++) {
			memset(buf, 'x', sizeof(buf));
			found[by] += ttmon_cgname(by, path, buf, sizeof(buf));
			assert_non_null(memchr(buf, 0, sizeof(buf)));
			if (by == TTMON_GROUP_UNIT || by == TTMON_GROUP_CONTAINER)
				assert_non_null(strstr(path, buf));
			if (by == TTMON_GROUP_POD)
				assert_null(strpbrk(buf, "_/:."));
			assert_null(by == TTMON_GROUP_CGROUP ? NULL : strchr(buf, '/'));
		}
		free(path);
	}
	assert_int_equal(found[TTMON_GROUP_COMM], 0);
	for (unsigned int by = TTMON_GROUP_CGROUP; by < TTMON_GROUP_MAX; by++)
		assert_in_range(found[by], 100, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_their_managers_write_them),
		cmocka_unit_test(names_of_the_ways),
		cmocka_unit_test(cut_to_what_there_is_room_for),
		cmocka_unit_test(made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
