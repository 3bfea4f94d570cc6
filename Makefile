# SPDX-License-Identifier: GPL-2.0-only
#
# The one Makefile. Everything that is built goes to .output/ and nothing is installed but by `make
# install` and, through tools/setup.sh, by `make deps`, `make check` and `make demo`. `make help`
# lists the targets.
#
# Every C file is compiled by one pattern rule in up to four flavours, each with its own folder:
#   .output/        optimized and hardened, what is installed          .output/asan/   ASan + UBSan: the unit tests
#   .output/tsan/   TSan                                               .output/fuzz/   clang, libFuzzer + ASan + UBSan
# SAN=asan|tsan builds the programs themselves in that flavour: .output/asan/bin/ttmond.

O := .output
VERSION := 0.1.0

CLANG ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
# The system's own, which is the one that tools/setup.sh gives its modules.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
# Debian keeps bpftool in /usr/sbin, which is not in everybody's PATH; Ubuntu's /usr/sbin/bpftool only
# works on Ubuntu's kernel.
BPFTOOL ?= $(shell PATH="$$PATH:/usr/sbin"; \
	     ls -v /usr/lib/linux-tools-*/bpftool 2>/dev/null | tail -n 1 | grep . || command -v bpftool || echo \
	     bpftool)

SAN ?=
STATIC ?= 0
FUZZ_SECS ?= 600
SOAK_SECS ?= 3600

prefix ?= /usr/local
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
includedir ?= $(prefix)/include
libdir ?= $(prefix)/lib
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/ttmon
completionsdir ?= $(prefix)/share/bash-completion/completions
zshdir ?= $(prefix)/share/zsh/site-functions
fishdir ?= $(prefix)/share/fish/vendor_completions.d
# Where Debian's python3 looks, for every version of it.
pythondir ?= $(prefix)/lib/python3/dist-packages
pydocdir ?= $(prefix)/share/doc/python3-ttmon
sysconfdir ?= /etc
# systemd reads /usr/local/lib/systemd/system too; where a distribution keeps its own it says itself.
libdir_of = $(or \
	$(if $(filter /usr,$(prefix)),$(shell $(PKG_CONFIG) --variable=$(1) systemd 2>/dev/null)),$(prefix)/lib/$(2))
unitdir ?= $(call libdir_of,systemdsystemunitdir,systemd/system)
sysusersdir ?= $(call libdir_of,sysusersdir,sysusers.d)
tmpfilesdir ?= $(call libdir_of,tmpfilesdir,tmpfiles.d)
INSTALL ?= install

ifneq ($(filter-out asan tsan,$(SAN)),)
$(error SAN=$(SAN): only asan and tsan are known)
endif

# Flags ---------------------------------------------------------------------------------------------------------------

# WERROR=1 makes warnings errors. The test suites build that way (tests/run.sh), `make` alone does
# not: a newer compiler has new warnings, and they must not stop who only builds. An object is the
# same either way, so -Werror stays out of the flags files (filechk). A command that warns without it
# leaves TARGET.warned, and WERROR=1 runs that command again, and no other one.
WERROR ?= 0
FATAL := $(if $(filter-out 0,$(WERROR)),-Werror)
# Ends each command that compiles.
note_warnings = \
	$(if $(FATAL),&& rm -f $@.warned,2>$@.warned; s=$$?; cat $@.warned >&2; test -s $@.warned || \
	rm -f $@.warned; exit $$s)

WARN := -Wall -Wextra $(FATAL) -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith -Wformat=2 -Wundef \
	-Wvla
# The real CUDA headers, for the tests that hold our copies of their layouts against them.
CUDA_INCLUDE ?= $(lastword $(sort $(wildcard /usr/local/cuda-*/include)))
INCLUDES := -I include -I . -I $(O)
# Empty, so that a file which says "#define _GNU_SOURCE" for itself says the same.
CPPFLAGS_ALL = $(INCLUDES) -D_GNU_SOURCE= $(CPPFLAGS)
gcc_only = $(if $(findstring clang,$(CC)),,$(1))
clang_only = $(if $(findstring clang,$(CC)),$(1))
# A struct with a flexible array that others lie behind: a GNU extension, in tests, and this is gnu11.
CFLAGS_ALL = -std=gnu11 -g $(WARN) $(call clang_only,-Wno-gnu-variable-sized-type-not-at-end) -fPIE -fno-common \
	$(CFLAGS)

CFLAGS_plain := -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
# Under its sanitizers gcc sees uninitialized variables that the optimized build knows to be none, and
# it warns that TSan does not see fences: ours order the daemon against the kernel's side of a ring,
# which TSan does not see either.
CFLAGS_asan = -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all \
	      $(call gcc_only,-Wno-maybe-uninitialized)
CFLAGS_tsan = -O1 -fno-omit-frame-pointer -fsanitize=thread $(call gcc_only,-Wno-maybe-uninitialized -Wno-tsan)
CFLAGS_fuzz := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

LDFLAGS_ALL = -pie -Wl,--as-needed -Wl,-z,relro,-z,now,-z,noexecstack $(LDFLAGS)
LDFLAGS_plain :=
LDFLAGS_asan := -fsanitize=address,undefined
LDFLAGS_tsan := -fsanitize=thread
LDFLAGS_fuzz := -fsanitize=fuzzer,address,undefined

# libmicrohttpd stays dynamic: Debian's static one wants gnutls, and that p11-kit, which has no
# archive. So does libelf where its archive does not link: Debian 13's calls functions of a libeu that
# is in no package.
LIBELF_A = $(shell $(PKG_CONFIG) --static --libs libelf)
LIBELF_A_LINKS = $(shell mkdir -p $(O); \
	printf '\043include <libelf.h>\nint main(void) { return !elf_begin(0, ELF_C_READ, 0); }\n' | \
		   $(CC) -x c -o $(O)/libelf-probe - -Wl,-Bstatic $(LIBELF_A) -lz -Wl,-Bdynamic 2>/dev/null && echo 1)
LIBS_dynamic = -lbpf -lelf -ljansson -lz -lzstd -llz4 -liberty -lmicrohttpd -lpthread
LIBS_static = -Wl,-Bstatic -lbpf -ljansson \
	$(if $(LIBELF_A_LINKS),$(LIBELF_A),-Wl$(comma)-Bdynamic -lelf -Wl$(comma)-Bstatic) \
	      -lz -lzstd -llz4 -liberty -Wl,-Bdynamic -lmicrohttpd -lpthread
comma := ,
LIBS = $(LIBS_$(if $(filter 1,$(STATIC)),static,dynamic))
# ttmon alone has a screen.
CURSES_dynamic = -lncursesw -ltinfo
CURSES_static = -Wl,-Bstatic $(CURSES_dynamic) -Wl,-Bdynamic
CURSES = $(CURSES_$(if $(filter 1,$(STATIC)),static,dynamic))

BPF_ARCH ?= $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(shell uname -m)))
BPF_CFLAGS = -target bpf -mcpu=v3 -std=gnu11 -g -O2 -Wall -Wextra $(FATAL) -Wno-unused-parameter \
	     -I vmlinux -I include -I bpf $(BPF_CPPFLAGS)

Q := $(if $(filter 1,$(V)),,@)
msg = @$(if $(filter 1,$(V)),:,printf '  %-8s %s\n' "$(1)" "$(2)")

# Sources -------------------------------------------------------------------------------------------------------------

# The object that defines the shared maps goes first: libbpf's linker gives a map that is extern in an
# earlier object offset 0.
BPF_SRC := bpf/ttmond.bpf.c $(filter-out bpf/ttmond.bpf.c,$(wildcard bpf/*.bpf.c))
# $(call below,FOLDER...): every C file in these folders and in theirs.
below = $(sort $(shell find $(1) -name '*.c'))
# What talks to the kernel through the skeleton or the rings is part of the daemon alone; the archive
# is what tools and tests link too.
DAEMON_SRC := daemon/main.c \
	$(call below,daemon/run daemon/api daemon/metrics daemon/io/bpf daemon/io/probes daemon/io/unwind)
CORE_SRC := $(filter-out $(DAEMON_SRC),$(call below,lib daemon)) $(filter-out memtrace/inject/%,$(call below,memtrace))
TOOL_SRC := $(filter-out tools/demo/%,$(call below,tools))
UNIT_SRC := $(call below,tests/unit)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC := $(wildcard tests/bench/bench_*.c)

B := $(O)$(if $(SAN),/$(SAN))
PROGRAMS := $(B)/bin/ttmond $(B)/bin/ttmon
# A test lies in the folder of what it tests; its program is called by its name alone, which no other test has.
UNIT_BIN := $(patsubst %.c,$(O)/asan/tests/%,$(notdir $(UNIT_SRC)))
TSAN_BIN := $(patsubst %.c,$(O)/tsan/tests/%,$(notdir $(UNIT_SRC)))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(O)/fuzz/bin/%)
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(O)/tests/bench/%)

.PHONY: all help
all: $(PROGRAMS) ## the programs: .output/bin/ttmond and .output/bin/ttmon (SAN=asan|tsan, STATIC=1, V=1, WERROR=1)

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

# Things that are rewritten only when what is in them changes ---------------------------------------------------------

.PHONY: FORCE
FORCE:

# Root may well build in somebody else's clone: git's ownership check is about hooks, and describe runs none.
GIT_VERSION = $(shell git -c safe.directory='*' describe --tags --match 'v*' --dirty 2>/dev/null || \
		git -c safe.directory='*' describe --always --dirty 2>/dev/null | sed 's/^/$(VERSION)-g/')

# $(call filechk,text): write the text, without -Werror, to $@ unless it is there already.
filechk = @mkdir -p $(@D); printf '%s\n' '$(filter-out -Werror,$(1))' | cmp -s - $@ || printf '%s\n' \
	'$(filter-out -Werror,$(1))' > $@

$(O)/version.h: FORCE
	$(call filechk,#define TTMON_VERSION "$(or $(patsubst v%,%,$(GIT_VERSION)),$(VERSION))")

# BPF: one object per source, linked into one, and the skeleton of that -----------------------------------------------

$(O)/bpf/flags: FORCE
	$(call filechk,$(CLANG) $(BPF_CFLAGS) $(BPF_ARCH))

$(O)/bpf/sources: FORCE
	$(call filechk,$(BPF_SRC))

$(O)/bpf/%.bpf.o: bpf/%.bpf.c $(O)/bpf/flags
	$(call msg,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(BPF_ARCH) -MMD -MP -c $< -o $@ $(note_warnings)

$(O)/bpf-arm64/%.bpf.o: bpf/%.bpf.c $(O)/bpf/flags
	$(call msg,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_arm64 -MMD -MP -c $< -o $@ $(note_warnings)

$(O)/ttmond.bpf.o: $(BPF_SRC:%.c=$(O)/%.o) $(O)/bpf/sources
	$(call msg,BPF-LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $(filter %.o,$^)

$(O)/ttmond.skel.h: $(O)/ttmond.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name ttmond_bpf > $@.tmp && mv $@.tmp $@

.PHONY: bpf-arm64
bpf-arm64: $(BPF_SRC:bpf/%.c=$(O)/bpf-arm64/%.o) ## the BPF objects for arm64 (compiled, not linked)

# C, in every flavour -------------------------------------------------------------------------------------------------

# $(call flavour,dir,name,compiler)
define flavour
$(1)/flags: FORCE
	$$(call filechk,$(3) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$(CFLAGS_$(2)))

# What is linked, and with what: a source that is gone shows here alone.
$(1)/ldflags: FORCE
	$$(call filechk,$(3) $$(LDFLAGS_ALL) $$(LDFLAGS_$(2)) $$(LIBS) $(CORE_SRC) $(DAEMON_SRC) $(TOOL_SRC))

$(1)/obj/%.o: %.c $(1)/flags | $(O)/version.h
	$$(call msg,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(3) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$(CFLAGS_$(2)) -MMD -MP -c $$< -o $$@ $$(note_warnings)

$(DAEMON_SRC:%.c=$(1)/obj/%.o): | $(O)/ttmond.skel.h
$(1)/obj/tools/db/cmd_db.o: docs/ttmon-db.schema.json
$(addprefix $(1)/obj/tools/,view/cmd_view.o view/page.o memtrace/view.o flame/cmd_flame.o): \
	$(wildcard tools/view/page/*)
$(UNIT_SRC:%.c=$(1)/obj/%.o): CPPFLAGS += $(CUDA_INCLUDE:%=-isystem %)

# Made anew each time: ar would keep the members of sources that are gone; appended (q), since r would
# replace a member by another folder's of the same name. Renamed, so that two makes do not meet in one
# file.
$(1)/libttmon-core.a: $(CORE_SRC:%.c=$(1)/obj/%.o) $(1)/ldflags
	$$(call msg,AR,$$@)
	$$(Q)rm -f $$@.$$$$$$$$ && $$(AR) qcs $$@.$$$$$$$$ $$(filter %.o,$$^) && mv $$@.$$$$$$$$ $$@

$(1)/bin/ttmond: $(DAEMON_SRC:%.c=$(1)/obj/%.o) $(1)/libttmon-core.a $(1)/ldflags
$(1)/bin/ttmon: $(TOOL_SRC:%.c=$(1)/obj/%.o) $(1)/libttmon-core.a $(1)/ldflags
$(foreach s,$(UNIT_SRC),$(eval $(1)/tests/$(basename $(notdir $(s))): $(1)/obj/$(s:.c=.o)))
$(patsubst %.c,$(1)/tests/%,$(notdir $(UNIT_SRC))): $(1)/tests/%: $(1)/libttmon-core.a $(1)/ldflags
	$$(call msg,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(3) $$(LDFLAGS_ALL) $$(LDFLAGS_$(2)) -o $$@ $$(filter %.o,$$^) $$(filter %.a,$$^) $$(LDFLAGS_$$*) \
		-lcmocka $$(LIBS)

$(1)/bin/ttmon: MORE = $$(CURSES)

$(1)/bin/ttmond $(1)/bin/ttmon:
	$$(call msg,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(3) $$(LDFLAGS_ALL) $$(LDFLAGS_$(2)) -o $$@ $$(filter %.o %.a,$$^) $$(MORE) $$(LIBS)
endef

$(eval $(call flavour,$(O),plain,$$(CC)))
$(eval $(call flavour,$(O)/asan,asan,$$(CC)))
$(eval $(call flavour,$(O)/tsan,tsan,$$(CC)))
$(eval $(call flavour,$(O)/fuzz,fuzz,$$(CLANG)))

$(O)/fuzz/bin/%: $(O)/fuzz/obj/tests/fuzz/%.o $(O)/fuzz/libttmon-core.a $(O)/fuzz/ldflags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(LDFLAGS_ALL) $(LDFLAGS_fuzz) -o $@ $(filter %.o %.a,$^) $(LIBS)

# The test looks at each store.
LDFLAGS_test_ttshm_write := -Wl,--wrap=ttmon_ttshm_word_store

# The same objects linked as STATIC=1 does it: the check that it still links, at the price of a link.
$(O)/static/ttmond: $(DAEMON_SRC:%.c=$(O)/obj/%.o) $(O)/libttmon-core.a
$(O)/static/ttmon: $(TOOL_SRC:%.c=$(O)/obj/%.o) $(O)/libttmon-core.a
$(O)/static/ttmon: MORE = $(CURSES_static)
$(O)/static/%:
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(MORE) $(LIBS_static)

$(O)/tests/bench/%: $(O)/obj/tests/bench/%.o $(O)/libttmon-core.a $(O)/ldflags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(LDFLAGS_$(*F)) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lm

-include lib/advisor/libttmon.mk
-include tests/standin/standin.mk
-include preload/preload.mk
-include memtrace/memtrace.mk
-include tests/standin/gpu/gpu.mk
-include tests/bpf/bpf.mk
-include tests/gpu/bundle.mk
-include tests/release/release.mk

# The benchmarks of the kernel side link what the daemon alone has, and probe a library whose functions do nothing.
BENCH_KERNEL := $(filter %_probe %_place %_attach %_attribution %_loss %_switch %_syscall %_tt,$(BENCH_BIN))
$(BENCH_KERNEL): \
	$(patsubst %.c,$(O)/obj/%.o,$(filter-out daemon/io/probes/discover%,$(filter daemon/io/%,$(DAEMON_SRC)))) | \
	$(O)/tests/bench/libnothing.so
$(O)/tests/bench/bench_loss: $(addprefix $(O)/obj/daemon/run/,hot.o snapshot.o)
$(O)/tests/bench/bench_heat: $(O)/obj/tools/term/table.o
$(addprefix $(O)/obj/tests/bench/bench_,probe.o place.o attach.o switch.o tt.o): | $(O)/tests/bench/empty.skel.h
$(O)/obj/tests/bench/bench_attribution.o: | $(O)/tests/bench/books.skel.h
$(O)/tests/bench/bench_attribution: | $(O)/tests/standin/load
$(O)/tests/bench/bench_tt: | $(O)/tests/standin/tt/e2b/libtt_metal.so
$(O)/tests/bench/bench_smi $(O)/tests/bench/bench_export: | $(O)/bin/ttmon
$(O)/tests/bench/bench_attach: | $(O)/tests/standin/lib/libcudart.so.13 $(O)/tests/standin/lib/libcuda.so.1

# It probes a function of its own.
LDFLAGS_bench_place := -rdynamic

$(O)/tests/bench/libnothing.so: tests/bench/nothing.c tests/bench/nothing.h $(S)/flags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(STANDIN_LIB_CFLAGS)) -shared -Wl,-Bsymbolic -o $@ $< $(note_warnings)

$(O)/tests/bench/%.bpf.o: tests/bench/%.bpf.c $(O)/bpf/flags
	$(call msg,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(BPF_ARCH) -MMD -MP -c $< -o $@ $(note_warnings)

$(O)/tests/bench/%.skel.h: $(O)/tests/bench/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

# Tests ---------------------------------------------------------------------------------------------------------------

.PHONY: unit-build fuzz-build tsan-build bench-build e2e-build lint-build clang-build static-build
unit-build: $(UNIT_BIN)
tsan-build: $(TSAN_BIN)
fuzz-build: $(FUZZ_BIN)
bench-build: $(BENCH_BIN)
lint-build: $(O)/libttmon-core.a $(PROGRAMS)
clang-build: $(O)/fuzz/libttmon-core.a $(DAEMON_SRC:%.c=$(O)/fuzz/obj/%.o) $(TOOL_SRC:%.c=$(O)/fuzz/obj/%.o)
static-build: $(PROGRAMS:$(B)/bin/%=$(O)/static/%)
e2e-build: $(PROGRAMS) $(STANDIN) bpf-build

RUN = $(Q)MAKE='$(MAKE)' CC='$(CC)' CLANG_FORMAT='$(CLANG_FORMAT)' PYTHON='$(PYTHON)' O='$(O)' \
	FUZZ_SECS='$(FUZZ_SECS)' tests/run.sh

.PHONY: check check-fast lint builds unit tsan fuzz fuzz-short e2e real-libs soak tt-random check-attack check-vm \
	check-vm-short check-kmod bench
check: ## everything that must hold: lint, builds, unit, fuzz (short), end to end; as root, 15 minutes on two cores
	@tools/setup.sh check
	+$(RUN) lint builds unit fuzz-short e2e

check-fast: ## lint, unit tests and the dozen end-to-end tests that matter most: two minutes after a build; as root
	@tools/setup.sh check
	+$(RUN) lint unit e2e-fast

lint: ## layers, exported names, padding, SPDX lines; file lengths and format as a report
	+$(RUN) lint

builds: ## gcc, clang, STATIC=1 and the arm64 BPF objects
	+$(RUN) builds

unit: ## the unit tests under ASan and UBSan
	+$(RUN) unit

tsan: ## the unit tests under TSan
	+$(RUN) tsan

fuzz: ## every fuzz target for FUZZ_SECS=600 seconds
	+$(RUN) fuzz

fuzz-short: ## every fuzz target for 10 seconds
	+$(RUN) fuzz-short

TT_PROGRAMS ?= 20000
TT_SEED ?= 1
tt-random: e2e-build ## TT_PROGRAMS random mesh programs on the stand-in tt-metal, checked: an hour or two; as root
	$(Q)TTMON_TT_PROGRAMS=$(TT_PROGRAMS) TTMON_TT_SEED=$(TT_SEED) $(PYTHON) tests/e2e/run.py e2e/ttrandom/

check-attack: e2e-build ## attacks on the service by one user, the long form of tests/attack: half an hour; as root
	$(Q)$(PYTHON) tests/e2e/run.py -j 1 --long attack/

soak: e2e-build ## the service under load for SOAK_SECS, memory and files watched; as root
	$(Q)$(PYTHON) tests/soak/soak.py $(SOAK_SECS)

e2e: ## the daemon on the stand-in libraries; as root
	+$(RUN) e2e

real-libs: ## fetch NVIDIA's driver and runtime from Debian's non-free (7 MB) for e2e/place
	$(Q)O='$(O)' $(PYTHON) tests/e2e/real_libs.py

check-vm: ## every test that traces, under Debian's 6.1 and 6.12 kernels in QEMU: up to two hours; as root
	+$(RUN) vm

check-vm-short: ## a handful of them, under ten minutes
	+$(RUN) vm-short

check-kmod: ## kmod/ against every kernel headers package of Debian 12, 13 and backports, and DKMS: 20 minutes; as root
	$(Q)tests/vm/kmod/every.sh

bench: bench-build e2e-build ## the figures, as ratios to a floor of the same run, into docs/performance.md; as root
	$(Q)O='$(O)' $(PYTHON) tests/bench/page.py

.PHONY: tidy format
C_FILES = $(shell git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)

tidy: $(O)/version.h $(O)/ttmond.skel.h ## clang-tidy, warnings are errors
	$(Q)$(CLANG_TIDY) --quiet $(filter-out %.bpf.c tests/standin/%,\
		$(filter daemon/%.c lib/%.c memtrace/%.c preload/%.c tools/%.c,$(C_FILES))) -- \
		$(CPPFLAGS_ALL) -std=gnu11

format: ## rewrite the C files by .clang-format
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

# Set-up, demonstration, installation ---------------------------------------------------------------------------------

.PHONY: deps demo install uninstall clean
deps: ## install what is missing to build and test (Debian, Ubuntu; as root)
	@tools/setup.sh

demo: ## run the bundled workload under ttmond and show what it found; as root
	@tools/setup.sh
	@+$(MAKE) --no-print-directory $(PROGRAMS) $(O)/demo/workload
	$(O)/bin/ttmon run -o $(O)/demo.json -- $(O)/demo/workload
	$(O)/bin/ttmon db show $(O)/demo.json
	$(O)/bin/ttmon heat -1 --by site $(O)/demo.json
	$(O)/bin/ttmon advise $(O)/demo.json
	$(O)/bin/ttmon view -o $(O)/demo.html $(O)/demo.json
	@echo 'the same as a page: $(O)/demo.html'

# A line in at signs of a manual page is a command of the programs that were built, whose output is put in its place.
$(O)/man/%: man/%.in $(PROGRAMS)
	$(call msg,MAN,$@)
	@mkdir -p $(@D)
	$(Q)awk '/^@ttmon.*@$$/ { gsub(/@/, ""); fflush(); if (system("$(B)/bin/" $$0)) exit 1; next } 1' $< > $@.tmp \
		&& mv $@.tmp $@

MADE_PAGES := $(patsubst man/%.in,$(O)/man/%,$(wildcard man/*.in))
.PHONY: man
man: $(MADE_PAGES) ## the manual pages that have tables of the programs: .output/man/

$(O)/systemd/flags: FORCE
	$(call filechk,$(sbindir) $(sysconfdir))

$(O)/systemd/%: systemd/%.in $(O)/systemd/flags
	$(Q)sed -e 's,@sbindir@,$(sbindir),' -e 's,@sysconfdir@,$(sysconfdir),' $< > $@

UNITS := $(patsubst systemd/%.in,$(O)/systemd/%,$(wildcard systemd/*.in))
MAN_PAGES := $(wildcard man/*.[1-8]) $(MADE_PAGES)
DOCS := $(wildcard docs/*.md docs/*.json README.md CHANGELOG.md LICENSE)
# What of docs/ lies in folders of its own.
DOC_FILES := $(wildcard $(addprefix docs/,guide/*.md design/*.md examples/*.c kubernetes/* grafana/* prometheus/*))
# What programs of others include; all other headers of include/ are tables of our own.
PUBLIC_HEADERS := $(patsubst %,include/ttmon/%.h,client usdt slot family shm tt_shm)
INSTALLED := $(sbindir)/ttmond $(bindir)/ttmon $(patsubst include/%,$(includedir)/%,$(PUBLIC_HEADERS)) \
	     $(foreach m,$(MAN_PAGES),$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m))) \
	     $(addprefix $(docdir)/,$(notdir $(DOCS)) $(DOC_FILES:docs/%=%)) \
	     $(addprefix $(completionsdir)/,ttmon ttmond) $(zshdir)/_ttmon \
	     $(addprefix $(fishdir)/,ttmon.fish ttmond.fish) $(LIBTTMON_INSTALLED) \
	     $(UNITS:$(O)/systemd/%=$(unitdir)/%) $(sysusersdir)/ttmond.conf $(tmpfilesdir)/ttmond.conf

install: all man $(UNITS) install-libttmon ## DESTDIR and prefix=/usr/local as usual; /etc/default/ttmond stays as it is
	$(Q)$(INSTALL) -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALLED))) $(sysconfdir)/default)
	$(Q)$(INSTALL) -m 0755 $(B)/bin/ttmond $(DESTDIR)$(sbindir)/ttmond
	$(Q)$(INSTALL) -m 0755 $(B)/bin/ttmon $(DESTDIR)$(bindir)/ttmon
	$(Q)$(INSTALL) -m 0644 $(PUBLIC_HEADERS) $(DESTDIR)$(includedir)/ttmon/
	$(Q)for m in $(MAN_PAGES); do $(INSTALL) -m 0644 $$m $(DESTDIR)$(mandir)/man$${m##*.}/ || exit 1; done
	$(Q)$(INSTALL) -m 0644 $(DOCS) $(DESTDIR)$(docdir)/
	$(Q)for d in $(DOC_FILES:docs/%=%); do $(INSTALL) -m 0644 docs/$$d $(DESTDIR)$(docdir)/$$d || exit 1; done
	$(Q)for p in ttmon ttmond; do \
		$(INSTALL) -m 0644 completions/bash $(DESTDIR)$(completionsdir)/$$p && \
		$(INSTALL) -m 0644 completions/fish $(DESTDIR)$(fishdir)/$$p.fish || exit 1; done
	$(Q)$(INSTALL) -m 0644 completions/zsh $(DESTDIR)$(zshdir)/_ttmon
	$(Q)$(INSTALL) -m 0644 $(UNITS) $(DESTDIR)$(unitdir)/
	$(Q)$(INSTALL) -m 0644 systemd/sysusers.conf $(DESTDIR)$(sysusersdir)/ttmond.conf
	$(Q)$(INSTALL) -m 0644 systemd/tmpfiles.conf $(DESTDIR)$(tmpfilesdir)/ttmond.conf
	$(Q)test -e $(DESTDIR)$(sysconfdir)/default/ttmond || $(INSTALL) -m 0644 systemd/ttmond.default \
		$(DESTDIR)$(sysconfdir)/default/ttmond

.PHONY: install-python
install-python: ## the reader in Python (tools/python): pythondir=$(prefix)/lib/python3/dist-packages
	$(Q)$(INSTALL) -d $(DESTDIR)$(pythondir)/ttmon $(DESTDIR)$(pydocdir)/examples
	$(Q)$(INSTALL) -m 0644 $(wildcard tools/python/ttmon/*.py) $(DESTDIR)$(pythondir)/ttmon/
	$(Q)$(INSTALL) -m 0644 tools/python/README.md $(DESTDIR)$(pydocdir)/
	$(Q)$(INSTALL) -m 0644 $(wildcard tools/python/examples/*) $(DESTDIR)$(pydocdir)/examples/

uninstall: ## remove what install put there, but for an /etc/default/ttmond that was changed
	$(Q)rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	$(Q)! cmp -s systemd/ttmond.default $(DESTDIR)$(sysconfdir)/default/ttmond || rm -f \
		$(DESTDIR)$(sysconfdir)/default/ttmond
	$(Q)rmdir $(DESTDIR)$(includedir)/ttmon $(addprefix $(DESTDIR)$(docdir)/,$(sort $(dir $(DOC_FILES:docs/%=%)))) \
		$(DESTDIR)$(docdir) 2>/dev/null || :

.PHONY: deb
deb: ## Debian packages in .output: ttmon, its libraries, the kernel module, tools/python
	+$(Q)for script in dkms python deb; do O='$(O)' MAKE='$(MAKE)' packaging/$$script.sh \
		'$(or $(patsubst v%,%,$(GIT_VERSION)),$(VERSION))' || exit 1; done

clean: ## remove .output
	$(Q)rm -rf $(O)

.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell test -d $(O) && find $(O) -name '*.d')
ifneq ($(FATAL),)
$(patsubst %.warned,%,$(shell test -d $(O) && find $(O) -name '*.warned')): FORCE
endif
