# SPDX-License-Identifier: GPL-2.0-only
#
# release.mk: ttmon on other releases, in a root that debootstrap makes; included by the top Makefile, which gives RUN.

RELEASE ?= trixie
# Where the roots stay; 2 to 3 GB each with what was built in them.
ROOTS ?= /var/cache/ttmon/roots
RELEASE_PARTS ?= build,unit,demo
RELEASE_COMPILERS ?= gcc,clang
CUDA_HEADERS ?= 1
export RELEASE ROOTS RELEASE_PARTS RELEASE_COMPILERS CUDA_HEADERS

.PHONY: check-release check-trixie
check-release: ## builds, unit tests and demo on RELEASE=trixie (or noble, ...), in a root under ROOTS; as root
	+$(RUN) release

check-trixie: RELEASE := trixie
check-trixie: check-release ## the same on Debian 13
