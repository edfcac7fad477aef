"""Count earlier attempts on the same guard: repeating until the guard passes makes its verdict meaningless.

Every guarded step stores its report, even if it was refused. A report has a fingerprint of the guard's
sentences and the old model's predictions on them, so the same guard and old model are recognised under any
file name and in any folder. Deleted reports and reports in other folders are not counted, so the count is a
lower bound.
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
    """Hash of the guard's sentences and of the old model's predictions on them."""
    found = [sorted([span.start, span.end, span.type] for span in spans) for spans in answers]
    return settings_hash({"sentences": sentences_hash(sentences), "answers": found})


def places_of_attempts(target: Path, model: str | Path) -> tuple[Path, ...]:
    """The folders that contain the new model, refused ones next to it, and the model it was learned from."""
    source = Path(ModelRef.parse(model).source)
    return tuple({target.parent, *([source.resolve().parent] if source.exists() else [])})


def earlier_attempts(mark: str, places: Collection[Path]) -> int:
    """The number of different reports with this fingerprint in the model folders in ``places``.

    Folders share steps by links or copies, so equal reports are one attempt.
    """
    return len({text for place in places for text in _reports(place, mark)})


def _reports(place: Path, mark: str) -> Iterator[str]:
    for path in place.glob(f"*/steps/*/{REPORT}"):
        try:
            report = read_json(path)
        except ModelError:  # damaged, or not a cfner folder
            continue
        guarded = report.get("guard") if isinstance(report, dict) else None
        if isinstance(guarded, dict) and guarded.get("fingerprint") == mark:
            yield as_json(report)
