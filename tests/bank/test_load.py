"""Valid questions load; every kind of mistake is said with its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kit.bank.layout import find_bank
from kit.bank.load import headers, load_header, load_question, load_questions, question_problems
from kit.errors import KitError

KINDS = ["choice", "multi", "order", "number", "code", "predict", "open"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_loads(build, kind: str) -> None:
    question = load_question(build.bank, build.question(kind))
    assert (question.id, question.topic, question.kind, question.level) == (f"topic/{kind}", "topic", kind, 2)
    assert question.title.get("en") == "A title"
    assert question.title.get("zh") == "标题"
    assert len(question.hints) == 2


def test_a_loaded_question_cannot_be_changed(build) -> None:
    question = load_question(build.bank, build.question("choice"))
    with pytest.raises(ValueError, match="frozen"):
        question.level = 3


def test_every_question_of_the_repository_is_valid() -> None:
    bank = find_bank()
    assert [question.id for question in load_questions(bank)] == bank.ids()


def said(build, path: str, line: str, what: str) -> str:
    """The whole message, its number counted in the file: `line` is the text of the line that is meant."""
    lines = (build.root / path).read_text(encoding="utf-8").split("\n")
    assert lines.count(line) == 1, f"{line!r} is not one line of the file"
    return f"{path}:{lines.index(line) + 1}: {what}"


# --- headers ------------------------------------------------------------------------------------------------


def test_headers_agree_with_the_whole_questions(build) -> None:
    for kind in KINDS:
        build.question(kind, change=lambda values: values.update(tags=["a", "b"]))
    for header, question in zip(headers(build.bank), load_questions(build.bank), strict=True):
        assert (header.id, header.topic) == (question.id, question.topic)
        assert (header.kind, header.level, header.tags) == (question.kind, question.level, question.tags)
        assert header.title == {"en": question.title.en, "zh": question.title.zh}


def test_a_header_is_read_wherever_its_keys_stand(build) -> None:
    build.question("choice")
    path = build.bank.question("topic/choice")
    before = path.read_text(encoding="utf-8")
    path.write_text("# a comment\n" + before.replace("kind: choice\n", "") + "kind: choice\n", encoding="utf-8")
    assert load_header(build.bank, "topic/choice").kind == "choice"


def test_a_header_that_gives_a_key_twice_is_refused(build) -> None:
    build.question("choice")
    with build.bank.question("topic/choice").open("a", encoding="utf-8") as file:
        file.write("level: 3\n")
    with pytest.raises(KitError, match="duplicate key 'level'"):
        load_header(build.bank, "topic/choice")


def test_headers_do_not_depend_on_the_rest_of_the_file(build) -> None:
    build.question("choice")
    with build.bank.question("topic/choice").open("a", encoding="utf-8") as file:
        file.write("nonsense: true\n")
    assert load_header(build.bank, "topic/choice").level == 2
    with pytest.raises(KitError, match="unknown key 'nonsense'"):
        load_question(build.bank, "topic/choice")


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("kind: choice", "kind: chioce", "kind: chioce", "unknown kind 'chioce' (did you mean 'choice'?)"),
        (
            "kind: choice",
            "kind: 7",
            "kind: 7",
            "unknown kind 7 (known: code, choice, multi, number, order, predict, open)",
        ),
        ("kind: choice\n", "", "level: 2", "missing key 'kind'"),
        ("level: 2", "level: 5", "level: 5", "level: expected a whole number from 1 to 4, got the number 5"),
        ("level: 2", "level: yes", "level: yes", "level: expected a whole number from 1 to 4, got true"),
        ("level: 2\n", "", "kind: choice", "missing key 'level'"),
        (
            "title:\n  en: A title\n  zh: 标题\n",
            "title: A title\n",
            "title: A title",
            "title: expected texts 'en' and 'zh', got the text 'A title'",
        ),
        ("title:\n", "tags: one\ntitle:\n", "tags: one", "tags: expected a list of texts, got the text 'one'"),
        ("  zh: 标题\n", "  zh: 标题\n\tx\n", "\tx", "malformed YAML: found a tab character that violates indentation"),
    ],
)
def test_a_wrong_header_is_said_with_its_line(build, old: str, new: str, line: str, what: str) -> None:
    build.question("choice")
    build.edit("questions/topic/choice.yaml", old, new)
    with pytest.raises(KitError) as refused:
        headers(build.bank)
    assert refused.value.message == said(build, "questions/topic/choice.yaml", line, what)


def test_listing_imports_neither_pydantic_nor_torch() -> None:
    program = (
        "import sys\n"
        "from kit.bank.layout import find_bank\n"
        "from kit.bank.load import headers\n"
        "assert headers(find_bank())\n"
        "print(sorted({'pydantic', 'torch', 'kit.costmodel', 'difflib'} & set(sys.modules)))\n"
    )
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, cwd=root
    )
    assert ended.stdout == "[]\n"


# --- mistakes -----------------------------------------------------------------------------------------------


def message_of(build, question_id: str) -> str:
    with pytest.raises(KitError) as refused:
        load_question(build.bank, question_id)
    return refused.value.message


@pytest.mark.parametrize(
    ("kind", "old", "new", "line", "what"),
    [
        ("choice", "\nhints:\n", "\nhint:\n", "hint:", "unknown key 'hint' (did you mean 'hints'?)"),
        (
            "choice",
            "  where: section 2\n",
            "  where: section 2\n  pages: 4\n",
            "  pages: 4",
            "unknown key 'pages' (known here: title, where, url, date)",
        ),
        ("choice", "level: 2\n", "level: 2\nid: dp/x\n", "id: dp/x", "unknown key 'id' (a question's id is its path)"),
        ("choice", "level: 2\n", "level: 2\nlevel: 3\n", "level: 3", "duplicate key 'level', first on line 2"),
        ("choice", "explanation:\n  en: It is so.\n  zh: 中文\n", "", "kind: choice", "missing key 'explanation'"),
        ("choice", "  zh: 标题\n", "", "title:", "missing key 'zh' in title"),
        ("choice", "level: 2", "level: two", "level: two", "level: expected a whole number, got the text 'two'"),
        ("choice", "level: 2", "level: 0", "level: 0", "level: must be at least 1, got 0"),
        (
            "code",
            "kind: code\n",
            "kind: code\nforbidden: [torch.distributed.all_reduce, numpy.sum]\n",
            "forbidden: [torch.distributed.all_reduce, numpy.sum]",
            "forbidden[1]: expected a name of torch, as torch.distributed.all_reduce, got 'numpy.sum'",
        ),
        (
            "code",
            "kind: code\n",
            "kind: code\nforbidden: [torch.distributed.nn, torch.distributed.nn]\n",
            "forbidden: [torch.distributed.nn, torch.distributed.nn]",
            "forbidden: 'torch.distributed.nn' is there twice",
        ),
        ("choice", "level: 2", "level: 5", "level: 5", "level: must be at most 4, got 5"),
        (
            "choice",
            "  en: A title",
            "  en: yes",
            "  en: yes",
            "title.en: expected a text, got true (YAML reads yes, no, on and off as true or false: quote the text)",
        ),
        (
            "choice",
            "  en: A title",
            "  en: 8",
            "  en: 8",
            "title.en: expected a text, got the number 8 (quote the text)",
        ),
        ("choice", "  en: A title", "  en:", "  en:", "title.en: expected a text, got nothing"),
        ("choice", "  en: A title", "  en: ' '", "  en: ' '", "title.en: must not be empty, got ' '"),
        (
            "choice",
            "  en: A title",
            "  en: This: that",
            "  en: This: that",
            "malformed YAML: mapping values are not allowed in this context (quote a text that contains ': ')",
        ),
        (
            "choice",
            "- en: Look.\n  zh: 中文\n",
            "",
            "hints:",
            "hints: expected at least 2 entries, got 1",
        ),
        (
            "choice",
            "- en: Look.\n  zh: 中文\n",
            "- Look.\n",
            "- Look.",
            "hints[0]: expected a mapping of keys, got the text 'Look.'",
        ),
        (
            "choice",
            "  where: section 2\n",
            "  where: section 2\n  url: arxiv.org\n",
            "  url: arxiv.org",
            "sources[0].url: expected an address that begins with https://, got 'arxiv.org'",
        ),
        (
            "choice",
            "  where: section 2\n",
            "  where: section 2\n  date: 2020-13\n",
            "  date: 2020-13",
            "sources[0].date: expected a month as 2026-12, got '2020-13'",
        ),
        (
            "choice",
            "  where: section 2\n",
            "  where: section 2\n  date: 2020-12-01\n",
            "  date: 2020-12-01",
            "sources[0].date: expected a text, got a date (quote the text)",
        ),
        (
            "choice",
            "  correct: true\n",
            "",
            "options:",
            "options: 0 options have 'correct: true', and this kind takes exactly 1",
        ),
        (
            "multi",
            "  correct: true\n",
            "",
            "options:",
            "options: 0 of 3 options are correct, and kind 'multi' takes at least 1 correct and 1 wrong",
        ),
        (
            "choice",
            "  correct: true\n",
            "  correct: 1\n",
            "  correct: 1",
            "options[0].correct: expected true or false, got the number 1",
        ),
        (
            "number",
            "unit: fraction",
            "unit: fractoin",
            "unit: fractoin",
            "unit: unknown unit 'fractoin' (did you mean 'fraction'?)",
        ),
        (
            "number",
            "unit: fraction\n",
            "unit: fraction\ntolerance: 1e-3\n",
            "tolerance: 1e-3",
            "tolerance: expected a number, got the text '1e-3' (write 0.001 or 1.0e-3: YAML takes 1e-3 for a text)",
        ),
        (
            "number",
            "unit: fraction\n",
            "unit: fraction\ntolerance: 2\n",
            "tolerance: 2",
            "tolerance: must be less than 1, got 2",
        ),
        (
            "number",
            "unit: fraction\n",
            "unit: fraction\ntolerance: .inf\n",
            "tolerance: .inf",
            "tolerance: expected a finite number, got the number inf",
        ),
        ("number", "    min: 8\n", "", "  m:", "parameters.m: expected either 'choices' or both 'min' and 'max'"),
        ("number", "    min: 8\n", "    min: 10\n", "  m:", "parameters.m: min 10 is above max 9"),
        (
            "number",
            "  m:\n",
            "  answer:\n",
            "parameters:",
            "parameters: 'answer' cannot name a parameter; take a word other than 'answer'",
        ),
        (
            "number",
            "  function: pipeline.bubble_fraction",
            "  function: os.path.join",
            "  function: os.path.join",
            "answer.function: expected a function of the cost model, as pipeline.bubble_fraction, got 'os.path.join'",
        ),
        (
            "number",
            "    num_stages: p",
            "    num_stages: [p]",
            "    num_stages: [p]",
            "answer.arguments.num_stages: expected a number or a text, got a list",
        ),
        ("code", "  values: 4\n", "  valuse: 4\n", "  valuse: 4", "unknown key 'valuse' (did you mean 'values'?)"),
        (
            "code",
            "  values: 4\n",
            "  time: 4\n",
            "points:",
            "points: no points for 'values', without which a score is 0",
        ),
        ("code", "  values: 4\n", "  values: 0\n", "  values: 0", "points.values: must be at least 1, got 0"),
    ],
)
def test_a_mistake_is_said_with_its_line(build, kind: str, old: str, new: str, line: str, what: str) -> None:
    build.question(kind)
    build.edit(f"questions/topic/{kind}.yaml", old, new)
    assert message_of(build, f"topic/{kind}") == said(build, f"questions/topic/{kind}.yaml", line, what)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "1: empty file; expected a mapping of keys"),
        (b"- 1\n", "1: expected a mapping of keys, got a list"),
        (b"kind: choice\nlevel: 2\ntitle: \xff\n", "3: not UTF-8 text (byte 0xff)"),
        (b"kind: choice\n\n[1]: 2\n", "3: a key must be a word, not a list or mapping"),
        (b"kind: choice\ntitle: a\x07b\n", "2: malformed YAML: control characters are not allowed"),
        (b"[" * 5000, "1: malformed YAML: exceeded maximum nesting depth"),
        (b"kind: choice\nlevel: !!python/name:os.system\n", "2: malformed YAML: could not determine a constructor"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(build, content: bytes, message: str) -> None:
    build.write("questions/topic/broken.yaml", content)
    assert message_of(build, "topic/broken").startswith(f"questions/topic/broken.yaml:{message}")


def test_a_file_that_cannot_be_read_is_refused(build, monkeypatch: pytest.MonkeyPatch) -> None:
    build.question("choice")

    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert message_of(build, "topic/choice") == "questions/topic/choice.yaml: cannot be read: Permission denied"


def test_all_mistakes_of_a_file_are_known_and_the_first_is_said(build) -> None:
    def spoil(values):
        values["level"] = 9
        values["sources"] = []
        values["colour"] = "red"

    build.question("choice", change=spoil)
    problems = question_problems(build.bank, "topic/choice")
    assert [problem.what for problem in problems] == [
        "level: must be at most 4, got 9",
        "sources: expected at least 1 entries, got 0",
        "unknown key 'colour' (known here: level, title, prompt, tags, requires, hints, explanation, "
        "follow_ups, sources, as_of, covers, proof, kind, options)",
    ]
    assert [problem.line for problem in problems] == sorted(problem.line for problem in problems)
    assert message_of(build, "topic/choice") == problems[0].message
    assert question_problems(build.bank, build.question("multi")) == []
