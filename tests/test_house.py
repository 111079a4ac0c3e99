"""The house rules, held by reading the tree: who imports whom, what stays out, what the README promises."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.bank.coverage import COMMAND, coverage, read_asked
from kit.bank.layout import Bank
from kit.bank.load import load_questions

ROOT = Path(__file__).resolve().parent.parent
KIT = ROOT / "kit"

ARROWS = {
    "__init__": set(),
    "__main__": {"cli"},
    "errors": set(),
    "hardware": {"errors"},
    "costmodel": {"hardware", "errors"},
    "bank": {"costmodel", "hardware", "errors"},
    "practice": {"bank", "costmodel", "hardware", "errors"},
    "progress": {"bank", "errors"},
    "interview": {"progress", "practice", "bank", "costmodel", "hardware", "errors"},
    "screen": {"interview", "progress", "practice", "bank", "costmodel", "hardware", "errors"},
    "world": {"hardware", "errors"},
    "grading": {"world", "bank", "costmodel", "hardware", "errors"},
    "cli": {
        *(
            "screen",
            "interview",
            "progress",
            "practice",
            "grading",
            "world",
            "bank",
            "costmodel",
            "hardware",
            "errors",
            "__init__",
        ),
    },
}

ONLY_IN = {
    "torch": {"world", "grading"},
    "rich": {"screen"},
    "typer": {"cli"},
    "sqlite3": {"progress"},
    "fsrs": {"progress"},
}

MAX_LINES = 400

# Topics that are also plain words of the kit: `memory` is one of the five proofs, `debugging` a part of an interview.
WORDS_AS_WELL_AS_TOPICS = {"memory", "precision", "collectives", "zero", "mesh", "debugging"}

SKIPPED_FOLDERS = {"build", "dist", "__pycache__"}  # and what begins with a dot, but .ci


def kit_files() -> list[Path]:
    return sorted(path for path in KIT.rglob("*.py") if "_bank" not in path.relative_to(KIT).parts)


def part_of(path: Path) -> str:
    """`kit/world/wire.py` -> `world`; `kit/cli.py` -> `cli`."""
    return path.relative_to(KIT).parts[0].removesuffix(".py")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below `node` but those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            yield from (below for line in child.orelse for below in ast.walk(line))
        else:
            yield child
            yield from runtime_nodes(child)


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything that this file imports when it runs, relative imports resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, module
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def text_files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        is_skipped = any(
            part in SKIPPED_FOLDERS or part.endswith(".egg-info") or (part[0] == "." and part != ".ci")
            for part in parts
        )
        if path.is_file() and not is_skipped and path.suffix in {".py", ".md", ".yaml", ".toml", ".txt", ""}:
            yield path


def test_kit_imports_go_one_way() -> None:
    wrong = []
    for path in kit_files():
        part = part_of(path)
        for line, module in imported_modules(path):
            parts = module.split(".")
            if parts[0] != "kit" or len(parts) == 1 or parts[1] == part:
                continue
            if parts[1] not in ARROWS:  # `from kit import __version__`
                continue
            if parts[1] not in ARROWS[part]:
                wrong.append(f"{relative(path)}:{line}: {part} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_every_part_of_the_kit_has_its_place() -> None:
    assert {part_of(path) for path in kit_files()} <= set(ARROWS)


def test_torch_rich_and_typer_stay_where_they_belong() -> None:
    wrong = [
        f"{relative(path)}:{line}: {module} belongs to {', '.join(sorted(ONLY_IN[module.split('.')[0]]))}"
        for path in kit_files()
        for line, module in imported_modules(path)
        if part_of(path) not in ONLY_IN.get(module.split(".")[0], {part_of(path)})
    ]
    assert not wrong, "\n".join(wrong)


def test_answers_import_only_torch_and_the_standard_library() -> None:
    allowed = {*sys.stdlib_module_names, "torch"}
    answers = [
        *(ROOT / "reference").rglob("*.py"),
        *(path for path in (ROOT / "questions").rglob("*.py") if not path.name.startswith("test_")),
        *(ROOT / "examples").rglob("*.py"),
    ]
    assert answers
    wrong = [
        f"{relative(path)}:{line}: {module}"
        for path in answers
        if "world" not in path.relative_to(ROOT).parts
        for line, module in imported_modules(path)
        if module.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_checks_import_only_torch_the_standard_library_and_the_vocabulary() -> None:
    """Ranks import these files, and a rank has no pytest."""
    allowed = {*sys.stdlib_module_names, "torch", "kit"}
    wrong = [
        f"{relative(path)}:{line}: {module}"
        for path in (ROOT / "questions").rglob("test_*.py")
        for line, module in imported_modules(path)
        if module.split(".")[0] not in allowed or (module.startswith("kit") and not module.startswith("kit.grading"))
    ]
    assert not wrong, "\n".join(wrong)


def test_kit_files_are_short() -> None:
    long = {
        relative(path): count
        for path in kit_files()
        if (count := len(path.read_text("utf-8").splitlines())) >= MAX_LINES
    }
    assert not long, f"split by purpose: {long}"


def test_kit_knows_no_topic() -> None:
    topics = {path.name for path in (ROOT / "questions").iterdir() if path.is_dir()} - WORDS_AS_WELL_AS_TOPICS
    ids = {
        path.relative_to(ROOT / "questions").with_suffix("").as_posix() for path in (ROOT / "questions").rglob("*.yaml")
    }
    wrong = []
    for path in kit_files():
        if part_of(path) == "costmodel":  # degrees of parallelism are its parameters
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        prose = {id(text) for node in ast.walk(tree) for text in [docstring_node(node)] if text is not None}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in prose:
                continue
            if node.value in topics or node.value in ids:
                wrong.append(f"{relative(path)}:{node.lineno}: {node.value!r}")
    assert not wrong, "\n".join(wrong)


def docstring_node(node: ast.AST) -> ast.Constant | None:
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return body[0].value
    return None


def test_no_file_carries_a_path_of_somebody_s_machine_or_a_registry() -> None:
    # Put together here so that this file does not find itself.
    slash = "/"
    banned = [
        *(slash + folder + slash for folder in ("work", "root", "home", "Users", "opt")),
        *(".".join(host) for host in (("pypi", "org"), ("pythonhosted", "org"), ("download.pytorch", "org"))),
    ]
    pattern = re.compile("|".join(rf"(?<![\w.$}}-]){re.escape(text)}" for text in banned))
    wrong = [
        f"{relative(path)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "arguments",
    [[], ["list"], ["show", "dp/bucketed"], ["--help"], ["calc", "memory", "--model", "gpt2", "--seq", "8"]],
    ids=lambda arguments: " ".join(arguments) or "import",
)
def test_torch_is_not_imported_before_it_is_needed(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from kit.cli import run\n"
        "if sys.argv[1:]:\n"
        "    assert run(sys.argv[1:]) == 0\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def fenced_blocks(path: Path) -> list[str]:
    return re.findall(r"^```[^\n]*\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def first_command_under(path: Path, heading: str) -> str:
    section = path.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```[^\n]*\n(.*?)\n", section, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(("english", "chinese"), [("Run it", "跑起来"), ("Test it", "跑测试")])
def test_both_readmes_say_the_same_command(english: str, chinese: str) -> None:
    assert first_command_under(ROOT / "README.md", english) == first_command_under(ROOT / "README.zh.md", chinese)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md", "CONTRIBUTING.md"])
def test_commands_and_files_of_the_documents_exist(name: str) -> None:
    known = subprocess.run(
        [sys.executable, "-c", "from kit.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    text = (ROOT / name).read_text(encoding="utf-8")
    commands = set(
        re.findall(
            r"^(?:\$ )?(?:\S*/)?shardkit ([a-z][a-z-]*)",
            "\n".join(fenced_blocks(ROOT / name)),
            flags=re.MULTILINE,
        )
    )
    commands |= set(re.findall(r"(?:&& |`)(?:\S*/)?shardkit ([a-z][a-z-]*)", text))
    missing = {command for command in commands if not re.search(rf"\b{command}\b", known)}
    assert not missing, f"{name} shows commands that do not exist: {missing}"
    linked = set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)) | set(re.findall(r"\bexamples/[\w./-]+\.py", text))
    lost = {link for link in linked if not (ROOT / link).exists()}
    assert not lost, f"{name} names files that do not exist: {lost}"


def test_readme_names_every_topic() -> None:
    """In both languages, in the same order; a topic without a question is not named."""
    there = {path.parent.name for path in (ROOT / "questions").glob("*/*.yaml")}
    named = []
    for name in ("README.md", "README.zh.md"):
        table = (ROOT / name).read_text("utf-8").partition("\n|---|---|\n")[2].partition("\n\n")[0]
        named.append(re.findall(r"^\| ([a-z]+) \|", table, flags=re.MULTILINE))
        assert sorted(named[-1]) == sorted(there), name
    assert named[0] == named[1]


def test_the_table_of_coverage_is_current() -> None:
    assert (ROOT / "docs/coverage.md").read_text("utf-8") == coverage(Bank(ROOT)), f"run `{COMMAND}`"


def test_the_bank_is_whole() -> None:
    """What the project promises of its questions: enough of each kind, all levels, all that the field asks."""
    questions = list(load_questions(Bank(ROOT)))
    kinds = Counter(question.kind for question in questions)
    assert kinds.total() - kinds["code"] >= 150
    assert kinds["number"] >= 40 and kinds["predict"] >= 30 and kinds["open"] >= 25, kinds
    assert {question.level for question in questions} == {1, 2, 3, 4}
    missing = set(read_asked(Bank(ROOT))) - {number for question in questions for number in question.covers}
    assert not missing, sorted(missing)
