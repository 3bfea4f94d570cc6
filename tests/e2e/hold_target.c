// SPDX-License-Identifier: GPL-2.0-only
/*
 * hold_target.c: linked statically, so that only the execve shows that it starts. Exit status: its
 * argument, 6 without one.
 */
#include <stdlib.h>

int main(int argc, char **argv)
{
	return argc > 1 ? atoi(argv[1]) : 6;
}
