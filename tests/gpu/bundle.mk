# SPDX-License-Identifier: GPL-2.0-only
#
# bundle.mk: `make gpu-bundle`, one folder that runs tests/gpu on a machine with a driver and a GPU
# where nothing can be installed; included by the top Makefile after the other .mk files.
# tests/gpu/README.md says how it is used. In $(O)/gpu-bundle:
#
#	run.sh, tests/, include/	as in the repository, what tests/gpu needs of it
#	out/				what was built, laid out as .output/ is; out/lib/ has the shared libraries
#					that our programs load
#
# Programs look into out/lib first, also for what their libraries load (DT_RPATH). libc alone is the
# machine's own: bundle.json says which version they need. Libraries that go into foreign programs
# have zstd, lz4 and zlib in them, so that a program keeps its own copies of those; jansson, which
# Debian's archive does not allow there, is looked for in out/lib. There are no symbolic links in
# it.

GB := $(O)/gpu-bundle
GBP := $(O)/gpu-bundle.parts
GB_MAX_MIB := 60
GB_RPATH := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../lib'
GB_STATIC = -Wl,-Bstatic $(1) -Wl,-Bdynamic
GB_LIBC := ld-linux|linux-vdso|libc\.so|libm\.so|libdl\.so|libpthread\.so|librt\.so|libresolv\.so|libutil\.so|libanl\.so
# Machine code for GPUs since 2020, and PTX for what comes.
GB_ARCHS := sm_80,sm_90,sm_100,sm_120

$(GBP)/out/bin/ttmond: $(DAEMON_SRC:%.c=$(O)/obj/%.o) $(O)/libttmon-core.a
$(GBP)/out/bin/ttmon: $(TOOL_SRC:%.c=$(O)/obj/%.o) $(O)/libttmon-core.a
$(GBP)/out/bin/ttmon: MORE = $(CURSES)
$(GBP)/out/bin/%:
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(GB_RPATH) -o $@ $^ $(MORE) $(LIBS)

GB_SHARED = $(CC) -shared $(filter-out -pie,$(LDFLAGS_ALL)) -Wl,-z,defs -Wl,--gc-sections -Wl,--build-id \
	-Wl,-soname,$(@F) \
	    -Wl,--exclude-libs,ALL -o $@ $(filter %.o,$^)

$(GBP)/out/libttmon/libttmon-memtrace.so: $(INJECT_OBJ) memtrace/inject/inj.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(GB_SHARED) -Wl,-Bsymbolic-functions -Wl,-z,nodelete -Wl,--version-script,memtrace/inject/inj.map \
		$(call GB_STATIC,-lzstd -llz4) -lpthread -ldl

$(GBP)/out/libttmon/libttmon-pin.so: $(PRELOAD_OBJ) $(O)/preload/libttmon.o preload/pin.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(GB_SHARED) -Wl,--version-script,preload/pin.map $(GB_RPATH) -ljansson $(call GB_STATIC,-lz) -lpthread -ldl

$(GBP)/out/libttmon/libttmon.so.0: $(LIBTTMON_DIR)/libttmon.o lib/advisor/libttmon.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(GB_SHARED) -Wl,--version-script,lib/advisor/libttmon.map $(GB_RPATH) -ljansson $(call GB_STATIC,-lz) \
		-lpthread

# The stand-ins, to try the bundle without a GPU.
$(GBP)/out/tests/standin/gpu/libcuda.so.1: $(GPU_DRV:%=$(G)/obj/%.o) $(G)/libgpusim.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -pthread -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -Wl,--exclude-libs,libzstd.a:liblz4.a -o \
		$@ $^ \
		$(call GB_STATIC,-lzstd -llz4) -ldl -lm

GB_PROGRAM = $(CC) -O2 -g -Wall -Wextra -o $@ $(filter %.c %.o,$^)
$(GBP)/out/tests/gpu/hits: tests/gpu/hits.c
$(GBP)/out/tests/gpu/calls: tests/gpu/calls.c
$(GBP)/out/tests/gpu/waits: tests/gpu/waits.c
$(GBP)/out/tests/gpu/memtrace_drv: tests/gpu/memtrace.c tests/gpu/memtrace_drv.c tests/gpu/memtrace.h \
	tests/gpu/memtrace_cases.h
$(GBP)/out/tests/gpu/hits $(GBP)/out/tests/gpu/calls $(GBP)/out/tests/gpu/waits $(GBP)/out/tests/gpu/memtrace_drv:
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(GB_PROGRAM) -ldl

# For a machine whose compiler does not work: run.sh builds these anew where it can.
GB_CUDA_RPATH := -Wl,-rpath,/usr/local/cuda/lib64:/usr/local/cuda/targets/x86_64-linux/lib
$(GBP)/out/tests/gpu/real: tests/gpu/real.c
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(GB_PROGRAM) -I $(STANDIN_CUDA)/include $(STANDIN_CUDA)/lib/libcudart.so.13 $(GB_CUDA_RPATH)

$(GBP)/memtrace.o: tests/gpu/memtrace.cu tests/gpu/memtrace.h tests/gpu/memtrace_cases.h
	$(call msg,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)oldest=$$($(STANDIN_CUDA)/bin/nvcc --list-gpu-arch | sort -V | head -n 1) && \
		$(STANDIN_CUDA)/bin/nvcc -O3 -lineinfo -std=c++17 -gencode \
		"arch=$$oldest,code=[$$oldest,$(GB_ARCHS)]" -c $< -o $@

$(GBP)/out/tests/gpu/memtrace_rt: tests/gpu/memtrace.c tests/gpu/memtrace_rt.c $(GBP)/memtrace.o
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(GB_PROGRAM) -I $(STANDIN_CUDA)/include $(STANDIN_CUDA)/lib/libcudart.so.13 $(GB_CUDA_RPATH) \
		$(call GB_STATIC,-lstdc++) -ldl

GB_BUILT := \
	$(addprefix $(GBP)/out/,bin/ttmond bin/ttmon libttmon/libttmon-memtrace.so libttmon/libttmon-pin.so \
	libttmon/libttmon.so.0 \
	      tests/standin/gpu/libcuda.so.1 tests/gpu/hits tests/gpu/calls tests/gpu/waits tests/gpu/memtrace_drv \
	      $(if $(STANDIN_CUDA),tests/gpu/real) $(if $(wildcard $(STANDIN_CUDA)/bin/nvcc),tests/gpu/memtrace_rt))
# Taken as they are: [where they lie]=[where they go]
GB_COPIED := $(addprefix $(O)/,demo/workload tests/standin/lib/libcudart.so.13 tests/standin/lib/libcuda.so.1)
GB_SOURCES = $(sort $(filter-out %.mk %.pyc,$(wildcard tests/gpu/* tests/gpu/standin/torch/*.py))) tests/e2e/e2e.py \
	include/ttmon/fns.h LICENSE

.PHONY: gpu-bundle gpu-bundle-check
gpu-bundle: $(GB_BUILT) $(GB_COPIED) ## one folder that runs tests/gpu on another machine: .output/gpu-bundle
	$(Q)rm -rf $(GB) && mkdir -p $(GB)
	$(Q)cp -r $(GBP)/out $(GB)/out && mkdir -p $(GB)/out/lib
	$(Q)for f in $(GB_COPIED:$(O)/%=%); do install -D -m 0755 $(O)/$$f $(GB)/out/$$f || exit 1; done
	$(Q)for f in $(GB_SOURCES); do [ -d $$f ] || install -D -m $$([ -x $$f ] && echo 0755 || echo 0644) $$f \
		$(GB)/$$f || exit 1; done
	$(Q)for f in \
		$$(ldd $(GB)/out/bin/* $(GB)/out/libttmon/* | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | \
			grep -Ev '/($(GB_LIBC))' | sort -u); do \
		cp -L $$f $(GB)/out/lib/ || exit 1; done
	$(Q)printf '%s\n' '#!/bin/sh' '# SPDX-License-Identifier: GPL-2.0-only' \
		'exec "$$(dirname "$$0")/tests/gpu/run.sh" "$$@"' \
		> $(GB)/run.sh && \
		chmod 0755 $(GB)/run.sh
	$(Q)needs=$$(find $(GB)/out -type f -exec $(OBJDUMP) -T {} + 2>/dev/null | grep -o 'GLIBC_2\.[0-9]*' | \
			sort -Vu | tail -n 1) && \
		printf '{"version": "%s", "made": "%s", "needs_glibc": "%s", "made_with_glibc": "%s"}\n' \
			"$$(sed -n 's/.*"\(.*\)"/\1/p' $(O)/version.h)" "$$(date -u +%FT%TZ)" "$${needs#GLIBC_}" \
			"$$(getconf GNU_LIBC_VERSION)" \
			> $(GB)/out/bundle.json
	$(Q)size=$$(du -sm $(GB) | cut -f 1); echo "$(GB): $$size MiB, $$(cat $(GB)/out/bundle.json)"; \
		[ $$size -lt $(GB_MAX_MIB) ] || { echo "it is larger than $(GB_MAX_MIB) MiB"; exit 1; }

OBJDUMP ?= objdump

gpu-bundle-check: gpu-bundle ## the bundle alone in a root, on the stand-ins; as root
	$(Q)O='$(O)' tests/gpu/away.sh $(GB)

# A libcudart.so.12 for a real PyTorch of CUDA 12: see README.md.
$(O)/tests/gpu/torch/libcudart.so.12: tests/gpu/standin/torch_rt.c $(rt12_OBJ) $(SD)/model.h
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)printf 'libcudart.so.12 {\n\tglobal: cuda*; __cuda*; standin_*;\n\tlocal: *;\n};\n' > $@.map
	$(Q)$(CC) $(filter-out -MMD -MP -Wmissing-prototypes -Werror,$(STANDIN_LIB_CFLAGS)) -shared -Wl,-Bsymbolic \
		-Wl,--build-id \
		-Wl,-soname,libcudart.so.12 -Wl,--version-script,$@.map -o $@ $(filter %.c %.o,$^)

.PHONY: gpu-torch-standin
gpu-torch-standin: $(O)/tests/gpu/torch/libcudart.so.12
