"""The commands and their options. Each hands over to its own module, which is imported when it is called."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Annotated, Any

import typer

from kit.cli import app_guess, app_interview
from kit.cli.options import BankOption, IdArgument, KindOption, LanguageOption, LevelOption, TopicOption, seed_option
from kit.errors import KitError

app = typer.Typer(
    name="shardkit",
    help="Questions about distributed training, and a grader that runs your answer on several ranks.",
    epilog="Begin with: shardkit list, shardkit quiz, shardkit start ID, shardkit grade FILE.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def invoke(arguments: list[str]) -> int:
    """Runs one command and returns its exit code. Raises KitError for arguments that make no sense."""
    command: Any = typer.main.get_command(with_only(arguments[0]) if arguments else app)
    # What a usage error is called differs between releases of typer; they share the base of BadParameter.
    usage_error: Any = typer.BadParameter.__mro__[2]
    try:
        # Not command.main(), which would answer a broken pipe and Ctrl-C in its own way.
        with command.make_context("shardkit", arguments or ["--help"]) as context:
            command.invoke(context)
    except usage_error as error:
        place = getattr(error, "ctx", None)
        path = place.command_path if place is not None else "shardkit"
        raise KitError(error.format_message().rstrip("."), hint=f"{path} --help") from None
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def with_only(name: str) -> typer.Typer:
    """The app with this command alone, where there is one of that name: building all of them takes a while."""
    commands = app.registered_commands
    called = [command for command in commands if name == (command.name or getattr(command.callback, "__name__", None))]
    if not called:
        return app
    one = copy.copy(app)
    one.registered_commands = called
    return one


def version(is_asked: bool) -> None:
    if is_asked:
        from kit import __version__

        typer.echo(f"shardkit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version and exit", callback=version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command("list")
def list_(
    topic: TopicOption = None,
    kind: KindOption = None,
    level: LevelOption = None,
    lang: LanguageOption = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object, with titles in both languages")] = False,
    bank: BankOption = None,
) -> None:
    """List the questions: id, kind, level and title."""
    from kit.cli import browse

    browse.list_questions(bank, topic or [], kind or [], level or [], lang, as_json=json)


@app.command()
def show(
    id: IdArgument,
    lang: LanguageOption = None,
    hints: Annotated[int, typer.Option("--hints", metavar="N", help="Also the first N hints", min=0)] = 0,
    all: Annotated[bool, typer.Option("--all", help="Also every hint")] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Also the answer, the explanation and the sources")] = False,
    seed: Annotated[int, seed_option("Which numbers and order of options")] = 0,
    bank: BankOption = None,
) -> None:
    """Show one question; the answer only when asked for."""
    from kit.cli import browse

    browse.show_question(bank, id, lang, num_hints=None if all else hints, with_answer=answer, seed=seed)


@app.command()
def start(
    id: IdArgument,
    dir: Annotated[Path, typer.Option("--dir", "-d", metavar="DIR", help="Where to write the file")] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there; it is kept as .bak")] = False,
    bank: BankOption = None,
) -> None:
    """Write the starter of a code question, to be edited and graded."""
    from kit.cli import start as command

    command.write_starter(bank, id, dir, force=force)


@app.command()
def quiz(
    topic: TopicOption = None,
    kind: KindOption = None,
    level: LevelOption = None,
    count: Annotated[
        int | None,
        typer.Option("--count", "-n", metavar="N", help="How many [default: 10, or all of --due and --new]", min=1),
    ] = None,
    due: Annotated[bool, typer.Option("--due", help="What is to be repeated today")] = False,
    new: Annotated[
        int | None,
        typer.Option("--new", metavar="N", help="N that you never answered, in an order to study them", min=1),
    ] = None,
    bookmarked: Annotated[bool, typer.Option("--bookmarked", help="Only what you have bookmarked")] = False,
    cram: Annotated[bool, typer.Option("--cram", help="Whatever is due, and without moving any date")] = False,
    confidence: Annotated[bool, typer.Option("--confidence", help="Say how sure you are before each verdict")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep nothing of this quiz")] = False,
    lang: LanguageOption = None,
    seed: Annotated[int | None, seed_option("Repeat a quiz that named this seed")] = None,
    bank: BankOption = None,
) -> None:
    """Answer questions, with hints and explanations.

    Every kind but code, for which there are start and grade. An answer in words is marked by whoever wrote it.
    Every answer is kept at once, and decides when its question is due again.
    """
    from kit.cli import quiz as command

    options = command.QuizOptions(
        topic or [],
        kind or [],
        level or [],
        count,
        lang,
        seed,
        due,
        new or 0,
        bookmarked,
        cram,
        confidence,
        not no_save,
    )
    command.run_quiz(bank, options)


@app.command()
def grade(
    words: Annotated[
        list[str], typer.Argument(metavar="[ID] FILE", help="ID may be left out where the file's first line names it")
    ],
    reference: Annotated[bool, typer.Option("--reference", help="Grade the bank's own answer to ID")] = False,
    seed: Annotated[int | None, seed_option("The same inputs as a grade before")] = None,
    transport: Annotated[
        str, typer.Option("--transport", metavar="both|switchboard|gloo", help="Where the ranks run")
    ] = "both",
    json: Annotated[
        Path | None, typer.Option("--json", metavar="F|-", help="The result as JSON, in a file or on standard output")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="F", help="The result as JUnit XML")] = None,
    feedback: Annotated[str, typer.Option("--feedback", metavar="verdict|hint|full", help="How much is told")] = "full",
    hint: Annotated[int | None, typer.Option("--hint", metavar="N", help="Show the N-th hint and run nothing")] = None,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", metavar="F", help="The most telling launch in virtual time: F.json, F.svg or F.txt"),
    ] = None,
    bank: BankOption = None,
) -> None:
    """Run a file on several ranks and say what is wrong.

    Says what is right, what is wrong and why; --feedback tells less, --hint N shows a hint.
    """
    from kit.cli import grade as command

    options = command.GradeOptions(bank, seed, transport, json, junit, feedback, hint, timeline)
    raise typer.Exit(command.grade_file(words, options, with_reference=reference))


@app.command()
def watch(
    words: Annotated[
        list[str], typer.Argument(metavar="[ID] FILE", help="ID may be left out where the file's first line names it")
    ],
    transport: Annotated[
        str, typer.Option("--transport", metavar="both|switchboard|gloo", help="Where the ranks run")
    ] = "both",
    lang: Annotated[str | None, typer.Option("--lang", metavar="en|zh", help="Language of the hints")] = None,
    bank: BankOption = None,
) -> None:
    """Grade a file at every save; keys show hints and the full report.

    What failed last is run first. The inputs stay the same until the file passes.
    """
    from kit.cli import watch as command

    raise typer.Exit(command.watch(words, bank, transport, lang))


app.command()(app_guess.hunt)
app.command()(app_guess.predict)
app.command()(app_interview.interview)


@app.command()
def timeline(
    words: Annotated[
        list[str], typer.Argument(metavar="[ID] FILE", help="ID may be left out where the file's first line names it")
    ],
    reference: Annotated[bool, typer.Option("--reference", help="Draw the bank's own answer to ID")] = False,
    world_size: Annotated[
        int | None, typer.Option("--world-size", metavar="N", help="Ranks [default: the most that are checked]", min=1)
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME|PATH", help="Hardware to price the run with [default: the question's]"),
    ] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Of the question's checks, or a part of its name")
    ] = None,
    mark: Annotated[
        str | None, typer.Option("--mark", metavar="NAME", help="Only from this mark on, to 'NAME done' or the end")
    ] = None,
    seed: Annotated[int | None, seed_option("The same inputs as a run before")] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="F|-", help="The numbers, in a file or on standard output")
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="F", help="Also as a picture")] = None,
    chrome: Annotated[
        Path | None, typer.Option("--chrome", metavar="F", help="Also as a trace for ui.perfetto.dev")
    ] = None,
    lang: LanguageOption = None,
    bank: BankOption = None,
) -> None:
    """Run a file once and draw when each rank did what, in virtual time.

    Shows compute, waits and communication of every rank, the bubble, and what of the communication is exposed.
    """
    from kit.cli import timeline as command

    options = command.TimelineOptions(bank, world_size, profile, scenario, mark, seed, json, svg, chrome, lang)
    raise typer.Exit(command.draw(words, options, with_reference=reference))


@app.command()
def progress(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The history of one question")] = None,
    topic: TopicOption = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="F|-", help="The same as JSON, in a file or on standard output")
    ] = None,
    lang: LanguageOption = None,
    bank: BankOption = None,
) -> None:
    """Show what you have answered, what is due, and how well you know each topic.

    Also how well your confidence foretells the score, where a quiz has asked for it (quiz --confidence).
    """
    from kit.cli import progress as command

    command.show_progress(bank, id, topic or [], json, lang)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="[F|-]", help="Where to [default: standard output]")] = Path("-"),
) -> None:
    """Write all progress as JSON, for another machine or to keep."""
    from kit.cli import progress as command

    command.export_progress(file, None)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="F|-", help="What export wrote")],
    lang: Annotated[str | None, typer.Option("--lang", metavar="en|zh", help="Language of the message")] = None,
) -> None:
    """Merge exported progress into yours; importing it again changes nothing."""
    from kit.cli import progress as command

    command.import_progress(file, lang)


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def calc(context: typer.Context) -> None:
    """Compute memory, traffic, bubbles, FLOPs and times, with the formulas."""
    from kit.cli import calc as command

    command.run(context.args)


@app.command()
def lint(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Only these questions")] = None,
    static: Annotated[bool, typer.Option("--static", help="Only read; run nothing")] = False,
    coverage: Annotated[
        Path | None, typer.Option("--coverage", metavar="F", help="Write what the questions cover, and run nothing")
    ] = None,
    bank: BankOption = None,
) -> None:
    """Hold the questions against the rules of the content; for authors."""
    from kit.cli import lint as command

    if coverage is not None:
        command.write_coverage(bank, coverage)
        return
    raise typer.Exit(command.lint_questions(bank, ids or [], is_static=static))


@app.command()
def doctor(bank: BankOption = None) -> None:
    """Check that this machine has what the commands need."""
    from kit.cli import doctor as command

    raise typer.Exit(command.examine(bank))
