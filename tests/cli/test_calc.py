"""`calc` as a user runs it: what it prints at which width, its JSON, and how it refuses."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from pathlib import Path

import pytest

from kit.screen.calc_words import LABELS
from tests.cli.conftest import Shardkit

MEMORY = ["calc", "memory", "--model", "llama-3.1-70b", "--tp", "8", "--pp", "4", "--dp", "8", "--zero", "1",
          "--recipe", "megatron_bf16", "--seq", "8192", "--sp", "--microbatches", "16",
          "--profile", "h100"]  # fmt: skip
TRAFFIC = ["calc", "traffic", "--model", "mixtral-8x7b", "--strategy", "zero3", "--dp", "8", "--ep", "8", "--tp", "2",
           "--pp", "2", "--cp", "2", "--seq", "4096", "--microbatches", "8"]  # fmt: skip
BUBBLE = ["calc", "bubble", "--pp", "8", "--microbatches", "32", "--forward", "10ms", "--target", "0.1"]
FLOPS = ["calc", "flops", "--model", "gpt3-175b", "--seq", "2048", "--batch", "1536", "--recompute", "full", "--gpus",
         "1024", "--step", "30s", "--profile", "a100"]  # fmt: skip
KV = ["calc", "kv", "--model", "llama3.1-8b", "--seq", "8192", "--batch", "4", "--profile", "h100",
      "--reserved", "4GB"]  # fmt: skip
FORMAT = ["calc", "format", "bf16", "--value", "257"]
TIME = ["calc", "time", "--params", "70B", "--tokens", "2T", "--gpus", "2048", "--mfu", "0.4", "--price", "2",
        "--batch", "1024", "--seq", "8192", "--save", "60s", "--mtbf", "6h"]  # fmt: skip
COLLECTIVE = ["calc", "time", "--collective", "all_reduce", "--bytes", "1GB", "--gpus", "64"]
GEMM = ["calc", "gemm", "1", "4096", "4096", "--profile", "a100"]
LAYER = ["calc", "gemm", "--model", "llama3.1-8b", "--seq", "4096", "--batch", "8", "--phase", "decode"]
PLAN = ["calc", "plan", "--model", "llama2-7b", "--gpus", "8", "--batch", "64", "--top", "3"]
EVERY = [MEMORY, TRAFFIC, BUBBLE, FLOPS, KV, FORMAT, ["calc", "format"], TIME, COLLECTIVE, GEMM, LAYER, PLAN]


def cells(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def name(arguments: list[str]) -> str:
    return " ".join(arguments[1:4])


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize("arguments", EVERY, ids=name)
def test_it_fits_the_width_in_both_languages(shardkit: Shardkit, arguments: list[str], columns: str) -> None:
    for language in ("en", "zh"):
        ended = shardkit(*arguments, "--lang", language, COLUMNS=columns)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "\x1b" not in ended.stdout
        assert [line for line in ended.stdout.splitlines() if cells(line) > int(columns)] == []
        assert ("逐步计算" in ended.stdout) == (language == "zh" and arguments != ["calc", "format"])
        assert ("口径" in ended.stdout) == (language == "zh")


def test_the_screen_of_memory(shardkit: Shardkit) -> None:
    shown = shardkit(*MEMORY).stdout
    assert re.search(r"^  model state +17\.03 GB \(15\.86 GiB\)$", shown, flags=re.MULTILINE)
    assert re.search(r"^  share of the GPU's memory +0\.5529 \(55\.29%\)$", shown, flags=re.MULTILINE)
    assert "  optimizer_bytes = 12 * dense_params / (dp * cp)\n    = 12 * 2270756864 / (8 * 1)\n" in shown
    assert "    = 3,406,135,296 B = 3.406 GB (3.172 GiB)\n" in shown


def test_an_ascii_terminal_gets_ascii(shardkit: Shardkit) -> None:
    for arguments in (MEMORY, BUBBLE, PLAN):
        assert shardkit(*arguments, LANG="C").stdout.isascii()


@pytest.mark.parametrize("arguments", EVERY, ids=name)
def test_the_shape_of_the_json(shardkit: Shardkit, arguments: list[str]) -> None:
    ended = shardkit(*arguments, "--json", "-")
    assert (ended.returncode, ended.stderr) == (0, "")
    it = json.loads(ended.stdout)
    assert list(it)[:6] == ["schema", "command", "inputs", "convention", "results", "breakdown"]
    assert (it["schema"], it["command"]) == (1, arguments[1])
    assert isinstance(it["convention"], str) and it["convention"].isascii()
    for result in it["results"].values():
        assert set(result) == {"value", "unit"}
        assert isinstance(result["value"], str) == (result["unit"] == "word")
    for line in it["breakdown"]:
        assert set(line) == {"name", "formula", "numbers", "value", "unit"}
        ast.parse(line["numbers"], mode="eval")
    named = {line["name"]: line["value"] for line in it["breakdown"]}
    assert all(result["value"] == named[key] for key, result in it["results"].items() if key in named)
    shown = {*it["results"], *it.get("table", {"units": {}})["units"]}
    axes = {key for key in shown if key in it["results"] or key in it.get("table", {"units": {}})["units"]} - set(
        LABELS
    )
    assert axes <= {"dp", "tp", "pp", "cp", "zero", "microbatch", "microbatches", "recompute"}, "a label is missing"
    for row in it.get("table", {"rows": []})["rows"]:
        assert set(row) == set(it["table"]["units"])


def test_json_into_a_file_beside_the_screen(shardkit: Shardkit, tmp_path: Path) -> None:
    ended = shardkit(*GEMM, "--json", "gemm.json")
    assert ended.returncode == 0 and ended.stdout.startswith("calc gemm\n")
    it = json.loads((tmp_path / "gemm.json").read_text("utf-8"))
    assert it["results"]["bound_by"] == {"value": "memory", "unit": "word"}
    assert it["results"]["flops"] == {"value": 2 * 4096 * 4096, "unit": "FLOP"}
    lost = shardkit(*GEMM, "--json", "no/gemm.json")
    assert (lost.returncode, lost.stdout) == (2, "") and "there is no directory no" in lost.stderr


def test_a_shape_of_one_s_own(shardkit: Shardkit) -> None:
    own = "layers=32, hidden=4096, heads=32, kv-heads=8, ffn=14336, vocab=128256"
    ended = shardkit("calc", "memory", "--shape", own, "--json", "-")
    assert json.loads(ended.stdout)["results"]["rank_params"]["value"] == 8030261248
    gpt2 = "family=gpt,layers=12,hidden=768,heads=12,vocab=50257,positions=1024"
    for tied, count in (("yes", 124439808), ("no", 124439808 + 50257 * 768)):
        ended = shardkit("calc", "memory", "--shape", f"{gpt2},tied={tied}", "--json", "-")
        assert json.loads(ended.stdout)["results"]["rank_params"]["value"] == count


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["memory", "--model", "llama-3.1-700b"], "no model 'llama-3.1-700b'; closest: llama3.1-70b", "models: gpt2,"),
        (["memory"], "which model?", "a named one"),
        (["memory", "--model", "gpt3-175b", "--tp", "7"], "num_heads=96 cannot be split over tensor_parallel=7", ""),
        (["memory", "--model", "gpt2", "--zero", "7"], "zero_stage must be a whole number from 0 to 3, got 7", ""),
        (["memory", "--model", "gpt2", "--dp", "-1"], "dp must be a whole number of at least 1, got -1", ""),
        (["memory", "--model", "gpt2", "--recipe", "megatron_bf61"], "recipe must be", "did you mean 'megatron_bf16'?"),
        (["memory", "--model", "gpt2", "--profile", "h10"], "(did you mean 'h100'?)", "profiles: a100"),
        (["memory", "--model", "gpt2", "--tp", "x"], "--tp", "shardkit calc memory --help"),
        (["memory", "--model", "gpt2", "--bogus"], "--bogus", "shardkit calc memory --help"),
        (["memory", "--model", "gpt2", "--lang", "fr"], "no language 'fr'", ""),
        (["memory", "--params", "7.5 GB"], "params must be a number, as in 7.5e9 or 7.5B, got '7.5 GB'", ""),
        (["memory", "--params", "inf"], "params must be a number", ""),
        (["memory", "--shape", "layer=3"], "shape must be one of layers,", "did you mean 'layers'?"),
        (
            ["memory", "--shape", "layers=three"],
            "layers must be a whole number, as in layers=32, got 'layers=three'",
            "",
        ),
        (["memory", "--shape", "layers"], "layers must be a whole number", ""),
        (["memory", "--shape", "layers=3,layers=4"], "layers is given twice", ""),
        (["memory", "--shape", "family=gtp"], "family must be one of gpt, llama", "did you mean 'gpt'?"),
        (["memory", "--shape", ""], "shape is empty", "--shape layers=32"),
        (["traffic", "--params", "1e9", "--strategy", "zero5"], "strategy must be one of", "did you mean 'zero3'?"),
        (["bubble", "--pp", "4"], "--microbatches", "shardkit calc bubble --help"),
        (["bubble", "--pp", "4", "--microbatches", "8", "--forward", "10GB"], "forward: a unit like s is needed", ""),
        (["bubble", "--pp", "0", "--microbatches", "8"], "num_stages must be a whole number of at least 1, got 0", ""),
        (["flops", "--model", "gpt2"], "--seq", "shardkit calc flops --help"),
        (["kv", "--model", "gpt2", "--seq", "8", "--dtype", "bf61"], "format must be one of", "did you mean 'bf16'?"),
        (["format", "fp61"], "format must be one of", "did you mean 'fp64'?"),
        (["format", "--value", "3"], "a value is rounded to one format, got 0", ""),
        (["time", "--tokens", "1e9"], "how many GPUs?", "--gpus N"),
        (["time", "--gpus", "8"], "a run of how many tokens?", "--tokens 2T"),
        (["time", "--gpus", "8", "--collective", "all_reduce"], "how many bytes?", "--bytes 1GB"),
        (["time", "--gpus", "8", "--collective", "allreduce", "--bytes", "1GB"], "collective must be", "'all_reduce'?"),
        (["time", "--gpus", "8", "--collective", "all_reduce", "--bytes", "1 Gb"], "bytes: 'Gb' could be bits", ""),
        (["gemm", "1", "2"], "a product has three sizes, got 2", "shardkit calc gemm M N K"),
        (["gemm", "1", "2", "3", "--model", "gpt2"], "M N K and a model are two questions", ""),
        (["gemm", "--model", "gpt2"], "a layer over how many tokens?", "--seq N"),
        (["gemm", "1", "2", "0"], "k must be a whole number of at least 1, got 0", ""),
        (["plan", "--model", "deepseek-v3", "--gpus", "64"], "dense models without MLA only", ""),
        (["memory", "--params", "1e308"], "these figures come to more than 1e308", "are the units right?"),
        (["memroy"], "memroy", "shardkit calc --help"),
        (["--bogus"], "--bogus", "shardkit calc --help"),
    ],
    ids=lambda it: " ".join(it)[:40] if isinstance(it, list) else "",
)
def test_a_user_s_mistake(shardkit: Shardkit, arguments: list[str], message: str, hint: str) -> None:
    ended = shardkit("calc", *arguments)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert message in ended.stderr and hint in ended.stderr
    assert ended.stderr.startswith("error: ")


def test_a_plan_that_fits_nowhere_ends_with_1(shardkit: Shardkit) -> None:
    ended = shardkit("calc", "plan", "--model", "gpt3-175b", "--gpus", "2", "--batch", "64", "--json", "-")
    assert (ended.returncode, ended.stderr) == (1, "")
    it = json.loads(ended.stdout)
    assert it["results"]["fits"] == {"value": "no", "unit": "word"}
    assert it["convention"].startswith("No layout fits; the smallest needs ")


def test_help_names_every_command(shardkit: Shardkit) -> None:
    for arguments in (["calc"], ["calc", "--help"], ["calc", "-h"]):
        ended = shardkit(*arguments)
        assert ended.returncode == 0 and ended.stdout.startswith("Usage: shardkit calc ")
        for command in ("memory", "traffic", "bubble", "flops", "kv", "format", "time", "gemm", "plan"):
            assert re.search(rf"^  {command} ", ended.stdout, flags=re.MULTILINE)
    assert "calc " in shardkit("--help").stdout
    assert shardkit("calc", "memory", "--help").stdout.startswith("Usage: shardkit calc memory ")
