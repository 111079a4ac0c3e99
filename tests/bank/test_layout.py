"""The bank is found, and ids that it lacks are answered with those that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

import kit
from kit.bank.layout import Bank, find_bank, require_id, require_topic
from kit.errors import KitError

CHECKOUT = Path(kit.__file__).resolve().parent.parent


def test_the_bank_of_a_checkout_lies_beside_the_package() -> None:
    assert find_bank() == Bank(CHECKOUT)


def test_a_wheel_carries_its_bank_and_looks_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kit" / "_bank" / "questions").mkdir(parents=True)
    (tmp_path / "questions").mkdir()  # somebody else's package in site-packages
    monkeypatch.setattr(kit, "__file__", str(tmp_path / "kit" / "__init__.py"))
    assert find_bank().root == tmp_path / "kit" / "_bank"


def test_without_any_bank_the_option_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "__file__", str(tmp_path / "kit" / "__init__.py"))
    with pytest.raises(KitError) as refused:
        find_bank()
    asked = f"{tmp_path / 'questions'} nor {tmp_path / 'kit' / '_bank' / 'questions'}"
    assert refused.value.message == f"no questions: neither {asked} exists"
    assert refused.value.hint == "give the folder that contains questions/ with --bank DIR"


def test_a_folder_that_is_given_must_be_a_bank(build, tmp_path: Path) -> None:
    def refusal(directory: Path) -> tuple[str, str | None]:
        with pytest.raises(KitError) as refused:
            find_bank(directory)
        return refused.value.message, refused.value.hint

    assert find_bank(build.root) == build.bank
    questions = build.root / "questions"
    assert refusal(questions) == (
        f"{questions} contains no folder questions/",
        f"give its parent: --bank {build.root}",
    )
    assert refusal(tmp_path / "nowhere") == (f"no folder {tmp_path / 'nowhere'}", None)
    file = build.write("file", "")
    assert refusal(file) == (f"{file} is a file; --bank takes the folder that contains questions/", None)


def test_every_file_of_a_question_has_one_place(build) -> None:
    question_id = build.question("code", "dp/bucketed")
    bank = build.bank
    assert bank.ids() == [question_id]
    assert bank.topics() == ["dp"]
    paths = [
        bank.question(question_id),
        bank.starter(question_id),
        bank.checks(question_id),
        bank.topic_readme("dp"),
        bank.reference(question_id),
        bank.mutants(question_id),
        *bank.variants(question_id),
    ]
    assert [bank.shown(path) for path in paths] == [
        "questions/dp/bucketed.yaml",
        "questions/dp/bucketed.py",
        "questions/dp/test_bucketed.py",
        "questions/dp/README.md",
        "reference/dp/bucketed.py",
        "reference/dp/bucketed.mutants.yaml",
        "reference/dp/bucketed.variants/one.py",
        "reference/dp/bucketed.variants/two.py",
    ]
    assert all(path.is_file() for path in paths)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("dp/buckted", "no question 'dp/buckted'; closest: dp/bucketed"),
        ("bucketed", "no question 'bucketed'; closest: dp/bucketed"),
        ("zero/bucketed", "no question 'zero/bucketed'; closest: dp/bucketed"),
        ("dp/time", "no question 'dp/time'"),
        ("overlp", "no question 'overlp'; closest: dp/overlap"),
        ("DP/bucketed", "no question 'DP/bucketed'; closest: dp/bucketed"),
        ("dp/bucketed.yaml", "no question 'dp/bucketed.yaml'; closest: dp/bucketed"),
        ("../questions/dp/bucketed", "no question '../questions/dp/bucketed'; closest: dp/bucketed"),
        ("xyz", "no question 'xyz'"),
        ("", "no question ''"),
    ],
)
def test_an_unknown_id_is_answered_with_the_closest(build, wanted: str, message: str) -> None:
    build.question("choice", "dp/bucketed")
    build.question("choice", "dp/overlap")
    with pytest.raises(KitError) as refused:
        require_id(build.bank, wanted)
    assert refused.value.message == message
    assert (refused.value.hint is None) == ("closest" in message)


def test_an_unknown_topic_is_answered_too(build) -> None:
    build.question("choice", "zero/one")
    build.question("choice", "tp/one")
    assert require_topic(build.bank, "tp") == "tp"
    for wanted, message in [
        ("zer", "no topic 'zer'; closest: zero"),
        ("x", "no topic 'x'; there are: tp, zero"),
    ]:
        with pytest.raises(KitError) as refused:
            require_topic(build.bank, wanted)
        assert refused.value.message == message
