// SPDX-License-Identifier: GPL-2.0-only
/*
 * json.c: `ttmon smi --json`, schema "ttmon-smi" version 1; docs and man page name its members. Members are only ever added.
 *
 * Bytes, millidegrees, microwatts and pids are numbers; ids are "0x..." strings, keys of files and times decimal strings, as both
 * may be more than a double holds. null: not known, or not there.
 */
#include <fcntl.h>

#include "lib/os/jsonw.h"
#include "tools/smi/smi.h"

static void key_text(struct ttmon_jsonw *w, const char *key, const char *text, size_t n)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_text(w, text, n);
}

static void key_number(struct ttmon_jsonw *w, const char *key, uint64_t value, bool known)
{
	ttmon_jsonw_key(w, key);
	if (known)
		ttmon_jsonw_num(w, value);
	else
		ttmon_jsonw_null(w);
}

static void key_bytes(struct ttmon_jsonw *w, const char *key, uint64_t bytes)
{
	key_number(w, key, bytes, bytes != TTMON_SMI_UNKNOWN);
}

/* An id; 0 is none. */
static void key_id(struct ttmon_jsonw *w, const char *key, uint64_t id)
{
	ttmon_jsonw_key(w, key);
	if (id)
		ttmon_jsonw_addr(w, id);
	else
		ttmon_jsonw_null(w);
}

static void key_bool(struct ttmon_jsonw *w, const char *key, bool value)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_bool(w, value);
}

static void key_pids(struct ttmon_jsonw *w, const char *key, const struct ttmon_smi_pids *pids)
{
	ttmon_jsonw_key(w, key);
	if (!pids->known) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '[');
	for (size_t i = 0; i < pids->n; i++)
		ttmon_jsonw_num(w, pids->pids[i]);
	ttmon_jsonw_close(w, ']');
}

static void put_types(struct ttmon_jsonw *w, const uint64_t *bytes)
{
	static const char *const names[TTMON_TTSHM_TYPES] = {
#define X(id, NAME, name) [id] = name,
		TTMON_TT_TYPE_TABLE(X)
#undef X
	};

	ttmon_jsonw_key(w, "bytes");
	ttmon_jsonw_open(w, '{');
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		key_bytes(w, names[t], bytes[t]);
	ttmon_jsonw_close(w, '}');
}

static void put_flags(struct ttmon_jsonw *w, uint32_t flags)
{
	static const char *const names[TTMON_TT_FLAGS] = {
#define X(id, NAME, name, help) [id] = name,
		TTMON_TT_F_TABLE(X)
#undef X
	};

	ttmon_jsonw_key(w, "flags");
	ttmon_jsonw_open(w, '[');
	for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
		if (flags & 1u << k)
			ttmon_jsonw_text(w, names[k], 32);
	ttmon_jsonw_close(w, ']');
}

static void put_use(struct ttmon_jsonw *w, const char *key, uint64_t used, uint64_t total)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '{');
	key_bytes(w, "used", used);
	key_bytes(w, "total", total);
	ttmon_jsonw_close(w, '}');
}

static void put_chip(struct ttmon_jsonw *w, const struct ttmon_smi *v, size_t i)
{
	const struct ttmon_smi_chip *chip = &v->chips[i];
	const struct ttmon_ttsys_chip *sys = chip->sys;
	const struct ttmon_ev_tt_chip *fact = sys ? &sys->fact : NULL;
	uint32_t bdf = fact ? fact->bdf : TTMON_SMI_NONE;
	char text[32];

	ttmon_jsonw_open(w, '{');
	key_text(w, "id", chip->id, sizeof(chip->id));
	key_text(w, "id_source", ttmon_smi_source_name(chip->source), 16);
	key_text(w, "status", ttmon_smi_status_name(chip->status), 16);
	key_text(w, "reason", ttmon_smi_why_text(chip->why), 256);
	key_text(w, "arch", ttmon_smi_arch_name(chip->arch), 16);
	key_text(w, "card", chip->card, 16);
	key_bool(w, "remote", fact && fact->flags & TTMON_TT_CHIP_REMOTE);
	key_bool(w, "resetting", sys && sys->resetting);
	key_number(w, "tray", fact ? fact->tray : 0, fact && fact->flags & TTMON_TT_CHIP_GALAXY);
	key_number(w, "chip", fact ? fact->chip : 0, fact && fact->flags & TTMON_TT_CHIP_GALAXY);
	key_number(w, "ordinal", fact ? fact->ordinal : 0, fact && fact->ordinal != TTMON_SMI_NONE);
	snprintf(text, sizeof(text), "%04x:%02x:%02x.%u", bdf >> 16, bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7);
	key_text(w, "bdf", bdf == TTMON_SMI_NONE ? NULL : text, sizeof(text));
	key_id(w, "board_id", chip->board_id);
	key_number(w, "location", chip->location, chip->location != TTMON_SMI_NONE);
	key_id(w, "asic_id", fact ? fact->asic_id : 0);
	key_id(w, "unique_id", chip->unique_id);
	ttmon_jsonw_key(w, "key_v1");
	if (chip->key_v1)
		ttmon_jsonw_time(w, chip->key_v1);
	else
		ttmon_jsonw_null(w);
	key_text(w, "firmware", sys && sys->fw_bundle[0] ? sys->fw_bundle : NULL, sys ? sizeof(sys->fw_bundle) : 0);
	ttmon_jsonw_key(w, "temperature_mc");
	if (sys && sys->temperature_mc != INT32_MIN)
		ttmon_jsonw_int(w, sys->temperature_mc);
	else
		ttmon_jsonw_null(w);
	key_number(w, "power_uw", sys ? (uint64_t)sys->power_uw : 0, sys && sys->power_uw >= 0);
	key_number(w, "aiclk_mhz", sys ? (uint64_t)sys->aiclk_mhz : 0, sys && sys->aiclk_mhz >= 0);
	put_use(w, "dram", chip->dram_used, chip->dram_total);
	put_use(w, "l1", chip->l1_used, chip->l1_total);
	put_types(w, chip->bytes);
	if (v->wants_busy) {
		key_number(w, "busy_ns", chip->busy_ns, v->busy_window_ns && chip->busy_ns != TTMON_SMI_UNKNOWN);
		key_number(w, "busy_error_ns", chip->busy_error_ns,
			   v->busy_window_ns && chip->busy_error_ns != TTMON_SMI_UNKNOWN);
		key_bool(w, "busy_at_least", chip->busy_least && chip->busy_ns != TTMON_SMI_UNKNOWN);
	}
	key_bool(w, "unattributed", chip->unattributed);
	key_bool(w, "unlisted", chip->unlisted);
	put_flags(w, chip->flags);
	key_number(w, "processes", chip->live, true);
	key_number(w, "dead_entries", chip->dead, true);
	ttmon_jsonw_key(w, "files");
	ttmon_jsonw_open(w, '[');
	for (size_t f = 0; f < v->nr_shm; f++)
		if (v->files[f].chip == i)
			ttmon_jsonw_num(w, f);
	ttmon_jsonw_close(w, ']');
	key_pids(w, "open_pids", &chip->open);
	ttmon_jsonw_close(w, '}');
}

static void put_process(struct ttmon_jsonw *w, const struct ttmon_smi *v, const struct ttmon_smi_process *p)
{
	ttmon_jsonw_open(w, '{');
	key_number(w, "pid", p->pid, true);
	key_text(w, "name", p->name[0] ? p->name : NULL, sizeof(p->name));
	key_number(w, "chip", p->chip, true);
	key_text(w, "chip_id", v->chips[p->chip].id, TTMON_SMI_ID_LEN);
	key_number(w, "file", p->file, p->file != TTMON_SMI_NONE);
	key_bool(w, "alive", p->alive);
	ttmon_jsonw_key(w, "open");
	if (v->chips[p->chip].open.known)
		ttmon_jsonw_bool(w, p->open);
	else
		ttmon_jsonw_null(w);
	put_types(w, p->bytes);
	ttmon_jsonw_key(w, "last_update_ns");
	if (p->last_update_ns)
		ttmon_jsonw_time(w, p->last_update_ns);
	else
		ttmon_jsonw_null(w);
	ttmon_jsonw_close(w, '}');
}

static void put_file(struct ttmon_jsonw *w, const struct ttmon_smi *v, size_t i)
{
	const struct ttmon_smi_file *f = &v->files[i];
	const struct ttmon_ttshm *shm = f->shm;
	bool ok = shm->status == TTMON_TTSHM_OK;
	/* Zeros of a file that could not be read are not what it says. */
	static const uint64_t unknown[TTMON_TTSHM_TYPES] = { UINT64_MAX, UINT64_MAX, UINT64_MAX,
							     UINT64_MAX, UINT64_MAX, UINT64_MAX };

	ttmon_jsonw_open(w, '{');
	key_text(w, "name", shm->name, sizeof(shm->name));
	ttmon_jsonw_key(w, "key");
	ttmon_jsonw_time(w, shm->key);
	key_text(w, "status", ok ? "ok" : ttmon_ttshm_status_text(shm->status), 128);
	key_text(w, "error", shm->err ? strerror(shm->err) : NULL, 128);
	key_number(w, "version", shm->version, ok || shm->status == TTMON_TTSHM_VERSION);
	key_number(w, "chip", f->chip, f->chip != TTMON_SMI_NONE);
	key_text(w, "match", f->match == TTMON_SMI_MATCH_NONE ? NULL : ttmon_smi_match_name(f->match), 16);
	key_bool(w, "counted", f->counted);
	key_bool(w, "by_ttmond", shm->ours);
	put_flags(w, shm->flags);
	key_number(w, "uid", shm->uid, ok);
	key_number(w, "mode", shm->mode & 07777, ok);
	key_number(w, "reference_count", shm->reference_count, ok);
	key_number(w, "num_active", shm->num_active, ok);
	ttmon_jsonw_key(w, "device_id");
	if (ok)
		ttmon_jsonw_int(w, shm->device_id);
	else
		ttmon_jsonw_null(w);
	ttmon_jsonw_key(w, "last_update_ns");
	if (ok && shm->last_update_ns)
		ttmon_jsonw_time(w, shm->last_update_ns);
	else
		ttmon_jsonw_null(w);
	put_types(w, ok ? shm->bytes : unknown);
	key_number(w, "live_entries", f->live, ok);
	key_number(w, "dead_entries", f->dead, ok);
	key_number(w, "dead_bytes", f->dead_bytes, ok);
	key_number(w, "removed", (uint64_t)f->removed, v->cleanup);
	key_pids(w, "mapped_pids", &f->mapped);
	ttmon_jsonw_close(w, '}');
}

static void begin_array(struct ttmon_jsonw *w, const char *key, bool lines)
{
	if (lines)
		ttmon_jsonw_line(w);
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '[');
}

int ttmon_smi_json(const struct ttmon_smi *v, bool lines, int fd)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { 0 };
	int err = ttmon_jsonw_init(&w, fd, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	key_text(&w, "schema", "ttmon-smi", 16);
	key_number(&w, "version", 1, true);
	ttmon_jsonw_key(&w, "time_ns");
	ttmon_jsonw_time(&w, v->real_ns);
	key_bool(&w, "driver", !v->no_driver);
	begin_array(&w, "chips", lines);
	for (size_t i = 0; i < v->nr_chips; i++) {
		if (lines)
			ttmon_jsonw_line(&w);
		put_chip(&w, v, i);
	}
	ttmon_jsonw_close(&w, ']');
	begin_array(&w, "processes", lines);
	for (size_t i = 0; i < v->nr_procs; i++) {
		if (lines)
			ttmon_jsonw_line(&w);
		put_process(&w, v, &v->procs[i]);
	}
	ttmon_jsonw_close(&w, ']');
	begin_array(&w, "files", lines);
	for (size_t i = 0; i < v->nr_shm; i++) {
		if (lines)
			ttmon_jsonw_line(&w);
		put_file(&w, v, i);
	}
	ttmon_jsonw_close(&w, ']');
	if (v->wants_busy) {
		key_number(&w, "busy_window_ns", v->busy_window_ns, v->busy_window_ns != 0);
		begin_array(&w, "busy", lines);
		for (size_t i = 0; i < v->nr_busy; i++) {
			const struct ttmon_smi_busy *b = &v->busy[i];

			ttmon_jsonw_open(&w, '{');
			key_text(&w, "id", b->id, sizeof(b->id));
			key_number(&w, "pid", b->pid, true);
			key_text(&w, "name", b->name, sizeof(b->name));
			key_number(&w, "busy_ns", b->busy_ns, b->busy_ns != TTMON_SMI_UNKNOWN);
			key_number(&w, "busy_error_ns", b->error_ns, b->error_ns != TTMON_SMI_UNKNOWN);
			ttmon_jsonw_close(&w, '}');
		}
		ttmon_jsonw_close(&w, ']');
	}
	begin_array(&w, "problems", lines);
	for (size_t i = 0; i < v->nr_problems; i++) {
		ttmon_jsonw_open(&w, '{');
		key_text(&w, "what", v->problems[i].what, sizeof(v->problems[i].what));
		key_text(&w, "text", v->problems[i].text, sizeof(v->problems[i].text));
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}
