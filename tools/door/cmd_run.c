// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_run.c: `ttmon run`, `attach`, `replay` and `serve`: ttmond(8) with the options that a person
 * needs. It stays the program that traces; this one waits for it, and says at the end which files were
 * written and what to type next.
 *
 * A database is written by default. The command never fails because of it: where nothing can be
 * written a line says so, and the command runs.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fmt.h"
#include "tools/cli/cmds.h"
#include "tools/door/door.h"

#define MAX_MORE 32
#define MAX_ARGS 64

enum { RUN = 1, ATTACH = 2, REPLAY = 4, SERVE = 8 };

struct opts {
	const char *out, *record, *trace, *pin, *unpin, *socket, *listen;
	const char *more[MAX_MORE];
	size_t nr_more;
	uint64_t max_events;
	bool no_db, quiet, json;
};

/* What is started. */
struct start {
	const struct ttmon_cli *cli;
	const struct opts *o;
	char *argv[MAX_ARGS];
	size_t n;
	char db[PATH_MAX], old[PATH_MAX + 8], ttmond[PATH_MAX + 16], preload[PATH_MAX + 64], pin_db[PATH_MAX + 32];
	char events[32], sites[4096];
	bool has_db, has_old;
};

/* ---- programs and libraries beside this one ---- */

static const char *own_folder(char buf[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", buf, PATH_MAX - 1);

	buf[MAX(n, (ssize_t)0)] = '\0';
	if (strrchr(buf, '/'))
		*strrchr(buf, '/') = '\0';
	return buf;
}

static void find_ttmond(struct start *s)
{
	char own[PATH_MAX];

	snprintf(s->ttmond, sizeof(s->ttmond), "%s/ttmond", own_folder(own));
	if (access(s->ttmond, X_OK))
		strcpy(s->ttmond, "ttmond"); /* by PATH */
}

/* Where it was built, or installed; else the loader searches. */
static void find_pin(char *buf, size_t n)
{
	static const char *const places[] = { "../libttmon", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu",
					      "../lib" };
	char own[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];

	own_folder(own);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/%s/libttmon-pin.so", own, places[i]);
		if (realpath(path, real) && !strpbrk(real, ": \t")) {
			snprintf(buf, n, "LD_PRELOAD=%s", real);
			return;
		}
	}
	snprintf(buf, n, "LD_PRELOAD=libttmon-pin.so");
}

/* ---- the database ---- */

/* Can a file be made in the folder of path? -errno. */
static int can_write(const char *path)
{
	char dir[PATH_MAX];
	char *slash;
	int fd;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		strcpy(dir, ".");
	else if (slash == dir)
		slash[1] = '\0';
	else
		*slash = '\0';
	fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		if (strlen(dir) + sizeof("/.ttmon-XXXXXX") > sizeof(dir))
			return -ENAMETOOLONG;
		strcat(dir, "/.ttmon-XXXXXX");
		fd = mkostemp(dir, O_CLOEXEC);
		if (fd >= 0)
			unlink(dir);
	}
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The file that is there becomes NAME.old, as perf.data does. Only a file, not a folder. */
static void keep_old(struct start *s)
{
	struct stat st;

	snprintf(s->old, sizeof(s->old), "%s.old", s->db);
	s->has_old = !lstat(s->db, &st) && S_ISREG(st.st_mode) && !rename(s->db, s->old);
}

/* Was nothing written after all, the one before is where it was. */
static void give_back_old(const struct start *s)
{
	struct stat st;

	if (s->has_old && lstat(s->db, &st) && errno == ENOENT)
		(void)!rename(s->old, s->db);
}

/* What root wrote for a user of sudo is that user's. */
static void give_to_user(const char *path)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	_cleanup_close_ int fd = -1;
	struct stat st;
	char *end;

	if (geteuid() || !uid || !gid || !*uid || !*gid)
		return;
	/* A file that has no other name, and was root's: not one that was put in its place. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid)
		return;
	errno = 0;
	st.st_uid = (uid_t)strtoul(uid, &end, 10);
	if (*end || errno)
		return;
	st.st_gid = (gid_t)strtoul(gid, &end, 10);
	if (!*end && !errno)
		(void)!fchown(fd, st.st_uid, st.st_gid);
}

/* ---- the command line ---- */

static void arg(struct start *s, const char *text)
{
	if (s->n + 1 < MAX_ARGS)
		s->argv[s->n++] = (char *)text;
}

static void option(struct start *s, const char *name, const char *value)
{
	if (value) {
		arg(s, name);
		arg(s, value);
	}
}

static int choose_db(struct start *s)
{
	const struct opts *o = s->o;
	int err;

	if (o->no_db && o->out)
		return ttmon_cli_bad(s->cli, "--output and --no-db do not go together");
	if (o->no_db || s->cli->cmd->is == SERVE)
		return 0;
	if (snprintf(s->db, sizeof(s->db), "%s", o->out ? o->out : TTMON_DOOR_DB) >= (int)sizeof(s->db))
		return ttmon_cli_bad(s->cli, "--output is too long");
	err = can_write(s->db);
	if (err) {
		fprintf(stderr,
			"%s: %s cannot be written here (%s): the run goes on without a database, -o FILE "
			"chooses another place\n",
			s->cli->cmd->name, s->db, strerror(-err));
		return 0;
	}
	s->has_db = true;
	return 0;
}

/* The command is to pin by what an earlier run moved. */
static int choose_pin(struct start *s)
{
	const char *db = s->o->pin;
	struct stat a, b;
	char real[PATH_MAX];

	if (!db)
		return s->o->unpin ? ttmon_cli_bad(s->cli, "--unpin needs --pin DB: what earlier runs moved") : 0;
	if (!realpath(db, real))
		return ttmon_cli_bad(s->cli, "--pin: %s: %s", db, strerror(errno));
	/* It is about to be moved aside. */
	if (s->has_db && !stat(db, &a) && !stat(s->db, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		strcat(real, strlen(real) + 5 < sizeof(real) ? ".old" : "");
	snprintf(s->pin_db, sizeof(s->pin_db), "TTMON_PIN_DB=%s", real);
	find_pin(s->preload, sizeof(s->preload));
	if (s->o->unpin &&
	    snprintf(s->sites, sizeof(s->sites), "TTMON_PIN_SITES=%s", s->o->unpin) >= (int)sizeof(s->sites))
		return ttmon_cli_bad(s->cli, "--unpin is too long");
	return 0;
}

static int compose(struct start *s)
{
	const struct opts *o = s->o;
	unsigned int what = s->cli->cmd->is;

	find_ttmond(s);
	arg(s, s->ttmond);
	if (o->max_events) {
		snprintf(s->events, sizeof(s->events), "%llu", (unsigned long long)o->max_events);
		option(s, "--max-events", s->events);
	}
	option(s, "--dump-db", s->has_db ? s->db : NULL);
	option(s, "--record", o->record);
	option(s, "--trace-out", o->trace);
	option(s, "--socket", o->socket);
	option(s, "--listen-address", o->listen);
	if (o->quiet)
		arg(s, "--quiet");
	for (size_t i = 0; i < o->nr_more; i++)
		arg(s, o->more[i]);
	if (what == REPLAY)
		option(s, "--replay", s->cli->words[0]);
	for (int i = 0; what == ATTACH && i < s->cli->nr_words; i++) {
		const char *pid = s->cli->words[i];

		if (!*pid || pid[strspn(pid, "0123456789")])
			return ttmon_cli_bad(s->cli, "the number of a process is wanted, not %s", pid);
		if (s->n + 3 >= MAX_ARGS)
			return ttmon_cli_bad(s->cli, "these are too many processes: ttmond --help");
		option(s, "--pid", pid);
	}
	return 0;
}

/* argv of ttmond, with the command behind it; the caller frees the array. */
static char **whole_argv(const struct start *s)
{
	int words = s->cli->cmd->is == RUN ? s->cli->nr_words : 0;
	char **argv = calloc(s->n + (size_t)words + 6, sizeof(*argv));
	size_t n = s->n;

	if (!argv)
		return NULL;
	memcpy(argv, s->argv, s->n * sizeof(*argv));
	if (words)
		argv[n++] = (char *)"--";
	if (words && s->o->pin) {
		/* Of the command alone: not of the tracer. */
		argv[n++] = (char *)"env";
		argv[n++] = (char *)s->preload;
		argv[n++] = (char *)s->pin_db;
		if (*s->sites)
			argv[n++] = (char *)s->sites;
	}
	for (int i = 0; i < words; i++)
		argv[n++] = s->cli->words[i];
	return argv;
}

/* ---- while it runs ---- */

static volatile sig_atomic_t child;

/* The terminal sends Ctrl-C to both; a signal that was sent to this process alone is for the other. */
static void hand_on(int sig, siginfo_t *info, void *ctx)
{
	(void)ctx;
	if (info->si_code != SI_KERNEL && child > 0)
		kill((pid_t)child, sig);
}

static void handle_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 };
	struct sigaction sa = { .sa_sigaction = hand_on, .sa_flags = SA_SIGINFO | SA_RESTART };

	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		sigaction(sigs[i], &sa, NULL);
}

/* Its exit status, as a shell has it. */
static int run_child(const struct start *s, char **argv)
{
	sigset_t all, before;
	int status;
	pid_t pid;

	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[0], argv);
		fprintf(stderr, "%s: cannot start %s: %s\n", s->cli->cmd->name, argv[0], strerror(errno));
		_exit(TTMON_EXIT_ERROR);
	}
	child = pid;
	handle_signals();
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		fprintf(stderr, "%s: cannot start ttmond: %s\n", s->cli->cmd->name, strerror(errno));
		return TTMON_EXIT_ERROR;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return TTMON_EXIT_ERROR;
	child = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- at the end ---- */

/* It is there, and not one that was there before: that one was moved aside. */
static bool was_written(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

static void next_step(const struct start *s, FILE *f)
{
	char db[PATH_MAX + 8], old[PATH_MAX + 16];

	if (s->o->pin && s->has_old)
		fprintf(f, "next: ttmon diff %s %s\n", ttmon_fmt_quote(old, sizeof(old), s->old),
			ttmon_fmt_quote(db, sizeof(db), s->db));
	else if (s->o->pin)
		fprintf(f, "next: ttmon diff %s %s\n", ttmon_fmt_quote(old, sizeof(old), s->o->pin),
			ttmon_fmt_quote(db, sizeof(db), s->db));
	else
		fprintf(f, "next: ttmon advise %s\n", ttmon_fmt_quote(db, sizeof(db), s->db));
}

static void say_files(const struct start *s, int status)
{
	const struct opts *o = s->o;
	const char *files[] = { s->has_db ? s->db : NULL, o->record, o->trace };
	const char *keys[] = { "database", "recording", "timeline" };
	char name[PATH_MAX + 8];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (was_written(files[i]))
			give_to_user(files[i]);
	if (o->json) {
		json_t *doc = json_pack("{s:i}", "status", status);

		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			json_object_set_new(doc, keys[i], was_written(files[i]) ? json_string(files[i]) : json_null());
		json_dumpf(doc, stderr, JSON_COMPACT | JSON_PRESERVE_ORDER);
		fputc('\n', stderr);
		json_decref(doc);
		return;
	}
	if (o->quiet)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!was_written(files[i]))
			continue;
		fprintf(stderr, "%s: %s: %s", s->cli->cmd->name, keys[i],
			ttmon_fmt_quote(name, sizeof(name), files[i]));
		if (!i && s->has_old)
			fprintf(stderr, " (the one before: %s)", ttmon_fmt_quote(name, sizeof(name), s->old));
		fputc('\n', stderr);
	}
	if (s->has_db && was_written(s->db))
		next_step(s, stderr);
}

static int start(const struct ttmon_cli *cli, void *ctx)
{
	struct start s = { .cli = cli, .o = ctx };
	_cleanup_free_ char **argv = NULL;
	int err, status;

	if (cli->cmd->is == RUN && (!cli->dashes || !cli->nr_words))
		return cli->nr_words
			       ? ttmon_cli_bad(cli, "the command stands behind --: ttmon run -- %s", cli->words[0])
			       : ttmon_cli_bad(cli, "-- wants a command to run");
	err = choose_db(&s);
	err = err ? err : choose_pin(&s);
	err = err ? err : compose(&s);
	if (err)
		return err;
	argv = whole_argv(&s);
	if (!argv) {
		fprintf(stderr, "%s: out of memory\n", cli->cmd->name);
		return TTMON_EXIT_ERROR;
	}
	if (s.has_db)
		keep_old(&s);
	status = run_child(&s, argv);
	if (s.has_db)
		give_back_old(&s);
	if (cli->cmd->is != SERVE)
		say_files(&s, status);
	return status;
}

static int take_more(struct ttmon_cli *cli, const char *text)
{
	struct opts *o = cli->opts;

	if (o->nr_more == MAX_MORE)
		return ttmon_cli_bad(cli, "at most %d --ttmond", MAX_MORE);
	if (*text != '-')
		return ttmon_cli_bad(
			cli, "--ttmond wants an option with its value, as --ttmond=--window=128, not \"%s\"", text);
	o->more[o->nr_more++] = text;
	return 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "output", 'o', "FILE", "the database (" TTMON_DOOR_DB ")",
	  "What has that name becomes FILE.old. With sudo the files belong to the user who typed it.",
	  TTMON_CLI_TEXT(struct opts, out, ":file"), .of = RUN | ATTACH | REPLAY },
	{ "no-db", 0, NULL, "keep no database", NULL, TTMON_CLI_FLAG(struct opts, no_db), .of = RUN | ATTACH | REPLAY },
	{ "pin", 0, "DB", "the command pins by what the run of DB moved (libttmon-pin.so)",
	  "As with LD_PRELOAD=libttmon-pin.so and TTMON_PIN_DB=DB, see libttmon-pin(7).",
	  TTMON_CLI_TEXT(struct opts, pin, ":file"), .of = RUN },
	{ "unpin", 0, "SITES", "with --pin: unpin memory of these functions, a,b, or all",
	  "As TTMON_PIN_SITES: no kernel reads or writes the memory of a named function in place, see libttmon-pin(7).",
	  TTMON_CLI_TEXT(struct opts, unpin, NULL), .of = RUN },
	{ "max-events", 0, "N", "events kept in the database (10,000,000)",
	  "Past it the sums go on, and the database says that it is incomplete.",
	  TTMON_CLI_NUMBER(struct opts, max_events, 1, UINT64_MAX), .of = RUN | ATTACH | REPLAY },
	{ "record", 'r', "FILE", "keep the raw stream too, for ttmon replay", NULL,
	  TTMON_CLI_TEXT(struct opts, record, ":file"), .of = RUN | ATTACH },
	{ "trace-out", 'T', "FILE", "write a timeline for Perfetto too", NULL,
	  TTMON_CLI_TEXT(struct opts, trace, ":file"), .of = RUN | ATTACH | REPLAY },
	{ "socket", 's', "PATH", "local socket, or none (" TTMON_SOCKET_DEFAULT ")", NULL,
	  TTMON_CLI_TEXT(struct opts, socket, ":file"), .of = SERVE },
	{ "listen-address", 'l', "ADDR", "HOST:PORT for metrics, or none (127.0.0.1:9843)", NULL,
	  TTMON_CLI_TEXT(struct opts, listen, NULL), .of = SERVE },
	{ "ttmond", 0, "OPTION", "one more option of ttmond(8), repeatable: --ttmond=--window=128", NULL,
	  TTMON_CLI_CALL(take_more) },
	{ "quiet", 'q', NULL, "no live line and no summary", NULL, TTMON_CLI_FLAG(struct opts, quiet) },
	{ "json", 'j', NULL, "the files and the exit status as JSON, on standard error", NULL,
	  TTMON_CLI_FLAG(struct opts, json) },
};

#define COMMAND_NOTES "At the end it says which files were written, and what to type next."
#define COMMON	      .notes = COMMAND_NOTES, TTMON_CLI_OPTS(options), .size = sizeof(struct opts), .run = start

const struct ttmon_cli_cmd ttmon_cmd_run = {
	.name = "ttmon run",
	.summary = "trace a command from its first call to its end, and keep a database",
	.args = "[OPTIONS] -- CMD ARGS...",
	.about = "Runs a command and traces it: what it pins, what it copies, what that costs. Needs root.\n"
		 "Exit status: the command's.",
	.is = RUN,
	.min_words = 0,
	.max_words = -1,
	.stops = true,
	COMMON,
};
const struct ttmon_cli_cmd ttmon_cmd_attach = {
	.name = "ttmon attach",
	.summary = "trace processes that run, until Ctrl-C or their end",
	.args = "[OPTIONS] PID...",
	.about = "Traces processes that run already, and their children, until Ctrl-C or their end. Needs root.",
	.is = ATTACH,
	.min_words = 1,
	.max_words = -1,
	.words = ":pid",
	COMMON,
};
const struct ttmon_cli_cmd ttmon_cmd_replay = {
	.name = "ttmon replay",
	.summary = "a recording (ttmon run -r) becomes a database again",
	.args = "[OPTIONS] RECORDING",
	.about = "Runs a recording through the same analysis: the same database again.",
	.is = REPLAY,
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	COMMON,
};
const struct ttmon_cli_cmd ttmon_cmd_serve = {
	.name = "ttmon serve",
	.summary = "trace every program of the host until Ctrl-C, as ttmond.service does",
	.args = "[OPTIONS]",
	.about = "Traces every program of the host until Ctrl-C and answers ttmon status, ttmon top and\n"
		 "Prometheus, as ttmond.service does. Needs root.",
	.is = SERVE,
	COMMON,
};
