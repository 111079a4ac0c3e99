"""Lines that fit: words stay whole, Chinese breaks between characters but not before its punctuation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

NOT_AT_THE_START = frozenset("，。、；：！？）》」』】〕”’…～·％" + ",.;:!?)]}%")
NOT_AT_THE_END = frozenset("（《「『【〔“‘" + "([{")
MIN_WIDTH = 10


def may_break(before: str, after: str) -> bool:
    """Whether a line may end between these two neighbours."""
    if after == " " or get_character_cell_size(after) == 0:
        return False
    if before == " ":
        return True
    if after in NOT_AT_THE_START or before in NOT_AT_THE_END:
        return False
    return get_character_cell_size(before) == 2 or get_character_cell_size(after) == 2


def chunks(plain: str) -> Iterator[str]:
    """What a line never divides, with the spaces that follow: `"a bc 模型。"` -> `"a ", "bc ", "模", "型。"`."""
    start = 0
    for index in range(1, len(plain)):
        if may_break(plain[index - 1], plain[index]):
            yield plain[start:index]
            start = index
    if start < len(plain):
        yield plain[start:]


def pieces(plain: str, width: int) -> Iterator[str]:
    """Chunks, those wider than a line cut into lines."""
    for chunk in chunks(plain):
        while cell_len(chunk.rstrip(" ")) > width:
            count = longest_fit(chunk, width)
            yield chunk[:count]
            chunk = chunk[count:]
        if chunk:
            yield chunk


def longest_fit(text: str, width: int) -> int:
    """How many characters of `text` fill at most `width` cells; at least one."""
    used = 0
    for count, character in enumerate(text):
        used += get_character_cell_size(character)
        if used > width:
            return max(count, 1)
    return len(text)


def break_offsets(plain: str, width: int) -> list[int]:
    """Where to cut a text without newlines into lines of at most `width` cells, spaces at their ends not counted."""
    offsets: list[int] = []
    position = used = 0
    for piece in pieces(plain, width):
        if used and used + cell_len(piece.rstrip(" ")) > width:
            offsets.append(position)
            used = 0
        used += cell_len(piece)
        position += len(piece)
    return offsets


def wrap(text: Text, width: int) -> Iterator[Text]:
    """The lines of a styled text."""
    for paragraph in text.split("\n", allow_blank=True):
        for line in paragraph.divide(break_offsets(paragraph.plain, width)):
            line.rstrip()
            yield line


@dataclass(frozen=True, slots=True)
class Prose:
    """A text that wraps to the width at hand; `first` stands before its first line, `rest` before the others."""

    text: Text
    first: Text = field(default_factory=Text)
    rest: Text = field(default_factory=Text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = max(self.first.cell_len, self.rest.cell_len)
        for number, line in enumerate(wrap(self.text, max(options.max_width - indent, MIN_WIDTH))):
            lead = self.rest if number else self.first
            whole = Text.assemble(lead, line, no_wrap=True, overflow="ignore")
            whole.rstrip()
            yield whole

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        indent = max(self.first.cell_len, self.rest.cell_len)
        widest = max((cell_len(line) for line in self.text.plain.split("\n")), default=0)
        least = max((cell_len(chunk.rstrip()) for chunk in chunks(self.text.plain)), default=0)
        return Measurement(min(least + indent, options.max_width), min(widest + indent, options.max_width))


def padded(text: str, width: int) -> str:
    """`text` with spaces up to `width` cells, wide characters counted as two."""
    return text + " " * (width - cell_len(text))


def widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)
