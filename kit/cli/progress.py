"""`progress`, `export` and `import`: what a learner has done, on the screen and as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.bank.layout import Bank, find_bank, require_id
from kit.cli.language import Language, chosen_language
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.progress.overview import Overview
    from kit.progress.salvage import Salvaged
    from kit.progress.store import Store

SCHEMA = 1


def open_progress(language: Language, *, is_reading: bool = False) -> Store:
    """The learner's own progress; says so on standard error where its file was damaged. Raises KitError.

    is_reading: nothing is to be written, so a folder or a disk that cannot be written will do.
    """
    from kit.progress.store import open_store

    def tell(salvaged: Salvaged) -> None:
        from kit.screen.words import say

        all_answers = salvaged.kept + salvaged.lost
        key = "progress_carried" if all_answers else "progress_set_aside"
        text = say(language, key, path=salvaged.aside, kept=salvaged.kept, count=all_answers)
        print(say(language, "note", text=text), file=sys.stderr)

    return open_store(told=tell, is_reading=is_reading)


def show_progress(
    directory: Path | None, question_id: str | None, topics: Sequence[str], json_path: Path | None, lang: str | None
) -> None:
    language = chosen_language(lang)
    if question_id is not None and topics:
        raise KitError("either a question or topics, not both", hint="shardkit progress ID")
    bank = find_bank(directory)
    with open_progress(language, is_reading=True) as store:
        if question_id is not None:
            show_one(bank, store, question_id, json_path, language)
        else:
            show_all(bank, store, topics, json_path, language)


def show_all(bank: Bank, store: Store, topics: Sequence[str], json_path: Path | None, language: Language) -> None:
    from kit.practice.selection import selection
    from kit.progress.overview import overview

    wanted = selection(bank, topics, [], [])
    ids = [name for name in bank.ids() if not wanted.topics or name.split("/")[0] in wanted.topics]
    found = overview(store.reviews(), store.cards(), store.bookmarks(), ids, datetime.now(timezone.utc))
    if write_json(json_path, overview_json(found)):
        return
    from kit.screen.page import Page
    from kit.screen.progress import show_overview

    show_overview(Page(language), found, " ".join(filter(None, ["shardkit quiz", str(wanted)])))


def show_one(bank: Bank, store: Store, question_id: str, json_path: Path | None, language: Language) -> None:
    from kit.bank.load import load_header

    reviews = store.reviews(question_id)
    is_bookmarked = question_id in store.bookmarks()
    header = load_header(bank, question_id) if question_id in bank.ids() else None
    if header is None and not reviews and not is_bookmarked:
        if question_id.lower() in bank.topics():
            message = f"{question_id!r} is a topic, and no question"
            raise KitError(message, hint=f"shardkit progress --topic {question_id.lower()}")
        require_id(bank, question_id)
    card = store.cards().get(question_id)
    from kit.progress.transfer import plain

    document = {
        "schema": SCHEMA,
        "question": question_id,
        "is_bookmarked": is_bookmarked,
        "card": None if card is None else plain(card),
        "reviews": [plain(review) for review in reviews],
    }
    if write_json(json_path, document):
        return
    from kit.screen.page import Page
    from kit.screen.progress import show_question_progress

    show_question_progress(Page(language), question_id, header, card, reviews, is_bookmarked=is_bookmarked)


def overview_json(found: Overview) -> dict[str, Any]:
    """docs/json.md has the shape."""
    from dataclasses import asdict

    values = asdict(found)
    days = [{"day": day.isoformat(), "answers": count} for day, count in found.days]
    return {"schema": SCHEMA, **values, "days": days}


def export_progress(path: Path, lang: str | None) -> None:
    language = chosen_language(lang)
    with open_progress(language, is_reading=True) as store:
        document = store.export()
    write_json(path, document)


def import_progress(path: Path, lang: str | None) -> None:
    language = chosen_language(lang)
    document = read_json(path)
    with open_progress(language) as store:
        counts = store.import_(document)
    from dataclasses import asdict

    from kit.screen.page import Page

    page = Page(language)
    page.line(page.say("progress_imported", **asdict(counts)))


def write_json(path: Path | None, document: object) -> bool:
    """To the file, or for `-` to standard output. Returns whether there is nothing left to show on the screen."""
    if path is None:
        return False
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return True
    from kit.grading.report import require_writable, write

    require_writable(path)
    write(path, text)
    return False


def read_json(path: Path) -> object:
    """Raises KitError for a file that cannot be read, or holds no JSON."""
    shown = "standard input" if str(path) == "-" else str(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise KitError(f"{shown}: {error.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
        return json.loads(
            text, parse_constant=refuse_constant, parse_float=finite, object_pairs_hook=without_repetition
        )
    except Repeated as error:
        raise KitError(f"{shown}: {error}") from None
    except RecursionError:
        raise KitError(f"{shown} is nested too deeply") from None
    except ValueError as error:
        raise KitError(f"{shown} is no JSON: {error}", hint="`shardkit export FILE` writes one") from None


def refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:40]} is too large a number")
    return value


class Repeated(Exception):
    """A key that an object has twice: which of the two is meant?"""


def without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        key = next(key for key in keys if keys.count(key) > 1)
        owner = next((f" of {found[name]!r}" for name in ("id", "question_id") if isinstance(found.get(name), str)), "")
        raise Repeated(f"the key {key!r}{owner} is there {keys.count(key)} times")
    return found
