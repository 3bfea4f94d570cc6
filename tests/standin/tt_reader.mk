# SPDX-License-Identifier: GPL-2.0-only
#
# tt_reader.mk: the reader of tt_device_*_memory files that knows nothing of ttmon; included after
# standin.mk, which gives S, SD, Q, msg and WARN. A program of its own: $(S)/tt_reader FILE...

$(S)/tt_reader: $(SD)/tt_reader.c $(S)/flags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -o $@ $< $(note_warnings)

STANDIN += $(S)/tt_reader
