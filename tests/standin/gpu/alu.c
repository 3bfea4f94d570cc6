// SPDX-License-Identifier: GPL-2.0-only
/* alu.c: integers, bits and predicates; one lane at a time. */
#include "exec.h"

#include <string.h>

typedef unsigned __int128 u128;

static unsigned int bits_of(enum gpu_type t)
{
	return gpu_type_size[t] * 8u;
}

static uint64_t mul_hi(enum gpu_type t, uint64_t a, uint64_t b)
{
	unsigned int n = bits_of(t);

	if (gpu_is_signed(t))
		return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> n);
	return (uint64_t)((u128)a * b >> n);
}

static uint64_t saturate(enum gpu_type t, __int128 v)
{
	if (t == T_S32)
		return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? (uint64_t)(int64_t)INT32_MIN : (uint64_t)v;
	return (uint64_t)v;
}

static uint64_t bfe(enum gpu_type t, uint64_t a, uint64_t pos, uint64_t len)
{
	unsigned int n = bits_of(t), p = pos & 0xff, l = len & 0xff, top;
	uint64_t ret = 0, sign;

	top = p + l - 1 < n - 1 ? p + l - 1 : n - 1;
	sign = gpu_is_signed(t) && l ? a >> top & 1 : 0;
	for (unsigned int i = 0; i < n; i++)
		ret |= (i < l && p + i < n ? a >> (p + i) & 1 : sign) << i;
	return ret;
}

static uint64_t bfi(enum gpu_type t, uint64_t f, uint64_t base, uint64_t pos, uint64_t len)
{
	unsigned int n = bits_of(t), p = pos & 0xff, l = len & 0xff;

	for (unsigned int i = 0; i < l && p + i < n; i++)
		base = (base & ~(1ull << (p + i))) | (f >> i & 1) << (p + i);
	return base;
}

static uint64_t prmt(const struct gpu_insn *in, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t all = (uint32_t)a | b << 32, ret = 0;
	unsigned int mode = in->nmods ? in->mods[0] : 0, k = c & 3;

	for (unsigned int i = 0; i < 4; i++) {
		unsigned int sel = c >> (4 * i) & 15, byte;

		switch (mode) {
		case M_f4e:
			sel = k + i;
			break;
		case M_b4e:
			sel = (k + 8 - i) & 7;
			break;
		case M_rc8:
			sel = k;
			break;
		case M_ecl:
			sel = i > k ? i : k;
			break;
		case M_ecr:
			sel = i < k ? i : k;
			break;
		case M_rc16:
			sel = (k & 1) * 2 + (i & 1);
			break;
		default:
			break;
		}
		byte = all >> (8 * (sel & 7)) & 0xff;
		if (!mode && sel & 8)
			byte = byte & 0x80 ? 0xff : 0;
		ret |= (uint64_t)byte << (8 * i);
	}
	return ret;
}

static uint64_t shf(const struct gpu_insn *in, uint64_t lo, uint64_t hi, uint64_t n)
{
	bool left = false, clamp = false;
	uint64_t all = (uint32_t)lo | hi << 32;

	for (unsigned int i = 0; i < in->nmods; i++) {
		left |= in->mods[i] == M_l;
		clamp |= in->mods[i] == M_clamp;
	}
	n = clamp ? (n > 32 ? 32 : n) : n & 31;
	return left ? all << n >> 32 : all >> n;
}

static uint64_t bfind(const struct gpu_insn *in, uint64_t a)
{
	enum gpu_type t = in->type[0];
	unsigned int n = bits_of(t), pos;
	bool shiftamt = in->nmods && in->mods[0] == M_shiftamt;

	if (gpu_is_signed(t) && a >> (n - 1) & 1)
		a = ~a;
	if (n < 64)
		a &= (1ull << n) - 1;
	if (!a)
		return UINT32_MAX;
	pos = 63 - (unsigned int)__builtin_clzll(a);
	return shiftamt ? n - 1 - pos : pos;
}

static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
	uint64_t ret = 0;

	for (unsigned int i = 0; i < 8; i++)
		if (table >> i & 1)
			ret |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
	return ret;
}

static uint64_t dot4(const struct gpu_insn *in, uint64_t a, uint64_t b, uint64_t c)
{
	unsigned int step = in->op == OP_dp2a ? 16 : 8, n = in->op == OP_dp2a ? 2 : 4, from = 0;
	int64_t sum = in->type[0] == T_S32 || in->type[1] == T_S32 ? (int32_t)c : (int64_t)(uint32_t)c;

	for (unsigned int i = 0; i < in->nmods; i++)
		if (in->op == OP_dp2a && in->mods[i] == M_hi)
			from = 16;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t x = a >> (step * i), y = b >> (from + 8 * i);
		int64_t p = step == 16 ? (in->type[0] == T_S32 ? (int64_t)(int16_t)x : (int64_t)(uint16_t)x)
				       : (in->type[0] == T_S32 ? (int64_t)(int8_t)x : (int64_t)(uint8_t)x);

		sum += p * (in->type[1] == T_S32 ? (int64_t)(int8_t)y : (int64_t)(uint8_t)y);
	}
	return (uint64_t)sum;
}

bool gpu_compare(unsigned int cmp, enum gpu_type t, uint64_t a, uint64_t b)
{
	bool less, equal;

	a = gpu_fit(t, a);
	b = gpu_fit(t, b);
	less = gpu_is_signed(t) ? (int64_t)a < (int64_t)b : a < b;
	equal = a == b;
	switch (cmp) {
	case M_eq:
		return equal;
	case M_ne:
		return !equal;
	case M_lt:
	case M_lo:
		return less;
	case M_le:
	case M_ls:
		return less || equal;
	case M_gt:
	case M_hi:
		return !less && !equal;
	default:
		return !less;
	}
}

bool gpu_combine(unsigned int sub, enum gpu_type t, uint64_t old, uint64_t b, uint64_t c, uint64_t *ret)
{
	if (gpu_is_float(t) && sub != M_exch && sub != M_cas) {
		static const uint8_t op[] = { [M_add] = OP_add, [M_min] = OP_min, [M_max] = OP_max };
		struct gpu_insn in = { .ntypes = 1, .type = { (uint8_t)t }, .op = sub < sizeof(op) ? op[sub] : 0 };
		uint64_t s[4] = { old, b };

		return in.op && gpu_alu_float(&in, s, ret);
	}
	old = gpu_fit(t, old);
	b = gpu_fit(t, b);
	switch (sub) {
	case M_add:
		*ret = old + b;
		break;
	case M_min:
		*ret = gpu_compare(M_lt, t, b, old) ? b : old;
		break;
	case M_max:
		*ret = gpu_compare(M_gt, t, b, old) ? b : old;
		break;
	case M_exch:
		*ret = b;
		break;
	case M_cas:
		*ret = old == b ? c : old;
		break;
	case M_inc:
		*ret = old >= b ? 0 : old + 1;
		break;
	case M_dec:
		*ret = !old || old > b ? b : old - 1;
		break;
	case M_and:
		*ret = old & b;
		break;
	case M_or:
		*ret = old | b;
		break;
	case M_xor:
		*ret = old ^ b;
		break;
	default:
		return false;
	}
	return true;
}

static bool has(const struct gpu_insn *in, unsigned int mod)
{
	return memchr(in->mods, (int)mod, in->nmods) != NULL;
}

/* a + b + carry, of the type's width. */
static uint64_t add_carry(const struct gpu_insn *in, uint64_t a, uint64_t b, unsigned int in_carry, uint8_t *carry)
{
	unsigned int n = bits_of(in->type[0]);
	uint64_t mask = n == 64 ? ~0ull : (1ull << n) - 1;
	u128 sum = (u128)(a & mask) + (b & mask) + in_carry;

	if (has(in, M_cc))
		*carry = (uint8_t)(sum >> n & 1);
	return (uint64_t)sum;
}

static uint64_t mul_part(const struct gpu_insn *in, enum gpu_type t, uint64_t a, uint64_t b)
{
	return has(in, M_hi) ? mul_hi(t, a, b) : a * b;
}

static bool divide(const struct gpu_insn *in, enum gpu_type t, uint64_t a, uint64_t b, uint64_t *d)
{
	bool rem = in->op == OP_rem;

	if (!b) /* the hardware returns all ones and the dividend */
		*d = rem ? a : ~0ull;
	else if (gpu_is_signed(t) && (int64_t)b == -1)
		*d = rem ? 0 : -a;
	else if (gpu_is_signed(t))
		*d = (uint64_t)(rem ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
	else
		*d = rem ? a % b : a / b;
	return true;
}

static uint64_t shift(const struct gpu_insn *in, enum gpu_type t, uint64_t a, uint64_t by)
{
	unsigned int n = bits_of(t);

	by = (uint32_t)by;
	if (in->op == OP_shl)
		return by >= n ? 0 : a << by;
	if (gpu_is_signed(t))
		return (uint64_t)((int64_t)a >> (by >= n ? n - 1 : by));
	return by >= n ? 0 : a >> by;
}

static bool set_predicate(const struct gpu_insn *in, const uint64_t *s, uint64_t *d)
{
	enum gpu_type t = in->type[in->op == OP_set ? 1 : 0];
	unsigned int c = in->boolop ? (unsigned int)(s[2] & 1) : 0;
	bool r;

	if (gpu_is_float(t)) {
		uint64_t one;

		if (!gpu_alu_float(in, s, &one))
			return false;
		r = one & 1;
	} else {
		r = gpu_compare(in->cmp, t, s[0], s[1]);
	}
	for (unsigned int i = 0; i < 2; i++, r = !r)
		d[i] = in->boolop == M_and ? r & c : in->boolop == M_or ? r | c : in->boolop == M_xor ? r ^ c : r;
	if (in->op == OP_set && d[0])
		d[0] = in->type[0] == T_F32 ? 0x3f800000 : ~0ull;
	return true;
}

bool gpu_alu(const struct gpu_insn *in, const uint64_t *src, uint64_t *d, uint8_t *carry)
{
	enum gpu_type t = in->type[0];
	uint64_t s[4] = { src[0], src[1], src[2], src[3] };

	switch (in->op) {
	case OP_setp:
	case OP_set:
		if (in->ntypes < (in->op == OP_set ? 2 : 1))
			return false;
		return set_predicate(in, s, d);
	case OP_cvt:
		return gpu_cvt(in, s, d);
	case OP_selp:
		*d = s[2] & 1 ? s[0] : s[1];
		return true;
	case OP_slct:
		if (in->type[1] == T_F32) {
			float f;

			memcpy(&f, &s[2], 4);
			*d = f >= 0 ? s[0] : s[1];
		} else {
			*d = (int32_t)s[2] >= 0 ? s[0] : s[1];
		}
		return true;
	case OP_mov:
		*d = s[0];
		return true;
	default:
		break;
	}
	if (gpu_is_float(t))
		return gpu_alu_float(in, s, d);
	if (!t)
		return false;
	if (in->op != OP_bfe && in->op != OP_bfi && in->op != OP_shl && in->op != OP_shr && in->op != OP_lop3 &&
	    in->op != OP_shf && in->op != OP_prmt && in->op != OP_dp4a && in->op != OP_dp2a)
		for (unsigned int i = 0; i < 3; i++)
			s[i] = gpu_fit(t, s[i]);
	switch (in->op) {
	case OP_add:
		if (in->sat)
			*d = saturate(t, (__int128)(int64_t)s[0] + (int64_t)s[1]);
		else
			*d = add_carry(in, s[0], s[1], 0, carry);
		return true;
	case OP_addc:
		*d = add_carry(in, s[0], s[1], *carry, carry);
		return true;
	case OP_sub:
		if (in->sat)
			*d = saturate(t, (__int128)(int64_t)s[0] - (int64_t)s[1]);
		else
			*d = add_carry(in, s[0], ~s[1], 1, carry);
		return true;
	case OP_subc:
		*d = add_carry(in, s[0], ~s[1], *carry, carry);
		return true;
	case OP_mul:
		*d = mul_part(in, t, s[0], s[1]);
		return true;
	case OP_mad:
	case OP_madc:
		if (has(in, M_wide))
			s[2] = src[2];
		if (in->op == OP_mad && !has(in, M_cc))
			*d = mul_part(in, t, s[0], s[1]) + s[2];
		else
			*d = add_carry(in, mul_part(in, t, s[0], s[1]), s[2], in->op == OP_madc ? *carry : 0, carry);
		return true;
	case OP_mul24:
	case OP_mad24: {
		int64_t a = (int64_t)(s[0] << 40), b = (int64_t)(s[1] << 40);
		uint64_t p = gpu_is_signed(t) ? (uint64_t)((a >> 40) * (b >> 40))
					      : (uint64_t)((s[0] & 0xffffff) * (s[1] & 0xffffff));

		*d = (has(in, M_hi) ? p >> 16 : p) + (in->op == OP_mad24 ? s[2] : 0);
		return true;
	}
	case OP_div:
	case OP_rem:
		return divide(in, t, s[0], s[1], d);
	case OP_sad:
		*d = s[2] + (gpu_compare(M_lt, t, s[0], s[1]) ? s[1] - s[0] : s[0] - s[1]);
		return true;
	case OP_min:
		*d = gpu_compare(M_lt, t, s[0], s[1]) ? s[0] : s[1];
		return true;
	case OP_max:
		*d = gpu_compare(M_gt, t, s[0], s[1]) ? s[0] : s[1];
		return true;
	case OP_abs:
		*d = (int64_t)s[0] < 0 ? -s[0] : s[0];
		return true;
	case OP_neg:
		*d = -s[0];
		return true;
	case OP_and:
		*d = s[0] & s[1];
		return true;
	case OP_or:
		*d = s[0] | s[1];
		return true;
	case OP_xor:
		*d = s[0] ^ s[1];
		return true;
	case OP_not:
		*d = t == T_PRED ? !s[0] : ~s[0];
		return true;
	case OP_cnot:
		*d = !s[0];
		return true;
	case OP_shl:
	case OP_shr:
		*d = shift(in, t, gpu_fit(t, s[0]), s[1]);
		return true;
	case OP_shf:
		*d = shf(in, s[0], s[1], (uint32_t)s[2]);
		return true;
	case OP_lop3:
		*d = lop3(s[0], s[1], s[2], s[3]);
		return true;
	case OP_bfe:
		*d = bfe(t, gpu_fit(t, s[0]), s[1], s[2]);
		return true;
	case OP_bfi:
		*d = bfi(t, s[0], s[1], s[2], s[3]);
		return true;
	case OP_bfind:
		*d = bfind(in, s[0]);
		return true;
	case OP_brev:
		*d = 0;
		for (unsigned int i = 0, n = bits_of(t); i < n; i++)
			*d |= (s[0] >> i & 1) << (n - 1 - i);
		return true;
	case OP_clz:
		*d = s[0] ? (unsigned int)__builtin_clzll(s[0]) - (64 - bits_of(t)) : bits_of(t);
		return true;
	case OP_popc:
		*d = (unsigned int)__builtin_popcountll(s[0]);
		return true;
	case OP_prmt:
		*d = prmt(in, s[0], s[1], s[2]);
		return true;
	case OP_szext: {
		unsigned int n = (uint32_t)src[1], low = has(in, M_wrap) ? n & 31 : n > 32 ? 32 : n;
		uint64_t keep = low ? s[0] & (UINT32_MAX >> (32 - low)) : 0;

		*d = gpu_is_signed(t) && low && s[0] >> (low - 1) & 1 ? keep | ~0ull << low : keep;
		return true;
	}
	case OP_dp4a:
	case OP_dp2a:
		*d = dot4(in, s[0], s[1], s[2]);
		return true;
	default:
		return false;
	}
}
