// SPDX-License-Identifier: GPL-2.0-only
/*
 * details.c: `ttmon smi --details`: a block for each chip: its names in each system, its memory by
 * type, its files with the processes that have them mapped, and the processes that have it open. Pure
 * except for the FILE.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "tools/smi/smi.h"
#include "lib/base/fmt.h"

#define INDENT	   16
#define PIDS_SHOWN 16

_printf_(4, 5) static void detail(const struct ttmon_term_style *style, FILE *out, const char *label, const char *fmt,
				  ...)
{
	char line[1024];
	va_list args;
	size_t len = (size_t)snprintf(line, sizeof(line), "  %-*s", INDENT - 2, label);

	va_start(args, fmt);
	vsnprintf(line + len, sizeof(line) - len, fmt, args);
	va_end(args);
	/* The label keeps its spaces; the text after it is wrapped. */
	fprintf(out, "%.*s", (int)len, line);
	ttmon_term_put_wrapped(out, line + len, style->columns, INDENT, INDENT);
}

/* Replaces spaces so that a figure such as "3.0 GiB" is never broken across lines. */
static char *unbroken(char *text)
{
	for (char *p = strchr(text, ' '); p; p = strchr(p, ' '))
		*p = TTMON_TERM_BLANK;
	return text;
}

static const char *hex_text(char *buf, size_t n, uint64_t value)
{
	if (value)
		snprintf(buf, n, "0x%" PRIx64, value);
	else
		snprintf(buf, n, "n/a");
	return buf;
}

static void pids_text(char *buf, size_t n, const struct ttmon_smi_pids *pids)
{
	size_t len = 0;

	if (!pids->known || !pids->n) {
		snprintf(buf, n, pids->known ? "nobody" : "n/a");
		return;
	}
	for (size_t i = 0; i < MIN(pids->n, (size_t)PIDS_SHOWN); i++)
		len += (size_t)snprintf(buf + len, n - len, "%s%" PRIu32, i ? ", " : "", pids->pids[i]);
	if (pids->n > PIDS_SHOWN)
		snprintf(buf + len, n - len, " and %zu more", pids->n - PIDS_SHOWN);
}

/*
 * Time stamps are of the real-time clock, in the first version 1 of the monotonic clock. The size of
 * the number distinguishes them.
 */
static void age_text(char *buf, size_t n, const struct ttmon_smi *v, uint64_t ts_ns)
{
	uint64_t now = ts_ns > 1000000000000000000u ? v->real_ns : v->mono_ns;
	char text[TTMON_FMT_LEN];

	if (!ts_ns)
		snprintf(buf, n, "never updated");
	else if (ts_ns > now)
		snprintf(buf, n, "updated at an unknown time");
	else
		snprintf(buf, n, "updated %s ago", unbroken(ttmon_fmt_ns(text, sizeof(text), now - ts_ns)));
}

static void detail_file(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out,
			const struct ttmon_smi_file *f)
{
	char pids[320], age[64];

	if (f->shm->status != TTMON_TTSHM_OK) {
		detail(style, out, "file", "%s: %s%s%s", f->shm->name, ttmon_ttshm_status_text(f->shm->status),
		       f->shm->err ? ": " : "", f->shm->err ? strerror(f->shm->err) : "");
		return;
	}
	age_text(age, sizeof(age), v, f->shm->last_update_ns);
	detail(style, out, "file", "%s: version %" PRIu32 "%s, user %u, mode %04o, %" PRIu32 " attached, %s",
	       f->shm->name, f->shm->version, f->shm->ours ? " by ttmond" : "", (unsigned int)f->shm->uid,
	       f->shm->mode & 07777, f->shm->reference_count, age);
	detail(style, out, "", "%zu process%s, %zu dead; logical device %" PRId64 "; matched by %s%s",
	       f->live + f->dead, f->live + f->dead == 1 ? "" : "es", f->dead, f->shm->device_id,
	       f->match == TTMON_SMI_MATCH_NONE ? "nothing" : ttmon_smi_match_name(f->match),
	       f->counted ? "" : "; not in the figures above");
	pids_text(pids, sizeof(pids), &f->mapped);
	detail(style, out, "", "mapped by %s", pids);
}

/* On a Galaxy it writes "tray 4, chip 8, ": the location has both in one number. */
static void place_text(char *buf, size_t n, const struct ttmon_smi_chip *chip)
{
	const struct ttmon_ev_tt_chip *fact = chip->sys ? &chip->sys->fact : NULL;

	buf[0] = '\0';
	if (fact && fact->flags & TTMON_TT_CHIP_GALAXY)
		snprintf(buf, n, "tray\1%u, chip\1%u, ", fact->tray, fact->chip);
	else if (!fact && chip->location != TTMON_SMI_NONE && chip->card && !strncmp(chip->card, "galaxy", 6))
		snprintf(buf, n, "tray\1%u, chip\1%u, ", chip->location >> 4, chip->location & 15);
}

/* Shows the ids of the chip in each system. */
static void detail_ids(const struct ttmon_term_style *style, FILE *out, const struct ttmon_smi_chip *chip)
{
	const struct ttmon_ev_tt_chip *fact = chip->sys ? &chip->sys->fact : NULL;
	uint32_t bdf = fact ? fact->bdf : TTMON_SMI_NONE;
	char a[TTMON_FMT_LEN] = "n/a", b[48] = "n/a", c[TTMON_FMT_LEN], d[TTMON_FMT_LEN];

	if (bdf != TTMON_SMI_NONE)
		snprintf(a, sizeof(a), "%04x:%02x:%02x.%u", bdf >> 16, bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7);
	if (fact && fact->ordinal != TTMON_SMI_NONE)
		snprintf(b, sizeof(b), "%s/dev/tenstorrent/%" PRIu32,
			 fact->flags & TTMON_TT_CHIP_REMOTE ? "behind " : "", fact->ordinal);
	detail(style, out, "bus", "%s, %s", a, b);
	snprintf(b, sizeof(b), "n/a");
	if (chip->location != TTMON_SMI_NONE)
		snprintf(b, sizeof(b), "%u", chip->location);
	place_text(d, sizeof(d), chip);
	detail(style, out, "board", "id %s, %slocation %s", hex_text(a, sizeof(a), chip->board_id), d, b);
	b[0] = '\0';
	if (chip->key_v1)
		snprintf(b, sizeof(b), " (%" PRIu64 ")", chip->key_v1);
	detail(style, out, "ids", "composite %s%s, unique %s, asic %s", hex_text(a, sizeof(a), chip->key_v1), b,
	       hex_text(c, sizeof(c), chip->unique_id), hex_text(d, sizeof(d), fact ? fact->asic_id : 0));
}

static void detail_memory(const struct ttmon_term_style *style, FILE *out, const uint64_t *bytes)
{
	char text[TTMON_TTSHM_TYPES][TTMON_FMT_LEN];

	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		ttmon_smi_bytes(text[t], sizeof(text[t]), bytes[t], false);
	detail(style, out, "memory", "DRAM\1%s, trace\1%s, L1\1%s, L1\1small\1%s, CB\1%s, kernel\1%s",
	       unbroken(text[TTMON_TT_TYPE_DRAM]), unbroken(text[TTMON_TT_TYPE_TRACE_BUF]),
	       unbroken(text[TTMON_TT_TYPE_L1]), unbroken(text[TTMON_TT_TYPE_L1_SMALL]),
	       unbroken(text[TTMON_TT_TYPE_CB]), unbroken(text[TTMON_TT_TYPE_KERNEL]));
}

void ttmon_smi_details(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out, size_t i)
{
	const struct ttmon_smi_chip *chip = &v->chips[i];
	const struct ttmon_ttsys_chip *sys = chip->sys;
	const char *arch = ttmon_smi_arch_name(chip->arch);
	char card[20] = "n/a", firmware[28] = "n/a", pids[320];
	bool filed = false;

	if (chip->card)
		ttmon_term_clean(card, sizeof(card), chip->card, 16, 16, false);
	if (sys && sys->fw_bundle[0])
		ttmon_term_clean(firmware, sizeof(firmware), sys->fw_bundle, sizeof(sys->fw_bundle), 24, false);
	fprintf(out, "\n%s%s%s  %s%s\n", ttmon_term_escape(style, TTMON_TERM_BOLD), chip->id,
		ttmon_term_escape(style, TTMON_TERM_PLAIN), ttmon_smi_status_name(chip->status),
		sys && sys->fact.flags & TTMON_TT_CHIP_REMOTE ? ", remote half of its board" : "");
	detail(style, out, "card", "%s, %s, firmware %s", card, arch ? arch : "n/a", firmware);
	detail_ids(style, out, chip);
	detail_memory(style, out, chip->bytes);
	for (size_t f = 0; f < v->nr_shm; f++) {
		if (v->files[f].chip != i)
			continue;
		filed = true;
		detail_file(v, style, out, &v->files[f]);
	}
	if (!filed)
		detail(style, out, "file", "n/a");
	pids_text(pids, sizeof(pids), &chip->open);
	detail(style, out, "open in", "%s", pids);
}
