"""Every question of the bank on the screen: it fits, both languages, and shows nothing that was not asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

import kit.screen
from kit.bank.draw import draw
from kit.bank.layout import find_bank
from kit.bank.load import load_question
from kit.screen.question import (
    show_answer,
    show_explanation,
    show_follow_ups,
    show_hint,
    show_options_with_reasons,
    show_sources,
    show_task,
)
from kit.screen.words import WORDS, Language
from tests.practice.questions import choice, multi, number, open_ended, order, predict
from tests.screen.pages import page, text_of

BANK = find_bank()
IDS = BANK.ids()
LANGUAGES: list[Language] = ["en", "zh"]


def everything(question_id: str, language: Language, width: int, *, has_unicode: bool = True) -> str:
    question = load_question(BANK, question_id)
    out = page(language, width=width, has_unicode=has_unicode)
    drawn = draw(question, 3)
    show_task(out, drawn)
    for hint in range(1, len(question.hints) + 1):
        show_hint(out, drawn, hint)
    show_answer(out, drawn, None)
    show_follow_ups(out, drawn, with_answers=True)
    return text_of(out)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question_id", IDS)
def test_every_question_fits_60_columns(question_id: str, language: Language) -> None:
    for line in everything(question_id, language, 60).splitlines():
        assert cell_len(line.rstrip()) <= 60 or "https://" in line, line


@pytest.mark.parametrize("question_id", IDS)
def test_every_question_is_readable_in_ascii(question_id: str) -> None:
    text = everything(question_id, "en", 60, has_unicode=False)
    assert text.isascii(), re.findall(r"[^\x00-\x7f]", text)
    assert "?" not in {line.strip() for line in text.splitlines()}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question_id", IDS)
def test_no_placeholder_is_left_on_the_screen(question_id: str, language: Language) -> None:
    question = load_question(BANK, question_id)
    if question.kind == "number":
        names = [*question.parameters, "answer"]
        assert not re.search(rf"\{{({'|'.join(names)})\}}", everything(question_id, language, 80))


@pytest.mark.parametrize(
    "question",
    [choice(), multi(), number(), order(), predict(), open_ended()],
    ids=lambda question: question.kind,
)
def test_the_task_gives_nothing_away(question: object) -> None:
    out = page()
    drawn = draw(question, 1)  # type: ignore[arg-type]
    show_task(out, drawn)
    show_follow_ups(out, drawn, with_answers=False)
    shown = text_of(out)
    for secret in ("reason", "explanation", "because", "first hint", "A paper", "12 GB (", "x 8", "model", "point 0"):
        assert secret not in shown, secret
    assert "why so" in shown


def test_options_stand_in_the_drawn_order_with_letters() -> None:
    for seed in range(8):
        drawn = draw(multi(), seed)
        out = page()
        show_task(out, drawn)
        assert re.findall(r"^  ([a-d])  option (\d)$", text_of(out), flags=re.MULTILINE) == [
            ("abcd"[place], str(index)) for place, index in enumerate(drawn.order)
        ]


def test_reasons_name_right_and_wrong_and_mark_the_choice() -> None:
    drawn = draw(choice(), 2)
    out = page()
    show_options_with_reasons(out, drawn, chosen=(1,))
    shown = text_of(out)
    assert re.findall(r"^(>| ) [a-c]  option (\d)\n     (Right|Wrong)\. reason (\d)$", shown, flags=re.MULTILINE) == [
        (">" if index == 1 else " ", str(index), "Right" if index == 0 else "Wrong", str(index))
        for index in drawn.order
    ]


def test_a_program_is_shown_as_it_stands_with_its_world_size() -> None:
    for width in (60, 80):
        out = page(width=width)
        show_task(out, draw(predict(), 1))
        shown = "\n".join(line.rstrip() for line in text_of(out).split("\n"))
        assert "  import torch.distributed as dist\n\n  if dist.get_rank() == 1:\n      print('*', [1])\n" in shown
        assert "Every rank runs it; world size 2.\n" in shown
        assert shown.index("prompt of") < shown.index("import torch") < shown.index("  a  ")
    shown = page("zh", width=80)
    show_answer(shown, draw(predict(), 1), None)
    assert "实际输出（按 rank 顺序）\n  * [1]  " in text_of(shown)


@pytest.mark.parametrize("seed", range(5))
def test_the_right_order_is_told_with_the_letters_of_the_task(seed: int) -> None:
    drawn = draw(order(), seed)
    asked, told = page(), page()
    show_task(asked, drawn)
    show_answer(told, drawn, None)
    lettered = dict(re.findall(r"^  ([a-d])  item (\d)$", text_of(asked), flags=re.MULTILINE))
    assert sorted(lettered.values()) == list("0123")
    answer = re.findall(r"^  ([a-d])  item (\d)$", text_of(told), flags=re.MULTILINE)
    assert [item for _, item in answer] == list("0123")
    assert dict(answer) == lettered


def test_an_answer_in_words_shows_its_model_and_its_points() -> None:
    out = page()
    show_answer(out, draw(open_ended(), 1), None)
    shown = text_of(out)
    assert "the model answer" in shown
    assert re.findall(r"^  - point (\d) \((\d)\)$", shown, flags=re.MULTILINE) == [
        ("0", "1"), ("1", "2"), ("2", "3"), ("3", "4"),
    ]  # fmt: skip


def test_a_number_shows_its_working_and_convention() -> None:
    drawn = draw(number(), 1)
    out = page("zh", width=80)
    show_task(out, drawn)
    show_explanation(out, drawn)
    show_sources(out, drawn.question.sources)
    shown = text_of(out)
    assert "口径" in shown and "中文 GB = 1e9 bytes" in shown
    assert "2(4-1)/4 x 8000000000 = 12 GB (11.18 GiB)" in shown
    assert "A paper, section 1" in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_forbidden_is_listed_by_module(language: Language) -> None:
    questions = [load_question(BANK, question_id) for question_id in IDS]
    forbidding = [question for question in questions if question.kind == "code" and question.forbidden]
    assert forbidding
    for question in questions:
        out = page(language, width=100)
        show_task(out, draw(question, 3))
        told = WORDS["forbidden"][language] in text_of(out)
        assert told == (question in forbidding)
        if told:
            section = text_of(out).split(WORDS["forbidden"][language])[1].split(WORDS["points"][language])[0]
            listed = [
                f"{module.strip()}.{name.strip()}"
                for module, names in re.findall(r"(\S+): ((?:[^:]|\n)+?)(?=\n\s+\S+:|\s*$)", section)
                for name in names.split(",")
            ]
            assert listed == list(question.forbidden)


@pytest.mark.parametrize("key", WORDS)
def test_phrases_have_the_same_fields_in_both_languages(key: str) -> None:
    fields = [sorted(re.findall(r"\{(\w+)\}", WORDS[key][language])) for language in LANGUAGES]
    assert fields[0] == fields[1]
    assert all(WORDS[key][language] for language in LANGUAGES)


def test_every_phrase_is_used_and_none_is_missing() -> None:
    folder = Path(kit.screen.__file__).parent
    source = "\n".join(path.read_text("utf-8") for path in folder.glob("*.py") if not path.stem.endswith("words"))
    source += "".join(
        (folder.parent / "cli" / name).read_text("utf-8")
        for name in ("browse.py", "progress.py", "hunt.py", "predict.py", "quiz.py", "interview.py")
    )
    said = set(re.findall(r"""say\(\s*f?"([\w{}.]+)\"""", source)) | set(re.findall(r'"(\w+)"', source))
    built = (
        "head_",
        "ask_",
        "happens_",
        "timeline_",
        "iv_why_",
        "mock_paused",
        "mock_resumed",
        "share_",
        "iv_first",
        "iv_last",
        "iv_no_more_hints",
        "iv_nothing_to_undo",
        "iv_paused",
        "iv_resumed",
        "progress_head_",
        "progress_mode_",
        "hunt_ask_",
        "hunt_wants_",
        "hunt_part_",
        "hunt_word_",
        "slip_",
        "symptom_",
        "foretell_ask_",
        "foretell_how_",
        "foretell_traffic",
        "foretell_bubble",
        "foretell_exposed",
        "foretell_memory",
        "unit",
        "code",
        "choice",
        "multi",
        "number",
        "order",
        "predict",
        "open",
    )
    unused = {key for key in WORDS if key not in said and not key.startswith(built)}
    assert not unused
