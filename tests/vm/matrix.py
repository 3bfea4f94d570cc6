# SPDX-License-Identifier: GPL-2.0-only
"""matrix.py: what the kernel matrix leaves out, and what of it continuous integration runs each time."""

# Label or module of tests/e2e, and why it does not run in a guest; what asks nothing of the kernel
# (e2e.needs_kernel) does not either.
NOT_HERE = {
    "soak": "measures memory over time under a load that emulation cannot give",
    "http/crowd": "counts what 400 clients get in a time that emulation has not",
}

# Patterns of labels: one or two of each area, a few minutes for all kernels together: ways to
# attach, copies, what is refused, CPU time,
# RMIDs by BPF, by the module and by resctrl, the package under systemd.
SHORT = (
    "uprobes/(which_uprobes|events_are_removed|without_btf)",
    "copy/copies",
    "lockdown/.*",
    "cpu/(idle|without_counters)",
    "bpf",
    "kmod/(selftest|dump)",
    "resctrl/groups",
    "service/(install|traces)",
)
