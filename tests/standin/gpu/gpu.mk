# SPDX-License-Identifier: GPL-2.0-only
#
# gpu.mk: the stand-in GPU; included by the top Makefile after standin.mk. In $(O)/tests/standin/gpu:
#
#	libcuda.so.1	the driver	libgpusim.a	the interpreter alone
#	run		runs the kernels of tests/memtrace, with results checked
#	edge		does what few programs do
#	oracle	holds what a recorder wrote against what the interpreter saw

G := $(S)/gpu
GD := $(SD)/gpu
GPU_SIM := lex parse body insn alu flt exec ldst warp sched grid mem
GPU_DRV := drv drv_stream drv_mem drv_image drv_mod drv_link drv_launch drv_names
GPU_KERNELS := kernels patterns
GPU_CFLAGS := $(STANDIN_CFLAGS) -Wno-missing-prototypes -fPIC -fvisibility=hidden -frounding-math

$(G)/obj/%.o: $(GD)/%.c $(S)/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPU_CFLAGS) -c $< -o $@ $(note_warnings)

$(G)/libgpusim.a: $(GPU_SIM:%=$(G)/obj/%.o)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(G)/libcuda.so.1: $(GPU_DRV:%=$(G)/obj/%.o) $(G)/libgpusim.a
	$(call msg,LINK,$@)
	$(Q)$(CC) -shared -pthread -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o $@ $^ -lzstd -llz4 -ldl -lm

$(G)/run: $(G)/obj/run.o $(GPU_KERNELS:%=$(G)/obj/%.o) $(G)/libcuda.so.1
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' -o $@ $^ -lm

# Opens the driver by name: not linked with it.
$(G)/edge: $(G)/obj/edge.o $(G)/libcuda.so.1
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' -o $@ $< -ldl

$(G)/oracle: $(G)/obj/oracle.o $(G)/obj/counters.o $(GPU_KERNELS:%=$(G)/obj/%.o) $(G)/libgpusim.a $(O)/libttmon-core.a
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread -o $@ $^ -lm

# The argument lists against the real header: what differs does not compile.
$(G)/headers-checked: $(wildcard $(GD)/*.c $(GD)/*.h)
	$(call msg,CHECK,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(STANDIN_REAL),for f in $(filter-out drv_names,$(GPU_DRV)) run edge; do \
		$(CC) $(filter-out -MMD -MP,$(GPU_CFLAGS)) $(STANDIN_REAL) -fsyntax-only $(GD)/$$f.c || exit 1; done)
	$(Q)touch $@

STANDIN += $(G)/libcuda.so.1 $(G)/run $(G)/edge $(G)/oracle $(G)/headers-checked
standin: $(STANDIN)

-include $(wildcard $(G)/obj/*.d)
