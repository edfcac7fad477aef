"""What happened while a corpus was read: how much was read, used, repaired and left out."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PLACES_KEPT = 5
_TAKES_AWAY = re.compile("left out|dropped|not read")


class Repair(NamedTuple):
    """A repaired error, and the position in the sentence of its word or span."""

    kind: str
    position: int


@dataclass
class ReadReport:
    """The result of a reading. Always ``tokens_read == tokens_used + tokens_reported``.

    ``repairs`` counts the problems of each kind, and ``places`` says where the first few were.
    Tokens that are not in a sentence are in ``tokens_reported``, under the kind that removed them.
    """

    format: str = ""
    scheme: str | None = None
    files: tuple[str, ...] = ()
    sentences: int = 0
    tokens_read: int = 0
    tokens_used: int = 0
    tokens_reported: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, place: str, *, tokens: int = 0) -> None:
        """Count one problem; ``tokens`` says how many tokens it kept out of the sentences."""
        self.repairs[kind] += 1
        self.tokens_reported += tokens
        kept = self.places.setdefault(kind, [])
        if len(kept) < PLACES_KEPT:
            kept.append(place)

    def skip(self, tokens: int, kind: str, place: str) -> None:
        """Count tokens that were read and are not used."""
        self.tokens_read += tokens
        self.note(kind, place, tokens=tokens)

    def use(self, tokens: int) -> None:
        """Count one sentence of this many tokens as used."""
        self.sentences += 1
        self.tokens_used += tokens

    def leave_out(self, tokens: int, kind: str, place: str) -> None:
        """Move a sentence from used to reported."""
        self.sentences -= 1
        self.tokens_used -= tokens
        self.note(kind, place, tokens=tokens)

    def merge(self, other: ReadReport) -> ReadReport:
        """One report for both readings; neither of the two is changed."""
        places = {kind: list(kept) for kind, kept in self.places.items()}
        for kind, kept in other.places.items():
            places[kind] = (places.get(kind, []) + kept)[:PLACES_KEPT]
        added = ("files", "sentences", "tokens_read", "tokens_used", "tokens_reported", "repairs")
        return ReadReport(
            format=_joined(self.format, other.format) or "",
            scheme=_joined(self.scheme, other.scheme),
            places=places,
            **{name: getattr(self, name) + getattr(other, name) for name in added},
        )

    def left_out(self) -> list[str]:
        """The data that is not used: sentences, words and mentions, each kind with its first place.

        The names of these kinds contain 'left out', 'dropped' or 'not read'; all other kinds are repairs.
        """
        kinds = sorted(kind for kind in self.repairs if _TAKES_AWAY.search(kind))
        return [f"{kind}: {self.repairs[kind]:,}, first at {self.places[kind][0]}" for kind in kinds]

    def verified(self) -> ReadReport:
        """Returns itself if the counts add up; a lost token is a bug in the reader."""
        if self.tokens_read != self.tokens_used + self.tokens_reported:
            raise RuntimeError(
                f"{', '.join(self.files)}: {self.tokens_read} tokens read, but {self.tokens_used} used and "
                f"{self.tokens_reported} reported. This is a bug in the reader of '{self.format}'."
            )
        return self

    def to_json(self) -> dict[str, Any]:
        told = {name: value for name, value in vars(self).items() if name != "places"}
        repairs = {
            kind: {"count": count, "first": self.places.get(kind, [])}
            for kind, count in sorted(self.repairs.items())
        }
        return told | {"files": list(self.files), "repairs": repairs}


def _joined(left: str | None, right: str | None) -> str | None:
    """Both names, each once: files of one corpus may differ in format or scheme."""
    names = [name for side in (left, right) if side for name in side.split(" + ")]
    return " + ".join(dict.fromkeys(names)) or None
