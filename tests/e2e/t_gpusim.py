# SPDX-License-Identifier: GPL-2.0-only
"""The stand-in GPU: kernels give what they should whichever way they are loaded and launched, and what
goes wrong is said as a driver says it. The recorders of memtrace/ptx/recorder.ptx against what the
interpreter saw.
"""
import os
import subprocess
import tempfile

from e2e import TOP, eq, standin, timeout, true

KERNEL = False
KERNELS = {arch: os.path.join(TOP, f"tests/memtrace/kernels_{arch}.ptx") for arch in (75, 80, 90)}
HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
VADD = (
    HEAD
    + """.visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
	.reg .b64 %%a; .reg .b32 %%r; .reg .pred %%p;
	ld.param.u64 %%a, [a];
	%s
	ret;
}
"""
)


def run(*args, image=KERNELS[80], **env):
    done = subprocess.run(
        [standin("gpu/run"), *args, image],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def fault(code, **env):
    """What becomes of a kernel with that code."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
        f.write(VADD % code)
        f.flush()
        return run("--kernel", "vadd", image=f.name, **env)


def lines(out, without=("nothing_given",)):
    return [line for line in out.splitlines() if line.split()[0] not in without]


def test_results(_):
    for arch, image in KERNELS.items():
        rc, out, err = run(image=image, GPUSIM_ARCH=str(arch))
        eq(f"sm_{arch}", (rc, err), (0, ""))
        true(f"sm_{arch}: only {len(lines(out))} kernels", len(lines(out)) >= 23)


def test_all_ways_give_the_same(_):
    wanted = lines(run()[1])
    true("nothing ran", len(wanted) > 20)
    for args in (
        ["--how", "extra"],
        ["--how", "ex"],
        ["--how", "cooperative"],
        ["--how", "graph"],
        ["--how", "capture"],
        ["--library"],
        ["--library", "--how", "graph"],
        ["--zero-copy"],
        ["--registered"],
        ["--dlopen"],
        ["--threads", "4"],
        ["--threads", "4", "--contexts", "2", "--library"],
    ):
        rc, out, err = run(*args, GPUSIM_DEVICES="2")
        eq(" ".join(args), (rc, err, lines(out)), (0, "", wanted))
    eq("another address on the device", lines(run("--registered", GPUSIM_HOSTPTR="0")[1]), wanted)
    for sms in ("1", "7"):
        eq(f"{sms} SMs", lines(run(GPUSIM_SMS=sms)[1]), wanted)


def test_faults(_):
    for code, said, why in (
        ("ld.global.u32 %r, [%a+4000000];", "CUDA_ERROR_ILLEGAL_ADDRESS", "global address"),
        ("ld.global.u32 %r, [%a+2];", "CUDA_ERROR_MISALIGNED_ADDRESS", "of 4 bytes"),
        ("mov.u64 %a, 64; st.shared.u32 [%a], 1;", "CUDA_ERROR_ILLEGAL_ADDRESS", "shared address"),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%a], 32;",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "tcgen05.alloc",
        ),
        ("add.rn.strange.u32 %r, %r, %r;", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "add.rn.strange.u32"),
        ("trap;", "CUDA_ERROR_LAUNCH_FAILED", "stopped itself"),
        (
            "mov.u32 %r, %tid.x; setp.eq.u32 %p, %r, 0; @%p bar.sync 0; @!%p bar.sync 1;",
            "CUDA_ERROR_LAUNCH_TIMEOUT",
            "wait for each other",
        ),
        (
            "mov.u32 %r, %tid.x; setp.gt.u32 %p, %r, 0; @%p bar.warp.sync 1;",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "not in its own mask",
        ),
    ):
        rc, _out, err = fault(code)
        true(f"{code}: {err}", rc == 1 and f"run: vadd: {said}" in err and "gpusim: vadd: " in err and why in err)
    for code, said in (
        ("ld.global.u32 %nope, [%a];", "line 7: register %nope is not declared"),
        ("bra nowhere;", "label nowhere is not there"),
        ("ld.global.u32 %r, [%a)", '"]" was expected'),
        ("{ mov.u32 %r, 1;", "the text ends in function vadd"),
    ):
        rc, _out, err = fault(code)
        true(f"{code}: {err}", rc == 2 and said in err and "run: load: CUDA_ERROR_INVALID_PTX" in err)


def test_lock(_):
    """
    Lanes of a warp that spin until another one lets the lock go: each gets its turn. The sums are
    not what vadd's are.
    """
    code = """.shared .u32 lock;
	mov.u32 %r, %tid.x; setp.eq.u32 %p, %r, 0; @%p st.shared.u32 [lock], 0; bar.sync 0;
again:	atom.shared.cas.b32 %r, [lock], 0, 1; setp.ne.u32 %p, %r, 0; @%p bra again;
	atom.shared.exch.b32 %r, [lock], 0;"""
    rc, _out, err = fault(code)
    eq("it ends, and nothing is wrong but the sums", (rc, err), (1, "run: vadd: wrong results\n"))


def test_knobs(_):
    rc, _out, err = run(GPUSIM_FAIL_LOAD="1")
    true(err, rc == 2 and "run: load: CUDA_ERROR_INVALID_PTX" in err)
    eq("the second load is another one", run(GPUSIM_FAIL_LOAD="2")[0], 0)
    rc, _out, err = run("--kernel", "v*", GPUSIM_FAIL_LAUNCH="vadd6?")
    true(err, rc == 1 and err == "run: vadd64: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES\n")
    rc, _out, err = run("--kernel", "reduce", GPUSIM_MAX_REGS="2048")
    true(err, rc == 1 and "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in err)
    rc, _out, err = run(image=KERNELS[90])
    true("a text for a newer GPU is refused: " + err, rc == 2 and "newer GPU" in err)
    eq("killed in the middle", run("--kill", "3")[0], -9)
    with tempfile.TemporaryDirectory() as d:
        trace = os.path.join(d, "trace")
        run("--kernel", "vadd", GPUSIM_TRACE=trace, GPUSIM_PTX_LOG=d)
        with open(trace, encoding="ascii") as f:
            seen = f.read().splitlines()
        eq("three accesses of 32 warps, of which the last is not whole", len(seen), 3 * 32)
        true(seen[0], seen[0].startswith("vadd ") and " ld.global.f32 0 " in seen[0] and len(seen[0].split()) == 7 + 32)
        with open(os.path.join(d, "000.ptx"), encoding="utf-8") as f, open(KERNELS[80], encoding="utf-8") as g:
            true("the text that was loaded is not that one", f.read() == g.read())


@timeout(120)
def test_recorders(_):
    """Every record and every counter."""
    done = subprocess.run(
        [standin("gpu/oracle"), *KERNELS.values(), os.path.join(TOP, "tests/standin/gpu/patterns.ptx")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    true(done.stdout + done.stderr, done.returncode == 0 and done.stdout.count(": right") == 20)
