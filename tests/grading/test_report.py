"""A grade as JSON and JUnit: their shape, and files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.errors import KitError
from kit.grading.report import json_text, junit_text, require_writable, write
from kit.grading.result import CheckResult, GradeResult


def result(verdict: str = "wrong", *checks: CheckResult) -> GradeResult:
    return GradeResult("toy/mean", "mine.py", verdict, 7, {"values": 4, "traffic": 2}, checks, 1.23456)


CHECKS = (
    CheckResult("test_a", "A holds.", "values", 2, "switchboard", "failed", "world_size=2: \x1b[2J<&\x00\ud800\nmore"),
    CheckResult("test_b", "B holds.", "traffic", 2, "switchboard", "passed", duration_s=0.123456),
    CheckResult("test_c", "C holds.", "values", 2, "gloo", "not_run", "it fails on the switchboard"),
    CheckResult("test_d", "D holds.", "traffic", 3, "switchboard", "kit_error", ""),
)


def test_json_has_the_documented_shape() -> None:
    told = json.loads(json_text(result("wrong", *CHECKS)))
    assert list(told) == [
        "schema", "question", "solution", "verdict", "score", "max_score", "seed", "duration_s", "checks",
    ]  # fmt: skip
    assert (told["schema"], told["verdict"], told["score"], told["max_score"], told["seed"]) == (1, "wrong", 0, 6, 7)
    for check in told["checks"]:
        assert list(check) == [
            "name", "title", "proof", "world_size", "transport", "verdict", "message", "duration_s",
        ]  # fmt: skip
    assert told["checks"][1]["duration_s"] == 0.1235


def test_json_of_any_text_can_be_written(tmp_path: Path) -> None:
    """A learner's message may hold what UTF-8 cannot."""
    target = tmp_path / "result.json"
    write(target, json_text(result("wrong", *CHECKS)))
    assert json.loads(target.read_text("utf-8"))["checks"][0]["message"].startswith("world_size=2: \x1b[2J<&\x00")


def test_junit_is_xml_whatever_the_messages_hold() -> None:
    suite = ElementTree.fromstring(junit_text(result("wrong", *CHECKS)).encode())
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(cases) == {"test_a[2-switchboard]", "test_b[2-switchboard]", "test_c[2-gloo]", "test_d[3-switchboard]"}
    failure = cases["test_a[2-switchboard]"].find("failure")
    assert failure is not None and failure.text is not None and failure.text.endswith("<&??\nmore")
    assert cases["test_d[3-switchboard]"].find("error") is not None


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("before")
    write(target, "after")
    assert target.read_text() == "after"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.symlink_to(path.parent / "elsewhere"), "is a link"),
        (lambda path: path.parent.rmdir(), "there is no directory"),
    ],
)
def test_what_cannot_be_written_is_known_before(tmp_path: Path, make: Callable[[Path], object], says: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    target = folder / "result.json"
    make(target)
    with pytest.raises(KitError, match=says):
        require_writable(target)
    with pytest.raises(KitError):
        write(target, "{}")
    assert not (folder / "elsewhere").exists()


def test_that_a_folder_takes_no_files_is_known_before_and_trying_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"/proc/result\.json cannot be written: "):
        require_writable(Path("/proc/result.json"))
    require_writable(tmp_path / "result.json")
    (tmp_path / "there.json").write_text("before")
    require_writable(tmp_path / "there.json")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"there.json": "before"}


def test_a_device_is_written_and_not_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        require_writable(fifo)
        write(fifo, "{}\n")
        assert os.read(reader, 100) == b"{}\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


# -- verdict and score ------------------------------------------------------------------------------------------------


def check(proof: str, verdict: str, transport: str = "switchboard", launch_kind: str = "") -> CheckResult:
    return CheckResult(f"test_{proof}", "", proof, 2, transport, verdict, launch_kind=launch_kind)


def test_without_values_the_score_is_nothing() -> None:
    wrong = result("wrong", check("values", "failed"), check("traffic", "passed"))
    assert (wrong.score, wrong.max_score) == (0, 6)
    part = result("wrong", check("values", "passed"), check("traffic", "failed"))
    assert part.score == 4
    assert result("passed", check("values", "passed"), check("traffic", "passed")).score == 6


def test_a_failure_on_gloo_alone_fails_the_proof() -> None:
    graded = result("wrong", check("values", "passed"), check("values", "failed", "gloo"), check("traffic", "passed"))
    assert graded.score == 0


def test_gloo_that_was_not_tried_takes_no_points_of_what_holds() -> None:
    graded = result("wrong", check("values", "passed"), check("values", "not_run", "gloo"), check("traffic", "failed"))
    assert graded.score == 4


def test_what_did_not_run_on_the_switchboard_has_no_points() -> None:
    graded = result("hung", check("values", "passed"), check("values", "not_run"), check("traffic", "passed"))
    assert graded.score == 0


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        (["hang"], "hung"),
        (["deadline"], "hung"),
        (["mismatch"], "hung"),
        (["crash"], "crashed"),
        (["memory"], "crashed"),
        (["output"], "crashed"),
        (["race"], "wrong"),
        (["refused", "crash"], "refused"),
        ([""], "wrong"),
    ],
)
def test_verdicts_follow_from_the_failures(kinds: list[str], verdict: str) -> None:
    from kit.grading.result import verdict_of

    checks = tuple(check("discipline", "failed", launch_kind=kind) for kind in kinds)
    assert verdict_of((*checks, check("values", "passed"))) == verdict


def test_nothing_counts_as_passed_that_did_not_run() -> None:
    from kit.grading.result import verdict_of

    assert verdict_of((check("values", "passed"), check("traffic", "not_run"))) == "kit_error"
    assert verdict_of(()) == "kit_error"
    assert verdict_of((check("values", "passed"), check("traffic", "passed"))) == "passed"
