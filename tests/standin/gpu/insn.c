// SPDX-License-Identifier: GPL-2.0-only
/* insn.c: splits an opcode and its modifiers ("ld.global.nc.v4.f32"). */
#include "gpu.h"

#include <string.h>

const uint8_t gpu_type_size[T_MAX] = {
	[T_U8] = 1,   [T_U16] = 2,   [T_U32] = 4,    [T_U64] = 8, [T_S8] = 1,  [T_S16] = 2,   [T_S32] = 4,
	[T_S64] = 8,  [T_B8] = 1,    [T_B16] = 2,    [T_B32] = 4, [T_B64] = 8, [T_B128] = 16, [T_F16] = 2,
	[T_BF16] = 2, [T_F16X2] = 4, [T_BF16X2] = 4, [T_F32] = 4, [T_F64] = 8, [T_PRED] = 1,
};

struct name {
	const char *text;
	uint8_t value;
};

static const struct name type_names[] = {
	{ "u8", T_U8 },	    { "u16", T_U16 },	    { "u32", T_U32 },	{ "u64", T_U64 }, { "s8", T_S8 },
	{ "s16", T_S16 },   { "s32", T_S32 },	    { "s64", T_S64 },	{ "b8", T_B8 },	  { "b16", T_B16 },
	{ "b32", T_B32 },   { "b64", T_B64 },	    { "b128", T_B128 }, { "f16", T_F16 }, { "f16x2", T_F16X2 },
	{ "bf16", T_BF16 }, { "bf16x2", T_BF16X2 }, { "f32", T_F32 },	{ "f64", T_F64 }, { "pred", T_PRED },
};
static const struct name space_names[] = {
	{ "global", SP_GLOBAL },	  { "shared", SP_SHARED },     { "shared::cta", SP_SHARED },
	{ "shared::cluster", SP_SHARED }, { "local", SP_LOCAL },       { "param", SP_PARAM },
	{ "param::entry", SP_PARAM },	  { "param::func", SP_PARAM }, { "const", SP_CONST },
};
static const struct name op_names[] = {
#define X(name) { #name, OP_##name },
#include "ops.inc"
#undef X
};
static const struct name mod_names[] = {
#define X(name) { #name, M_##name },
#include "mods.inc"
#undef X
};
/* Modifiers of caching and scope, which do not change any result here. */
static const char *const ignored[] = { "ca",	"cg",	 "cs",	  "lu",		"cv",		"wb",
				       "wt",	"nc",	 "cta",	  "gpu",	"sys",		"mmio",
				       "noftz", "proxy", "alias", "generic",	"fractional",	"m8n16",
				       "entry", "L1",	 "L2",	  "evict_last", "evict_normal", "tensormap::generic" };

static int find(const struct name *t, size_t n, const char *text, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(t[i].text) == len && !memcmp(t[i].text, text, len))
			return t[i].value;
	return 0;
}
#define FIND(table, text, len) find(table, sizeof(table) / sizeof(*(table)), text, len)

enum gpu_type gpu_type_of(const char *text, size_t len)
{
	return FIND(type_names, text, len);
}

static bool is_ignored(const char *text, size_t len)
{
	if (len > 4 && (!memcmp(text, "L1::", 4) || !memcmp(text, "L2::", 4)))
		return true;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		if (strlen(ignored[i]) == len && !memcmp(ignored[i], text, len))
			return true;
	return false;
}

static bool part(struct gpu_insn *in, const char *text, size_t len)
{
	int v;

	if ((v = FIND(type_names, text, len))) {
		if (in->ntypes == 3)
			return false;
		in->type[in->ntypes++] = (uint8_t)v;
	} else if ((v = FIND(space_names, text, len))) {
		if (in->space)
			in->space2 = (uint8_t)v;
		else
			in->space = (uint8_t)v;
	} else if (len == 2 && text[0] == 'v' && strchr("248", text[1])) {
		in->vec = (uint8_t)(text[1] - '0');
	} else if ((v = FIND(mod_names, text, len))) {
		if (in->nmods == sizeof(in->mods))
			return false;
		in->mods[in->nmods++] = (uint8_t)v;
	} else {
		return is_ignored(text, len);
	}
	return true;
}

static uint8_t first_of(const struct gpu_insn *in, unsigned int from, unsigned int to)
{
	for (unsigned int i = 0; i < in->nmods; i++)
		if (in->mods[i] >= from && in->mods[i] <= to)
			return in->mods[i];
	return 0;
}

/* cmp is the first comparison; and, or, xor after it combine. */
static void comparison(struct gpu_insn *in)
{
	bool seen = false;

	for (unsigned int i = 0; i < in->nmods; i++) {
		uint8_t m = in->mods[i];

		if (m >= M_eq && m <= M_nan && (!seen || (m != M_and && m != M_or && m != M_xor))) {
			in->cmp = m;
			seen = true;
		} else if (m == M_lo && !seen) {
			in->cmp = M_lo;
			seen = true;
		} else if (m == M_hi && !seen) {
			in->cmp = M_hi;
			seen = true;
		} else if (m == M_and || m == M_or || m == M_xor) {
			in->boolop = m;
		}
	}
}

const char *gpu_decode(struct gpu_insn *in)
{
	const char *p = in->text, *dot = strchr(p, '.');
	size_t len = dot ? (size_t)(dot - p) : strlen(p);

	in->op = (uint8_t)FIND(op_names, p, len);
	if (!in->op)
		return "an opcode that is not known";
	while (dot) {
		p = dot + 1;
		dot = strchr(p, '.');
		len = dot ? (size_t)(dot - p) : strlen(p);
		if (!part(in, p, len)) {
			in->op = OP_UNKNOWN;
			return "a modifier that is not known";
		}
	}
	in->rnd = first_of(in, M_rn, M_rpi);
	for (unsigned int i = 0; i < in->nmods; i++) {
		in->sat |= in->mods[i] == M_sat;
		in->ftz |= in->mods[i] == M_ftz;
		if (in->mods[i] == M_bulk || in->mods[i] == M_tensor || in->mods[i] == M_cluster)
			in->op = OP_UNKNOWN;
	}
	switch (in->op) {
	case OP_setp:
	case OP_set:
		comparison(in);
		break;
	case OP_atom:
	case OP_red:
	case OP_redux:
		in->sub = first_of(in, M_add, M_dec);
		if (!in->sub)
			in->sub = first_of(in, M_and, M_xor);
		break;
	case OP_shfl:
		in->sub = first_of(in, M_up, M_idx);
		break;
	case OP_vote:
	case OP_match:
		in->sub = first_of(in, M_all, M_ballot);
		if (!in->sub && first_of(in, M_uni, M_uni))
			in->sub = M_uni;
		break;
	case OP_testp:
		in->sub = first_of(in, M_finite, M_subnormal);
		break;
	default:
		break;
	}
	return NULL;
}
