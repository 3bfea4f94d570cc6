// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_redact.c: names into pseudonyms, of any bytes: the first one says whether the rest is a record,
 * a text, or metrics. What decodes decodes afterwards, what does not does not, and nothing is written
 * past the end.
 */
#include "tools/bugreport/redact.c"
#include "tools/bugreport/redact_rec.c"
#include "tools/bugreport/redact_text.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ttmon_redact key = { { 1, 2 } };

static void must(bool cond)
{
	if (!cond)
		abort();
}

static void as_record(const uint8_t *data, size_t size)
{
	static uint64_t in[TTMON_RECORD_MAX / 8], out[TTMON_RECORD_MAX / 8];
	size_t n;

	/* What the reader of recordings lets through. */
	size = MIN(size / 8 * 8, sizeof(in));
	if (!size)
		return;
	memset(in, 0, sizeof(in));
	memcpy(in, data, size);
	n = ttmon_redact_record(&key, in, size, out);
	must(n && n % 8 == 0 && n <= sizeof(out));
	must((ttmon_decode(in, size, TTMON_CPU_DAEMON) == TTMON_DECODE_OK) ==
	     (ttmon_decode(out, n, TTMON_CPU_DAEMON) == TTMON_DECODE_OK));
}

/* The second byte says how much room there is. */
static void as_text(const uint8_t *data, size_t size)
{
	size_t room, n;
	char *buf;

	if (!size)
		return;
	room = 16 + 8u * data[0];
	buf = malloc(room);
	if (!buf)
		return;
	n = ttmon_redact_text(&key, (const char *)data + 1, size - 1, buf, room);
	must(n < room && strlen(buf) <= n);
	free(buf);
}

static void as_metrics(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return;
	(void)!ttmon_redact_metrics(&key, (const char *)data, size, out);
	fclose(out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 3 == 0)
		as_record(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		as_text(data + 1, size - 1);
	else
		as_metrics(data + 1, size - 1);
	return 0;
}
