# SPDX-License-Identifier: GPL-2.0-only
#
# Pure parts of the BPF programs that are run by BPF_PROG_RUN, with the production headers. The
# program prints "ok NAME" lines; needs root. tests/e2e/test_bpf.py runs it.

$(O)/tests/bpf/%.bpf.o: tests/bpf/%.bpf.c $(O)/bpf/flags
	$(call msg,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -I . -D__TARGET_ARCH_$(BPF_ARCH) -MMD -MP -c $< -o $@ $(note_warnings)

$(O)/tests/bpf/%.skel.h: $(O)/tests/bpf/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

$(O)/obj/tests/bpf/rmid_alloc.o: $(O)/tests/bpf/rmid_alloc.skel.h

$(O)/tests/bpf/rmid_alloc: $(O)/obj/tests/bpf/rmid_alloc.o $(O)/ldflags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LIBS)

.PHONY: bpf-build
bpf-build: $(O)/tests/bpf/rmid_alloc
