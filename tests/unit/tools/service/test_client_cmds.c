// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_client_cmds.c: the commands that show what ttmond says of itself, against a server that runs in
 * a thread of its own.
 *
 * The commands are part of a program, not of the archive that unit tests are linked with: their
 * sources are included.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/io/http/http.h"
#include "lib/os/log.h"

#include "tools/cli/show.c"

#include "tools/service/cmd_status.c"
#include "tools/service/cmd_probes.c"

static const char *status_json, *probes_json;

static void serve_status(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fputs(status_json, reply->body);
}

static void serve_probes(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	if (probes_json)
		fputs(probes_json, reply->body);
	else
		ttmon_http_error(reply, 503, "not yet");
}

static const struct ttmon_http_route routes[] = {
	{ .path = "/v1/status", .fn = serve_status },
	{ .path = "/v1/probes", .fn = serve_probes },
};

#include "tests/unit/feed/client_server.h"

/* Run a command with stdout and stderr in files; what they hold comes back. */
static int run_cmd(const struct ttmon_cli_cmd *cmd, const char *name, const char *opt, const char *socket_path)
{
	char name_buf[16], opt_buf[16], socket_opt[] = "--socket", socket_buf[128];
	char *argv[] = { name_buf, socket_opt, socket_buf, opt ? opt_buf : NULL, NULL };
	int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO), status;
	FILE *o = tmpfile(), *e = tmpfile();

	assert_true(o && e && saved_out >= 0 && saved_err >= 0);
	snprintf(name_buf, sizeof(name_buf), "%s", name);
	snprintf(opt_buf, sizeof(opt_buf), "%s", opt ? opt : "");
	snprintf(socket_buf, sizeof(socket_buf), "%s", socket_path);
	fflush(stdout);
	dup2(fileno(o), STDOUT_FILENO);
	dup2(fileno(e), STDERR_FILENO);
	status = ttmon_cli_run(cmd, opt ? 4 : 3, argv);
	fflush(stdout);
	dup2(saved_out, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(saved_out);
	close(saved_err);
	read_back(o, out, sizeof(out));
	read_back(e, err_out, sizeof(err_out));
	return status;
}

/* ---- tests ---- */

static void test_show(void **state)
{
	json_t *root = json_loads(
		"{\"a\": {\"b\": 5, \"c\": \"18446744073709551615\", \"d\": -1, \"e\": \"x\", \"f\": true}}", 0, NULL);
	char *text;

	(void)state;
	assert_int_equal(ttmon_show_u64(root, "a.b"), 5);
	assert_true(ttmon_show_u64(root, "a.c") == UINT64_MAX);
	assert_int_equal(ttmon_show_u64(root, "a.d"), 0);
	assert_int_equal(ttmon_show_u64(root, "a.e"), 0);
	assert_int_equal(ttmon_show_u64(root, "a.b.c"), 0);
	assert_int_equal(ttmon_show_u64(root, "z"), 0);
	assert_string_equal(ttmon_show_str(root, "a.e"), "x");
	assert_string_equal(ttmon_show_str(root, "a.b"), "");
	assert_true(ttmon_show_bool(root, "a.f"));
	assert_false(ttmon_show_bool(root, "a.b"));
	json_decref(root);
	text = ttmon_show_clean("a\033[2Jb\x7f \xc2\x9b"
				"c\u00fc");
	assert_string_equal(text, "a?[2Jb? ?c\u00fc");
	free(text);
}

static void assert_width(const char *text)
{
	for (const char *nl; (nl = strchr(text, '\n')); text = nl + 1)
		assert_true(nl - text <= 80);
	assert_int_equal(*text, 0);
}

#define STATUS(ok)                                                                                                     \
	"{\"version\": \"1.2\\u001b[2J\", \"uptime_ns\": 3723000000000, \"mode\": \"pids\", \"targets\": [12, 34],"    \
	"\"events\": {\"decoded\": 1234567, \"late\": 1, \"lost\": {\"ring_full\": 3, \"map_full\": 0}},"              \
	"\"identity\": {\"ok\": " ok                                                                                   \
	", \"why\": \"decoded 5, slotted 4\", \"malformed\": 2}, \"window\": {\"slots\": 64, "                         \
	"\"watermark_lag_ns\": 400000}, \"slots\": {\"closed\": 10, \"published\": 6, \"unpublished\": 3, "            \
	"\"dropped\": 1, \"forced\": 0},"                                                                              \
	"\"pinned\": {\"now_pages\": 256, \"peak_pages\": 512, \"pins\": 7}, \"processes\": 3, \"allocations\": 1000," \
	"\"rings\": {\"bytes\": 8388608, \"cpus\": 2}, \"recording\": null,"                                           \
	"\"reduced\": {\"transfer\": {\"state\": \"counting\", \"why\": \"budget\"}, \"cpu\": {\"state\": \"off\", "   \
	"\"why\": \"asked for\"}}, \"budget\": {\"max_percent\": 1, \"percent\": 2.3456, \"over\": false, "            \
	"\"users\": [{\"uid\": 1000, \"family\": \"launch\"}]}}"

static void test_status(void **state)
{
	(void)state;
	status_json = STATUS("true");
	/* It has lost something: the first line says so, and the exit status. */
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), TTMON_EXIT_NO);
	assert_memory_equal(out, "DEGRADED: 4 events or slots were lost: figures are lower bounds\n", 63);
	assert_width(out);
	assert_null(strstr(out, "watermark"));
	assert_non_null(strstr(out, "  lost         3 ring_full\n"));
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "-v", path), TTMON_EXIT_NO);
	assert_string_equal(err_out, "");
	assert_width(out);
	assert_non_null(strstr(out, "ttmond 1.2?[2J, up "));
	assert_non_null(strstr(out, "pids: 12, 34\n"));
	assert_non_null(strstr(out, "1,234,567 decoded, 1 late, 2 malformed\n"));
	assert_non_null(strstr(out, "  lost         3 ring_full\n"));
	assert_non_null(strstr(out, "10 closed, 6 published, 3 not published, 1 dropped, 0 forced\n"));
	assert_non_null(strstr(out, "7 pins\n"));
	assert_non_null(strstr(out, "launch of user 1000 is only counted (budget)\n"));
	assert_non_null(strstr(out, "adds up\n"));
	assert_null(strstr(out, "recording"));
	assert_non_null(strstr(out, "  reduced      transfer counting (budget), cpu off (asked for)\n"));
	assert_non_null(strstr(out, "  overhead     2.35 % of 1 % of the host's CPU time\n"));
	assert_null(strchr(out, '\033'));

	status_json = STATUS("false");
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), TTMON_EXIT_NO);
	assert_memory_equal(out, "FAILED: the accounting does not add up, believe no figure: decoded 5, slotted 4\n",
			    79);
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "-v", path), TTMON_EXIT_NO);
	assert_non_null(strstr(out, "DOES NOT ADD UP: decoded 5, slotted 4\n"));
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "--json", path), TTMON_EXIT_NO);
	assert_string_equal(out, status_json);
	/* A daemon that says nothing of it is not one that is in order. */
	status_json = "{}";
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), TTMON_EXIT_NO);
	assert_memory_equal(out, "FAILED: ", 8);
	/* What was requested and is not there; what a person turned off is as it should be. */
	status_json = "{\"identity\": {\"ok\": true}, "
		      "\"degraded\": [{\"what\": \"a\", \"why\": \"b\"}]}";
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), TTMON_EXIT_NO);
	assert_memory_equal(out, "DEGRADED: without a: b\n", 23);
	status_json = "{\"identity\": {\"ok\": true}, "
		      "\"reduced\": {\"cpu\": {\"state\": \"off\", \"why\": \"asked for\"}}}";
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), 0);
	assert_memory_equal(out, "OK\n", 3);
	status_json = "{\"identity\": {\"ok\": true}, "
		      "\"reduced\": {\"cpu\": {\"state\": \"off\", \"why\": \"budget\"}}}";
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), TTMON_EXIT_NO);
	assert_memory_equal(out, "DEGRADED: cpu is off (budget)\n", 30);
	status_json = "[]";
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), TTMON_EXIT_ERROR);
	assert_string_equal(err_out, "ttmon: the answer is not a JSON object: something else\n");
}

/* As daemon/api/api.c sends it: a family that is not on, and one that was not all the time. */
static void test_status_families(void **state)
{
	(void)state;
	status_json =
		"{\"identity\": {\"ok\": true}, \"pinned\": {\"now_pages\": null, \"peak_pages\": 512, \"pins\": 7, "
		"\"at_least\": true},"
		"\"allocations\": null, \"processes\": 3, \"cpu\": {\"cpus\": null, \"slots\": 5, \"exact\": 5, "
		"\"missing_ns\": 0},"
		"\"families\": {\"cpu\": {\"state\": \"off\", \"why\": \"asked for\", \"from_ns\": null, \"off_ns\": "
		"1},"
		"\"alloc\": {\"state\": \"off\", \"why\": \"asked for\", \"from_ns\": null, \"off_ns\": 1},"
		"\"transfer\": {\"state\": \"on\", \"why\": \"\", \"from_ns\": 5, \"seen_since_ns\": null, "
		"\"off_ns\": 2000000000}}}";
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, path), 0);
	assert_non_null(
		strstr(out, "  pinned       - now, >=2.0 MiB (512 pages) peak, >=7 pins; alloc is off (asked for)\n"));
	assert_non_null(strstr(out, "3 processes, - allocations\n"));
	assert_non_null(strstr(out, "  cpu time     not measured: cpu is off (asked for)\n"));
	assert_non_null(strstr(out, "5 of 5 slots until then add up exactly, nothing missing\n"));
	assert_null(strstr(out, "CPUs, "));
	assert_non_null(strstr(out, "  seen         transfer: all of it; nothing of it for 2.0 s\n"));
}

static void test_probes(void **state)
{
	(void)state;
	/* As daemon/api/api.c sends it. */
	probes_json =
		"{\"objects\": [{\"path\": \"/usr/lib/libcudart.so.13\", \"dev\": 1, \"ino\": 2, \"stripped\": false, "
		"\"missing\": 4,"
		"\"blind_us\": 112, \"held\": false, \"error\": \"\", \"probes\": ["
		"{\"symbol\": \"cudaMalloc\", \"program\": \"cuda_call\", \"state\": \"attached\", \"reason\": \"\", "
		"\"single_step\": true},"
		"{\"symbol\": \"cudaFree\", \"program\": \"cuda_call\", \"state\": \"attached\", \"reason\": \"\", "
		"\"skip\": 10, \"single_step\": false},"
		"{\"symbol\": \"cudaNew\", \"program\": \"cuda_note\", \"state\": \"failed\", \"reason\": \"Invalid "
		"argument\"}]},"
		"{\"path\": \"/bin/a\\nb\", \"held\": true, \"blind_us\": 0, \"stripped\": true, \"missing\": 0, "
		"\"error\": \"\", \"probes\": []},"
		"{\"path\": \"/lib/c\", \"held\": false, \"blind_us\": null, \"missing\": 0, "
		"\"error\": \"No\\u001bt\", \"probes\": []},"
		"{\"path\": \"/lib/d\", \"held\": false, \"blind_us\": 0, \"missing\": 0, \"error\": \"\", "
		"\"probes\": []}],"
		"\"programs\": [{\"name\": \"cuda_call\", \"loaded\": true, \"attached\": true}, {\"name\": \"x\"}]}";
	assert_int_equal(run_cmd(&ttmon_cmd_probes, "probes", NULL, path), 0);
	assert_width(out);
	assert_string_equal(out, "ATTACHED FAILED MISSING STEPPED      BLIND  OBJECT\n"
				 "       2      1       4       1   112.0 us  /usr/lib/libcudart.so.13\n"
				 "       0      0       0       0       held  /bin/a?b\n"
				 "    holds a CUDA runtime without symbols: seen at driver level only\n"
				 "       0      0       0       0     before  /lib/c\n"
				 "    not probed: No?t\n"
				 "       0      0       0       0       none  /lib/d\n"
				 "2 BPF programs, 1 loaded, 1 attached\n");
	assert_int_equal(run_cmd(&ttmon_cmd_probes, "probes", "-v", path), 0);
	assert_width(out);
	assert_non_null(strstr(out, "    attached  cudaMalloc                       cuda_call (single-stepped)\n"));
	assert_non_null(strstr(out, "    attached  cudaFree+10                      cuda_call\n"));
	assert_non_null(strstr(out, "    failed    cudaNew                          cuda_note: Invalid argument\n"));
	assert_non_null(strstr(out, "    x                                not loaded not attached\n"));

	probes_json = "{\"objects\": [], \"programs\": []}";
	assert_int_equal(run_cmd(&ttmon_cmd_probes, "probes", NULL, path), 0);
	assert_non_null(strstr(out, "no process has mapped anything to probe\n"));
}

static void test_errors(void **state)
{
	char want[256], none[160];

	(void)state;
	probes_json = NULL;
	assert_int_equal(run_cmd(&ttmon_cmd_probes, "probes", NULL, path), TTMON_EXIT_ERROR);
	snprintf(want, sizeof(want), "ttmon: ttmond on %s answers /v1/probes with 503: not yet\n", path);
	assert_string_equal(err_out, want);
	assert_string_equal(out, "");

	snprintf(none, sizeof(none), "%s/none.sock", dir);
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, none), TTMON_EXIT_ERROR);
	snprintf(want, sizeof(want), "ttmon: no ttmond on %s: No such file or directory\n", none);
	assert_string_equal(err_out, want);
	memset(none, 'x', sizeof(none) - 1);
	none[sizeof(none) - 1] = '\0';
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", NULL, none), TTMON_EXIT_ERROR);

	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "-Q", path), TTMON_EXIT_ERROR);
	assert_string_equal(err_out, "ttmon status: no such option: -Q; there are --socket, --json, --verbose, --help, "
				     "see ttmon status --help\n");
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "--frob", path), TTMON_EXIT_ERROR);
	assert_string_equal(err_out, "ttmon status: no such option: --frob; there are --socket, --json, --verbose, "
				     "--help, see ttmon status --help\n");
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "--socket", path), TTMON_EXIT_ERROR);
	assert_string_equal(err_out,
			    "ttmon status: a value is missing after --socket: PATH, see ttmon status --help\n");
	assert_int_equal(run_cmd(&ttmon_cmd_status, "status", "now", path), TTMON_EXIT_ERROR);
	assert_string_equal(err_out, "ttmon status: takes no argument: now, see ttmon status --help\n");
	assert_int_equal(run_cmd(&ttmon_cmd_probes, "probes", "--help", path), 0);
	assert_memory_equal(out, "usage: ttmon probes", 19);
	assert_width(out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_show),
		cmocka_unit_test_setup_teardown(test_status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status_families, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_probes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
	};

	program_invocation_short_name = (char[]){ "ttmon" };
	ttmon_log_set_level(TTMON_LOG_ERROR);
	return cmocka_run_group_tests_name("client_cmds", tests, NULL, NULL);
}
