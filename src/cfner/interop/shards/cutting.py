"""Cut a file into shards at the ends of lines or sentences, by its content alone: never by who tags them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar

from pydantic import ConfigDict

from cfner.corpus.conll_layout import Line
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.text_lines import decoded_line
from cfner.errors import CorpusError
from cfner.interop.text_stream import TextLayout

# About 40,000 words: seconds to minutes of work, so little is lost when a process ends, and a file of a few
# megabytes keeps several workers busy.
SHARD_BYTES = 1 << 18


# bytes in a message are any bytes, not always UTF-8
BYTES_IN_JSON = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


@dataclass(frozen=True)
class Shard:
    """Consecutive complete lines of a file. Numbers of shards, lines and texts count from 1."""

    __pydantic_config__: ClassVar[ConfigDict] = BYTES_IN_JSON

    file: str
    number: int
    first_line: int
    first_text: int  # only tables need it; 1 elsewhere
    last: bool  # whether the file ends here
    layout: TextLayout
    content: bytes

    @property
    def place(self) -> str:
        last_line = self.first_line + max(0, self.content.count(b"\n", 0, -1))
        return f"{self.file}, lines {self.first_line} to {last_line}"

    def lines(self) -> Iterator[Line]:
        repaired = ReadReport()
        for number, raw in enumerate(io.BytesIO(self.content), start=self.first_line):
            yield number, decoded_line(raw, f"{self.file}:{number}", number == 1, repaired)

    def sentences(self) -> Iterator[Sentence]:
        return self.layout.sentences(self.lines(), self.file)

    def texts(self) -> int:
        """How many texts it contains, without splitting them into words."""
        if self.layout.format == "conll":
            return sum(1 for _ in self.sentences())
        return sum(1 for _, line in self.lines() if self.layout.format == "text" or line.strip())


def cut(path: Path, layout: TextLayout, *, numbered: bool, size: int = SHARD_BYTES) -> Iterator[Shard]:
    """The shards of a file, read one after the other; one, without content, of an empty file.

    ``numbered``: count the texts before each shard.
    """
    try:
        with path.open("rb") as file:
            length = path.stat().st_size
            number, line, text, last = 1, 1, 1, False
            while not last:
                lines = _piece(file, size, layout.format == "conll")
                last = not lines or file.tell() >= length
                shard = Shard(str(path), number, line, text, last, layout, b"".join(lines))
                yield shard
                number, line = number + 1, line + len(lines)
                text += shard.texts() if numbered and not last else 0
    except OSError as error:
        raise CorpusError(
            f"the file cannot be read ({error.strerror}).", where=str(path), remedy="Check the file."
        ) from error


def _piece(file: IO[bytes], size: int, sentences: bool) -> list[bytes]:
    """Lines of at least this size; of a CoNLL file up to the next empty line."""
    lines = file.readlines(size)
    while sentences and lines and lines[-1].strip() and (line := file.readline()):
        lines.append(line)
    return lines
