// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_trace.c: `ttmon trace RECORDING|DATABASE|live -o OUT` writes a timeline in the Chrome trace
 * event format. The first bytes of the input tell a recording from a database. An input that ends
 * early is written as far as it goes; the output and a line on stderr say so.
 */
#include <fcntl.h>

#include <zlib.h>

#include "lib/os/outfile.h"
#include "daemon/io/files/rec.h"
#include "daemon/io/files/tracefile.h"
#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/trace/trace_db.h"
#include "version.h"

/*
 * The most runs, dispatches and calls, each. The tool may use more memory than the daemon: some 250 MB
 * at most.
 */
#define MAX_ITEMS 1000000

struct opts {
	const char *out, *socket;
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "ttmon: cannot write the trace to %s: %s\n", ttmon_outfile_name(what), strerror(-err));
	return TTMON_EXIT_ERROR;
}

/* ---- recording ---- */

static void free_pipeline(struct ttmon_pipeline **p)
{
	ttmon_pipeline_free(*p);
}

static void free_reader(struct ttmon_rec_reader **r)
{
	ttmon_rec_reader_free(*r);
}

static int from_recording(const char *path, struct ttmon_rec_reader *r, const char *out)
{
	_cleanup_(free_pipeline) struct ttmon_pipeline *p = NULL;
	const struct ttmon_pipeline_cfg cfg = { .nr_cpus = ttmon_rec_reader_cpus(r),
						.history = { .keep_all = true },
						.timeline = { .max_items = MAX_ITEMS } };
	struct ttmon_trace_in in = { .version = TTMON_VERSION, .source = "recording" };
	uint64_t dropped = 0;
	char why[512];
	int err = ttmon_pipeline_new(&cfg, NULL, NULL, &p), fed;

	if (err) {
		fprintf(stderr, "ttmon: cannot make the pipeline: %s\n", strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	fed = ttmon_rec_replay(r, p, UINT64_MAX, &in.end_ns, &dropped);
	if (fed)
		fprintf(stderr, "ttmon: %s %s: the trace ends there\n", path,
			fed == -ENODATA ? "was cut off" : "is damaged");
	if (dropped)
		fprintf(stderr, "ttmon: %llu records are missing from %s\n", (unsigned long long)dropped, path);
	ttmon_pipeline_finish(p, in.end_ns);
	in.pipeline = p;
	in.cut = fed || dropped;
	err = ttmon_trace_write(out, &in, why, sizeof(why));
	if (err) {
		fprintf(stderr, "ttmon: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	return in.cut ? TTMON_EXIT_NO : 0;
}

/* ---- database ---- */

static int db_fd(int fd, bool gzip, void *ctx)
{
	return ttmon_trace_db(ctx, fd, gzip);
}

static int from_database(const char *path, const char *out)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	char why[600];
	int err;

	if (ttmon_db_open(path, &db, why, sizeof(why))) {
		fprintf(stderr, "ttmon: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	err = ttmon_outfile_write(out, db_fd, db);
	if (err && ttmon_db_why(db)[0]) {
		fprintf(stderr, "ttmon: %s\n", ttmon_db_why(db));
		return TTMON_EXIT_ERROR;
	}
	return err ? fail(out, err) : 0;
}

/* ---- service ---- */

static int body_fd(int fd, bool gzip, void *ctx)
{
	const struct ttmon_client_reply *reply = ctx;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), err = 0;
	gzFile gz;

	if (copy < 0)
		return -errno;
	/* Mode "T" writes without compression. */
	gz = gzdopen(copy, gzip ? "w1" : "wT");
	if (!gz) {
		close(copy);
		return -ENOMEM;
	}
	for (size_t at = 0; at < reply->len && !err;) {
		unsigned int n = (unsigned int)MIN(reply->len - at, (size_t)1 << 20);

		errno = 0;
		if (gzwrite(gz, reply->body + at, n) != (int)n)
			err = errno ? -errno : -EIO;
		at += n;
	}
	errno = 0;
	if (gzclose(gz) != Z_OK && !err)
		err = errno ? -errno : -EIO;
	return err;
}

static int from_service(const char *socket, const char *out)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	int err = ttmon_client_fetch(socket, "/v1/trace", &reply);

	if (err)
		return TTMON_EXIT_ERROR;
	if (!reply.len || reply.body[0] != '{') {
		fprintf(stderr, "ttmon: the answer of the service is not a trace\n");
		return TTMON_EXIT_ERROR;
	}
	err = ttmon_outfile_write(out, body_fd, &reply);
	return err ? fail(out, err) : 0;
}

static int from_file(const char *path, const char *out)
{
	_cleanup_(free_reader) struct ttmon_rec_reader *r = NULL;
	int err = strcmp(path, "-") == 0 ? -EBADMSG : ttmon_rec_reader_open(path, &r);

	if (!err)
		return from_recording(path, r, out);
	if (err == -EBADMSG)
		return from_database(path, out);
	fprintf(stderr, "ttmon: %s: %s\n", path,
		err == -EPROTONOSUPPORT ? "recorded by another version" : strerror(-err));
	return TTMON_EXIT_ERROR;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	const struct opts *o = ctx;

	if (!o->out)
		return ttmon_cli_bad(cli, "the output file is missing: -o OUT.json");
	return strcmp(cli->words[0], "live") == 0 ? from_service(o->socket, o->out) : from_file(cli->words[0], o->out);
}

static const struct ttmon_cli_opt options[] = {
	{ "output", 'o', "OUT", "output file; compressed if it ends in .gz; - is standard output", NULL,
	  TTMON_CLI_TEXT(struct opts, out, ":file") },
	TTMON_ROW_SOCKET(struct opts, socket),
};
const struct ttmon_cli_cmd ttmon_cmd_trace = {
	.name = "ttmon trace",
	.summary = "a timeline for Perfetto of a recording, a database or the service",
	.args = "FILE -o OUT.json\nlive -o OUT.json [--socket PATH]",
	.about = "Writes a timeline that Perfetto (ui.perfetto.dev) and chrome://tracing open: allocations, transfers, "
		 "calls,\n"
		 "dispatches and what ran on Tenstorrent chips, on one clock. FILE is a recording (ttmond --record) or "
		 "a database\n"
		 "(ttmond --dump-db; no calls in it). With \"live\", the trace has what the running service keeps.",
	.notes = "Exit status: 0 written, 1 written as far as the recording goes, 2 not written.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .socket = TTMON_SOCKET_DEFAULT },
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = "live :file",
	.run = run,
};
