// SPDX-License-Identifier: GPL-2.0-only
/*
 * json.c: `ttmon smi --json`, schema "ttmon-smi" version 1; ttmon(1) lists its members. Members may be
 * added, never removed or changed.
 *
 * Bytes, millidegrees, microwatts and pids are numbers; ids are "0x..." strings, keys of files and
 * times are decimal strings, because a double cannot hold all their values. null: not known, or not
 * present.
 */
#include <fcntl.h>

#include "lib/os/jsonw.h"
#include "tools/smi/smi.h"

static void key_bytes(struct ttmon_jsonw *w, const char *key, uint64_t bytes)
{
	ttmon_jsonw_key_known(w, key, bytes != TTMON_SMI_UNKNOWN, bytes);
}

/* Writes an id; 0 stands for none. */
static void key_id(struct ttmon_jsonw *w, const char *key, uint64_t id)
{
	TTMON_JSONW_KEY_IF(w, key, id, addr, id);
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

	ttmon_jsonw_key_open(w, "bytes", '{');
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

	ttmon_jsonw_key_open(w, "flags", '[');
	for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
		if (flags & 1u << k)
			ttmon_jsonw_text(w, names[k], 32);
	ttmon_jsonw_close(w, ']');
}

static void put_use(struct ttmon_jsonw *w, const char *key, uint64_t used, uint64_t total)
{
	ttmon_jsonw_key_open(w, key, '{');
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
	ttmon_jsonw_key_text(w, "id", chip->id, sizeof(chip->id));
	ttmon_jsonw_key_text(w, "id_source", ttmon_smi_source_name(chip->source), 16);
	ttmon_jsonw_key_text(w, "status", ttmon_smi_status_name(chip->status), 16);
	ttmon_jsonw_key_text(w, "reason", ttmon_smi_why_text(chip->why), 256);
	ttmon_jsonw_key_text(w, "arch", ttmon_smi_arch_name(chip->arch), 16);
	ttmon_jsonw_key_text(w, "card", chip->card, 16);
	ttmon_jsonw_key_bool(w, "remote", fact && fact->flags & TTMON_TT_CHIP_REMOTE);
	ttmon_jsonw_key_bool(w, "resetting", sys && sys->resetting);
	ttmon_jsonw_key_known(w, "tray", fact && fact->flags & TTMON_TT_CHIP_GALAXY, fact ? fact->tray : 0);
	ttmon_jsonw_key_known(w, "chip", fact && fact->flags & TTMON_TT_CHIP_GALAXY, fact ? fact->chip : 0);
	ttmon_jsonw_key_known(w, "ordinal", fact && fact->ordinal != TTMON_SMI_NONE, fact ? fact->ordinal : 0);
	snprintf(text, sizeof(text), "%04x:%02x:%02x.%u", bdf >> 16, bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7);
	ttmon_jsonw_key_text(w, "bdf", bdf == TTMON_SMI_NONE ? NULL : text, sizeof(text));
	key_id(w, "board_id", chip->board_id);
	ttmon_jsonw_key_known(w, "location", chip->location != TTMON_SMI_NONE, chip->location);
	key_id(w, "asic_id", fact ? fact->asic_id : 0);
	key_id(w, "unique_id", chip->unique_id);
	TTMON_JSONW_KEY_IF(w, "key_v1", chip->key_v1, time, chip->key_v1);
	ttmon_jsonw_key_text(w, "firmware", sys && sys->fw_bundle[0] ? sys->fw_bundle : NULL,
			     sys ? sizeof(sys->fw_bundle) : 0);
	TTMON_JSONW_KEY_IF(w, "temperature_mc", sys && sys->temperature_mc != INT32_MIN, int, sys->temperature_mc);
	ttmon_jsonw_key_known(w, "power_uw", sys && sys->power_uw >= 0, sys ? (uint64_t)sys->power_uw : 0);
	ttmon_jsonw_key_known(w, "aiclk_mhz", sys && sys->aiclk_mhz >= 0, sys ? (uint64_t)sys->aiclk_mhz : 0);
	put_use(w, "dram", chip->dram_used, chip->dram_total);
	put_use(w, "l1", chip->l1_used, chip->l1_total);
	put_types(w, chip->bytes);
	if (v->wants_busy) {
		ttmon_jsonw_key_known(w, "busy_ns", v->busy_window_ns && chip->busy_ns != TTMON_SMI_UNKNOWN,
				      chip->busy_ns);
		ttmon_jsonw_key_known(w, "busy_error_ns", v->busy_window_ns && chip->busy_error_ns != TTMON_SMI_UNKNOWN,
				      chip->busy_error_ns);
		ttmon_jsonw_key_bool(w, "busy_at_least", chip->busy_least && chip->busy_ns != TTMON_SMI_UNKNOWN);
	}
	ttmon_jsonw_key_bool(w, "unattributed", chip->unattributed);
	ttmon_jsonw_key_bool(w, "unlisted", chip->unlisted);
	put_flags(w, chip->flags);
	ttmon_jsonw_key_num(w, "processes", chip->live);
	ttmon_jsonw_key_num(w, "dead_entries", chip->dead);
	ttmon_jsonw_key_open(w, "files", '[');
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
	ttmon_jsonw_key_num(w, "pid", p->pid);
	ttmon_jsonw_key_text(w, "name", p->name[0] ? p->name : NULL, sizeof(p->name));
	ttmon_jsonw_key_num(w, "chip", p->chip);
	ttmon_jsonw_key_text(w, "chip_id", v->chips[p->chip].id, TTMON_SMI_ID_LEN);
	ttmon_jsonw_key_known(w, "file", p->file != TTMON_SMI_NONE, p->file);
	ttmon_jsonw_key_bool(w, "alive", p->alive);
	TTMON_JSONW_KEY_IF(w, "open", v->chips[p->chip].open.known, bool, p->open);
	put_types(w, p->bytes);
	TTMON_JSONW_KEY_IF(w, "last_update_ns", p->last_update_ns, time, p->last_update_ns);
	ttmon_jsonw_close(w, '}');
}

static void put_file(struct ttmon_jsonw *w, const struct ttmon_smi *v, size_t i)
{
	const struct ttmon_smi_file *f = &v->files[i];
	const struct ttmon_ttshm *shm = f->shm;
	bool ok = shm->status == TTMON_TTSHM_OK;
	/* The zeros of a file that could not be read are not its figures. */
	static const uint64_t unknown[TTMON_TTSHM_TYPES] = { UINT64_MAX, UINT64_MAX, UINT64_MAX,
							     UINT64_MAX, UINT64_MAX, UINT64_MAX };

	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_text(w, "name", shm->name, sizeof(shm->name));
	ttmon_jsonw_key_time(w, "key", shm->key);
	ttmon_jsonw_key_text(w, "status", ok ? "ok" : ttmon_ttshm_status_text(shm->status), 128);
	ttmon_jsonw_key_text(w, "error", shm->err ? strerror(shm->err) : NULL, 128);
	ttmon_jsonw_key_known(w, "version", ok || shm->status == TTMON_TTSHM_VERSION, shm->version);
	ttmon_jsonw_key_known(w, "chip", f->chip != TTMON_SMI_NONE, f->chip);
	ttmon_jsonw_key_text(w, "match", f->match == TTMON_SMI_MATCH_NONE ? NULL : ttmon_smi_match_name(f->match), 16);
	ttmon_jsonw_key_bool(w, "counted", f->counted);
	ttmon_jsonw_key_bool(w, "by_ttmond", shm->ours);
	put_flags(w, shm->flags);
	ttmon_jsonw_key_known(w, "uid", ok, shm->uid);
	ttmon_jsonw_key_known(w, "mode", ok, shm->mode & 07777);
	ttmon_jsonw_key_known(w, "reference_count", ok, shm->reference_count);
	ttmon_jsonw_key_known(w, "num_active", ok, shm->num_active);
	TTMON_JSONW_KEY_IF(w, "device_id", ok, int, shm->device_id);
	TTMON_JSONW_KEY_IF(w, "last_update_ns", ok && shm->last_update_ns, time, shm->last_update_ns);
	put_types(w, ok ? shm->bytes : unknown);
	ttmon_jsonw_key_known(w, "live_entries", ok, f->live);
	ttmon_jsonw_key_known(w, "dead_entries", ok, f->dead);
	ttmon_jsonw_key_known(w, "dead_bytes", ok, f->dead_bytes);
	ttmon_jsonw_key_known(w, "removed", v->cleanup, (uint64_t)f->removed);
	key_pids(w, "mapped_pids", &f->mapped);
	ttmon_jsonw_close(w, '}');
}

static void begin_array(struct ttmon_jsonw *w, const char *key, bool lines)
{
	if (lines)
		ttmon_jsonw_line(w);
	ttmon_jsonw_key_open(w, key, '[');
}

int ttmon_smi_json(const struct ttmon_smi *v, bool lines, int fd)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { 0 };
	int err = ttmon_jsonw_init(&w, fd, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_text(&w, "schema", "ttmon-smi", 16);
	ttmon_jsonw_key_num(&w, "version", 1);
	ttmon_jsonw_key_time(&w, "time_ns", v->real_ns);
	ttmon_jsonw_key_bool(&w, "driver", !v->no_driver);
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
		ttmon_jsonw_key_known(&w, "busy_window_ns", v->busy_window_ns != 0, v->busy_window_ns);
		begin_array(&w, "busy", lines);
		for (size_t i = 0; i < v->nr_busy; i++) {
			const struct ttmon_smi_busy *b = &v->busy[i];

			ttmon_jsonw_open(&w, '{');
			ttmon_jsonw_key_text(&w, "id", b->id, sizeof(b->id));
			ttmon_jsonw_key_num(&w, "pid", b->pid);
			ttmon_jsonw_key_text(&w, "name", b->name, sizeof(b->name));
			ttmon_jsonw_key_known(&w, "busy_ns", b->busy_ns != TTMON_SMI_UNKNOWN, b->busy_ns);
			ttmon_jsonw_key_known(&w, "busy_error_ns", b->error_ns != TTMON_SMI_UNKNOWN, b->error_ns);
			ttmon_jsonw_close(&w, '}');
		}
		ttmon_jsonw_close(&w, ']');
	}
	begin_array(&w, "problems", lines);
	for (size_t i = 0; i < v->nr_problems; i++) {
		ttmon_jsonw_open(&w, '{');
		ttmon_jsonw_key_text(&w, "what", v->problems[i].what, sizeof(v->problems[i].what));
		ttmon_jsonw_key_text(&w, "text", v->problems[i].text, sizeof(v->problems[i].text));
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}
