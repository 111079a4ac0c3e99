"""Which questions a command works on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.bank.layout import Bank
from kit.bank.load import Header
from kit.errors import KitError
from kit.practice.selection import Selection, selected, selection, shuffled_ids


def header(question_id: str, kind: str = "choice", level: int = 1) -> Header:
    return Header(question_id, kind, level, {"en": "t", "zh": "t"}, ())


HEADERS = [header("dp/a"), header("dp/b", "code", 2), header("pp/c", "number", 3), header("zero/d", "multi", 4)]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    for one in HEADERS:
        path = tmp_path / "questions" / f"{one.id}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return Bank(tmp_path)


def ids(wanted: Selection) -> list[str]:
    return [one.id for one in selected(HEADERS, wanted)]


def test_filters_narrow_together_and_several_of_one_widen(bank: Bank) -> None:
    assert ids(selection(bank, [], [], [])) == [one.id for one in HEADERS]
    assert ids(selection(bank, ["dp", "pp"], [], [])) == ["dp/a", "dp/b", "pp/c"]
    assert ids(selection(bank, ["dp,pp"], ["code"], ["2"])) == ["dp/b"]
    assert ids(selection(bank, [], [], ["3,4"])) == ["pp/c", "zero/d"]


@pytest.mark.parametrize(
    ("topics", "kinds", "levels", "says"),
    [
        (["zeros"], [], [], "closest: zero"),
        (["fsdp2"], [], [], "no topic 'fsdp2'"),
        ([], ["choise"], [], "closest: choice"),
        ([], ["?"], [], "there are: code, choice"),
        ([], [], ["5"], "levels are 1, 2, 3, 4"),
        ([], [], ["senior"], "levels are 1, 2, 3, 4"),
        ([], [], ["²"], "levels are 1, 2, 3, 4"),
    ],
)
def test_unknown_words_are_refused_with_the_known_ones(
    bank: Bank, topics: list[str], kinds: list[str], levels: list[str], says: str
) -> None:
    with pytest.raises(KitError, match="no ") as caught:
        selection(bank, topics, kinds, levels)
    assert says in caught.value.message


@pytest.mark.parametrize("text", ["", " ", ",", " , ,", "，"])
def test_an_option_that_names_nothing_is_not_everything(bank: Bank, text: str) -> None:
    for place, what in enumerate(("topic", "kind", "level")):
        given: list[list[str]] = [[], [], []]
        given[place] = [text]
        with pytest.raises(KitError, match=f"names no {what}"):
            selection(bank, *given)


def test_capitals_are_as_good(bank: Bank) -> None:
    assert ids(selection(bank, ["DP,Pp"], ["Code", "NUMBER"], [])) == ["dp/b", "pp/c"]
    assert selection(bank, ["DP"], [], []) == selection(bank, ["dp"], [], [])


def test_an_empty_selection_says_what_was_asked_for(bank: Bank) -> None:
    with pytest.raises(KitError, match="no question is --topic dp --kind number"):
        ids(selection(bank, ["dp"], ["number"], []))


def test_the_seed_alone_decides_the_order() -> None:
    orders = {seed: shuffled_ids(HEADERS, 4, seed) for seed in range(20)}
    assert all(sorted(order) == sorted(one.id for one in HEADERS) for order in orders.values())
    assert len(set(orders.values())) > 5
    assert orders[7] == shuffled_ids(list(reversed(HEADERS)), 4, 7)
    assert shuffled_ids(HEADERS, 2, 7) == orders[7][:2]
    assert shuffled_ids(HEADERS, 2, 3) == ("zero/d", "dp/a")  # the same on every machine and release
