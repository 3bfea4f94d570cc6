/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ident.h: the chips of the host, and the chip of a process's logical device id. Cold thread. Answers
 * the requests of core/tt/tt.h with facts: TT_CHIP, TT_PROC, TT_MESH.
 *
 * Sources for a logical id, best first: enum ttmon_tt_how. All of it is read from /proc/PID (maps, fd,
 * environ) and sysfs, and is not trusted.
 */
#ifndef TTMON_TTIDENT_H
#define TTMON_TTIDENT_H

#include "daemon/core/tt/tt.h"
#include "daemon/io/tt/sys.h"
#include "lib/os/helpers.h"

struct ttmon_ttident;

struct ttmon_ttident_cfg {
	struct ttmon_ttsys_roots roots;
	void (*fact)(void *ctx, const void *rec, size_t size);
	void *ctx;
};

int ttmon_ttident_new(const struct ttmon_ttident_cfg *cfg, struct ttmon_ttident **ret) _must_check;
void ttmon_ttident_free(struct ttmon_ttident *t);
/* Facts go here from now on. */
void ttmon_ttident_redirect(struct ttmon_ttident *t, void (*fact)(void *ctx, const void *rec, size_t size), void *ctx);
/*
 * Reads sysfs again, and reports chips that came, went or changed. Called at the start, and every few
 * seconds once there is anything of Tenstorrent.
 */
void ttmon_ttident_refresh(struct ttmon_ttident *t);
/*
 * What a process says of itself is read by a helper: its /dev can be on a file system that does not
 * answer, and it can hold its own memory map. in is a struct ttmon_ttident_ask.
 */
struct ttmon_ttident_ask {
	uint32_t tgid;
	uint32_t nodes; /* 1: which chips' nodes its /dev has; 0: the chips are not the host's */
};
struct ttmon_ttident_ask ttmon_ttident_question(const struct ttmon_ttident *t, uint32_t tgid);
int ttmon_ttident_job(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);
/*
 * A process was announced: it may be another program, and it may have ended when the first question
 * about it comes. True: what it says of itself is to be read now, for ttmon_ttident_noted().
 */
bool ttmon_ttident_note(struct ttmon_ttident *t, uint32_t tgid);
void ttmon_ttident_noted(struct ttmon_ttident *t, uint32_t tgid, const char *buf, size_t n);
/* Is it to be read before the next question about the process? Questions come in bunches. */
bool ttmon_ttident_is_old(const struct ttmon_ttident *t, uint32_t tgid);
/* What was read of a process; n 0: nothing. Questions about it are answered by this. */
void ttmon_ttident_read(struct ttmon_ttident *t, uint32_t tgid, const char *buf, size_t n);
/* Processes that are to be looked at again after a refresh: read, then ttmon_ttident_again(). */
void ttmon_ttident_each_again(struct ttmon_ttident *t, void (*cb)(void *ctx, uint32_t tgid), void *ctx);
void ttmon_ttident_again(struct ttmon_ttident *t, uint32_t tgid);
/* Answer one question for a logical id. */
void ttmon_ttident_answer(struct ttmon_ttident *t, const struct ttmon_tt_want *want);
/*
 * A request for a mesh is handled by a helper (ttmon_ttmesh_job()); n 0: nothing was found, or memory
 * could not be read.
 */
struct ttmon_ttmesh_ask {
	uint64_t mesh, vt_device;
	uint32_t tgid, pad;
};
void ttmon_ttident_mesh(struct ttmon_ttident *t, const struct ttmon_ttmesh_ask *ask,
			const struct ttmon_tt_mesh_dev *devs, size_t n);
/*
 * The program's SharedMemoryStatsProvider reported this file key for this logical id (TT_CALL of class
 * PROVIDER, seen by the hot thread).
 */
void ttmon_ttident_provider(struct ttmon_ttident *t, uint32_t tgid, uint32_t logical, uint64_t key, bool disabled);
void ttmon_ttident_exit(struct ttmon_ttident *t, uint32_t tgid);
/* The known chips; valid until the next call. */
const struct ttmon_ttsys_chip *ttmon_ttident_chips(const struct ttmon_ttident *t, size_t *n);

/*
 * Finds the local devices of a MeshDevice in the memory of a process: the nearest vector of pointers
 * to objects whose first word is vt_device, reached from the mesh object in few steps; a submesh gives
 * its own devices, not those of its root. Bounded reads through /proc/PID/mem. 0 and *n, or -errno:
 * -ENOENT nothing found, -EBADMSG contradictory. io/tt/mesh.c
 */
int ttmon_ttmesh_find(const char *proc_root, uint32_t tgid, uint64_t mesh, uint64_t vt_device,
		      struct ttmon_tt_mesh_dev *devs, size_t max, size_t *n) _must_check;
/*
 * The same as a function of a helper: in is a struct ttmon_ttmesh_ask, the answer the devices. A
 * mapped page of a file whose server does not answer can block a read through /proc/PID/mem for any
 * time.
 */
int ttmon_ttmesh_job(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);

#endif
