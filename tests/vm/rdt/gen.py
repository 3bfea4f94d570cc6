#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""gen.py KERNEL: where inject.py has to write in that kernel, into $QVM_HOME/rdt/KERNEL.json.

One boot without KASLR gives the addresses (/proc/kallsyms) and the kernel's BTF, from which bpftool tells the offsets.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.environ.get("QVM_HOME", os.path.expanduser("~/.cache/ttmon-vm"))
SYMBOLS = ("boot_cpu_data", "resctrl_late_init", "rdt_resources_all", "rdt_alloc_capable", "__cpuhp_setup_state")
FIELDS = {
    "cpuinfo_x86": ("x86_capability", "x86_cache_max_rmid", "x86_cache_occ_scale", "x86_cache_mbm_width_offset"),
    "rdt_hw_resource": (
        "num_closid",
        "r_resctrl.alloc_capable",
        "r_resctrl.cache.cbm_len",
        "r_resctrl.cache.shareable_bits",
        "r_resctrl.default_ctrl",
        "r_resctrl.data_width",
    ),
}


def boot(kernel, folder):
    """Addresses by name, and the path of the BTF."""
    command = (
        f"cd /run; grep -E ' ({'|'.join(SYMBOLS)})$' /proc/kallsyms >symbols; "
        "cat /sys/kernel/btf/vmlinux >vmlinux; tar cf $QVM_OUT symbols vmlinux"
    )
    args = [
        os.path.join(HERE, "..", "qvm.sh"),
        "-k",
        kernel,
        "-s",
        "1",
        "-t",
        "90",
        "-a",
        "nokaslr",
        "-o",
        folder,
        command,
    ]
    done = subprocess.run(args, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        sys.exit(f"gen.py: {kernel} does not tell its symbols: {(done.stdout + done.stderr)[-300:]}")
    with open(os.path.join(folder, "symbols"), encoding="utf-8") as f:
        found = {name: int(addr, 16) for addr, name in re.findall(r"^([0-9a-f]+) \w (\S+)$", f.read(), re.M)}
    return found, os.path.join(folder, "vmlinux")


def offsets(btf):
    env = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    done = subprocess.run(
        ["bpftool", "-j", "btf", "dump", "file", btf, "format", "raw"], capture_output=True, env=env, check=True
    )
    types = json.loads(done.stdout)["types"]
    by_id = {t["id"]: t for t in types}

    def member(struct, name):
        """(offset in bits, type) of a member, also of an unnamed union's or struct's."""
        for m in struct["members"]:
            kind = by_id.get(m["type_id"], {})
            if m["name"] == name:
                return m["bits_offset"], m["type_id"]
            if m["name"] == "(anon)" and kind.get("kind") in ("UNION", "STRUCT"):
                inner = member(kind, name)
                if inner:
                    return m["bits_offset"] + inner[0], inner[1]
        return None

    def offset(struct, path):
        bits = 0
        for name in path.split("."):
            found = member(struct, name)
            if not found:
                return None
            bits += found[0]
            struct = by_id.get(found[1], {})
            while struct.get("kind") in ("TYPEDEF", "CONST"):
                struct = by_id[struct["type_id"]]
        return bits // 8

    whole = {t["name"]: t for t in types if t["kind"] == "STRUCT" and t["name"] in FIELDS and t["vlen"]}
    return {name: {path: offset(whole[name], path) for path in paths} for name, paths in FIELDS.items()}


def main():
    kernel = sys.argv[1]
    os.makedirs(os.path.join(HOME, "rdt"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ttmon-rdt-") as folder:
        symbols, btf = boot(kernel, folder)
        missing = [name for name in SYMBOLS if not symbols.get(name)]
        if missing:
            sys.exit(f"gen.py: {kernel} has no {' '.join(missing)}")
        layout = {"symbols": symbols, **offsets(btf)}
    path = os.path.join(HOME, "rdt", kernel + ".json")
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(layout, f, indent=1)
    os.rename(path + ".new", path)


if __name__ == "__main__":
    main()
