# SPDX-License-Identifier: GPL-2.0-only
"""
The same allocation in another run: programs whose allocations have names that the test knows
(tests/standin/ident.h), matched by `ttmon db match`.
"""
import json
import os
import subprocess
import sys

from e2e import LINGER, TOP, TTMON, eq, load_db, standin, true

PINNED = ("host_alloc", "registered", "pool", "custom")


class Run:
    """One traced run: its database and what each of its allocations truly is. args: those of tests/standin/ident.c."""

    def __init__(self, bench, name, program, *args, options=()):
        self.path, truth = bench.path(name + ".json"), bench.path(name + ".truth")
        cmd = [standin(program), *(str(a) for a in args)]
        bench.daemon("--dump-db", self.path, *options, cmd=cmd, env={"IDENT_TRUTH": truth, **LINGER}, wait=False).wait(
            0
        )
        self.db = load_db(self.path)
        true("the run is whole", self.db["completeness"]["complete"])
        with open(truth, encoding="utf-8") as f:
            rows = [line.rstrip("\n").split(" ", 2) for line in f]
        # An address can be given out again: the n-th time here is the n-th time there.
        of_addr = {}
        for addr, size, label in rows:
            of_addr.setdefault((addr, int(size)), []).append(label)
        self.label = {}
        for a in self.db["allocations"]:
            if a["method"] in PINNED:
                self.label[a["id"]] = of_addr[a["addr"], a["size"]].pop(0)
        eq("allocations without a name", len(rows) - len(self.label), 0)


def match(a, b, *options, status=0):
    done = subprocess.run(
        [TTMON, "db", "match", "--json", *options, a.path, b.path], capture_output=True, text=True, check=False
    )
    eq(f"exit status ({done.stderr})", done.returncode, status)
    return json.loads(done.stdout)


def verdicts(a, b, doc):
    """Levels of the allocations of b by label, those found wrongly, and the share found of those that a has."""
    levels, wrong, known, found = {}, [], 0, 0
    names = set(a.label.values())
    for m in doc["matches"]:
        label, level = b.label[m["id"]], m["level"]
        eq(f"ids of the candidates for {label}", len(m["ids"]), m["candidates"])
        levels.setdefault(label, set()).add(level)
        known += label in names
        found += label in names and level != "none"
        if level != "none" and label not in [a.label[i] for i in m["ids"]]:
            wrong.append((level, label, sorted({a.label[i] for i in m["ids"]})))
    eq("allocations", sum(v[0] for v in doc["levels"].values()), len(b.label))
    return levels, wrong, found / known


def check(what, a, b, share):
    """
    At least this share of what a has too is found in b's run, nothing wrongly where the two
    strictest levels are claimed.
    """
    doc = match(a, b)
    levels, wrong, found = verdicts(a, b, doc)
    shown = {k: v[0] for k, v in doc["levels"].items()}
    print(f"    {what}: {100 * found:.1f} % of {len(b.label)} found, {shown}, {len(wrong)} wrongly")
    eq(f"{what}: wrong at the two strictest levels", [w for w in wrong if w[0] in ("exact", "site")], [])
    true(f"{what}: only {100 * found:.1f} % found, {shown}", found >= share)
    return levels, wrong


def test_same_binary(bench):
    """Another run of the same files, elsewhere in memory: all of it, and the most at the two strictest levels."""
    a, b = Run(bench, "a", "ident/ident", 1, 1), Run(bench, "b", "ident/ident", 1, 2)
    true("ASLR", {x["addr"] for x in a.db["allocations"]} != {x["addr"] for x in b.db["allocations"]})
    levels, wrong = check("same binary", a, b, 0.99)
    eq("wrong", wrong, [])
    strict = [x for x, v in levels.items() if v <= {"exact", "site"}]
    true(f"at the two strictest levels: {len(strict)} of {len(levels)}", len(strict) > 0.8 * len(levels))
    # One call site, one size, one allocation; six of them, whose order one run cannot vouch for; two sizes.
    eq("levels", [levels[x] for x in ("m.3", "layer.4", "pair.small")], [{"exact"}, {"site"}, {"names"}])


def test_rebuilt(bench):
    """
    Other functions before and between, other strings, another optimisation of a library: no frame
    is where it was.
    """
    a, b = Run(bench, "a", "ident/ident", 1, 1), Run(bench, "b", "ident2/ident", 1, 2)
    levels, _ = check("rebuilt", a, b, 0.95)
    eq("what is new", levels["new.0"], {"none"})
    eq("strictest", [x for x, v in levels.items() if v & {"exact", "site"}], [])


def test_other_batch(bench):
    """Twice the batch: some sizes double, and one's new size is another's old one."""
    a, b = Run(bench, "a", "ident/ident", 1, 1), Run(bench, "b", "ident/ident", 2, 2)
    levels, wrong = check("other batch", a, b, 0.95)
    eq("sizes that stay, that double", (levels["m.0"], levels["m.1"]), ({"exact"}, {"names"}))
    true(f"a size that another had: {wrong}", [w for w in wrong if w[1] == "pair.small" and w[0] == "names"])
    check("and back", b, a, 0.95)


def test_threads(bench):
    """Threads that do the same in another order each time: which is which is not known, and not claimed."""
    runs = [Run(bench, f"t{seed}", "ident/ident", 1, seed, "threads") for seed in (1, 2, 5, 8)]
    orders = {tuple(r.label[x["id"]] for x in r.db["allocations"] if x["id"] in r.label) for r in runs}
    true(f"the order was the same each time: {orders}", len(orders) > 1)
    for r in runs[1:]:
        levels, _ = check("threads", runs[0], r, 0.99)
        eq("levels", {x: v for x, v in levels.items() if v != {"site"}}, {})


def test_collapsed(bench):
    """Everything through one call site of a caching allocator, in powers of two: found, but less sure."""
    a, same, other = (Run(bench, f"c{i}", "ident/ident", batch, i, "cache") for i, batch in enumerate((1, 1, 2)))
    for what, b in (("collapsed", same), ("collapsed, other batch", other)):
        levels, _ = check(what, a, b, 0.95)
        eq(f"{what}: levels", set().union(*levels.values()), {"names"})


def test_deep(bench):
    """
    Recursion to 40 frames, traced to another depth each time: what lies further out than all of
    them see is not part of the key.
    """
    runs = [
        Run(bench, f"d{n}", "ident/ident", 1, 1, "modules", options=("--stack-depth", str(n))) for n in (16, 24, 32)
    ]
    for a in runs:
        for b in runs:
            levels, _ = check("deep", a, b, 0.99)
            eq("levels", (levels["deep.left.40"], levels["b.2"]), ({"site"}, {"exact"}))


def test_command(bench):
    """ttmon db match as a person and as a script see it."""
    a, b = Run(bench, "a", "ident/ident", 1, 1, "sites"), Run(bench, "b", "ident2/ident", 1, 2, "sites")

    def run(*args):
        done = subprocess.run([TTMON, "db", "match", *args], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr.splitlines()

    status, out, err = run(a.path, b.path)
    eq("status, errors", (status, err), (0, []))
    for words in ("of 19 allocations", "found in", "94.7 %", "not found", "said_goodbye"):
        true(f"{words!r} is not in {out!r}", words in out)
    true(f"more than 80 columns: {out}", all(len(x) <= 80 for x in out.splitlines() if "/" not in x))
    eq("enough, not enough", (run("--min", "94", a.path, b.path)[0], run("--min", "95", a.path, b.path)[0]), (0, 1))
    for args in (
        ("--min", "x", a.path, b.path),
        ("--nothing", a.path, b.path),
        (a.path,),
        (a.path, "/nowhere"),
        (TTMON, a.path),
    ):
        status, out, err = run(*args)
        eq(f"{args}: status, output, lines of errors ({err})", (status, out, len(err)), (2, "", 1))
        true(f"the error is {err}", err[0].startswith("ttmon"))


# ---- lines that allocate through one function, before and after an edit ----

PIN = f"{TOP}/.output/libttmon/libttmon-pin.so"
RUNTIME = f"{TOP}/.output/tests/standin/lib/libcudart.so.12"

PYTHON = """\
import ctypes, sys
rt = ctypes.CDLL(sys.argv[1])
{above}
def pin(name):
    p = ctypes.c_void_p()
    rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(65536), 0)
    print(hex(p.value), name)

def train(n):
    {inside}
    pin("weights")
    for _ in range(n):
        pin("batch")
    pin("never used")

train(2)
{module}
"""

CXX = """\
#include <cstdio>
#include <cstring>
#include <functional>
extern "C" int cudaHostAlloc(void **, size_t, unsigned), cudaMalloc(void **, size_t),
	cudaMemcpy(void *, const void *, size_t, int);
typedef std::function<void *(size_t)> Get;
struct Pool {
	Get from;
	__attribute__((noinline)) void *get(size_t n);
};
void *Pool::get(size_t n)
{
	void *p = from(n);
	__asm__ volatile("" ::: "memory");
	return p;
}
__attribute__((noinline)) static void *PIN(size_t n)
{
	void *p = nullptr;
	return cudaHostAlloc(&p, n, 0) ? nullptr : p;
}
__attribute__((noinline)) static Get wrapped(Get f);
#ifdef EDITED
__attribute__((noinline, used)) static void another(int x) { fprintf(stderr, "%d of many\\n", x * 3 + 1); }
static Get wrapped(Get f) { return [f](size_t n) { return f(n); }; }
#else
static Get wrapped(Get f) { return f; }
#endif
__attribute__((noinline)) static void train(Pool &pool, void *device)
{
#ifdef INSIDE
	another(7);
#endif
	void *hot = pool.get(1 << 20);
	void *cold = pool.get(1 << 20);
	void *warm = pool.get(1 << 20);
	printf("%p hot\\n%p cold\\n%p warm\\n", hot, cold, warm);
	for (int i = 0; i < 40; i++)
		cudaMemcpy(device, hot, 1 << 20, 1);
	for (int i = 0; i < 30; i++)
		cudaMemcpy(device, warm, 1 << 20, 1);
}
int main()
{
	Pool pool{ wrapped(PIN) };
	void *device = nullptr;
	cudaMalloc(&device, 1 << 20);
	train(pool, device);
	return 0;
}
"""

class Lines:
    """A traced run of a program that prints an address and a name for each of its allocations."""

    def __init__(self, bench, name, cmd):
        self.path, out = bench.path(name + ".json"), bench.path(name + ".out")
        script = ["sh", "-c", 'out=$1; shift; exec "$@" >"$out"', "sh", out, *cmd]
        more = {"TTMOND_HOLD_MS": "10000", **LINGER}
        bench.daemon("--dump-db", self.path, cmd=script, env=more, wait=False).wait(0)
        self.db = load_db(self.path)
        names = {}
        with open(out, encoding="utf-8") as f:
            for line in f:
                addr, label = line.rstrip("\n").split(" ", 1)
                names.setdefault(addr, []).append(label)
        pins = [a for a in self.db["allocations"] if a["method"] in ("host_alloc", "custom", "registered")]
        self.label = {a["id"]: names[a["addr"]][0] for a in pins if a["addr"] in names}
        eq("allocations", len(self.label), sum(len(x) for x in names.values()))


def matched(a, b, *options):
    """What each name of b was matched to, and how."""
    found = {}
    for m in match(a, b, *options)["matches"]:
        if m["id"] in b.label:
            found.setdefault(b.label[m["id"]], set()).add((m["level"], tuple(sorted({a.label[i] for i in m["ids"]}))))
    return found


def each_its_own(found, levels):
    eq("matched to another line", {x: v for x, v in found.items() if {y for _, y in v} != {(x,)}}, {})
    true(f"levels: {found}", {level for v in found.values() for level, _ in v} <= set(levels))


MODULE = """pin("module's first")\npin("module's second")"""


def python_run(bench, name, above="", inside="pass", module=MODULE):
    folder = bench.path(name)
    os.makedirs(folder)
    # The path is part of the identity: the program is at the same place before and after.
    program = bench.path("lines.py")
    with open(program, "w", encoding="utf-8") as f:
        f.write(PYTHON.format(above=above, inside=inside, module=module))
    return Lines(bench, name, [sys.executable, "-u", program, RUNTIME])


def test_python_lines(bench):
    """
    Five lines that pin through one function of Python: each is one site, and stays it when lines are
    inserted above it, outside of its function and inside.
    """
    a = python_run(bench, "a")
    above = python_run(bench, "above", above="# one\n# two\nX = 1\n")
    found = matched(a, above)
    each_its_own(found, {"exact", "site", "names"})
    inside = python_run(bench, "inside", inside="n = n + 0\n    n = n * 1\n    n = n")
    found = matched(a, inside)
    each_its_own(found, {"exact", "site", "names"})
    eq("a line of an edited function is not claimed to be the same", found["weights"], {("names", ("weights",))})


def build_cxx(bench, name, *flags):
    source, program = bench.path("lines.cpp"), bench.path(f"bin-{name}/lines")
    os.makedirs(os.path.dirname(program))
    with open(source, "w", encoding="utf-8") as f:
        f.write(CXX)
    options = ["-O2", "-std=c++17", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id"]
    runtime = [RUNTIME, f"-Wl,-rpath,{os.path.dirname(RUNTIME)}"]
    subprocess.run(["g++", *options, *flags, "-o", program, source, *runtime], check=True)
    return program


def cxx_run(bench, name, *flags):
    return Lines(bench, name, [build_cxx(bench, name, *flags)])


def preloaded(bench, db, cmd, before=PIN):
    """What libttmon-pin.so counts of a run without the daemon, by a database."""
    stats = bench.path("own")
    env = {"LD_PRELOAD": before, "TTMON_PIN_DB": db, "TTMON_PIN_SITES": "all", "TTMON_PIN_STATS": stats}
    subprocess.run(cmd, env={**os.environ, **env}, check=True, stdout=subprocess.DEVNULL)
    with open(stats, encoding="utf-8") as f:
        return json.load(f)


def test_one_allocator(bench):
    """Lines of C++ that pin through one allocator, in a program that is rebuilt."""
    a, b = cxx_run(bench, "a", "-DPIN=pin"), cxx_run(bench, "edited", "-DPIN=grab", "-DEDITED", "-DINSIDE")
    frames = [{f[2].split("+")[0] for s in x.db["sites"] for f in s["frames"] if f[2]} for x in (a, b)]
    true("the allocator calls through other functions of std", any("wrapped" in f for f in frames[1] - frames[0]))
    eq("another function of the program's pins", {y for v in matched(a, b).values() for y in v}, {("none", ())})
    patterns = bench.path("patterns")
    with open(patterns, "w", encoding="utf-8") as f:
        f.write("# what allocates\nfunction _ZL3pinm\nfunction _ZL4grabm\n")
    each_its_own(matched(a, b, "--plumbing", patterns), {"names"})


def test_preloaded_after_a_rebuild(bench):
    """
    The library without the daemon, in a program whose other functions were edited: of three lines
    that allocate alike it unpins the one that never copies.
    """
    a = cxx_run(bench, "a", "-DPIN=pin")
    own = preloaded(bench, a.path, [build_cxx(bench, "above", "-DPIN=pin", "-DEDITED")])
    eq("verdicts", {k: v[0] for k, v in own["verdict"].items()}, {"unknown": 0, "pin": 2, "no_pin": 1})
    eq("found by", {k: v[0] if isinstance(v, list) else v for k, v in own["match"].items() if v}, {"names": 3})


def test_preloaded_in_python(bench):
    """The library sees no lines of Python: of those that pin through one function it claims none."""
    program = bench.path("lines.py")
    a = python_run(bench, "a", module="")
    # Python looks functions up in the library that it loads.
    own = preloaded(bench, a.path, [sys.executable, program, PIN], f"{PIN} {RUNTIME}")
    eq("verdicts", {k: v[0] for k, v in own["verdict"].items()}, {"unknown": 4, "pin": 0, "no_pin": 0})


def test_bad_patterns(bench):
    """A file of patterns that is none ends the command, and says which line."""
    a = Run(bench, "a", "ident/ident", 1, 1, "sites")
    bad = bench.path("bad")
    for text, word in (("object\n", "line 1"), ("# x\n\nelf lib*\n", "line 3"), (None, "No such file")):
        if text:
            with open(bad, "w", encoding="utf-8") as f:
                f.write(text)
        path = bad if text else "/nowhere"
        done = subprocess.run(
            [TTMON, "db", "match", "--plumbing", path, a.path, a.path], capture_output=True, text=True, check=False
        )
        eq(f"{text!r}", (done.returncode, done.stdout, word in done.stderr), (2, "", True))
