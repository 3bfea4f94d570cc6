// SPDX-License-Identifier: GPL-2.0-only
/*
 * rec.c: the recorder's text, put into the program as it is (the compiler runs in the top folder;
 * memtrace.mk names the file as a prerequisite).
 */
#include "memtrace/ptx/ptx_int.h"
#include "lib/base/util.h"

__asm__(".pushsection .rodata\n"
	"ttmon_ptx_text:\n"
	".incbin \"memtrace/ptx/recorder.ptx\"\n"
	"ttmon_ptx_text_end:\n"
	".popsection\n");
extern const char ttmon_ptx_text[] __attribute__((visibility("hidden"))),
	ttmon_ptx_text_end[] __attribute__((visibility("hidden")));

/* What is said behind a line: "// >= 70", "// < 90", "// stream". */
static bool holds(const char *s, size_t len, const char *which, uint32_t target)
{
	if (len > 3 && !memcmp(s, ">= ", 3))
		return target >= strtoul(s + 3, NULL, 10);
	if (len > 2 && !memcmp(s, "< ", 2))
		return target < strtoul(s + 2, NULL, 10);
	return memmem(s, len, which, strlen(which)) || memmem(s, len, "all", 3);
}

void ttmon_ptx_recorder(FILE *f, bool aggregate, uint32_t target, enum ttmon_ptx_part how)
{
	const char *which = aggregate ? "aggregate" : "stream";
	bool part = false;

	for (const char *p = ttmon_ptx_text, *eol; p < ttmon_ptx_text_end; p = eol + 1) {
		const char *mark;
		size_t len;
		bool head;

		eol = memchr(p, '\n', (size_t)(ttmon_ptx_text_end - p)); /* the file's last line has one */
		mark = memmem(p, (size_t)(eol - p), "//", 2);
		len = mark ? (size_t)(mark - p) : (size_t)(eol - p);
		if (mark == p) {
			if (p[2] == '#')
				part = holds(p + 3, (size_t)(eol - p) - 3, which, target);
			continue;
		}
		while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
			len--;
		if (!len || !part || (mark && !holds(mark + 3, (size_t)(eol - mark) - 3, which, target)))
			continue;
		/* The head of a function is one line. */
		head = len > 6 && !memcmp(p, ".func ", 6);
		if (how == TTMON_PTX_EXTERN && !head)
			continue;
		if (head && how != TTMON_PTX_WHOLE)
			fputs(how == TTMON_PTX_EXTERN ? ".extern " : ".visible ", f);
		fwrite(p, 1, len, f);
		fputs(how == TTMON_PTX_EXTERN ? ";\n" : "\n", f);
	}
}
