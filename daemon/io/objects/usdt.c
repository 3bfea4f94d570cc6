// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt.c: see usdt.h. Runs in the cold thread and in tests; pure.
 *
 * Grammar, operands separated by blanks:
 *	operand  = ["-"] size "@" where		"-": signed
 *	x86-64   = "%" reg | [disp] "(%" reg ")" | "$" number
 *		   (also without "%", as gcc -masm=intel writes it)
 *	aarch64  = reg | "[" reg [", " disp] "]" | number
 * The registers are 8-byte words in struct pt_regs. Both tables are compiled on every machine, so that
 * both are tested on every machine.
 */
#include "daemon/io/objects/usdt.h"

#include <ctype.h>
#include <elf.h>

/* Index of a register in struct pt_regs, in words; spelled 8, 4, 2, 1 bytes wide. */
static const struct {
	const char *names[4];
	uint8_t word;
} x86_regs[] = {
	{ { "r15", "r15d", "r15w", "r15b" }, 0 }, { { "r14", "r14d", "r14w", "r14b" }, 1 },
	{ { "r13", "r13d", "r13w", "r13b" }, 2 }, { { "r12", "r12d", "r12w", "r12b" }, 3 },
	{ { "rbp", "ebp", "bp", "bpl" }, 4 },	  { { "rbx", "ebx", "bx", "bl" }, 5 },
	{ { "r11", "r11d", "r11w", "r11b" }, 6 }, { { "r10", "r10d", "r10w", "r10b" }, 7 },
	{ { "r9", "r9d", "r9w", "r9b" }, 8 },	  { { "r8", "r8d", "r8w", "r8b" }, 9 },
	{ { "rax", "eax", "ax", "al" }, 10 },	  { { "rcx", "ecx", "cx", "cl" }, 11 },
	{ { "rdx", "edx", "dx", "dl" }, 12 },	  { { "rsi", "esi", "si", "sil" }, 13 },
	{ { "rdi", "edi", "di", "dil" }, 14 },	  { { "rsp", "esp", "sp", "spl" }, 19 },
};

#define ARM_SP_WORD 31

/* Removes a character from the front of the text. */
static bool eat(const char **s, char c)
{
	if (**s != c)
		return false;
	++*s;
	return true;
}

static bool eat_number(const char **s, int64_t *ret)
{
	const char *digits = *s + (**s == '-' || **s == '+');
	char *end;

	if (!isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	*ret = strtoll(*s, &end, 0);
	/* A large constant may be written without a sign: its bits are taken. */
	if (errno == ERANGE && **s != '-') {
		errno = 0;
		*ret = (int64_t)strtoull(*s, &end, 0);
	}
	if (errno)
		return false;
	*s = end;
	return true;
}

static bool x86_word(const char *name, size_t n, uint32_t *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(x86_regs); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(x86_regs[i].names); j++) {
			const char *known = x86_regs[i].names[j];

			if (strlen(known) == n && memcmp(known, name, n) == 0) {
				*ret = x86_regs[i].word;
				return true;
			}
		}
	}
	return false;
}

static bool arm_word(const char *name, size_t n, uint32_t *ret)
{
	uint32_t word = 0;

	if (n == 2 && memcmp(name, "sp", 2) == 0) {
		*ret = ARM_SP_WORD;
		return true;
	}
	if (n < 2 || n > 3 || (name[0] != 'x' && name[0] != 'w'))
		return false;
	for (size_t i = 1; i < n; i++) {
		if (!isdigit((unsigned char)name[i]))
			return false;
		word = word * 10 + (uint32_t)(name[i] - '0');
	}
	if (word >= ARM_SP_WORD || (n == 3 && name[1] == '0'))
		return false;
	*ret = word;
	return true;
}

static bool eat_reg(uint16_t machine, const char **s, uint32_t *ret_off)
{
	const char *name = *s;
	uint32_t word;
	size_t n = 0;

	while (isalnum((unsigned char)name[n]))
		n++;
	if (!(machine == EM_X86_64 ? x86_word(name, n, &word) : arm_word(name, n, &word)))
		return false;
	*ret_off = word * 8;
	*s += n;
	return true;
}

static bool eat_x86(const char **s, struct ttmon_usdt_arg *arg)
{
	if (eat(s, '$')) {
		arg->kind = TTMON_USDT_IMM;
		return eat_number(s, &arg->value);
	}
	if (**s == '(' || **s == '-' || **s == '+' || isdigit((unsigned char)**s)) {
		arg->kind = TTMON_USDT_MEM;
		if (**s != '(' && !eat_number(s, &arg->value))
			return false;
		return eat(s, '(') && eat(s, '%') && eat_reg(EM_X86_64, s, &arg->reg_off) && eat(s, ')');
	}
	arg->kind = TTMON_USDT_REG;
	eat(s, '%');
	return eat_reg(EM_X86_64, s, &arg->reg_off);
}

static bool eat_arm(const char **s, struct ttmon_usdt_arg *arg)
{
	if (eat(s, '[')) {
		arg->kind = TTMON_USDT_MEM;
		if (!eat_reg(EM_AARCH64, s, &arg->reg_off))
			return false;
		if (eat(s, ',')) {
			while (eat(s, ' '))
				;
			eat(s, '#');
			if (!eat_number(s, &arg->value))
				return false;
		}
		return eat(s, ']');
	}
	if (eat_number(s, &arg->value)) {
		arg->kind = TTMON_USDT_IMM;
		return true;
	}
	arg->kind = TTMON_USDT_REG;
	return eat_reg(EM_AARCH64, s, &arg->reg_off);
}

static bool eat_arg(uint16_t machine, const char **s, struct ttmon_usdt_arg *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->is_signed = eat(s, '-');
	if (**s != '1' && **s != '2' && **s != '4' && **s != '8')
		return false;
	arg->bytes = (uint8_t)(*(*s)++ - '0');
	if (!eat(s, '@'))
		return false;
	return machine == EM_X86_64 ? eat_x86(s, arg) : eat_arm(s, arg);
}

int ttmon_usdt_parse_for(uint16_t machine, const char *args, struct ttmon_usdt_spec *ret)
{
	struct ttmon_usdt_spec spec;

	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return -EBADMSG;
	memset(&spec, 0, sizeof(spec));
	for (;;) {
		while (eat(&args, ' '))
			;
		if (!*args || spec.nr_args == TTMON_USDT_MAX_ARGS)
			break;
		if (!eat_arg(machine, &args, &spec.args[spec.nr_args]) || (*args && *args != ' '))
			return -EBADMSG;
		spec.nr_args++;
	}
	*ret = spec;
	return 0;
}

int ttmon_usdt_parse(const char *args, struct ttmon_usdt_spec *ret)
{
#if defined(__x86_64__)
	return ttmon_usdt_parse_for(EM_X86_64, args, ret);
#elif defined(__aarch64__)
	return ttmon_usdt_parse_for(EM_AARCH64, args, ret);
#else
#error "unknown architecture"
#endif
}
