"""Every rule is broken once, in a bank that is whole otherwise, and nothing else is found."""

from __future__ import annotations

import pytest

from kit.bank.coverage import coverage
from kit.bank.lint import lint
from kit.bank.lint.links import circles
from kit.errors import KitError

KINDS = ["choice", "multi", "order", "number", "predict", "open", "code"]


def found(build, question_ids=None) -> list[str]:
    return [str(finding) for finding in lint(build.bank, question_ids)]


def line_of(build, path: str, line: str) -> int:
    lines = (build.root / path).read_text(encoding="utf-8").split("\n")
    assert lines.count(line) == 1, line
    return lines.index(line) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_question_has_no_finding(build, kind: str) -> None:
    build.question(kind)
    assert found(build) == []


def test_a_whole_bank_has_no_finding(build) -> None:
    for kind in KINDS:
        build.question(kind)
    build.write("questions/topic/__pycache__/test_code.pyc", "x")
    build.write("questions/.DS_Store", "x")
    assert found(build) == []
    assert found(build, ["topic/code", "topic/choice"]) == []


def test_only_what_is_asked_for_is_looked_at(build) -> None:
    build.question("choice", change=lambda values: values.update(requires=["topic/none"]))
    build.question("multi")
    build.write("questions/stray.txt", "x\n")
    assert found(build, ["topic/multi"]) == []
    assert len(found(build, ["topic/choice"])) == 1
    with pytest.raises(KitError, match=r"^no question 'topic/mutli'; closest: topic/multi"):
        lint(build.bank, ["topic/mutli"])


def test_an_invalid_question_is_a_finding_and_stops_nothing(build) -> None:
    build.question("choice", change=lambda values: values.update(level=9, hint=[]))
    build.question("multi", change=lambda values: values.update(requires=["topic/none"]))
    path = "questions/topic/choice.yaml"
    assert found(build) == [
        f"{path}:{line_of(build, path, 'level: 9')}: level: must be at most 4, got 9",
        f"{path}:{line_of(build, path, 'hint: []')}: unknown key 'hint' (did you mean 'hints'?)",
        f"questions/topic/multi.yaml:{line_of(build, 'questions/topic/multi.yaml', '- topic/none')}: "
        "requires 'topic/none', which no question has",
    ]


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "questions/notes.txt",
        "questions/topic/notes.md",
        "questions/topic/choice.py",
        "questions/topic/test_choice.py",
        "questions/topic/test_nothing.py",
        "questions/topic/deeper/choice.yaml",
        "questions/conftest.py",
        "reference/topic/choice.py",
        "reference/topic/code.variant/one.py",
        "reference/topic/code.variants/notes.txt",
        "reference/topic/code.mutants.yml",
        "reference/other/code.py",
        "reference/README.md",
    ],
)
def test_a_stray_file_is_found(build, path: str) -> None:
    build.question("choice")
    build.question("code")
    build.write(path, "x = 1\n")
    assert found(build) == [f"{path}: belongs to no question; remove it, or name it after its question"]


def test_an_empty_folder_and_a_link_are_stray_too(build, tmp_path) -> None:
    build.question("choice")
    (build.root / "questions" / "empty").mkdir()
    (build.root / "questions" / "topic" / "link").symlink_to(tmp_path)
    assert [finding.path for finding in lint(build.bank)] == ["questions/empty", "questions/topic/link"]


def test_a_topic_says_what_it_is(build) -> None:
    build.question("choice")
    (build.root / "questions/topic/README.md").unlink()
    assert found(build) == [
        "questions/topic/README.md: missing; say what the topic is, in what order, from which sources"
    ]


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (
            b"# A topic\n\n",
            b"# A topic \n\ttail\t\n",
            [":1: trailing blanks; remove them", ":2: trailing blanks; remove them"],
        ),
        (b"\n", b"\r\n", [":1: the line ends in CR; save the file with LF line ends"]),
        ("一部分。\n".encode(), "一部分。".encode(), [":11: no newline at the end of the file; end the last line"]),
        (None, b"\n", [": empty file; write it or remove it"]),
        (b"# A topic\n\n", b"# A topic\n\xff\n", [":2: not UTF-8 text (byte 0xff)"]),
    ],
)
def test_blanks_that_nobody_sees(build, old: bytes | None, new: bytes, finding: list[str]) -> None:
    build.question("choice")
    readme = build.root / "questions/topic/README.md"
    readme.write_bytes(readme.read_bytes().replace(old, new) if old else new)
    assert found(build) == [f"questions/topic/README.md{each}" for each in finding]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("questions/topic/code.py", "the starter"),
        ("questions/topic/test_code.py", "the checks"),
        ("reference/topic/code.py", "the reference"),
        ("reference/topic/code.mutants.yaml", "the mutants"),
    ],
)
def test_a_code_question_has_its_files(build, path: str, what: str) -> None:
    build.question("code")
    (build.root / path).unlink()
    assert found(build) == [f"{path}: missing: {what} of topic/code; write it"]


def test_a_bank_without_answers_is_not_silently_fine(build) -> None:
    build.question("choice")
    (build.root / "reference").rmdir()
    assert found(build) == ["reference: missing, so that no answer was looked at; lint a bank that has its answers"]


# --- texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("english", "chinese", "finding"),
    [
        ("一 half", "一半", "en: Chinese in the English text: '一'; write it in English"),
        ("One half，", "一半", "en: Chinese in the English text: '，'; write it in English"),
        ("One half", "One half", "zh: no Chinese in the Chinese text; translate it"),
        ("the half", "the half", "zh: no Chinese in the Chinese text; translate it"),
        ("2(n-1)", "2 (n-1)", "zh: no Chinese in the Chinese text; translate it"),
        ("2(n-1)/n", "2(n-1)/n", ""),
        ("all-gather, reduce-scatter", "all-gather, reduce-scatter", ""),
        ("`a of b`", "`a of b`", ""),
        ("It prints `你好`.", "它打印 `你好`。", ""),
    ],
)
def test_each_language_in_its_place(build, english: str, chinese: str, finding: str) -> None:
    build.question("choice", change=lambda values: values["options"][1].update(text={"en": english, "zh": chinese}))
    language, _, rest = finding.partition(": ")
    path = "questions/topic/choice.yaml"
    wanted = [f"{path}:{place(build, path, english, chinese, language)}: {rest}"] if finding else []
    assert found(build) == wanted


def place(build, path: str, english: str, chinese: str, language: str) -> int:
    """The line of the second option's text in that language."""
    lines = (build.root / path).read_text(encoding="utf-8").split("\n")
    starts = [number for number, line in enumerate(lines, 1) if line.strip() == "- text:"]
    return starts[1] + (1 if language == "en" else 2)


def test_texts_of_mutants_are_looked_at(build) -> None:
    build.question("code")
    build.mutants("topic/code", lambda values: values["mutants"][0]["what"].update(zh="Wrong."))
    path = "reference/topic/code.mutants.yaml"
    assert found(build) == [
        f"{path}:{line_of(build, path, '    zh: Wrong.')}: no Chinese in the Chinese text; translate it"
    ]


# --- links --------------------------------------------------------------------------------------------------


def test_requirements_exist_and_are_not_oneself(build) -> None:
    build.question("choice", change=lambda values: values.update(requires=["topic/mutli", "topic/choice"]))
    build.question("multi")
    path = "questions/topic/choice.yaml"
    assert found(build) == [
        f"{path}:{line_of(build, path, '- topic/mutli')}: "
        "requires 'topic/mutli', which no question has (did you mean 'topic/multi'?)",
        f"{path}:{line_of(build, path, '- topic/choice')}: topic/choice requires itself; remove the line",
    ]


def test_requirements_do_not_go_in_a_circle(build) -> None:
    for slug, required in [("one", "two"), ("two", "three"), ("three", "one"), ("four", "one")]:
        build.question(
            "choice",
            f"topic/{slug}",
            lambda values, required=required: values.update(requires=[f"topic/{required}"]),
        )
    path = "questions/topic/one.yaml"
    assert [line for line in found(build) if "circle" in line] == [
        f"{path}:{line_of(build, path, 'requires:')}: requirements go in a circle: "
        "topic/one -> topic/two -> topic/three -> topic/one; drop one of them"
    ]


def test_each_circle_is_named_once() -> None:
    assert circles({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"], "e": ["a", "e"]}) == [
        ["a", "b"],
        ["c", "d"],
    ]
    assert circles({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == []


def test_many_ways_to_one_question_are_walked_once() -> None:
    ladder = {f"{side}{step}": [f"a{step + 1}", f"b{step + 1}"] for step in range(60) for side in "ab"}
    assert circles(ladder) == []


@pytest.mark.parametrize(
    ("sentence", "finding"),
    [
        ("See `topic/nothing`.", "speaks of 'topic/nothing', which no question has"),
        ("See topic/mutli.", "speaks of 'topic/mutli', which no question has (did you mean 'topic/multi'?)"),
        ("See topic/all_others first.", "speaks of 'topic/all_others', which no question has"),
        ("See topic/multi.", ""),
        ("Of topic/time it depends on topic/topic.", ""),
        ("Open questions/topic/mutli.yaml or other/mutli.", ""),
    ],
)
def test_ids_in_texts_exist(build, sentence: str, finding: str) -> None:
    build.question("multi")
    build.question("choice", change=lambda values: values["explanation"].update(en=sentence))
    path = "questions/topic/choice.yaml"
    line = line_of(build, path, f"  en: {sentence}")
    assert found(build) == ([f"{path}:{line}: {finding}"] if finding else [])


# --- options ------------------------------------------------------------------------------------------------


def test_the_right_option_is_not_the_longest(build) -> None:
    long = {"en": "Twice as much, because there are two halves.", "zh": "两倍，因为它由两半组成。"}
    build.question("choice", change=lambda values: values["options"][0].update(text=long))
    build.question("multi", change=lambda values: values["options"][0].update(text=long))
    path = "questions/topic/choice.yaml"
    advice = "shorten it, or say more in a wrong one"
    assert found(build) == [
        f"{path}:{line_of(build, path, '    en: ' + long['en'])}: "
        f"the right option is the longest one in 'en', by 120%; {advice}",
        f"{path}:{line_of(build, path, '    zh: ' + long['zh'])}: "
        f"the right option is the longest one in 'zh', by 140%; {advice}",
    ]


def lengths(*lengths: int):
    """Gives the options texts of these lengths in English; those in Chinese are all equally long."""

    def change(values):
        for number, (option, length) in enumerate(zip(values["options"], lengths, strict=True)):
            option["text"] = {"en": f"`{number}`".ljust(length, "e"), "zh": f"`{number}` 字"}

    return change


@pytest.mark.parametrize(
    ("standing_out", "word", "advice"),
    [
        (lengths(22, 21, 21), "longest", "shorten it, or say more in a wrong one"),
        (lengths(20, 21, 21), "shortest", "lengthen it, or say less in a wrong one"),
    ],
)
@pytest.mark.parametrize("kind", ["choice", "predict", "multi"])
def test_a_habit_of_right_options_that_stand_out_is_found_over_the_bank(
    build, kind, standing_out, word, advice
) -> None:
    """One in three is right by chance: 4 of 5 are more than two deviations above that, 3 of 4 and 4 of 6 are not."""

    def write(slug: str, change) -> None:
        def both(values):
            change(values)
            if kind == "predict":
                values.update(outcome="hangs", expect="waits")

        build.question(kind, f"topic/{slug}", both)

    for slug in "abc":
        write(slug, standing_out)
    write("d", lengths(21, 21, 21))
    assert found(build) == []
    write("e", standing_out)
    assert found(build) == [
        f"questions: a right option is the {word} in 4 of 5 questions (en), by chance 1.7, at most 3: "
        f"topic/a, topic/b, topic/c, topic/e; {advice}"
    ]
    write("f", lengths(21, 22, 20))
    assert found(build) == []


@pytest.mark.parametrize(
    ("language", "option"),
    [
        ("en", "None of the above."),
        ("en", "Neither of the other options"),
        ("en", "All of these"),
        ("zh", "以上都对"),
        ("zh", "上述说法均错"),
        ("zh", "都不对"),
        ("zh", "两者皆是"),
    ],
)
def test_options_do_not_speak_of_their_neighbours(build, language: str, option: str) -> None:
    build.question("choice", change=lambda values: values["options"][2]["text"].update({language: option}))
    wanted = (
        [] if option in ("All of these", "两者皆是") else ["the option speaks of other options, which are shuffled"]
    )
    assert [finding.message for finding in lint(build.bank)] == wanted


def test_options_and_items_differ(build) -> None:
    build.question("multi", change=lambda values: values["options"][2]["text"].update(en="three  times as much."))
    build.question("order", change=lambda values: values["items"][3].update(zh="第一"))
    assert [finding.message for finding in lint(build.bank)] == [
        "options[2] says what options[1] says",
        "items[3] says what items[0] says",
    ]


# --- numbers ------------------------------------------------------------------------------------------------


def set_answer(**changes):
    return lambda values: values["answer"]["arguments"].update(changes)


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (
            lambda values: values["prompt"].update(en="Which fraction idles with {p} stages?"),
            ["the Chinese fills in {m}, {p}, the English {p}", "the prompt does not say {m}"],
        ),
        (
            lambda values: values["prompt"].update(zh="{p} 个 stage、{m} 个、{q + m} 个？"),
            ["the Chinese fills in {m}, {p}, {q}, the English {m}, {p}", "{q} is no parameter"],
        ),
        (
            lambda values: values["hints"][0].update(en="It is {answer}.", zh="是 {answer}。"),
            ["{answer} is given away", "{answer} is given away"],
        ),
        (lambda values: values["explanation"].update(en="It is {answer}.", zh="是 {answer}。"), []),
        (
            lambda values: values["explanation"].update(en="It is {answer}."),
            ["the Chinese fills in nothing, the English {answer}"],
        ),
        (
            lambda values: values["working"].update(zh="{p} {m} 中文"),
            ["the Chinese fills in {m}, {p}, the English {answer}, {m}, {p}", "the working does not end in {answer}"],
        ),
        (set_answer(num_stages="p - p + 1"), ["the answer is 0 with p = 2, m = 8"]),
        (
            lambda values: (
                set_answer(num_stages="p - p + 1")(values),
                values["explanation"].update(en="With one stage nothing idles."),
            ),
            [],
        ),
        (
            lambda values: (
                values["prompt"].update(en="How much of {p} and {m}?"),
                values["convention"].update(en="Idle by makespan."),
            ),
            ["neither prompt nor convention names the unit 'fraction'"],
        ),
        (
            lambda values: values.update(unit="count"),
            [
                "neither prompt nor convention names the unit 'count'",
                "pipeline.bubble_fraction gives fraction, and the unit is 'count'",
            ],
        ),
        (set_answer(num_microbatches="8"), ["the answer does not depend on 'm'"]),
        (
            set_answer(num_stages="p - 2"),
            ["no answer with p = 2, m = 8: num_stages must be a whole number of at least 1, got 0"],
        ),
        (
            set_answer(num_stages="p // 2"),
            [
                "the answer does not depend on 'p'",
                "no answer with p = 2, m = 8: 'p // 2' is not arithmetic: numbers, names, brackets and + - * / ** only",
                "'p // 2' is not arithmetic: numbers, names, brackets and + - * / ** only",
            ],
        ),
        (
            set_answer(schedule="'interleaved'"),
            [
                "no answer with p = 2, m = 9: "
                "the interleaved schedule needs microbatches in multiples of the ranks, got 9 on 2"
            ],
        ),
    ],
)
def test_a_number_question_can_be_drawn_whatever_the_seed(build, change, messages: list[str]) -> None:
    build.question("number", change=change)
    assert sorted(finding.message for finding in lint(build.bank)) == sorted(messages)


def test_corners_of_a_large_domain_are_computed(build) -> None:
    """One of a million combinations has no answer: the one where every parameter is largest."""

    def change(values):
        values["parameters"] = {"p": {"min": 1, "max": 1000}, "m": {"min": 1, "max": 1000}}
        values["answer"]["arguments"] = {"num_stages": "p", "num_microbatches": "2000 - p - m"}
        values["explanation"]["en"] = "With one stage nothing idles."

    build.question("number", change=change)
    assert [finding.message for finding in lint(build.bank)] == [
        "no answer with p = 1000, m = 1000: num_microbatches must be a whole number of at least 1, got 0"
    ]


def test_only_texts_of_numbers_are_filled_in(build) -> None:
    build.question("choice", change=lambda values: values["explanation"].update(en="With {n} ranks.", zh="`{n}` 个"))
    assert [finding.message for finding in lint(build.bank)] == ["{n} is shown as it stands, since nothing fills it in"]


# --- programs, sources, what is covered ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import numpy\nprint(0)\n", "line 1 of the program imports 'numpy'"),
        ("import math\nfrom torch import nn\nprint(0)\n", ""),
        ("print(0)\n" + "#" * 77 + "\n", "line 2 of the program has 77 characters, 76 at most"),
        ("print(0)\n" + "#" * 76 + "\n", ""),
    ],
)
@pytest.mark.parametrize("where", ["predict", "proof"])
def test_programs_need_what_there_is_and_fit_the_screen(build, where: str, program: str, message: str) -> None:
    if where == "predict":
        build.question("predict", change=lambda values: values.update(program=program))
    else:
        proof = {"world_size": 2, "program": program, "outcome": "prints", "expect": "0"}
        build.question("choice", change=lambda values: values.update(proof=proof))
    assert [finding.message for finding in lint(build.bank)] == ([message] if message else [])


@pytest.mark.parametrize(
    ("text", "as_of", "date", "message"),
    [
        ("Since PyTorch 2.4 it is so.", None, None, "speaks of PyTorch 2.4, and the question has no 'as_of'"),
        ("Since PyTorch 2.4 it is so.", "2026-11", "2026-11", ""),
        ("It is so.", "2026-11", None, "as_of says 2026-11, and no source has a date"),
        ("It is so with 2.4 times as much.", None, None, ""),
    ],
)
def test_what_ages_has_a_date(build, text: str, as_of: str | None, date: str | None, message: str) -> None:
    def change(values):
        values["explanation"]["en"] = text
        values.update({"as_of": as_of} if as_of else {})
        values["sources"][0].update({"date": date} if date else {})

    build.question("choice", change=change)
    assert [finding.message for finding in lint(build.bank)] == ([message] if message else [])


ASKED = "F:\n  - how replicas stay identical\n  - what a bucket is\nC:\n  - FSDP is ZeRO-3\n"


def test_what_is_covered_is_on_the_list(build) -> None:
    build.question("choice", change=lambda values: values.update(covers=["F2", "C2"]))
    assert found(build) == []  # a package has no list
    build.write("docs/asked.yaml", ASKED)
    path = "questions/topic/choice.yaml"
    assert found(build) == [
        f"{path}:{line_of(build, path, '- C2')}: covers C2, which docs/asked.yaml does not list; "
        "look the number up there"
    ]


def test_the_table_of_what_is_covered(build) -> None:
    build.write("docs/asked.yaml", ASKED)
    build.question("choice", change=lambda values: values.update(covers=["F2", "C1"]))
    build.question("number", change=lambda values: values.update(covers=["F2"], level=4))
    build.question("open", "other/open")
    lines = coverage(build.bank).split("\n")
    assert "3 questions. Levels: 1 junior, 2 middle, 3 senior, 4 staff." in lines
    assert [line for line in lines if line.startswith("|") and "---" not in line] == [
        "| topic | code | choice | multi | number | order | predict | open "
        "| level 1 | level 2 | level 3 | level 4 | all |",
        "| other |  |  |  |  |  |  | 1 |  | 1 |  |  | 1 |",
        "| topic |  | 1 |  | 1 |  |  |  |  | 1 |  | 1 | 2 |",
        "| all |  | 1 |  | 1 |  |  | 1 |  | 2 |  | 1 | 3 |",
        "|  | what | questions |",
        "| F1 | how replicas stay identical | - |",
        "| F2 | what a bucket is | topic/choice, topic/number |",
        "|  | what | questions |",
        "| C1 | FSDP is ZeRO-3 | topic/choice |",
    ]
    assert [line.rpartition("Covered: ")[2] for line in lines if "Covered" in line] == ["1 of 2.", "1 of 1."]


def test_a_wrong_list_of_what_is_asked_is_said(build) -> None:
    build.question("choice", change=lambda values: values.update(covers=["F2"]))
    with pytest.raises(KitError, match=r"^no docs/asked.yaml"):
        coverage(build.bank)
    build.write("docs/asked.yaml", "F:\n  - 1\n")
    with pytest.raises(KitError, match=r"docs/asked.yaml:1: .*expected F and C, each a list of texts"):
        coverage(build.bank)
