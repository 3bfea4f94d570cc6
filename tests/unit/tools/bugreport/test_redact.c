// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_redact.c: pseudonyms: the hash, what stays and what does not, JSON, metrics, and every record
 * that can hold a name.
 *
 * The command's sources are not in the archive that unit tests are linked with: they are included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "daemon/io/files/rec.h"

#include "tools/bugreport/redact.c"
#include "tools/bugreport/redact_text.c"

/*
 * What the writer says of itself: true, or for test_pace() that it writes nothing until it has been
 * asked five times.
 */
#define ASKED 5
static unsigned int asked;
static bool stuck;

static void stats(const struct ttmon_rec_writer *w, struct ttmon_rec_stats *ret)
{
	if (stuck)
		*ret = (struct ttmon_rec_stats){ .file_bytes = ++asked < ASKED ? 100 : 200 };
	else
		ttmon_rec_writer_stats(w, ret);
}

#define ttmon_rec_writer_stats stats
#include "tools/bugreport/redact_rec.c"
#undef ttmon_rec_writer_stats

#define SECRET "zanzibar"

static struct ttmon_redact r;

static int set_up(void **state)
{
	uint8_t key[TTMON_REDACT_KEY];

	(void)state;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	ttmon_redact_init(&r, key);
	return 0;
}

/*
 * The vectors of the paper's appendix and of its reference implementation: key 00 01 .. 0f, message 00
 * 01 .. n-1.
 */
static void test_hash(void **state)
{
	static const struct {
		size_t n;
		uint64_t hash;
	} known[] = { { 0, 0x726fdb47dd0e0e31 },
		      { 1, 0x74f839c593dc67fd },
		      { 8, 0x93f5f5799a932462 },
		      { 15, 0xa129ca6149be45e5 } };
	uint8_t data[16];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_true(ttmon_redact_hash(&r, data, known[i].n) == known[i].hash);
}

static const char *text_of(const char *text)
{
	static char buf[4][4096];
	static unsigned int turn;
	char *b = buf[turn++ % 4];
	size_t n = ttmon_redact_text(&r, text, strlen(text), b, sizeof(buf[0]));

	assert_int_equal(strlen(b), n);
	return b;
}

static void test_what_stays(void **state)
{
	static const char *const stay[] = { "",
					    "/",
					    "[heap]",
					    "[vdso]",
					    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
					    "/usr/local/cuda/lib64/libcudart.so.13.0.48",
					    "/lib/x86_64-linux-gnu/libc.so.6",
					    "/dev/nvidia0",
					    "/dev/tenstorrent/3",
					    "/system.slice",
					    "other",
					    "1234567890123",
					    "0x7f0012",
					    "-1.5" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
		assert_string_equal(text_of(stay[i]), stay[i]);
}

static void test_what_does_not(void **state)
{
	static const char *const go[] = { SECRET,
					  "/home/" SECRET "/x",
					  "/usr/lib/lib" SECRET ".so.1",
					  "/opt/libcudart-" SECRET ".so.12",
					  "/opt/libcuda.so." SECRET,
					  "/opt/" SECRET " (deleted)",
					  "[anon:" SECRET "]",
					  "/memfd:" SECRET " (deleted)",
					  "python --model=/" SECRET "/7 " SECRET,
					  "/system.slice/" SECRET ".service",
					  "0x" SECRET,
					  "nvidia" SECRET };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(go); i++) {
		assert_null(strstr(text_of(go[i]), SECRET));
		assert_string_not_equal(text_of(go[i]), go[i]);
	}
}

/* The same word, the same pseudonym, wherever it stands; another word or another key, another one. */
static void test_stable(void **state)
{
	static const uint8_t zeros[TTMON_REDACT_KEY];
	struct ttmon_redact other;
	char word[64], theirs[64];

	(void)state;
	ttmon_redact_word(&r, SECRET, strlen(SECRET), word, sizeof(word));
	assert_int_equal(strlen(word), TTMON_REDACT_LEN - 1);
	assert_non_null(strstr(text_of("/usr/bin/" SECRET), word));
	assert_non_null(strstr(text_of("run " SECRET " 1"), word));
	assert_null(strstr(text_of("/usr/bin/" SECRET "1"), word));
	ttmon_redact_init(&other, zeros);
	ttmon_redact_word(&other, SECRET, strlen(SECRET), theirs, sizeof(theirs));
	assert_string_not_equal(word, theirs);
}

static void test_shape(void **state)
{
	char buf[TTMON_COMM_LEN];

	(void)state;
	assert_int_equal(strncmp(text_of("/home/" SECRET), "/home/x", 7), 0);
	assert_true(ends(text_of("/opt/a b (deleted)"), strlen(text_of("/opt/a b (deleted)")), DELETED));
	assert_int_equal(strncmp(text_of("[anon:" SECRET "]"), "[anon:x", 7), 0);
	assert_non_null(strstr(text_of("/system.slice/" SECRET ".service"), ".service"));
	/* In a field of 16 bytes there is no room for more than the pseudonym. */
	ttmon_redact_word(&r, "abcd.service", 12, buf, sizeof(buf));
	assert_int_equal(strlen(buf), TTMON_REDACT_LEN - 1);
}

/* A path of one-letter folders grows by redaction: it becomes one pseudonym, and stays a path. */
static void test_too_long(void **state)
{
	char path[600], buf[256];

	(void)state;
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 2 ? 'q' : '/';
	assert_true(ttmon_redact_text(&r, path, sizeof(path), buf, sizeof(buf)) == TTMON_REDACT_LEN);
	assert_int_equal(strlen(buf), TTMON_REDACT_LEN);
	assert_int_equal(buf[0], '/');
	assert_int_equal(buf[1], 'x');
}

static void test_cuda(void **state)
{
	(void)state;
	assert_true(ttmon_redact_is_cuda("cudaHostAlloc", 13));
	assert_true(ttmon_redact_is_cuda("cudaMemcpyAsync_ptsz", 20));
	assert_true(ttmon_redact_is_cuda("cuMemcpyHtoD_v2_ptds", 20));
	assert_false(ttmon_redact_is_cuda("cudaHostAllocator", 17));
	assert_false(ttmon_redact_is_cuda("user0", 5));
	assert_false(ttmon_redact_is_cuda("_v2", 3));
}

/* ---- JSON ---- */

static void test_json(void **state)
{
	static const char doc[] =
		"{\"version\":\"0.1\",\"mode\":\"system\",\"n\":7,\"ok\":true,\"none\":null,\"at\":\"0x7f\","
		"\"ns\":\"12\","
		"\"comm\":\"" SECRET "\",\"targets\":[\"/bin/" SECRET "\",3],\"new_key\":\"" SECRET "\","
		"\"objects\":[{\"path\":\"/opt/" SECRET "/libcudart.so.13\",\"probes\":["
		"{\"symbol\":\"cudaMalloc\",\"fn\":\"cudaMalloc\",\"state\":\"attached\"},"
		"{\"symbol\":\"" SECRET "\",\"fn\":\"user0\",\"state\":\"attached\"},{\"symbol\":\"" SECRET
		"\",\"fn\":\"\"}]}],"
		"\"programs\":[{\"name\":\"cuda_call\",\"run_count\":5}],\"list\":[{\"name\":\"" SECRET "\"}],"
		"\"kind\":{\"name\":\"" SECRET "\"}}";
	json_t *root = json_loads(doc, 0, NULL);
	_cleanup_free_ char *text = NULL;
	char word[TTMON_COMM_LEN];

	(void)state;
	assert_non_null(root);
	assert_int_equal(ttmon_redact_json(&r, root), 0);
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	assert_non_null(text);
	assert_null(strstr(text, SECRET));
	ttmon_redact_word(&r, SECRET, strlen(SECRET), word, sizeof(word));
	assert_non_null(strstr(text, word));
	for (size_t i = 0; i < 9; i++) {
		static const char *const there[] = {
			"\"version\":\"0.1\"",	  "\"mode\":\"system\"", "\"n\":7",
			"\"at\":\"0x7f\"",	  "\"ns\":\"12\"",	 "\"symbol\":\"cudaMalloc\"",
			"\"name\":\"cuda_call\"", "/libcudart.so.13",	 "\"state\":\"attached\""
		};

		assert_non_null(strstr(text, there[i]));
	}
}

/* ---- metrics ---- */

static char *metrics_of(const char *text)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	assert_non_null(f);
	assert_int_equal(ttmon_redact_metrics(&r, text, strlen(text), f), 0);
	assert_int_equal(fclose(f), 0);
	return out;
}

static void test_metrics(void **state)
{
	_cleanup_free_ char *out = metrics_of("# HELP ttmond_x what\n"
					      "# TYPE ttmond_x gauge\n"
					      "ttmond_x 1\n"
					      "ttmond_y{method=\"host_alloc\",comm=\"" SECRET "\"} 1.5e+06 1234\n"
					      "ttmond_z_bucket{unit=\"a \\\"" SECRET "\\\\\\n\",le=\"+Inf\"} 3\n"
					      "ttmond_other{comm=\"other\",} 4\n"
					      "no value{\n"
					      "ttmond_bad{comm=\"" SECRET "} 1\n"
					      "ttmond_exemplar 1 # {comm=\"" SECRET "\"} 1\n"
					      "# EOF");
	char word[TTMON_COMM_LEN], line[128];

	(void)state;
	ttmon_redact_word(&r, SECRET, strlen(SECRET), word, sizeof(word));
	assert_null(strstr(out, SECRET));
	assert_non_null(strstr(out, "# HELP ttmond_x what\n# TYPE ttmond_x gauge\nttmond_x 1\n"));
	snprintf(line, sizeof(line), "\nttmond_y{method=\"host_alloc\",comm=\"%s\"} 1.5e+06 1234\n", word);
	assert_non_null(strstr(out, line));
	assert_non_null(strstr(out, "\",le=\"+Inf\"} 3\n"));
	assert_non_null(strstr(out, "ttmond_other{comm=\"other\",} 4\n"));
	assert_null(strstr(out, "ttmond_bad"));
	assert_null(strstr(out, "ttmond_exemplar"));
	assert_non_null(strstr(out, "# EOF\n"));
}

/* ---- records ---- */

static union {
	uint64_t words[TTMON_RECORD_MAX / 8];
	struct ttmon_event h;
	struct ttmon_ev_proc proc;
	struct ttmon_ev_task task;
	struct ttmon_ev_rmid rmid;
	struct ttmon_ev_wait_who wait;
	struct ttmon_ev_tag tag;
	struct ttmon_ev_checkpoint checkpoint;
	struct ttmon_ev_tt_kernel kernel;
	struct ttmon_ev_clock clock;
	struct ttmon_ev_text text;
	struct ttmon_ev_object object;
	struct ttmon_ev_map map;
	struct ttmon_ev_symbol symbol;
	struct ttmon_ev_alloc alloc;
} in, out;

static void start(enum ttmon_event_kind kind)
{
	memset(&in, 0, sizeof(in));
	in.h = (struct ttmon_event){
		.ts_ns = 77, .kind = (uint16_t)kind, .tgid = 4711, .cpu = kind >= TTMON_EV_FACT ? TTMON_CPU_DAEMON : 1
	};
}

/* Redacts in: the result decodes, differs in nothing but its text, and has no secret in it. */
static size_t redacted(size_t size)
{
	size_t n;

	assert_int_equal(ttmon_decode(&in, size, 4), TTMON_DECODE_OK);
	memset(&out, 0xee, sizeof(out));
	n = ttmon_redact_record(&r, &in, size, &out);
	assert_int_equal(ttmon_decode(&out, n, 4), TTMON_DECODE_OK);
	assert_memory_equal(&in.h, &out.h, sizeof(in.h));
	assert_null(memmem(&out, n, SECRET, strlen(SECRET)));
	return n;
}

static void is_word(const char *field, size_t size)
{
	char word[64];

	ttmon_redact_word(&r, SECRET, strlen(SECRET), word, size);
	assert_string_equal(field, word);
	/* Nothing is left behind the NUL. */
	for (size_t i = strlen(word); i < size; i++)
		assert_int_equal(field[i], 0);
}

static void test_fixed_records(void **state)
{
	(void)state;
	start(TTMON_EV_PROC);
	strcpy(in.proc.comm, SECRET);
	in.proc.ppid = 12;
	memcpy(in.proc.comm + 10, "ibar", 4);
	assert_int_equal(redacted(sizeof(in.proc)), sizeof(in.proc));
	is_word(out.proc.comm, TTMON_COMM_LEN);
	assert_int_equal(out.proc.ppid, 12);

	start(TTMON_EV_TASK);
	strcpy(in.task.comm, SECRET);
	redacted(sizeof(in.task));
	is_word(out.task.comm, TTMON_COMM_LEN);
	start(TTMON_EV_TASK);
	in.task.cls = TTMON_CPU_KERNEL;
	strcpy(in.task.comm, "kworker/0:1");
	redacted(sizeof(in.task));
	assert_string_equal(out.task.comm, "kworker/0:1");

	for (int i = 0; i < 2; i++) {
		start(i ? TTMON_EV_RMID_SET : TTMON_EV_RMID);
		in.rmid.rmid = 3;
		in.rmid.op = TTMON_RMID_EXISTING;
		strcpy(in.rmid.comm, SECRET);
		redacted(sizeof(in.rmid));
		is_word(out.rmid.comm, TTMON_COMM_LEN);
		assert_int_equal(out.rmid.rmid, 3);
	}

	/* The processes of a wait; the rows behind them hold what other calls left there. */
	start(TTMON_EV_WAIT);
	in.wait.w.fn = 1;
	in.wait.w.bits = TTMON_W_WHO;
	in.wait.nr_rows = 2;
	for (unsigned int i = 0; i < TTMON_WHO_ROWS; i++)
		strcpy(in.wait.row[i].who.comm, SECRET);
	in.wait.row[1].who.role = TTMON_WAIT_ROLE_RAN_KERNEL;
	strcpy(in.wait.row[1].who.comm, "kworker/0:1");
	redacted(sizeof(in.wait));
	is_word(out.wait.row[0].who.comm, sizeof(out.wait.row[0].who.comm));
	assert_string_equal(out.wait.row[1].who.comm, "kworker/0:1");

	start(TTMON_EV_TAG);
	strcpy(in.tag.tag, SECRET);
	in.tag.addr = 0x1000;
	redacted(sizeof(in.tag));
	is_word(out.tag.tag, sizeof(out.tag.tag));

	start(TTMON_EV_CHECKPOINT);
	strcpy(in.checkpoint.label, SECRET);
	redacted(sizeof(in.checkpoint));
	is_word(out.checkpoint.label, sizeof(out.checkpoint.label));

	start(TTMON_EV_TT_KERNEL);
	strcpy(in.kernel.name, "/home/" SECRET "/k.cpp");
	redacted(sizeof(in.kernel));
	assert_int_equal(strncmp(out.kernel.name, "/home/x", 7), 0);

	start(TTMON_EV_CLOCK);
	in.clock.nr_cpus = 2;
	in.clock.page_size = 4096;
	strcpy(in.clock.hostname, SECRET);
	strcpy(in.clock.release, "6.18.0");
	redacted(sizeof(in.clock));
	is_word(out.clock.hostname, sizeof(out.clock.hostname));
	assert_string_equal(out.clock.release, "6.18.0");
}

/* Puts the text at the end of in, of which head bytes are there; returns the size of the record. */
static size_t put_tail(size_t head, __u32 *len, const char *text)
{
	*len = (__u32)strlen(text);
	memcpy((char *)&in + head, text, *len);
	return ROUND_UP(head + *len, 8);
}

static void test_records_with_text(void **state)
{
	static const char path[] = "/srv/" SECRET "/a";
	size_t n;

	(void)state;
	start(TTMON_EV_PROC_NAME);
	in.text.what = TTMON_TEXT_CMDLINE;
	n = redacted(put_tail(sizeof(in.text), &in.text.len, "run --to=/" SECRET " 5"));
	assert_int_equal(n, ROUND_UP(sizeof(in.text) + out.text.len, 8));
	assert_int_equal(strncmp(out.text.text + out.text.len - 2, " 5", 2), 0);

	start(TTMON_EV_PROC_NAME);
	in.text.what = TTMON_TEXT_UID;
	redacted(put_tail(sizeof(in.text), &in.text.len, "1000"));
	assert_memory_equal(out.text.text, "1000", 4);

	start(TTMON_EV_OBJECT);
	in.object.id = 1;
	in.object.build_id_len = 20;
	memset(in.object.build_id, 7, 20);
	redacted(put_tail(sizeof(in.object), &in.object.len, path));
	assert_memory_equal(in.object.build_id, out.object.build_id, 20);

	start(TTMON_EV_MAP);
	in.map.start = 0x1000;
	in.map.end = 0x2000;
	redacted(put_tail(sizeof(in.map), &in.map.len, path));
	assert_memory_equal(out.map.name, "/srv/x", 6);
	start(TTMON_EV_MAP);
	in.map.start = 0x1000;
	in.map.end = 0x2000;
	redacted(put_tail(sizeof(in.map), &in.map.len, "[heap]"));
	assert_int_equal(out.map.len, 6);
	assert_memory_equal(out.map.name, "[heap]", 6);

	start(TTMON_EV_SYMBOL);
	in.symbol.object = 1;
	redacted(put_tail(sizeof(in.symbol), &in.symbol.len, "load_" SECRET));
	assert_int_equal(out.symbol.len, TTMON_REDACT_LEN - 1);
	start(TTMON_EV_SYMBOL);
	in.symbol.object = 1;
	redacted(put_tail(sizeof(in.symbol), &in.symbol.len, "cudaMemcpy"));
	assert_int_equal(out.symbol.len, 10);
	assert_memory_equal(out.symbol.name, "cudaMemcpy", 10);
}

/* The longest text that a record can hold, all of it slashes and letters. */
static void test_longest(void **state)
{
	size_t n = TTMON_RECORD_MAX - sizeof(struct ttmon_ev_text);

	(void)state;
	start(TTMON_EV_PROC_NAME);
	in.text.what = TTMON_TEXT_EXE;
	in.text.len = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		in.text.text[i] = i % 2 ? 'q' : '/';
	redacted(sizeof(in.text) + n);
	assert_int_equal(out.text.len, TTMON_REDACT_LEN);
}

static void test_records_without_names(void **state)
{
	(void)state;
	start(TTMON_EV_ALLOC);
	in.alloc.addr = 0x7f0000000000;
	in.alloc.size = 4096;
	in.alloc.fn = 1;
	in.alloc.method = TTMON_METHOD_HOST_ALLOC;
	in.alloc.nframes = 2;
	in.alloc.frames[1] = 0x400000;
	assert_int_equal(redacted(sizeof(in.alloc) + 16), sizeof(in.alloc) + 16);
	assert_memory_equal(&in, &out, sizeof(in.alloc) + 16);
}

/* What does not decode is replaced by something that does not decode: its bytes may be anything. */
static void test_malformed(void **state)
{
	size_t n;

	(void)state;
	start(TTMON_EV_MAX);
	strcpy((char *)&in + sizeof(in.h), SECRET);
	n = ttmon_redact_record(&r, &in, 64, &out);
	assert_null(memmem(&out, n, SECRET, strlen(SECRET)));
	assert_int_equal(ttmon_decode(&out, n, 4), TTMON_DECODE_KIND);
	assert_int_equal(out.h.ts_ns, 77);
	n = ttmon_redact_record(&r, &in, 8, &out);
	assert_int_not_equal(ttmon_decode(&out, n, 4), TTMON_DECODE_OK);
}

/* ---- the file ---- */

struct seen {
	uint64_t records, advances, bytes;
	bool secret;
};

static void see(void *ctx, const void *rec, size_t size)
{
	struct seen *s = ctx;

	s->records++;
	s->bytes += size;
	s->secret |= memmem(rec, size, SECRET, strlen(SECRET)) != NULL;
}

static void see_advance(void *ctx, uint64_t watermark_ns)
{
	struct seen *s = ctx;

	(void)watermark_ns;
	s->advances++;
}

static int read_back(const char *path, struct seen *s, uint64_t *end_ns, uint64_t *dropped)
{
	const struct ttmon_rec_sink sink = { see, see_advance, s };
	_cleanup_(free_reader) struct ttmon_rec_reader *reader = NULL;

	*s = (struct seen){ 0 };
	assert_int_equal(ttmon_rec_reader_open(path, &reader), 0);
	return ttmon_rec_read(reader, &sink, UINT64_MAX, end_ns, dropped);
}

/* An allocation whose stack cannot be compressed, and every thousandth time a command line. */
static size_t make_record(uint64_t i)
{
	if (i % 1000 == 0) {
		start(TTMON_EV_PROC_NAME);
		in.text.what = TTMON_TEXT_CMDLINE;
		return put_tail(sizeof(in.text), &in.text.len, "run --what=" SECRET);
	}
	start(TTMON_EV_ALLOC);
	in.alloc.fn = 1;
	in.alloc.method = TTMON_METHOD_HOST_ALLOC;
	in.alloc.nframes = TTMON_MAX_FRAMES;
	for (size_t k = 0; k < TTMON_MAX_FRAMES; k++)
		in.alloc.frames[k] = ttmon_redact_hash(&r, &(uint64_t[]){ i, k }, 16);
	return sizeof(in.alloc) + TTMON_MAX_FRAMES * sizeof(in.alloc.frames[0]);
}

/*
 * The writer drops what it has no buffer for: a buffer's worth of entries later, it has to have
 * written something.
 */
static void test_pace(void **state)
{
	char dir[] = "/tmp/ttmon-redact.XXXXXX", to[64];
	struct copy c = { .redact = &r, .file_bytes = 100 };
	uint64_t bytes = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(to, sizeof(to), "%s/b.rec", dir);
	assert_int_equal(ttmon_rec_writer_new(to, 4, &c.w), 0);
	stuck = true;
	for (uint64_t i = 1; !asked; i++) {
		size_t size = make_record(i);

		on_record(&c, &in, size);
		bytes += size;
		assert_true(bytes < TTMON_REC_RAW_MAX + 2 * TTMON_RECORD_MAX);
	}
	stuck = false;
	assert_int_equal(asked, ASKED);
	assert_true(bytes > TTMON_REC_RAW_MAX / 2);
	assert_int_equal(ttmon_rec_writer_close(c.w, 1), 0);
	unlink(to);
	rmdir(dir);
}

/*
 * Nothing is lost, and nothing that was gets forgotten: the old one lacks 3 records, and so does the
 * new one.
 */
static void test_recording(void **state)
{
	char dir[] = "/tmp/ttmon-redact.XXXXXX", from[64], to[64];
	struct ttmon_rec_writer *w = NULL;
	uint64_t n = 50000, end_ns, dropped;
	struct seen old, new;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(from, sizeof(from), "%s/a.rec", dir);
	snprintf(to, sizeof(to), "%s/b.rec", dir);
	assert_int_equal(ttmon_rec_writer_new(from, 4, &w), 0);
	for (uint64_t i = 0; i < n; i++) {
		size_t size = make_record(i);

		ttmon_rec_writer_record(w, &in, size);
		if (i % 100 == 0)
			ttmon_rec_writer_advance(w, i);
	}
	for (int i = 0; i < 3; i++)
		ttmon_rec_writer_record(w, &in, 1);
	assert_int_equal(ttmon_rec_writer_close(w, 5555), 0);
	assert_int_equal(read_back(from, &old, &end_ns, &dropped), 0);
	assert_int_equal(dropped, 3);
	assert_true(old.secret);

	assert_int_equal(ttmon_redact_recording(&r, from, to), 0);
	assert_int_equal(read_back(to, &new, &end_ns, &dropped), 0);
	assert_int_equal(dropped, 3);
	assert_int_equal(end_ns, 5555);
	assert_int_equal(new.records, old.records);
	assert_int_equal(new.advances, old.advances);
	assert_false(new.secret);

	/* Cut off: what there is, said to be incomplete. */
	assert_int_equal(truncate(from, 100000), 0);
	assert_int_equal(ttmon_redact_recording(&r, from, to), -ENODATA);
	assert_int_equal(read_back(to, &new, &end_ns, &dropped), 0);
	assert_true(new.records < old.records);
	assert_true(dropped > 0);
	unlink(from);
	unlink(to);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_what_stays),
		cmocka_unit_test(test_what_does_not),
		cmocka_unit_test(test_stable),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_cuda),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_fixed_records),
		cmocka_unit_test(test_records_with_text),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_records_without_names),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_recording),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
