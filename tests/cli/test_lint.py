"""`lint` as an author sees it; the rules themselves are held elsewhere."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Shardkit


def test_findings_are_lines_that_an_editor_can_follow(shardkit: Shardkit, bank: Path) -> None:
    broken = bank / "questions" / "sums" / "which.yaml"
    broken.write_text(broken.read_text("utf-8").replace("hints:", "hint:"), encoding="utf-8")
    ended = shardkit("lint", "--bank", bank, "--static", "sums/which", COLUMNS="30")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "questions/sums/which.yaml:9: unknown key 'hint' (did you mean 'hints'?)" in ended.stdout.splitlines()
    assert "1 question read:" in ended.stdout


def test_unknown_questions_are_the_user_s_mistake(shardkit: Shardkit, bank: Path) -> None:
    ended = shardkit("lint", "--bank", bank, "--static", "sums/wich")
    assert ended.returncode == 2 and "closest: sums/which" in ended.stderr


def test_reading_imports_no_torch_and_a_clean_bank_has_nothing_to_say(shardkit: Shardkit) -> None:
    ended = shardkit("lint", "--static", "dp/replicas_identical")
    assert (ended.returncode, ended.stdout) == (0, "1 question read: nothing to say\n")
