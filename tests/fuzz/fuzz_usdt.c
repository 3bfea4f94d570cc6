// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_usdt.c: hostile text as the arguments of a USDT note, for both machines. What is accepted stays
 * within the registers, and written down again in the plainest form it means the same; what is refused
 * leaves nothing.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/io/objects/usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* By their place in the kernel's struct pt_regs (arch/x86/include/asm/ptrace.h). */
static const char *const x86_names[] = {
	"r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8",
	"rax", "rcx", "rdx", "rsi", "rdi", NULL,  NULL,	 NULL,	NULL, "rsp",
};

static void put_arg(uint16_t machine, const struct ttmon_usdt_arg *a, char *buf, size_t n)
{
	bool x86 = machine == EM_X86_64;
	unsigned int word = a->reg_off / 8;
	char reg[16] = "";
	int done;

	if (a->kind != TTMON_USDT_IMM && x86) {
		require(word < ARRAY_SIZE(x86_names) && x86_names[word]);
		snprintf(reg, sizeof(reg), "%%%s", x86_names[word]);
	} else if (a->kind != TTMON_USDT_IMM) {
		require(word <= 31);
		snprintf(reg, sizeof(reg), word == 31 ? "sp" : "x%u", word);
	}
	done = snprintf(buf, n, "%s%u@", a->is_signed ? "-" : "", a->bytes);
	buf += done;
	n -= (size_t)done;
	if (a->kind == TTMON_USDT_IMM)
		snprintf(buf, n, "%s%" PRId64, x86 ? "$" : "", a->value);
	else if (a->kind == TTMON_USDT_REG)
		snprintf(buf, n, "%s", reg);
	else if (x86)
		snprintf(buf, n, "%" PRId64 "(%s)", a->value, reg);
	else
		snprintf(buf, n, "[%s, %" PRId64 "]", reg, a->value);
}

static void check(uint16_t machine, const struct ttmon_usdt_spec *spec)
{
	static const struct ttmon_usdt_arg none;
	struct ttmon_usdt_spec again;
	char text[256] = "";

	require(spec->nr_args <= TTMON_USDT_MAX_ARGS && !spec->pad);
	for (uint32_t i = 0; i < TTMON_USDT_MAX_ARGS; i++) {
		const struct ttmon_usdt_arg *a = &spec->args[i];
		size_t used = strlen(text);

		if (i >= spec->nr_args) {
			require(!memcmp(a, &none, sizeof(none)));
			continue;
		}
		require(a->kind == TTMON_USDT_REG || a->kind == TTMON_USDT_MEM || a->kind == TTMON_USDT_IMM);
		require(a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8);
		require(a->is_signed <= 1 && !a->pad && a->reg_off % 8 == 0);
		text[used] = ' ';
		put_arg(machine, a, text + used + !!used, sizeof(text) - used - 1);
	}
	require(!ttmon_usdt_parse_for(machine, text, &again));
	require(!memcmp(&again, spec, sizeof(again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	_cleanup_free_ char *text = malloc(size + 1);

	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		struct ttmon_usdt_spec spec, before;
		int err;

		memset(&spec, 0xa5, sizeof(spec));
		before = spec;
		err = ttmon_usdt_parse_for(machines[i], text, &spec);
		if (err)
			require(err == -EBADMSG && !memcmp(&spec, &before, sizeof(spec)));
		else
			check(machines[i], &spec);
	}
	return 0;
}
