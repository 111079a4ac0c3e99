"""`list`, `show` and `start`."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit.bank.layout import find_bank
from tests.cli.conftest import ROOT, STARTER, Shardkit

BANK = find_bank()


def test_list_has_a_line_for_every_question(shardkit: Shardkit) -> None:
    ended = shardkit("list")
    head, *rows = ended.stdout.splitlines()
    assert head.split() == ["ID", "KIND", "LEVEL", "TITLE"]
    assert [row.split()[0] for row in rows] == BANK.ids()
    assert (ended.returncode, ended.stderr) == (0, "")


def test_list_filters(shardkit: Shardkit, bank: Path) -> None:
    def ids(*arguments: str) -> list[str]:
        return [row.split()[0] for row in shardkit("list", "--bank", bank, *arguments).stdout.splitlines()[1:]]

    assert ids() == ["sums/double", "sums/which"]
    assert ids("--kind", "code") == ["sums/double"]
    assert ids("-k", "code", "-k", "choice") == ["sums/double", "sums/which"]
    assert ids("--level", "1", "--topic", "sums") == ["sums/which"]
    assert shardkit("list", "--bank", bank, "--level", "4").returncode == 2


def test_list_in_chinese_aligns_by_width(shardkit: Shardkit, bank: Path) -> None:
    rows = shardkit("list", "--bank", bank, "--lang", "zh").stdout.splitlines()
    titles = ("标题", "加倍", "哪个和")
    assert len({row.encode("gbk").index(title.encode("gbk")) for row, title in zip(rows, titles, strict=True)}) == 1
    assert shardkit("list", "--bank", bank, LANG="zh_CN.UTF-8").stdout.splitlines() == rows


def test_list_as_json_has_both_languages(shardkit: Shardkit, bank: Path) -> None:
    listed = json.loads(shardkit("list", "--bank", bank, "--json").stdout)
    assert listed["schema"] == 1
    first, second = listed["questions"]
    assert first == {
        "id": "sums/double",
        "topic": "sums",
        "kind": "code",
        "level": 2,
        "title": {"en": "Double it", "zh": "加倍"},
        "tags": [],
    }
    assert (second["id"], second["kind"]) == ("sums/which", "choice")


def test_show_keeps_hints_and_answers_back(shardkit: Shardkit, bank: Path) -> None:
    shown = shardkit("show", "sums/which", "--bank", bank).stdout
    assert "What is 1 + 1?" in shown and "And 2 + 2?" not in shown  # a follow-up may give the answer away
    for secret in ("Use fingers", "Counting shows it", "The sum of one", "Four.", "chapter 2"):
        assert secret not in shown, secret
    shown = shardkit("show", "sums/which", "--bank", bank, "--hints", "1").stdout
    assert "Use fingers." in shown and "Two of them." not in shown
    shown = shardkit("show", "sums/which", "--bank", bank, "--all").stdout
    assert "Two of them." in shown and "Counting shows it" not in shown
    shown = shardkit("show", "sums/which", "--bank", bank, "--answer").stdout
    assert "Two of them." not in shown
    for told in ("Right. Counting shows it.", "Wrong. One too many.", "The sum of one", "Four.", "chapter 2"):
        assert told in shown, told


def test_show_speaks_chinese(shardkit: Shardkit, bank: Path) -> None:
    shown = shardkit("show", "sums/which", "--bank", bank, "--lang", "zh", "--all", "--answer").stdout
    for text in ("哪个和", "1 + 1 等于几？", "提示 2/2", "用两根。", "对。数一数。", "解析", "四。"):
        assert text in shown, text


def test_show_of_a_code_question_names_its_interface_and_the_next_command(shardkit: Shardkit, bank: Path) -> None:
    shown = shardkit("show", "sums/double", "--bank", bank).stdout
    assert "def double(x)" in shown and "values 4" in shown
    assert "shardkit start sums/double" in shown and "shardkit show sums/double --hints 1" in shown
    assert "The bank has no reference" in shardkit("show", "sums/double", "--bank", bank, "--answer").stdout
    answer = bank / "reference" / "sums" / "double.py"
    answer.parent.mkdir(parents=True)
    answer.write_text("def double(x):\n    return x + x\n", encoding="utf-8")
    assert "    return x + x" in shardkit("show", "sums/double", "--bank", bank, "--answer").stdout


def test_start_writes_the_starter_with_its_id(shardkit: Shardkit, bank: Path, tmp_path: Path) -> None:
    ended = shardkit("start", "sums/double", "--bank", bank)
    assert ended.returncode == 0
    assert (tmp_path / "double.py").read_text("utf-8") == f"# shardkit: sums/double\n{STARTER}"
    assert "shardkit grade double.py" in ended.stdout
    ended = shardkit("start", "sums/double", "--bank", bank, "--dir", "new/er folder")
    assert "shardkit grade 'new/er folder/double.py'" in ended.stdout
    assert (tmp_path / "new" / "er folder" / "double.py").exists()


def test_start_overwrites_nothing(shardkit: Shardkit, bank: Path, tmp_path: Path) -> None:
    mine = tmp_path / "double.py"
    mine.write_text("first", encoding="utf-8")
    ended = shardkit("start", "sums/double", "--bank", bank)
    assert ended.returncode == 2 and "double.py is there already" in ended.stderr and "--force" in ended.stderr
    assert mine.read_text("utf-8") == "first"
    assert shardkit("start", "sums/double", "--bank", bank, "--force").returncode == 0
    mine.write_text("second", encoding="utf-8")
    ended = shardkit("start", "sums/double", "--bank", bank, "--force")
    assert "kept double.py.bak1" in ended.stdout
    assert (tmp_path / "double.py.bak").read_text("utf-8") == "first"
    assert (tmp_path / "double.py.bak1").read_text("utf-8") == "second"
    assert mine.read_text("utf-8").startswith("# shardkit: sums/double\n")


def test_start_follows_no_link(shardkit: Shardkit, bank: Path, tmp_path: Path) -> None:
    (tmp_path / "double.py").symlink_to(tmp_path / "elsewhere.py")
    assert shardkit("start", "sums/double", "--bank", bank).returncode == 2
    assert shardkit("start", "sums/double", "--bank", bank, "--force").returncode == 0
    assert not (tmp_path / "elsewhere.py").exists()
    assert not (tmp_path / "double.py").is_symlink()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_start_where_it_cannot_write_says_so(shardkit: Shardkit, bank: Path, tmp_path: Path, force: list[str]) -> None:
    (tmp_path / "taken").touch()
    ended = shardkit("start", "sums/double", "--bank", bank, "--dir", "taken", *force)
    assert ended.returncode == 2 and "taken" in ended.stderr and "fault" not in ended.stderr
    ended = shardkit("start", "sums/double", "--bank", bank, "--dir", "taken/below", *force)
    assert ended.returncode == 2 and "fault" not in ended.stderr
    (tmp_path / "double.py").mkdir()
    ended = shardkit("start", "sums/double", "--bank", bank, *force)
    assert ended.returncode == 2 and "double.py" in ended.stderr
    (bank / "questions" / "sums" / "double.py").unlink()
    ended = shardkit("start", "sums/double", "--bank", bank, "--dir", "x", *force)
    assert ended.returncode == 2 and "the starter is missing" in ended.stderr


@pytest.mark.parametrize("question_id", [each for each in BANK.ids() if BANK.starter(each).exists()])
def test_every_starter_begins_as_python(shardkit: Shardkit, tmp_path: Path, question_id: str) -> None:
    assert shardkit("start", question_id).returncode == 0
    written = (tmp_path / f"{question_id.split('/')[1]}.py").read_text("utf-8")
    assert written.splitlines()[0] == f"# shardkit: {question_id}"
    assert ast.get_docstring(ast.parse(written))


def test_without_a_command_there_is_help(shardkit: Shardkit) -> None:
    ended = shardkit()
    assert ended.returncode == 0
    for command in ("list", "show", "start", "quiz", "doctor"):
        assert f"\n  {command} " in ended.stdout
    assert shardkit("--version").stdout.startswith("shardkit ")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command_and_each_knows_its_own_name(shardkit: Shardkit, option: str) -> None:
    from kit.cli.app import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    told = shardkit(option)
    assert told.returncode == 0
    assert {line.split()[0] for line in told.stdout.splitlines() if line.startswith("  ")} >= names - {""}
    assert shardkit("quiz", option).stdout.splitlines()[0].split()[:3] == ["Usage:", "shardkit", "quiz"]


def test_a_command_that_does_not_exist_is_told_the_nearest(shardkit: Shardkit) -> None:
    ended = shardkit("lst")
    assert ended.returncode == 2 and "'lst'" in ended.stderr and "'list'" in ended.stderr


def test_what_checks_take_from_the_kit_is_there_before_ranks_are_forked() -> None:
    program = (
        "import re, sys, pathlib, kit.grading.entry, kit.grading\n"
        "files = pathlib.Path('questions').glob('*/test_*.py')\n"
        "names = {name.strip() for file in files\n"
        "         for line in re.findall(r'^from kit.grading import (.*)', file.read_text('utf-8'), re.M)\n"
        "         for name in line.split(',')}\n"
        "before = set(sys.modules)\n"
        "for name in sorted(names): getattr(kit.grading, name)\n"
        "assert len(names) > 5 and set(sys.modules) == before, set(sys.modules) - before\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["list"], {"torch", "pytest", "markdown_it", "pygments", "numpy"}),
        (["show", "dp/bucketed"], {"torch", "pytest", "pygments", "numpy"}),
        (["quiz", "--seed", "1"], {"torch", "pytest", "pygments", "numpy"}),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: set[str]) -> None:
    program = (
        "import sys\nfrom kit.cli import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT, timeout=60,
    )  # fmt: skip
    assert not absent & set(ended.stderr.split())
    assert "kit.cli" in ended.stderr.split()
