# SPDX-License-Identifier: GPL-2.0-only
#
# standin.mk: the stand-in libraries and the programs of the end-to-end tests; included by the top
# Makefile, which gives O, Q, msg, CC, WARN and filechk. STANDIN is everything. Beside one another in
# $(O)/tests/standin:
#
#   lib/       libcudart.so.12, libcudart.so.13, libcuda.so.1     stripped/  the same without .symtab
#   copy/      libcudart.so.13 at another inode                   PROGRAM    finds lib/ by its run path
#
# Built like the real ones: frame pointers, so that each function begins with push %rbp, and each name
# at an address of its own.

S := $(O)/tests/standin
SD := tests/standin

# The real headers of CUDA 13, where they are: the programs are built with them, and the argument
# lists held against them.
STANDIN_CUDA := $(firstword $(wildcard /usr/local/cuda-13*))
STANDIN_REAL := \
	$(if $(STANDIN_CUDA),-DSTANDIN_REAL_HEADERS -isystem $(STANDIN_CUDA)/include -Wno-deprecated-declarations)

STANDIN_CFLAGS := -std=gnu11 -O2 -g $(WARN) -MMD -MP -I $(SD) -I include -I . -pthread -fno-omit-frame-pointer \
	-fcf-protection=none \
		  -fno-optimize-sibling-calls
# A function's entry is its entry: nothing before the frame is set up, and no two names for one function.
STANDIN_LIB_CFLAGS := $(STANDIN_CFLAGS) -fPIC -fno-stack-protector
ifeq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
STANDIN_LIB_CFLAGS += -fno-shrink-wrap -fno-schedule-insns2 -fno-ipa-icf
endif
ifneq ($(shell uname -m),x86_64)
STANDIN_CFLAGS := $(filter-out -fcf-protection=none,$(STANDIN_CFLAGS))
STANDIN_LIB_CFLAGS := $(filter-out -fcf-protection=none,$(STANDIN_LIB_CFLAGS))
endif

$(S)/flags: FORCE
	$(call filechk,$(CC) $(STANDIN_LIB_CFLAGS) $(STANDIN_REAL))

# $(call standin_objects,dir,sources,flags)
define standin_objects
$(S)/obj/$(1)/%.o: $(SD)/%.c $(S)/flags
	$$(call msg,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $$(STANDIN_LIB_CFLAGS) $(3) -c $$< -o $$@ $$(note_warnings)
$(1)_OBJ := $(2:%=$(S)/obj/$(1)/%.o)
endef

STANDIN_RT := rt rt_copy rt_ask model stream control
STANDIN_DRV := drv drv_copy drv_ask model stream control
$(eval $(call standin_objects,rt13,$(STANDIN_RT),))
$(eval $(call standin_objects,rt12,$(STANDIN_RT),-DSTANDIN_CUDART=12))
$(eval $(call standin_objects,rts,$(STANDIN_RT),-fvisibility=hidden))
$(eval $(call standin_objects,drv,$(STANDIN_DRV),-DSTANDIN_DRIVER))

# $(call standin_link,objects,soname,map): a library as NVIDIA links them.
standin_link = $(CC) -shared -pthread -Wl,-Bsymbolic -Wl,--build-id -Wl,-soname,$(2) -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN' -Wl,--version-script,$(SD)/$(3) -o $@ $(1)

$(S)/lib/libcudart.so.13: $(rt13_OBJ) $(SD)/cudart13.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call standin_link,$(rt13_OBJ),libcudart.so.13,cudart13.map)

$(S)/lib/libcudart.so.12: $(rt12_OBJ) $(SD)/cudart12.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call standin_link,$(rt12_OBJ),libcudart.so.12,cudart12.map)

$(S)/lib/libcuda.so.1: $(drv_OBJ) $(SD)/cuda.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call standin_link,$(drv_OBJ),libcuda.so.1,cuda.map)

$(S)/stripped/%: $(S)/lib/%
	$(call msg,STRIP,$@)
	@mkdir -p $(@D)
	$(Q)strip -o $@ $<

$(S)/copy/%: $(S)/stripped/%
	$(call msg,COPY,$@)
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(S)/lib/libcudart_static_standin.a: $(rts_OBJ)
	$(call msg,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# A library with an allocator of its own, for --alloc-fn.
$(S)/lib/libmyalloc.so: $(SD)/myalloc.c $(S)/flags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_LIB_CFLAGS) -MF $(S)/libmyalloc.d -shared -Wl,-soname,libmyalloc.so -o $@ $< \
		$(note_warnings)

# Calls go through it where it is preloaded, as through an allocator of ours.
$(S)/lib/libttmon-shim.so: $(SD)/shim.c $(S)/flags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_LIB_CFLAGS) -MF $(S)/libttmon-shim.d -shared -o $@ $< -ldl $(note_warnings)

# Programs ------------------------------------------------------------------------------------------------------------

$(S)/obj/prog/%.o: $(SD)/%.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_CFLAGS) $(STANDIN_REAL) -c $< -o $@ $(note_warnings)

$(S)/obj/prog12/%.o: $(SD)/%.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_CFLAGS) -DSTANDIN_CUDART=12 -c $< -o $@ $(note_warnings)

$(S)/obj/progctx/%.o: $(SD)/%.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_CFLAGS) $(STANDIN_REAL) -DWITH_UCONTEXT -c $< -o $@ $(note_warnings)

$(S)/obj/progptds/%.o: $(SD)/%.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_CFLAGS) $(STANDIN_REAL) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -c $< -o $@ $(note_warnings)

standin_program = $(CC) -pthread -Wl,--build-id -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN/lib' -o $@ \
	$(filter %.o,$^) \
		  $(filter %.so %.so.1 %.so.12 %.so.13 %.a,$^) -ldl
RT13 := $(S)/lib/libcudart.so.13
RT12 := $(S)/lib/libcudart.so.12
DRV := $(S)/lib/libcuda.so.1
RTS := $(S)/lib/libcudart_static_standin.a
LEDGER := ledger ledger_ops
SCEN := scen scen_life scen_copy scen_mem

$(S)/ledger: $(LEDGER:%=$(S)/obj/prog/%.o) $(RT13)
$(S)/ledger12: $(LEDGER:%=$(S)/obj/prog12/%.o) $(RT12)
$(S)/ledger_ptds: $(LEDGER:%=$(S)/obj/progptds/%.o) $(RT13)
$(S)/ledger_static: $(LEDGER:%=$(S)/obj/prog/%.o) $(RTS)
$(S)/scen: $(SCEN:%=$(S)/obj/prog/%.o) $(RT13)
$(S)/scen_static: $(SCEN:%=$(S)/obj/prog/%.o) $(RTS)
$(S)/drvscen: $(S)/obj/prog/drvscen.o $(DRV)
$(S)/everyfn: $(patsubst %,$(S)/obj/prog/%.o,everyfn everyrt everydrv) $(RT13) $(DRV)
$(S)/everyfn12: $(patsubst %,$(S)/obj/prog12/%.o,everyfn everyrt) $(RT12)
$(S)/selftest: $(S)/obj/prog/selftest.o $(RT13)
$(S)/nodriver: $(S)/obj/prog/nodriver.o $(RT13)
$(S)/late: $(S)/obj/prog/late.o
$(S)/load: $(S)/obj/prog/load.o
$(S)/custom: $(S)/obj/prog/custom.o $(RT13) $(S)/lib/libmyalloc.so
$(S)/usdt: $(S)/obj/prog/usdt.o $(RT13)
$(S)/threads: $(S)/obj/prog/threads.o $(RT13)
$(S)/waits: $(S)/obj/prog/waits.o $(RT13)
$(S)/sealed: $(S)/obj/prog/sealed.o $(RT13)
$(S)/coro: $(S)/obj/prog/coro.o $(RT13)
$(S)/coro_ctx: $(S)/obj/progctx/coro.o $(RT13)
$(S)/steps: $(S)/obj/prog/steps.o $(RT13)
$(S)/work: $(S)/obj/prog/work.o $(RT13)
$(S)/pace: $(S)/obj/prog/pace.o $(RT13)
$(S)/hoard: $(S)/obj/prog/hoard.o $(RT13)
$(S)/again: $(S)/obj/prog/again.o $(RT13)
$(S)/again_static: $(S)/obj/prog/again.o $(RTS)
$(S)/truth: $(S)/obj/prog/truth.o
$(S)/caller: $(S)/obj/prog/caller.o
$(S)/caller_static: $(S)/obj/prog/caller_static.o $(RTS)

$(S)/obj/prog/caller_static.o: $(SD)/caller.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_CFLAGS) -DCALLER_STATIC -c $< -o $@ $(note_warnings)

# The family of ident.h: ident as it is, ident2 rebuilt after edits, its library with other optimisations.
define ident_program
$(S)/$(1)/libident_%.so: $(SD)/ident_%.c $(SD)/ident.h $(S)/flags | $(RT13)
	$$(call msg,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $(filter-out -MMD -MP,$(STANDIN_LIB_CFLAGS)) $(2) $$(if $$(filter a,$$*),$(3)) -shared \
		-Wl,--build-id -Wl,-soname,libident_$$*.so \
		-o $$@ $$< $(RT13) $$(note_warnings)

$(S)/$(1)/ident: $(SD)/ident.c $(SD)/ident.h $(S)/flags $(S)/$(1)/libident_a.so | $(S)/$(1)/libident_b.so
	$$(call msg,LINK,$$@)
	$$(Q)$(CC) $(filter-out -MMD -MP,$(STANDIN_CFLAGS)) $(2) -Wl,--build-id -Wl,--disable-new-dtags \
		-Wl,-rpath,'$$$$ORIGIN:$$$$ORIGIN/../lib' \
		-o $$@ $$< $(S)/$(1)/libident_a.so $(RT13) -ldl $$(note_warnings)
endef
$(eval $(call ident_program,ident,,))
$(eval $(call ident_program,ident2,-DIDENT_REBUILT,-O1))

STANDIN_PROGRAMS := \
	$(addprefix $(S)/,ledger ledger12 ledger_ptds ledger_static scen scen_static drvscen everyfn everyfn12 \
		      selftest nodriver \
		      late load custom usdt coro coro_ctx threads waits sealed work pace hoard again again_static \
		      steps truth caller caller_static)

CXX ?= g++
$(S)/throws: $(SD)/throws.cpp $(S)/flags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++11 -O2 -fno-omit-frame-pointer -Wall -Wextra $(FATAL) -o $@ $< $(note_warnings)

$(STANDIN_PROGRAMS):
	$(call msg,LINK,$@)
	$(Q)$(standin_program)

$(S)/lib/libclosed.so: $(SD)/closed.c $(S)/flags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(STANDIN_LIB_CFLAGS)) -shared -s -Wl,--build-id -o $@ $< -ldl $(note_warnings)

# A library between the runtime and the driver, in four forms.
define standin_between
$(S)/$(1)/libcuda.so.1: $(SD)/between.c $(S)/flags
	$$(call msg,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CC) $(filter-out -MMD -MP -fno-omit-frame-pointer -fno-optimize-sibling-calls,$(STANDIN_LIB_CFLAGS)) \
		-fomit-frame-pointer -foptimize-sibling-calls \
		$(2) -shared -Wl,--build-id -Wl,-soname,libcuda.so.1 -o $$@ $$< -ldl $$(note_warnings)
endef
$(eval $(call standin_between,between,))
$(eval $(call standin_between,between_jumps,-DJUMPS))
$(eval $(call standin_between,between_known,-DKNOWN))
$(eval $(call standin_between,between_known_jumps,-DKNOWN -DJUMPS))
STANDIN_BETWEEN := $(foreach d,between between_jumps between_known between_known_jumps,$(S)/$(d)/libcuda.so.1)

$(S)/%_stripped: $(S)/%
	$(call msg,STRIP,$@)
	$(Q)strip -o $@ $<

# The argument lists against the real headers: what differs does not compile.
$(S)/headers-checked: \
	$(addprefix $(SD)/,rt.c rt_copy.c rt_ask.c drv.c drv_copy.c drv_ask.c api.h cu_api.h cuda_api.h model.h rt.h)
	$(call msg,CHECK,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(STANDIN_REAL),for f in rt rt_copy rt_ask drv drv_copy drv_ask; do \
		$(CC) $(filter-out -MMD -MP,$(STANDIN_LIB_CFLAGS)) $(STANDIN_REAL) -fsyntax-only $(SD)/$$f.c || exit \
		1; done)
	$(Q)touch $@

# Demonstration -------------------------------------------------------------------------------------------------------

$(O)/demo/obj/%.o: tools/demo/%.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(STANDIN_CFLAGS) -c $< -o $@ $(note_warnings)

$(O)/demo/workload: $(O)/demo/obj/workload.o $(RT13)
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread -Wl,--build-id -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN/../tests/standin/lib' -o $@ $^

include $(SD)/tt.mk

.PHONY: standin
include $(SD)/unwind.mk
STANDIN_IDENT := $(S)/ident/ident $(S)/ident2/ident
STANDIN := $(S)/throws $(STANDIN_IDENT) $(RT13) $(RT12) $(DRV) $(S)/stripped/libcudart.so.13 \
	$(S)/stripped/libcuda.so.1 $(S)/copy/libcudart.so.13 $(S)/lib/libttmon-shim.so \
	   $(S)/lib/libclosed.so $(STANDIN_BETWEEN) \
	   $(STANDIN_PROGRAMS) $(S)/ledger_static_stripped $(S)/scen_static_stripped $(S)/headers-checked \
	   $(O)/demo/workload $(STANDIN_TT) \
	   $(UNWIND)
include $(SD)/tt_reader.mk
include $(SD)/libttmon.mk
standin: $(STANDIN) ## the stand-in libraries and the programs of the end-to-end tests
