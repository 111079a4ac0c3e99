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
    prompt = median_of(command("-m", "kit", "quiz", "--count", "1"), 5)
    return [
        row("grade dp/bucketed, both transports", grade, "import torch, torch._dynamo + 2.5 s", torch_import + 2.5)
        | {"import_torch_s": torch_import, "target_ratio": 1.0},
        row("list", listing, "promised", 0.35) | {"target_ratio": 1.0},
        row("quiz until its first prompt and the end of its input", prompt, "promised", 0.4) | {"target_ratio": 1.0},
    ]


def row(what: str, ours_s: float, other: str, other_s: float) -> Row:
    return {"what": what, "ours_s": ours_s, "against": other, "other_s": other_s, "ratio": other_s / ours_s}


BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "launch": launch,
    "all_reduce": all_reduce,
    "deadlock": deadlock,
    "commands": commands,
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
            target = each.get("target_ratio")
            verdict = "" if target is None else ("  reached" if each["ratio"] >= target else f"  MISSED ({target}x)")
            print(
                f"{each['what']:<52} {each['ours_s'] * 1e3:9.1f} ms   {each['against']}: "
                f"{each['other_s'] * 1e3:9.1f} ms   {each['ratio']:6.1f}x{verdict}",
                flush=True,
            )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
