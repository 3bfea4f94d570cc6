# SPDX-License-Identifier: GPL-2.0-only
#
# libttmon.mk: libttmon, shared and static; included by the top Makefile, which gives O, Q, msg, CC,
# AR, the flags and filechk.
#
# Both are made of one object, into which all are linked and in which only the names of libttmon.map
# are global: what else is in it meets no name of the program's, in the archive neither. What they do
# not need is left out, the commands' messages on stderr above all.

LIBTTMON_SRC := $(call below,lib/advisor) \
	$(wildcard lib/read/run*.c lib/pin/profile*.c lib/pin/groups.c lib/verdict/*.c) lib/read/client.c \
	lib/read/db.c lib/read/fields.c lib/read/programs.c lib/os/elf.c lib/os/proc.c \
		$(addprefix lib/unwind/,cfi.c walk.c mapped.c) \
		$(addprefix lib/base/,hmap.c names.c hash.c fmt.c plumbing.c)
LIBTTMON_DIR := $(O)/libttmon
LIBTTMON_CFLAGS = $(filter-out -fPIE,$(CFLAGS_ALL)) $(CFLAGS_plain) -fPIC -fno-omit-frame-pointer -fvisibility=hidden \
		   -ffunction-sections -fdata-sections
LIBTTMON_LIBS := -ljansson -lz -lpthread
LIBTTMON := $(LIBTTMON_DIR)/libttmon.so.0 $(LIBTTMON_DIR)/libttmon.so $(LIBTTMON_DIR)/libttmon.a

$(LIBTTMON_DIR)/flags: FORCE
	$(call filechk,$(CC) $(CPPFLAGS_ALL) $(LIBTTMON_CFLAGS) $(LDFLAGS) $(LIBTTMON_SRC))

$(LIBTTMON_DIR)/obj/%.o: %.c $(LIBTTMON_DIR)/flags | $(O)/version.h
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(LIBTTMON_CFLAGS) -MMD -MP -c $< -o $@ $(note_warnings)

$(LIBTTMON_DIR)/names: lib/advisor/libttmon.map $(LIBTTMON_DIR)/flags
	$(Q){ sed -n 's/^	\(ttmon_[a-z_]*\);$$/\1/p' $<; echo _.stapsdt.base; } > $@

$(LIBTTMON_DIR)/libttmon.o: $(LIBTTMON_SRC:%.c=$(LIBTTMON_DIR)/obj/%.o) $(LIBTTMON_DIR)/names
	$(call msg,LINK,$@)
	$(Q)$(LD) -r --gc-sections $$(sed 's/^/-u /' $(LIBTTMON_DIR)/names) -o $@.all $(filter %.o,$^)
	$(Q)$(OBJCOPY) --keep-global-symbols=$(LIBTTMON_DIR)/names $@.all $@ && rm $@.all

$(LIBTTMON_DIR)/libttmon.a: $(LIBTTMON_DIR)/libttmon.o
	$(call msg,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $<

$(LIBTTMON_DIR)/libttmon.so.0: $(LIBTTMON_DIR)/libttmon.o lib/advisor/libttmon.map
	$(call msg,LINK,$@)
	$(Q)$(CC) -shared $(filter-out -pie,$(LDFLAGS_ALL)) -Wl,-z,defs -Wl,--build-id -Wl,-soname,libttmon.so.0 \
		-Wl,--version-script,lib/advisor/libttmon.map -o $@ $< $(LIBTTMON_LIBS)

$(LIBTTMON_DIR)/libttmon.so: $(LIBTTMON_DIR)/libttmon.so.0
	$(Q)ln -sf libttmon.so.0 $@

# Where it will lie is said when it is installed.
$(LIBTTMON_DIR)/libttmon.pc: lib/advisor/libttmon.pc.in FORCE
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's,@prefix@,$(prefix),' -e 's,@includedir@,$(includedir),' -e 's,@libdir@,$(libdir),' \
		-e 's,@version@,$(VERSION),' $< > $@

.PHONY: libttmon
libttmon: $(LIBTTMON) ## the library for allocators: .output/libttmon/libttmon.so.0 and libttmon.a

# The test sees what the hot path calls.
LDFLAGS_test_advisor := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc pthread_mutex_lock)

LIBTTMON_INSTALLED := $(addprefix $(libdir)/,libttmon.so.0 libttmon.so libttmon.a pkgconfig/libttmon.pc)

.PHONY: install-libttmon
install-libttmon: libttmon $(LIBTTMON_DIR)/libttmon.pc ## the library alone, with its headers
	$(Q)$(INSTALL) -d $(DESTDIR)$(libdir)/pkgconfig $(DESTDIR)$(includedir)/ttmon
	$(Q)$(INSTALL) -m 0644 $(LIBTTMON_DIR)/libttmon.so.0 $(LIBTTMON_DIR)/libttmon.a $(DESTDIR)$(libdir)/
	$(Q)ln -sf libttmon.so.0 $(DESTDIR)$(libdir)/libttmon.so
	$(Q)$(INSTALL) -m 0644 $(LIBTTMON_DIR)/libttmon.pc $(DESTDIR)$(libdir)/pkgconfig/libttmon.pc
	$(Q)$(INSTALL) -m 0644 include/ttmon/client.h include/ttmon/usdt.h $(DESTDIR)$(includedir)/ttmon/
