"""Every file in examples/ gets the verdict that it is there to show, through the real command."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"

# file: verdict, exit code, the proofs that are broken, what the first failing message says
EXPECTED: dict[str, tuple[str, int, set[str], str]] = {
    "dp/bucketed/right.py": ("passed", 0, set(), ""),
    "dp/bucketed/summed_not_averaged.py": ("wrong", 1, {"values"}, "summed over ranks"),
    "dp/bucketed/last_bucket_lost.py": ("wrong", 1, {"values"}, "local gradient"),
    "dp/bucketed/never_copied_back.py": ("wrong", 1, {"values"}, "local gradient"),
    "dp/bucketed/megabytes_read_as_bytes.py": ("wrong", 1, {"traffic"}, ""),
    "dp/bucketed/deadlock.py": ("hung", 1, {"discipline"}, "a send waits for its receive"),
}


def grade(name: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON result, and what was printed to stderr."""
    command = [
        sys.executable,
        "-c",
        "from kit.cli import main; main()",
        "grade",
        str(EXAMPLES / name),
        "--json",
        "-",
    ]
    ended = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout), ended.stderr


def test_every_example_has_its_expected_verdict() -> None:
    assert {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py") if "world" not in path.parts} == {
        *EXPECTED
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_example_gets_its_verdict(name: str) -> None:
    verdict, exit_code, broken_proofs, says = EXPECTED[name]
    code, result, _ = grade(name, "--seed", "1")
    failed = [check for check in result["checks"] if check["verdict"] == "failed"]
    assert (result["verdict"], code) == (verdict, exit_code), [check["message"] for check in failed][:3]
    assert broken_proofs <= {check["proof"] for check in failed}
    assert not failed or any(says in check["message"] for check in failed), [c["message"] for c in failed]


def test_result_has_the_documented_shape() -> None:
    """docs/json.md, schema 1."""
    _, result, _ = grade("dp/bucketed/right.py", "--transport", "switchboard", "--seed", "2")
    documented = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    assert result["schema"] == 1
    for key in result:
        assert f"`{key}`" in documented, f"docs/json.md does not mention {key!r}"
    for key in result["checks"][0]:
        assert f"`{key}`" in documented, f"docs/json.md does not mention {key!r} of a check"
    assert result["score"] == result["max_score"] > 0
    example = json.loads(documented.split("```json\n")[1].split("```")[0])
    assert set(example) == set(result) and set(example["checks"][0]) == set(result["checks"][0])
    assert example["max_score"] == result["max_score"]
    assert {check["name"] for check in example["checks"]} <= {check["name"] for check in result["checks"]}


def test_world_serves_a_test_file_in_an_empty_directory(tmp_path: Path) -> None:
    """Nothing beside the file but an installed shardkit; its last test deadlocks, and is told."""
    try:
        importlib.metadata.distribution("shardkit")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("shardkit is not installed in this environment, so pytest cannot find its plugin")
    shutil.copy(EXAMPLES / "world" / "test_exchange.py", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_exchange.py"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "1 failed, 2 passed" in ended.stdout
    assert "a cycle: rank 0 waits in recv from rank 2 (test_exchange.py:22)" in ended.stdout
