"""Hardware profiles: what comes with the kit, and what is said about a wrong file."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest
import yaml

from kit.errors import KitError
from kit.hardware import Profile, Tier, names, profile
from kit.hardware.load import FOLDER


def test_the_kit_s_profiles():
    assert names() == ("a100", "ethernet", "h100", "ideal", "unit")
    for name in names():
        assert profile(name).name == name
        assert profile(name).note


@pytest.mark.parametrize("name", ["a100", "ethernet", "h100"])
def test_every_figure_of_real_hardware_names_its_source(name):
    """Figures without a source cannot be checked."""
    values = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    figures = {"memory_bytes_per_s", "memory_bytes"}
    figures |= {f"{tier}.{key}" for tier in ("inside", "between") for key in values[tier]}
    figures |= {f"flops_per_s.{dtype}" for dtype in values["flops_per_s"]}
    assert figures <= {key for key, text in profile(name).sources if text}


def test_peaks_are_those_that_papers_divide_by():
    """312e12 in PTD-P (arXiv 2104.04473, table 1), 989e12 in Llama 3 (arXiv 2407.21783, table 4)."""
    assert profile("a100").flops("bfloat16") == 312e12
    assert round(profile("h100").flops("bfloat16") / 1e12) == 989
    assert profile("h100").flops("float8_e4m3fn") == pytest.approx(2 * profile("h100").flops("bfloat16"), rel=1e-3)


def test_a_dtype_that_is_not_listed_runs_as_float32():
    assert profile("a100").flops("float8_e5m2") == profile("a100").flops("float32") == 19.5e12


def test_nodes_are_filled_in_order():
    a100, unit = profile("a100"), profile("unit")
    assert [a100.node(rank) for rank in (0, 7, 8, 15, 16)] == [0, 0, 1, 1, 2]
    assert a100.tier(6, 7) is a100.inside
    assert a100.tier(7, 8) is a100.between
    assert unit.node(1000) == 0


def test_ideal_messages_are_free_and_unit_messages_are_round():
    assert profile("ideal").inside.message_s(10**12) == 0.0
    assert profile("unit").inside.message_s(7) == 8.0
    assert math.isinf(profile("ideal").between.bytes_per_s)


def test_a_profile_is_a_value():
    with pytest.raises(FrozenInstanceError):
        profile("unit").name = "other"
    assert profile(profile("a100")) is profile("a100")
    assert isinstance(profile("unit").inside, Tier)


def write(tmp_path, **changes):
    values = yaml.safe_load((FOLDER / "unit.yaml").read_text()) | changes
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in values.items() if value != "drop"}))
    return path


def test_a_user_s_own_file(tmp_path):
    path = write(tmp_path, inside={"latency_s": "2e-6", "bytes_per_s": 5}, ranks_per_node=2)
    mine = profile(path)
    assert isinstance(mine, Profile)
    assert (mine.name, mine.inside, mine.node(3)) == ("mine", Tier(2e-6, 5.0), 1)
    assert profile(str(path)) == mine


WRONG = [
    ({"insde": 1}, "mine.yaml: unknown key 'insde' (did you mean 'inside'?)"),
    ({"inside": "drop"}, "mine.yaml: the key 'inside' is missing"),
    ({"inside": 3}, "mine.yaml: inside: expected a mapping of keys, got 3"),
    ({"inside": {"latency_s": 1}}, "mine.yaml: inside: the key 'bytes_per_s' is missing"),
    ({"inside": {"latency_s": -1, "bytes_per_s": 1}}, "mine.yaml: inside.latency_s: expected a number from 0, got -1"),
    ({"inside": {"latency_s": 1, "bytes_per_s": 0}}, "mine.yaml: inside.bytes_per_s: expected a number above 0, got 0"),
    ({"memory_bytes": True}, "mine.yaml: memory_bytes: expected a number above 0, got True"),
    ({"memory_bytes": "80 GB"}, "mine.yaml: memory_bytes: expected a number above 0, got '80 GB'"),
    ({"ranks_per_node": 0}, "mine.yaml: ranks_per_node: expected a whole number from 1"),
    ({"flops_per_s": {"float16": 1}}, "mine.yaml: flops_per_s: the key 'float32' is missing"),
    ({"flops_per_s": {"float32": float("inf")}}, "mine.yaml: flops_per_s.float32: expected a finite number, got inf"),
    ({"flops_per_s": {"flaot32": 1}}, "mine.yaml: flops_per_s: unknown key 'flaot32' (did you mean 'float32'?)"),
    ({"note": 5}, "mine.yaml: note: expected a text, got 5"),
    ({"sources": {"insid": "x"}}, "mine.yaml: sources: unknown key 'insid' (did you mean 'inside'?)"),
    ({"sources": {"inside": 4}}, "mine.yaml: sources.inside: expected a text, got 4"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=[said.split(": ", 1)[1][:40] for _, said in WRONG])
def test_a_wrong_file_is_told_what_and_where(tmp_path, changes, said):
    with pytest.raises(KitError) as raised:
        profile(write(tmp_path, **changes))
    assert said in raised.value.message


def test_what_is_no_profile(tmp_path):
    with pytest.raises(KitError, match=r"no hardware profile 'a10' \(did you mean 'a100'\?\)"):
        profile("a10")
    with pytest.raises(KitError, match=r"cannot be read: No such file"):
        profile(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(KitError, match=r"expected a mapping of keys"):
        profile(tmp_path / "list.yaml")
    (tmp_path / "bad.yaml").write_text("a: b: c")
    with pytest.raises(KitError, match=r"bad.yaml:1: malformed YAML"):
        profile(tmp_path / "bad.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(KitError, match=r"not UTF-8"):
        profile(tmp_path / "bytes.yaml")
