# SPDX-License-Identifier: GPL-2.0-only
#
# unwind.mk: programs whose call stacks the unwinder is to find, each with a book of its own
# (unwind.h); included by standin.mk.
#
#   unwind, unwind_cxx   without frame pointers, -O2       unwind_fp        with them, libraries without
#   unwind_stripped      without any symbol                unwind_nopie     linked to fixed addresses
#   unwind_static        the C library in it, and no CUDA              libunwind_part.so   is opened and closed again

UNWIND_CFLAGS := \
	$(filter-out -fno-omit-frame-pointer -fno-optimize-sibling-calls -std=gnu11 -MMD -MP,$(STANDIN_CFLAGS)) \
		 -fomit-frame-pointer -foptimize-sibling-calls
UNWIND_LINK = -Wl,--build-id -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN:$$ORIGIN/lib'
UNWIND := $(addprefix $(S)/,unwind unwind_fp unwind_nopie unwind_static unwind_stripped unwind_cxx libunwind_part.so)

$(S)/unwind $(S)/unwind_fp $(S)/unwind_nopie: $(SD)/unwind.c $(RT13)
$(S)/unwind_static: $(SD)/unwind.c
$(S)/unwind_fp: UNWIND_MORE := -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls
$(S)/unwind_nopie: UNWIND_MORE := -fno-pie -no-pie
$(S)/unwind_static: UNWIND_MORE := -DUNWIND_STATIC -static -fno-pie

$(S)/unwind $(S)/unwind_fp $(S)/unwind_nopie $(S)/unwind_static: $(SD)/unwind.h $(S)/flags
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(UNWIND_CFLAGS) $(UNWIND_MORE) $(UNWIND_LINK) -o $@ $(filter %.c %.so.13 %.a,$^) -ldl \
		$(note_warnings)

$(S)/unwind_stripped: $(S)/unwind
	$(call msg,STRIP,$@)
	$(Q)strip -s -o $@ $<

$(S)/unwind_cxx: $(SD)/unwind_cxx.cpp $(SD)/unwind.h $(S)/flags $(RT13)
	$(call msg,LINK,$@)
	$(Q)$(CXX) -std=gnu++17 $(filter-out -Wmissing-prototypes -Wstrict-prototypes,$(UNWIND_CFLAGS)) \
		$(UNWIND_LINK) -o $@ $< $(RT13) $(note_warnings)

$(S)/libunwind_part.so: $(SD)/unwind_part.c $(S)/flags
	$(call msg,LINK,$@)
	$(Q)$(CC) -std=gnu11 $(UNWIND_CFLAGS) -fPIC -shared -Wl,--build-id -o $@ $< $(note_warnings)
