# SPDX-License-Identifier: GPL-2.0-only
"""
The stand-in libtt_metal.so of each generation: are the functions there and reached, and do the
programs keep their books right?
"""
import fnmatch
import glob
import json
import os
import re
import struct
import subprocess

from e2e import PATIENCE, TOP, TT_GENERATIONS, eq, last_json, standin, true, tt_env

# Names as facts/tenstorrent.md 2.1 and 3.1 give them, by the generation that has them.
KNOWN = {
    "e0": ["_ZN2tt8tt_metal2v014EnqueueProgramERNS1_12CommandQueueERNS1_7ProgramEb"],
    "e1": [
        "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE",
        "_ZN2tt8tt_metal9Allocator15allocate_bufferEPNS0_6BufferE",
        "_ZN2tt8tt_metal14EnqueueProgramERNS0_12CommandQueueERNS0_7ProgramEb",
        "_ZN2tt8tt_metal6detail13LaunchProgramEPNS0_7IDeviceERNS0_7ProgramEb",
    ],
    "e2a": [
        "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emi",
        "_ZN2tt8tt_metal9Allocator15allocate_bufferEPNS0_6BufferE",
    ],
    "e2b": [
        "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE",
        "_ZN2tt8tt_metal12GraphTracker16track_deallocateEPNS0_6BufferE",
        "_ZN2tt8tt_metal6Buffer13allocate_implEv",
        "_ZN2tt8tt_metal6Buffer15deallocate_implEv",
        "_ZN2tt8tt_metal6Buffer10deallocateEv",
        "_ZN2tt8tt_metal16DeallocateBufferERNS0_6BufferE",
        "_ZN2tt8tt_metal6Buffer19mark_as_deallocatedEv",
        "_ZN2tt8tt_metal6BufferD1Ev",
        "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE",
        "_ZN2tt8tt_metal6Buffer6createEPNS0_7IDeviceEmmNS0_10BufferTypeERKNS0_18BufferShardingArgsESt8optionalIbES8_"
        "IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE",
        "_ZN2tt8tt_metal11BankManager15allocate_bufferEmmbRK12CoreRangeSetSt8optionalIjE",
        "_ZN2tt8tt_metal11distributed10MeshBuffer6createERKSt7variantIJNS1_22ReplicatedBufferConfigE"
        "NS1_19ShardedBufferConfigEEERK"
        "NS1_23DeviceLocalBufferConfigEPNS1_10MeshDeviceESt8optionalImE",
        "_ZN2tt8tt_metal25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj",
        "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb",
        "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERK12CoreRangeSetmmbPKNS0_7IDeviceE",
        "_ZN2tt8tt_metal12GraphTracker19track_deallocate_cbEPKNS0_7IDeviceE",
        "_ZN2tt8tt_metal6Device5closeEv",
        "_ZNK2tt8tt_metal11distributed10MeshDevice11get_devicesEv",
        "_ZTVN2tt8tt_metal6DeviceE",
        "_ZTVN2tt8tt_metal11distributed10MeshDeviceE",
        "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb",
        "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue21enqueue_mesh_workloadERNS1_12MeshWorkloadEb",
        "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue21enqueue_mesh_workloadERNS1_12MeshWorkloadEb",
        "_ZN2tt8tt_metal11distributed20MeshCommandQueueBase25enqueue_write_mesh_bufferE"
        "RKSt10shared_ptrINS1_10MeshBufferEEPKvb",
        "_ZN2tt8tt_metal6detail13LaunchProgramEPNS0_7IDeviceERNS0_7ProgramEbb",
        "_ZN2tt8tt_metal13DataCollector38InvokeProgramRealtimeProfilerCallbacksE"
        "RKNS0_12experimental21ProgramRealtimeRecordE",
    ],
    "e4": [
        "_ZN2tt8tt_metal23notify_buffer_allocatedEPKNS0_6BufferE",
        "_ZN2tt8tt_metal25notify_buffer_deallocatedEPNS0_6BufferE",
        "_ZN2tt8tt_metal10BufferImpl13allocate_implERNS0_6BufferE",
        "_ZN2tt8tt_metal10BufferImpl15deallocate_implERNS0_6BufferE",
    ],
}


def symbols(gen):
    """Address to names of what a library exports."""
    done = subprocess.run(
        ["nm", "-D", "--defined-only", standin(f"tt/{gen}/libtt_metal.so")], capture_output=True, text=True, check=True
    )
    ret = {}
    for line in done.stdout.splitlines():
        addr, _, name = line.split()
        ret.setdefault(addr, set()).add(name)
    return ret


def rows():
    with open(os.path.join(TOP, "include/ttmon/tt_fns.h"), encoding="utf-8") as f:
        found = re.findall(r'T\((\d+), (\w+),[\s\\]+"(\S+)",[\s\\]+(\w+),', f.read())
    true(f"the table was not read: {len(found)} rows", len(found) > 60)
    return found


def matches(pattern, name):
    if name.startswith("_ZN2tt8tt_metal2v0"):
        name = "_ZN2tt8tt_metal" + name[len("_ZN2tt8tt_metal2v0") :]
    return "." not in name and fnmatch.fnmatchcase(name, pattern)


def run(gen, program, *args, env=None):
    done = subprocess.run(
        [standin(program), *args],
        env={**os.environ, **tt_env(gen), **(env or {})},
        capture_output=True,
        text=True,
        timeout=20 * PATIENCE,
        check=False,
    )
    eq(f"{gen}: exit status of {program} {' '.join(args)} ({done.stderr[-300:]})", done.returncode, 0)
    return done.stdout


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def reached(gen, scenario):
    """Names of the functions that a scenario goes through, all names of each."""
    [names] = [x["reached"] for x in lines(run(gen, "ttscen", scenario)) if "reached" in x]
    by_name = {name: group for group in symbols(gen).values() for name in group}
    return {alias for name in names for alias in by_name.get(name, {name})}


def test_every_probed_function_is_there(_):
    names = {n for gen in TT_GENERATIONS for group in symbols(gen).values() for n in group}
    missing = [f"{nr} {name}" for nr, name, pattern, _ in rows() if not any(matches(pattern, n) for n in names)]
    eq("rows of tt_fns.h that match nothing", missing, [])


def test_every_probed_function_is_called(_):
    names = set()
    for gen in TT_GENERATIONS:
        names |= reached(gen, "every")
    missing = [f"{nr} {name}" for nr, name, pattern, _ in rows() if not any(matches(pattern, n) for n in names)]
    eq("rows of tt_fns.h that no program calls", missing, [])


def test_a_name_is_one_row(_):
    """The first row that matches counts: what a later one means must not be taken away by an earlier one."""
    firsts = set()
    for gen in TT_GENERATIONS:
        for group in symbols(gen).values():
            for name in group:
                hits = [nr for nr, _, pattern, _ in rows() if matches(pattern, name)]
                firsts.update(hits[:1])
                true(
                    f"{name}: rows {hits}",
                    len(hits) < 2 or name.startswith("_ZN2tt8tt_metal25SharedMemoryStatsProvider"),
                )
    eq("rows hidden by others", [nr for nr, *_ in rows() if nr not in firsts], [])


def test_names_of_the_facts(_):
    for gen, names in KNOWN.items():
        there = {n for group in symbols(gen).values() for n in group}
        eq(f"{gen}: names missing", [n for n in names if n not in there], [])
    gone = {n for group in symbols("e0").values() for n in group}
    true(
        "e0's Device has a vtable",
        "_ZTVN2tt8tt_metal6DeviceE" not in gone and "_ZTVN2tt8tt_metal2v06DeviceE" not in gone,
    )


def test_inlined(_):
    """e2i has the primary pair, and an allocation does not go through it; everywhere else it does."""
    for gen in TT_GENERATIONS:
        names = reached(gen, "alloc")
        primary = [n for n in names if re.search("track_(de)?allocateE", n)]
        eq(f"{gen}: primary", len(primary), 0 if gen == "e2i" else 2)
    there = {n for group in symbols("e2i").values() for n in group}
    true("e2i lacks track_allocate", any("14track_allocateE" in n for n in there))


def test_exceptions_untraced(_):
    for gen in TT_GENERATIONS:
        first = lines(run(gen, "ttscen", "exceptions"))[0]
        eq(
            f"{gen}: functions that throw, thrown, caught",
            (first["thrown"], first["caught"]),
            (first["functions"], first["functions"]),
        )
        true(f"{gen}: only {first}", first["functions"] > 15)


def test_scenarios_untraced(_):
    names = run("e2b", "ttscen", "--list").split()
    true(f"scenarios: {names}", len(names) > 10)
    for gen in ("e0", "e2b"):
        for name in names:
            lines(run(gen, "ttscen", name))


def test_ledger_against_own_statistics(bench):
    """The library's own statistics, counted where it tracks, agree with the program's book, counted where it calls."""
    for gen in ("e2a", "e2b", "e4"):
        folder = bench.path(gen)
        os.mkdir(folder)
        chips = ",".join(f"0000:{i + 1:02x}:00.0={0x1000 + i}" for i in range(4))
        threads = "3" if gen == "e2a" else "1"  # later ones do not see other threads
        out = run(
            gen,
            "ttledger",
            "--chips",
            "4",
            "--ops",
            "20000",
            "--threads",
            threads,
            "--mesh",
            "--plain",
            "--keep",
            "--quiet",
            "3",
            env={"STANDIN_TT_SHM": folder, "STANDIN_TT_CHIPS": chips},
        )
        book = last_json(out)
        eq("chips", len(glob.glob(folder + "/tt_device_*_memory")), 4)
        for device in book["devices"]:
            with open(f"{folder}/tt_device_{0x1000 + device['logical']}_memory", "rb") as f:
                region = f.read()
            eq("size", len(region), 8576)
            totals = dict(zip(("dram", "l1", "l1_small", "trace"), struct.unpack_from("<4Q", region, 48)))
            slot = struct.unpack_from("<i4x4Q", region, 856)
            eq(f"{gen}: totals of {device['logical']}", totals, {t: device[t] for t in totals})
            eq(f"{gen}: slot of {device['logical']}", slot, (book["pid"], *totals.values()))
            true("nothing is held", device["dram"] > 0)


def test_visible_devices(_):
    chips = "0000:81:00.0=2+22,0000:01:00.0=1,0000:c1:00.0=3+33"
    for visible, want in (
        ("", ["01", "81", "c1", "81R", "c1R"]),
        ("2,0", ["01", "c1", "c1R"]),
        ("0000:81:00.0", ["81", "81R"]),
    ):
        out = run(
            "e2b",
            "ttledger",
            "--chips",
            "32",
            "--ops",
            "10",
            env={"STANDIN_TT_CHIPS": chips, "TT_VISIBLE_DEVICES": visible},
        )
        [opened] = [x["opened"] for x in lines(out) if "opened" in x]
        eq(f"TT_VISIBLE_DEVICES={visible}", [re.sub(r"0000:(..):00.0", r"\1", b) for b in opened], want)
