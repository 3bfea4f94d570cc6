#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh KERNEL: make the Debian package and print where it is. It is the same for all kernels.

set -eu
cd "$(dirname "$0")/../.."
out=$(make --no-print-directory -s O="${O:-.output}" deb 2>&1) || {
	echo "$out" | tail -n 1 >&2
	exit 1
}
realpath "$(echo "$out" | tail -n 1)"
