"""Earlier attempts on the same guard: whoever tries until the guard is content has no verdict, but luck.

Every guarded step keeps its report, also one that was refused. A report has a fingerprint of what was judged:
the guard's sentences and the old model's answers to them. So the same guard and the same old model are known
again, whatever the file was called and wherever the new model went. What was deleted, or lies in other
folders, is not counted: there were at least so many attempts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ModelError
from cfner.files.json_files import as_json, read_json
from cfner.store.open import ModelRef
from cfner.store.step_files import REPORT
from cfner.stream.manifest import sentences_hash, settings_hash


def fingerprint(sentences: Sequence[Sentence], answers: Sequence[Iterable[Span]]) -> str:
    """Names the guard's sentences together with what the old model finds in them."""
    found = [sorted([span.start, span.end, span.type] for span in spans) for spans in answers]
    return settings_hash({"sentences": sentences_hash(sentences), "answers": found})


def places_of_attempts(target: Path, model: str | Path) -> tuple[Path, ...]:
    """The folders that hold the new model, refused ones beside it, and the model that it is learned from."""
    source = Path(ModelRef.parse(model).source)
    return tuple({target.parent, *([source.resolve().parent] if source.exists() else [])})


def earlier_attempts(mark: str, places: Collection[Path]) -> int:
    """How many different reports with this fingerprint lie in model folders in ``places``.

    Steps are shared by linking or copying them: equal reports are one attempt.
    """
    return len({text for place in places for text in _reports(place, mark)})


def _reports(place: Path, mark: str) -> Iterator[str]:
    for path in place.glob(f"*/steps/*/{REPORT}"):
        try:
            report = read_json(path)
        except ModelError:  # damaged, or not cfner's: no record of an attempt
            continue
        guarded = report.get("guard") if isinstance(report, dict) else None
        if isinstance(guarded, dict) and guarded.get("fingerprint") == mark:
            yield as_json(report)
