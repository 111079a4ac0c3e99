"""Measures what shardkit promises about speed, as ratios in one run: `python benchmarks/run.py [NAME ...] [--json F]`.

Each figure stands beside what it is compared with, measured minutes ago on the same machine. Numbers move with other
load: the medians of several repetitions are given, and the number of repetitions.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
Row = dict[str, Any]


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def median_of(action: Callable[[], object], repeats: int) -> float:
    return statistics.median(timed(action) for _ in range(repeats))


def launch() -> list[Row]:
    """Fresh ranks and one all_reduce, against torch.multiprocessing.spawn with gloo."""
    from benchmarks import programs
    from kit.world import World, Zygote

    rows = []
    with Zygote.fork() as zygote:
        for size in (2, 4, 8):
            World(size, zygote=zygote).run(programs.one_all_reduce)
            ours = median_of(lambda: World(size, zygote=zygote).run(programs.one_all_reduce), 9)  # noqa: B023
            rows.append(row(f"launch of {size} ranks and one all_reduce", ours, "mp.spawn with gloo", spawn(size)))
            rows[-1]["target_ratio"] = 40 if size == 4 else None
    return rows


def spawn(size: int) -> float:
    import torch.multiprocessing

    from benchmarks import programs

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "rendezvous")
        return timed(lambda: torch.multiprocessing.spawn(programs.spawned, (size, path), nprocs=size))


def all_reduce() -> list[Row]:
    """4 KB and 64 MB all_reduce at 4 ranks, against gloo."""
    from benchmarks import programs
    from kit.world import World, Zygote

    rows = []
    with Zygote.fork() as zygote:
        for title, numel, repeats, target in (("4 KB", 1024, 50, 3.0), ("64 MB", 1 << 24, 7, 1.0)):
            inputs = [{"numel": numel, "repeats": repeats, "warmup": 3}] * 4
            seconds = {}
            for transport in ("switchboard", "gloo"):
                world = World(4, transport=transport, zygote=zygote, deadline_s=120)
                ranks = world.run(programs.repeated_all_reduce, inputs).ranks
                seconds[transport] = statistics.median(max(step) for step in zip(*ranks, strict=True))
            rows.append(row(f"{title} all_reduce, 4 ranks", seconds["switchboard"], "gloo", seconds["gloo"]))
            rows[-1]["target_ratio"] = target
    return rows


def deadlock() -> list[Row]:
    """From the last rank blocking to the diagnosis."""
    from benchmarks import programs
    from kit.world import World, WorldError, Zygote, run_loop

    stamps: list[float] = []
    plain = run_loop.explain_standstill

    def stamped(board: Any) -> Any:
        stamps.append(time.perf_counter())
        return plain(board)

    last_message: list[float] = []
    handle = run_loop.Switchboard.handle

    def watched(self: Any, *arguments: Any) -> None:
        last_message[:] = [time.perf_counter()]
        handle(self, *arguments)

    run_loop.explain_standstill = stamped  # type: ignore[assignment]
    run_loop.Switchboard.handle = watched  # type: ignore[method-assign]
    delays, totals = [], []
    with Zygote.fork() as zygote:
        for _ in range(9):
            try:
                World(2, zygote=zygote).run(programs.receive_both)
            except WorldError:
                delays.append(time.perf_counter() - last_message[0])
                totals.append(stamps[-1] - last_message[0])
    rows = [row("a deadlock: last rank blocks to diagnosis in hand", statistics.median(delays), "promised", 0.1)]
    rows[0]["target_ratio"] = 1.0
    return rows


def commands() -> list[Row]:
    """Whole commands, against importing torch."""
    python = sys.executable
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def command(*words: str) -> Callable[[], object]:
        return lambda: subprocess.run(
            [python, *words], cwd=ROOT, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    right = str(ROOT / "reference" / "dp" / "bucketed.py")
    torch_import = median_of(command("-c", "import torch, torch._dynamo"), 3)
    grade = median_of(command("-m", "kit", "grade", "dp/bucketed", right), 3)
    listing = median_of(command("-m", "kit", "list"), 5)
    with tempfile.TemporaryDirectory() as folder:
        environment["SHARDKIT_DATA"] = folder  # not the learner's own progress
        prompt = median_of(command("-m", "kit", "quiz", "--count", "1"), 5)
    return [
        row("grade dp/bucketed, both transports", grade, "import torch, torch._dynamo + 2.5 s", torch_import + 2.5)
        | {"import_torch_s": torch_import, "target_ratio": 1.0},
        row("list", listing, "promised", 0.35) | {"target_ratio": 1.0},
        row("quiz until its first prompt and the end of its input", prompt, "promised", 0.4) | {"target_ratio": 1.0},
    ]


def scale() -> list[Row]:
    """Many ranks: their launch, ten all_reduces, a 3D training step, memory; and how each grows."""
    from benchmarks import programs
    from kit.world import World, Zygote

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    import_torch = [sys.executable, "-c", "import torch"]
    start = median_of(lambda: subprocess.run(import_torch, env=environment, check=True), 3)
    cores = os.cpu_count() or 1
    rows = []
    with Zygote.fork() as zygote:

        def seconds(size: int, program: Callable[..., object], inputs: list[Any] | None = None) -> float:
            return median_of(lambda: World(size, zygote=zygote, deadline_s=120).run(program, inputs), 5)

        World(64, zygote=zygote).run(programs.nothing)
        launches = {size: seconds(size, programs.nothing) for size in (1, 2, 4, 8, 16, 32, 64, 128)}
        for size, ours in launches.items():
            other = f"{size} x import torch, {cores} at a time"
            rows.append(row(f"launch of {size} ranks", ours, other, start * size / min(size, cores)))
            rows[-1]["note"] = f"{ours / size * 1e3:.1f} ms a rank"
        per_rank = {size: ours / size for size, ours in launches.items()}
        rows.append(
            row("launch: a rank among 128", per_rank[128], "a rank among 8", per_rank[8]) | {"target_ratio": 0.5}
        )

        for size in (8, 16, 32, 64, 128):
            rows.append(
                row(f"{size} ranks and ten all_reduces", seconds(size, programs.ten_all_reduces), "promised", 3.0)
            )
            rows[-1]["target_ratio"] = 1.0 if size == 64 else None
        each = {count: seconds(8, programs.all_reduces, [count] * 8) for count in (10, 100, 1000)}
        late, early = (each[1000] - each[100]) / 900, (each[100] - each[10]) / 90
        rows.append(row("8 ranks: an all_reduce among 1000", late, "among 100", early) | {"target_ratio": 0.5})

        rows.append(row("64 ranks: pp 4 x dp 4 x tp 4, a training step", mesh_step(zygote), "promised", 15.0))
        rows[-1]["target_ratio"] = 1.0
        own = World(64, zygote=zygote).run(programs.own_memory).ranks
        rows.append(row("64 ranks: memory beyond the zygote's, the most", max(own), "promised", 30e6, unit="MB"))
        rows[-1]["target_ratio"] = 1.0
    return rows


def mesh_step(zygote: Any) -> float:
    """The step that tests/world/test_scale.py checks: launch, forward, backward, sums over replicas, SGD."""
    from kit.world import World
    from tests.world import programs_mesh, test_scale

    _, inputs = test_scale.problem()
    world = World(64, zygote=zygote, deadline_s=120)
    return median_of(lambda: world.run(programs_mesh.training_step, inputs), 3)


def races_cost() -> list[Row]:
    """A grade with race detection, against one without; torch is there in both."""
    from kit.bank.layout import find_bank
    from kit.grading.grader import ranks_ready, run_checks
    from kit.grading.preflight import prepare
    from kit.world import World

    defaults: Any = World.__init__.__kwdefaults__
    with ranks_ready() as zygote:
        assignment = prepare("dp/bucketed", ROOT / "reference" / "dp" / "bucketed.py", find_bank(None))

        def graded(races: bool) -> float:
            defaults["races"] = races
            started = time.perf_counter()
            result = run_checks(assignment, seed=1, transport="both", zygote=zygote)
            assert result.verdict == "passed", "only whole grades are compared"
            return time.perf_counter() - started

        try:
            graded(True)
            pairs = [(graded(True), graded(False)) for _ in range(5)]  # in turn, so that both meet the same load
        finally:
            defaults["races"] = True
    watched, unwatched = (statistics.median(times) for times in zip(*pairs, strict=True))
    return [row("grade dp/bucketed, races watched", watched, "not watched", unwatched) | {"target_ratio": 0.5}]


def meter_cost() -> list[Row]:
    """Ten training steps of ranks with a meter, against the same without one; launches are in neither."""
    from benchmarks import programs
    from kit.world import World, Zygote

    rows = []
    with Zygote.fork() as zygote:
        for kind in ("DistributedDataParallel", "fully_shard"):

            def steps(meter: bool) -> float:
                return float(max(World(2, zygote=zygote, meter=meter).run(programs.steps, [kind] * 2).ranks))  # noqa: B023

            steps(True)
            pairs = [(steps(True), steps(False)) for _ in range(7)]  # in turn, so that both meet the same load
            metered, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
            rows.append(row(f"10 steps of {kind}, metered", metered, "not metered", plain) | {"target_ratio": 0.5})
    return rows


def watch() -> list[Row]:
    """A save of dp/bucketed under `watch`, from a warm process, against a grade that begins with `import torch`."""
    from kit.bank.layout import find_bank
    from kit.grading.grader import ranks_ready
    from kit.grading.regrade import Regrader

    bank = find_bank(None)
    right = bank.reference("dp/bucketed").read_text(encoding="utf-8")
    wrong = right.replace("            bucket.flat.div_(self.world_size)\n", "")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    told: list[float] = []
    first: list[float] = []
    whole: list[float] = []
    passed: list[float] = []
    with tempfile.TemporaryDirectory() as folder, ranks_ready() as zygote:
        file = Path(folder) / "bucketed.py"
        file.write_text(right, encoding="utf-8")
        command = [sys.executable, "-m", "kit", "grade", "dp/bucketed", str(file), "--transport", "switchboard"]
        cold = median_of(lambda: subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL), 3)
        regrader = Regrader(bank, "dp/bucketed", file, "switchboard", zygote)
        for text in [wrong, wrong, right] * 5:
            file.write_text(text, encoding="utf-8")
            told.clear()
            started = time.perf_counter()
            result = regrader.grade(
                lambda check: told.append(time.perf_counter()) if check.verdict == "failed" else None
            )
            (passed if result.verdict == "passed" else whole).append(time.perf_counter() - started)
            zygote.gather()
            first += [told[0] - started] if told else []
    against = "grade, torch's import included"
    return [
        row("watch dp/bucketed: save to the first check that fails", statistics.median(first), against, cold),
        row("watch dp/bucketed: save to the whole verdict, wrong", statistics.median(whole), "promised", 1.0)
        | {"target_ratio": 1.0},
        row("watch dp/bucketed: save to the whole verdict, passed", statistics.median(passed), "promised", 1.0)
        | {"target_ratio": 1.0},
    ]


def row(what: str, ours: float, against: str, other: float, *, unit: str = "s") -> Row:
    """ours, other: seconds, or bytes where the unit is MB."""
    key = "s" if unit == "s" else "bytes"
    return {"what": what, f"ours_{key}": ours, "against": against, f"other_{key}": other, "ratio": other / ours}


def shown(each: Row) -> str:
    unit = "s" if "ours_s" in each else "bytes"
    scale, name = (1e3, "ms") if unit == "s" else (1e-6, "MB")
    target = each.get("target_ratio")
    verdict = "" if target is None else ("  reached" if each["ratio"] >= target else f"  MISSED ({target}x)")
    note = f"  {each['note']}" if "note" in each else ""
    return (
        f"{each['what']:<52} {each['ours_' + unit] * scale:9.1f} {name}   {each['against']}: "
        f"{each['other_' + unit] * scale:9.1f} {name}   {each['ratio']:6.1f}x{verdict}{note}"
    )


BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "launch": launch,
    "all_reduce": all_reduce,
    "deadlock": deadlock,
    "commands": commands,
    "scale": scale,
    "watch": watch,
    "races_cost": races_cost,
    "meter_cost": meter_cost,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which to run (default: all)")
    parser.add_argument("--json", metavar="F", help="also write the rows to a file")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.names or BENCHMARKS:
        for each in BENCHMARKS[name]():
            rows.append(each)
            print(shown(each), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
