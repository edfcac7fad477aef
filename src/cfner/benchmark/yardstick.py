"""The yardstick: four fixed streams on which methods are measured, with and without unlabelled text.

Everything about a stream is fixed except the method and the seed, so that figures of different days can be
compared. Settings are chosen on dev data with seeds 0 and 1. The table is made once, on test data, with
different seeds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cfner.benchmark.cells import Cell, MethodChoice, parse_methods
from cfner.benchmark.grid import cells_of
from cfner.benchmark.streams import REST, Division, Source
from cfner.errors import ConfigError, CorpusError, nearest
from cfner.training.config import TrainingConfig


@dataclass(frozen=True)
class Stream:
    """A corpus (a folder of that name), its division into steps, and how long each is trained."""

    corpus: str
    what: str
    first: int
    per_step: int
    every: int
    epochs: int
    min_mentions: int = 50
    score_every: int = 2  # enough mentions, and scoring takes no longer than training
    methods: tuple[str, str] | None = None  # instead of the usual methods: slices only, with text

    def source(self, root: Path, score_on: str, text: bool) -> Source:
        folder = root / self.corpus
        if not folder.is_dir():
            raise CorpusError(
                "A corpus of the yardstick is missing.",
                where=str(folder),
                remedy=f"Give the folder that contains {', '.join(stream.corpus for stream in STREAMS)}.",
            )
        return Source(
            str(folder.resolve()),
            every=self.every,
            score_every=self.score_every,
            score_on=score_on,
            min_mentions=self.min_mentions,
            unlabelled=(REST,) if text else (),
        )

    def settings(self, given: Collection[str] = ()) -> dict[str, Any]:
        """The settings that all methods have on it, except those that the user chose."""
        return {name: value for name, value in {"epochs": self.epochs, **FIXED}.items() if name not in given}


SLICES_ONLY: Final = (
    "finetune, extendner, cfner, lucir+cf, rdp, cpfd, own-other, own-other+cf, experts, joint-own, joint"
)
# of the later methods the one that is better without text: cpfd, before rdp (docs/results.md)
WITH_TEXT: Final = "cfner, cpfd, own-other, own-other+cf, experts"
STREAMS: Final = (
    Stream("fewnerd8", "few types, much text", 2, 2, every=8, epochs=6),
    Stream("snips-slots", "many types", 9, 10, every=6, epochs=5, min_mentions=10, score_every=1),
    Stream("multiconer2en", "types that compete", 9, 8, every=6, epochs=6, min_mentions=10),
    Stream(
        "fewnerd66",
        "long",
        6,
        6,
        every=3,
        epochs=6,
        min_mentions=10,
        methods=("own-other, cfner, finetune, joint-own, joint", "own-other, cfner"),
    ),
)
# fixed, so that new defaults do not change finished runs; min_updates has no effect where epochs are set.
# precision: what the processor is fast in; F1 is the same in bf16 and fp32, and each run records its own
FIXED: Final[dict[str, Any]] = {
    **{"encoder": "minilm", "batch_size": 8, "precision": "auto"},
    **{"select_on": "last", "min_updates": 0},
}


def yardstick_cells(
    root: Path,
    config: TrainingConfig,
    seeds: Sequence[int],
    *,
    score_on: str = "test",
    streams: Sequence[str] = (),
    slices_only: str | None = None,
    with_text: str | None = None,
    uses: Sequence[str] = (),
    given: Collection[str] = (),
) -> list[Cell]:
    """``streams``: corpora to use (default: all but the long one). ``slices_only`` and ``with_text``: methods
    instead of the usual ones, as in tables; an empty string means none. ``uses``: files of methods.
    ``given``: the settings that the user chose, in ``config``; they replace the yardstick's own.
    """
    known = {stream.corpus: stream for stream in STREAMS}
    for name in streams:
        if name not in known:
            raise ConfigError(f"The yardstick has no stream '{name}'.", remedy=nearest(name, known))
    chosen = [known[name] for name in streams] or [s for s in STREAMS if s.methods is None]
    cells: list[Cell] = []
    for stream in chosen:
        usual = stream.methods or (SLICES_ONLY, WITH_TEXT)
        for text, asked, otherwise in ((False, slices_only, usual[0]), (True, with_text, usual[1])):
            methods = _methods(otherwise if asked is None else asked)
            settings = config.model_copy(update=stream.settings(given))
            source, division = stream.source(root, score_on, text), Division(stream.first, stream.per_step)
            cells += cells_of([source], [division], methods, seeds, settings, uses)
    return cells


def _methods(text: str) -> list[MethodChoice]:
    return parse_methods(text) if text.strip() else []
