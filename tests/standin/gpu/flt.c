// SPDX-License-Identifier: GPL-2.0-only
/*
 * flt.c: floating point: f64, f32, and halves computed through these. Roundings other than to nearest
 * are those of the host's unit.
 */
#include "exec.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

float gpu_from_half(uint16_t h, bool bf)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 0x3ff, bits;
	float f;

	if (bf) {
		bits = (uint32_t)h << 16;
	} else if (exp == 31) {
		bits = sign | 0x7f800000 | man << 13;
	} else if (exp) {
		bits = sign | (exp + 112) << 23 | man << 13;
	} else {
		f = (float)man * 0x1p-24f;
		memcpy(&bits, &f, 4);
		bits |= sign;
	}
	memcpy(&f, &bits, 4);
	return f;
}

static int mode_of(unsigned int rnd)
{
	switch (rnd) {
	case M_rz:
	case M_rzi:
		return FE_TOWARDZERO;
	case M_rm:
	case M_rmi:
		return FE_DOWNWARD;
	case M_rp:
	case M_rpi:
		return FE_UPWARD;
	default:
		return FE_TONEAREST;
	}
}

static double round_to(double d, unsigned int rnd)
{
	double r;
	int mode = mode_of(rnd);

	if (rnd == M_rna)
		return round(d);
	if (mode == FE_TONEAREST)
		return nearbyint(d);
	fesetround(mode);
	r = nearbyint(d);
	fesetround(FE_TONEAREST);
	return r;
}

/* The nearest number with 11 (bf: 8) bits, found by the distance to its neighbours. */
uint16_t gpu_to_half(double d, bool bf, unsigned int rnd)
{
	const int bits = bf ? 8 : 11, least = bf ? -126 : -14, most = bf ? 127 : 15;
	uint16_t sign = signbit(d) ? 0x8000 : 0;
	double unit, r;
	int e;

	if (isnan(d))
		return 0x7fff;
	if (isinf(d))
		return (uint16_t)(sign | (bf ? 0x7f80 : 0x7c00));
	if (d == 0)
		return sign;
	e = ilogb(d);
	if (e < least)
		e = least;
	unit = scalbn(1, e - bits + 1);
	r = fabs(round_to(d / unit, rnd));
	if (r >= scalbn(1, bits)) {
		e++;
		r /= 2;
	}
	if (e > most) {
		bool away = rnd == M_rp ? !sign : rnd == M_rm ? sign != 0 : rnd != M_rz;

		return (uint16_t)(sign | ((bf ? 0x7f80 : 0x7c00) - !away));
	}
	if (r < scalbn(1, bits - 1)) /* subnormal */
		return (uint16_t)(sign | (uint16_t)r);
	return (uint16_t)(sign | (e - least + 1) << (bits - 1) | ((uint16_t)r & ((1 << (bits - 1)) - 1)));
}

static float f_of(uint64_t v)
{
	uint32_t b = (uint32_t)v;
	float f;

	memcpy(&f, &b, 4);
	return f;
}

static double d_of(uint64_t v)
{
	double d;

	memcpy(&d, &v, 8);
	return d;
}

static uint64_t of_f(float f)
{
	uint32_t b;

	if (isnan(f))
		return 0x7fffffff;
	memcpy(&b, &f, 4);
	return b;
}

static uint64_t of_d(double d)
{
	uint64_t b;

	if (isnan(d))
		return 0x7ff8000000000000ull;
	memcpy(&b, &d, 8);
	return b;
}

static float flush(const struct gpu_insn *in, float f)
{
	return in->ftz && fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f;
}

static bool has(const struct gpu_insn *in, unsigned int mod)
{
	return memchr(in->mods, (int)mod, in->nmods) != NULL;
}

static bool compare(unsigned int cmp, double a, double b, bool *ret)
{
	bool un = isunordered(a, b);

	switch (cmp) {
	case M_eq:
	case M_equ:
		*ret = a == b || (un && cmp == M_equ);
		return true;
	case M_ne:
	case M_neu:
		*ret = un ? cmp == M_neu : a != b;
		return true;
	case M_lt:
	case M_ltu:
		*ret = un ? cmp == M_ltu : a < b;
		return true;
	case M_le:
	case M_leu:
		*ret = un ? cmp == M_leu : a <= b;
		return true;
	case M_gt:
	case M_gtu:
		*ret = un ? cmp == M_gtu : a > b;
		return true;
	case M_ge:
	case M_geu:
		*ret = un ? cmp == M_geu : a >= b;
		return true;
	case M_num:
	case M_nan:
		*ret = un == (cmp == M_nan);
		return true;
	default:
		return false;
	}
}

static double least_most(const struct gpu_insn *in, double a, double b)
{
	if ((isnan(a) || isnan(b)) && (has(in, M_NaN) || (isnan(a) && isnan(b))))
		return NAN;
	if (isnan(a))
		return b;
	if (isnan(b))
		return a;
	if (a == 0 && b == 0)
		return (in->op == OP_min) == (signbit(a) != 0) ? a : b;
	return in->op == OP_min ? (a < b ? a : b) : (a > b ? a : b);
}

static bool tested(unsigned int what, double d, bool subnormal)
{
	switch (what) {
	case M_finite:
		return isfinite(d);
	case M_infinite:
		return isinf(d);
	case M_number:
		return !isnan(d);
	case M_notanumber:
		return isnan(d);
	case M_normal:
		return isfinite(d) && d != 0 && !subnormal;
	default:
		return subnormal;
	}
}

/*
 * One rule for both widths; volatile, since the compiler must not compute before the rounding is set.
 */
#define ARITHMETIC(name, type, fma_, sqrt_)                       \
	static bool name(unsigned int op, const type *s, type *r) \
	{                                                         \
		volatile type a = s[0], b = s[1], c = s[2], x;    \
		switch (op) {                                     \
		case OP_add:                                      \
			x = a + b;                                \
			break;                                    \
		case OP_sub:                                      \
			x = a - b;                                \
			break;                                    \
		case OP_mul:                                      \
			x = a * b;                                \
			break;                                    \
		case OP_div:                                      \
			x = a / b;                                \
			break;                                    \
		case OP_rcp:                                      \
			x = 1 / a;                                \
			break;                                    \
		case OP_fma:                                      \
		case OP_mad:                                      \
			x = fma_(a, b, c);                        \
			break;                                    \
		case OP_sqrt:                                     \
			x = sqrt_(a);                             \
			break;                                    \
		default:                                          \
			return false;                             \
		}                                                 \
		*r = x;                                           \
		return true;                                      \
	}
ARITHMETIC(arithmetic_f, float, fmaf, sqrtf)
ARITHMETIC(arithmetic_d, double, fma, sqrt)

/* Results that are approximate on the hardware are exact here, except for the last rounding. */
static bool transcendental(unsigned int op, double a, double *r)
{
	switch (op) {
	case OP_ex2:
		*r = exp2(a);
		return true;
	case OP_lg2:
		*r = log2(a);
		return true;
	case OP_sin:
		*r = sin(a);
		return true;
	case OP_cos:
		*r = cos(a);
		return true;
	case OP_tanh:
		*r = tanh(a);
		return true;
	case OP_rsqrt:
		*r = 1 / sqrt(a);
		return true;
	default:
		return false;
	}
}

static bool one(const struct gpu_insn *in, enum gpu_type t, const double *s, double *r)
{
	int mode = mode_of(in->rnd);
	bool done, b;

	switch (in->op) {
	case OP_abs:
		*r = fabs(s[0]);
		return true;
	case OP_neg:
		*r = -s[0];
		return true;
	case OP_min:
	case OP_max:
		*r = least_most(in, s[0], s[1]);
		return !has(in, M_xorsign);
	case OP_copysign:
		*r = copysign(s[1], s[0]);
		return true;
	case OP_setp:
	case OP_set:
		done = compare(in->cmp, s[0], s[1], &b);
		*r = b;
		return done;
	case OP_testp:
		*r = tested(in->sub, s[0],
			    t == T_F32 ? fpclassify((float)s[0]) == FP_SUBNORMAL : fpclassify(s[0]) == FP_SUBNORMAL);
		return true;
	default:
		break;
	}
	if (mode != FE_TONEAREST)
		fesetround(mode);
	if (t == T_F32) {
		float f[3] = { (float)s[0], (float)s[1], (float)s[2] }, x = 0;

		done = arithmetic_f(in->op, f, &x);
		*r = (double)x;
	} else {
		done = arithmetic_d(in->op, s, r);
	}
	if (mode != FE_TONEAREST)
		fesetround(FE_TONEAREST);
	return done || transcendental(in->op, s[0], r);
}

bool gpu_alu_float(const struct gpu_insn *in, const uint64_t *s, uint64_t *d)
{
	enum gpu_type t = in->type[in->op == OP_set ? 1 : 0];
	bool half = t != T_F32 && t != T_F64, two = t == T_F16X2 || t == T_BF16X2, bf = t == T_BF16 || t == T_BF16X2;
	bool truth = in->op == OP_setp || in->op == OP_set || in->op == OP_testp;
	double v[3] = { 0 }, r = 0;

	*d = 0;
	for (unsigned int part = 0; part < (two ? 2u : 1u); part++) {
		for (unsigned int i = 0; i < 3; i++)
			v[i] = half	    ? (double)gpu_from_half((uint16_t)(s[i] >> (16 * part)), bf)
			       : t == T_F32 ? (double)flush(in, f_of(s[i]))
					    : d_of(s[i]);
		if (!one(in, t, v, &r))
			return false;
		if (truth) {
			*d = r != 0;
			return !two;
		}
		if (in->sat)
			r = r > 0 ? (r < 1 ? r : 1) : 0;
		if (has(in, M_relu) && !(r > 0))
			r = 0;
		*d |= half	   ? (uint64_t)gpu_to_half(r, bf, in->rnd) << (16 * part)
		      : t == T_F32 ? of_f(flush(in, (float)r))
				   : of_d(r);
	}
	return true;
}

static uint64_t to_int(enum gpu_type t, double d, unsigned int rnd)
{
	unsigned int n = gpu_type_size[t] * 8u;
	double low = gpu_is_signed(t) ? -scalbn(1, (int)n - 1) : 0,
	       high = scalbn(1, gpu_is_signed(t) ? (int)n - 1 : (int)n);

	if (isnan(d))
		return n == 64 ? 1ull << 63 : 0;
	d = round_to(d, rnd == M_rn || rnd == M_rni ? M_rni : rnd);
	if (d < low)
		d = low;
	if (d >= high)
		return gpu_is_signed(t) ? ~0ull >> (65 - n) : n == 64 ? ~0ull : (1ull << n) - 1;
	return gpu_is_signed(t) ? (uint64_t)(int64_t)d : (uint64_t)d;
}

static uint64_t clamp_int(enum gpu_type to, enum gpu_type from, uint64_t v)
{
	unsigned int n = gpu_type_size[to] * 8u;
	__int128 x = gpu_is_signed(from) ? (__int128)(int64_t)v : (__int128)v;
	__int128 low = gpu_is_signed(to) ? -((__int128)1 << (n - 1)) : 0,
		 high = ((__int128)1 << (gpu_is_signed(to) ? n - 1 : n)) - 1;

	return (uint64_t)(x < low ? low : x > high ? high : x);
}

static double small_to(enum gpu_type t, uint64_t v)
{
	return t == T_F64 ? d_of(v) : t == T_F32 ? (double)f_of(v) : (double)gpu_from_half((uint16_t)v, t == T_BF16);
}

bool gpu_cvt(const struct gpu_insn *in, const uint64_t *s, uint64_t *d)
{
	enum gpu_type to = in->type[0], from = in->type[1];
	int mode = mode_of(in->rnd);
	volatile double v;
	volatile float f;

	if (in->ntypes != 2)
		return false;
	if (to == T_F16X2 || to == T_BF16X2) { /* two of f32: the first is the upper one */
		double hi = small_to(T_F32, s[0]), lo = small_to(T_F32, s[1]);

		if (from != T_F32)
			return false;
		if (has(in, M_relu)) {
			hi = hi > 0 ? hi : 0;
			lo = lo > 0 ? lo : 0;
		}
		*d = (uint64_t)gpu_to_half(hi, to == T_BF16X2, in->rnd) << 16 |
		     gpu_to_half(lo, to == T_BF16X2, in->rnd);
		return true;
	}
	if (!gpu_is_float(from) && !gpu_is_float(to)) {
		uint64_t x = gpu_fit(from, s[0]);

		*d = gpu_fit(to, in->sat ? clamp_int(to, from, x) : x);
		return true;
	}
	if (!gpu_is_float(from)) {
		uint64_t x = gpu_fit(from, s[0]);

		fesetround(to == T_F32 || to == T_F64 ? mode : FE_TONEAREST);
		v = gpu_is_signed(from) ? (double)(int64_t)x : (double)x;
		f = gpu_is_signed(from) ? (float)(int64_t)x : (float)x;
		fesetround(FE_TONEAREST);
		*d = to == T_F64 ? of_d(v) : to == T_F32 ? of_f(f) : gpu_to_half(v, to == T_BF16, in->rnd);
		return true;
	}
	v = small_to(from, s[0]);
	if (from == T_F32)
		v = (double)flush(in, (float)v);
	if (!gpu_is_float(to)) {
		*d = gpu_fit(to, to_int(to, v, in->rnd));
		return true;
	}
	if (in->rnd >= M_rni && in->rnd <= M_rpi)
		v = round_to(v, in->rnd);
	if (in->sat)
		v = v > 0 ? (v < 1 ? v : 1) : 0;
	if (has(in, M_relu) && !(v > 0))
		v = isnan(v) ? v : 0;
	if (to == T_F64) {
		*d = of_d(v);
	} else if (to == T_F32) {
		fesetround(in->rnd >= M_rni ? FE_TONEAREST : mode);
		f = (float)v;
		fesetround(FE_TONEAREST);
		*d = of_f(flush(in, f));
	} else if (to == T_F16 || to == T_BF16) {
		*d = gpu_to_half(v, to == T_BF16, in->rnd);
	} else {
		return false;
	}
	return true;
}
