// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_bugreport.c: `ttmon bugreport` collects what a developer needs to look at a problem on another
 * machine, in one archive. The archive is built in a private folder beside its final place and renamed
 * when it is complete. The folder is always removed. errors.txt in the archive names what could not be
 * collected.
 */
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/read/client.h"
#include "tools/bugreport/bugreport.h"
#include "tools/cli/cmds.h"
#include "lib/base/fmt.h"

#define RECORD_MAX_S 600
#define TAR_MS	     600000
#define FOLDER	     "ttmon-bugreport" /* top folder in the archive */

struct args {
	const char *output, *socket;
	bool redact;
	unsigned int record_s; /* 0: no recording */
};

/* ---- files of the report ---- */

FILE *ttmon_report_open(struct ttmon_report *b, const char *name)
{
	int fd = openat(b->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "a");

	if (!f) {
		ttmon_report_lacks(b, name, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	return f;
}

void ttmon_report_lacks(struct ttmon_report *b, const char *what, const char *why)
{
	fprintf(b->errors, "%s: %s\n", what, why);
}

/* ---- the answers of the service ---- */

static const struct {
	const char *path, *name;
} routes[] = {
	{ "/v1/status", "status.json" },   { "/v1/probes", "probes.json" }, { "/v1/families", "families.json" },
	{ "/v1/devices", "devices.json" }, { "/metrics", "metrics.txt" },
};

static int put_redacted(const struct ttmon_redact *r, const char *name, const struct ttmon_client_reply *reply,
			FILE *out)
{
	json_t *root;
	int err;

	if (strstr(name, ".txt"))
		return ttmon_redact_metrics(r, reply->body, reply->len, out);
	root = json_loadb(reply->body, reply->len, 0, NULL);
	if (!root)
		return -EBADMSG;
	err = ttmon_redact_json(r, root);
	if (!err && json_dumpf(root, out, JSON_COMPACT | JSON_PRESERVE_ORDER))
		err = -EIO;
	json_decref(root);
	return err;
}

static int put_reply(struct ttmon_report *b, const char *name, const struct ttmon_client_reply *reply)
{
	_cleanup_fclose_ FILE *out = ttmon_report_open(b, name);
	int err = 0;

	if (!out)
		return -EIO;
	if (b->hide)
		err = put_redacted(&b->redact, name, reply, out);
	else
		fwrite(reply->body, 1, reply->len, out);
	if (!err && (fflush(out) || ferror(out)))
		err = -EIO;
	return err;
}

static void ask_service(struct ttmon_report *b, const char *socket)
{
	bool silent = false;

	for (size_t i = 0; i < ARRAY_SIZE(routes) && !ttmon_report_stopped; i++) {
		_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
		char why[64];
		int err = silent ? -ETIMEDOUT : ttmon_client_get(socket, routes[i].path, &reply);

		if (!err && reply.status != 200) {
			snprintf(why, sizeof(why), "the service answers %s with %d", routes[i].path, reply.status);
			b->missing++;
			ttmon_report_lacks(b, routes[i].name, why);
			continue;
		}
		/* After one time-out the service is not asked again: it may hang. */
		silent = err == -ETIMEDOUT;
		if (!err)
			err = put_reply(b, routes[i].name, &reply);
		if (err) {
			b->missing++;
			ttmon_report_lacks(b, routes[i].name, strerror(-err));
		}
	}
}

/* ---- the archive ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_tree(char **path)
{
	if (*path)
		nftw(*path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(*path);
}

static void report_fini(struct ttmon_report *b)
{
	if (b->errors)
		fclose(b->errors);
	if (b->dir >= 0)
		close(b->dir);
	free(b->folder);
}

static int fail(const char *output, int err)
{
	fprintf(stderr, "ttmon: cannot write the report to %s: %s\n", output, strerror(-err));
	return TTMON_EXIT_ERROR;
}

/* Makes the scratch folder beside the archive, and in it the folder that becomes the archive. */
static int make_folders(const char *output, char **scratch, struct ttmon_report *b)
{
	_cleanup_free_ char *name = NULL;
	int fd;

	if (asprintf(&name, "%s.XXXXXX", output) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(name))
		return -errno;
	*scratch = TAKE_PTR(name);
	if (asprintf(&b->folder, "%s/" FOLDER, *scratch) < 0) {
		b->folder = NULL;
		return -ENOMEM;
	}
	if (mkdir(b->folder, 0700))
		return -errno;
	b->dir = open(b->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->dir < 0)
		return -errno;
	fd = openat(b->dir, "errors.txt", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	b->errors = fdopen(fd, "a");
	return b->errors ? 0 : -errno;
}

/* An error message of tar goes to stderr. */
static int pack(const char *scratch, const char *output)
{
	_cleanup_free_ char *archive = NULL;
	_cleanup_close_ int fd = -1;
	int err;

	if (asprintf(&archive, "%s/archive.tar.gz", scratch) < 0) {
		archive = NULL;
		return -ENOMEM;
	}
	err = ttmon_child_run((char *[]){ "tar", "-czf", archive, "--sort=name", "--owner=root:0", "--group=root:0",
					  "-C", (char *)scratch, FOLDER, NULL },
			      STDERR_FILENO, NULL, TAR_MS);
	if (err)
		return err == -ENOEXEC ? -EIO : err;
	fd = open(archive, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0600) || fsync(fd) || rename(archive, output))
		return -errno;
	return 0;
}

static int tell(const struct args *a, const struct ttmon_report *b)
{
	char size[TTMON_FMT_LEN];
	struct stat st = { 0 };

	(void)!stat(a->output, &st);
	printf("%s: %s%s%s\n", a->output, ttmon_fmt_bytes(size, sizeof(size), (uint64_t)st.st_size),
	       a->redact ? "" : ", names and paths in it (--redact hides them)",
	       b->missing ? ", not complete: see errors.txt in it" : "");
	return b->missing ? TTMON_EXIT_NO : 0;
}

static int make_report(const struct args *a)
{
	_cleanup_(report_fini) struct ttmon_report b = { .dir = -1, .hide = a->redact };
	_cleanup_(remove_tree) char *scratch = NULL;
	uint8_t key[TTMON_REDACT_KEY];
	struct stat st;
	int err;

	if (!lstat(a->output, &st) && !S_ISREG(st.st_mode)) {
		fprintf(stderr, "ttmon: %s exists and is not a regular file\n", a->output);
		return TTMON_EXIT_ERROR;
	}
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return fail(a->output, -errno);
	ttmon_redact_init(&b.redact, key);
	err = make_folders(a->output, &scratch, &b);
	if (err)
		return fail(a->output, err);
	/* The recording comes first, so that the service's figures cover the recorded time too. */
	if (a->record_s)
		ttmon_report_recording(&b, scratch, a->record_s);
	ask_service(&b, a->socket);
	if (!ttmon_report_stopped)
		ttmon_report_host(&b);
	if (ttmon_report_stopped)
		return fail(a->output, -EINTR);
	if (fflush(b.errors) || ferror(b.errors))
		return fail(a->output, -EIO);
	err = pack(scratch, a->output);
	return err ? fail(a->output, err) : tell(a, &b);
}

/* ---- the command ---- */

static void stop(int sig)
{
	(void)sig;
	ttmon_report_stopped = 1;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct sigaction sa = { .sa_handler = stop };
	time_t now = time(NULL);
	struct args *a = ctx;
	char name[64];
	struct tm tm;

	if (a->output && !*a->output)
		return ttmon_cli_bad(cli, "--output needs a file name");
	if (!a->output) {
		strftime(name, sizeof(name), "ttmon-bugreport-%Y%m%d-%H%M%S.tar.gz", localtime_r(&now, &tm));
		a->output = name;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	return make_report(a);
}

static const struct ttmon_cli_opt options[] = {
	{ "output", 'o', "FILE", "where to (ttmon-bugreport-DATE.tar.gz)", NULL,
	  TTMON_CLI_TEXT(struct args, output, ":file") },
	{ "redact", 'r', NULL,
	  "replace names with pseudonyms, the same throughout the archive, and leave out logs; numbers,\n"
	  "ids, build-ids and names of CUDA functions stay",
	  NULL, TTMON_CLI_FLAG(struct args, redact) },
	{ "record", 0, "SECONDS", "add a recording of the whole host, 1-600 s, made by a second ttmond (needs root)",
	  NULL, TTMON_CLI_NUMBER(struct args, record_s, 1, RECORD_MAX_S) },
	TTMON_ROW_SOCKET(struct args, socket),
};
const struct ttmon_cli_cmd ttmon_cmd_bugreport = {
	.name = "ttmon bugreport",
	.summary = "collect what a bug report needs in one archive, with names redacted on request",
	.args = "[-o FILE.tar.gz] [--redact] [--record SECONDS] [--socket PATH]",
	.about = "Writes one archive with the service's own reports (status, probes, families, devices, metrics), "
		 "versions,\n"
		 "kernel settings and, if they can be read, the logs of the kernel and the service. errors.txt in the "
		 "archive\n"
		 "lists what is missing. Without --redact, it contains names of programs, paths, command lines and "
		 "cgroups.",
	.notes = "Exit status: 0 written, 1 written without a requested part, 2 not written.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct args){ .socket = TTMON_SOCKET_DEFAULT },
	.size = sizeof(struct args),
	.run = run,
};
