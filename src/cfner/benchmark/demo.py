"""The demonstration: plain fine-tuning and the default method learn the same stream, side by side."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.errors import ModelError
from cfner.files.atomic import atomic_folder, write_text_atomic
from cfner.files.json_files import write_json_atomic
from cfner.files.lock import locked
from cfner.files.owned import foreign_items, is_free
from cfner.network.prediction import Prediction
from cfner.pages.heat_map import heat_maps
from cfner.runs.stream_run import RunResult, run_stream
from cfner.store.lineage import lineage
from cfner.stream.stream import TaskStream
from cfner.synthetic.generate import generate
from cfner.tagger import ContinualTagger
from cfner.training.config import TrainingConfig
from cfner.training.progress import Progress

METHODS: Final = ("finetune", "own-other")
# The types of de-identification: one type, then two per step. Fine types of the notes are joined where only
# the role distinguishes them (a doctor's name from a patient's), so that each can be learned.
TYPES: Final = ("AGE", "NAME", "DATE", "PLACE", "NUMBER")
_COARSE: Final = {
    **dict.fromkeys(("PATIENT", "DOCTOR"), "NAME"),
    **dict.fromkeys(("CITY", "STATE", "COUNTRY", "STREET"), "PLACE"),
    **dict.fromkeys(("PHONE", "MEDICALRECORD", "IDNUM", "ZIP"), "NUMBER"),
}
FIRST, PER_STEP = 1, 2
# Half of the test sentences use training templates, with different names and numbers.
_KNOWN_TEMPLATES = 0.5
_SETTINGS: Final[dict[str, Any]] = {
    "precision": "fp32",  # the same figures on processors with and without bf16
    "lr_encoder": 3e-4,
}
_FROZEN: Final = {"minilm": 2}  # of six layers, to take two minutes; other encoders may have fewer layers
_EARLIER: Final = ("cfner",)  # names of demo models in earlier versions
_MARK = "demo.json"  # marks a folder that the demo may replace
_RESULTS, _PICTURE = "results.json", "f1_by_step.svg"


@dataclass(frozen=True)
class DemoResult:
    stream: TaskStream
    results: dict[str, RunResult]
    sentence: Sentence
    predictions: dict[str, Prediction]


def run_demo(
    out: Path,
    *,
    seed: int,
    size: int,
    epochs: int,
    encoder: str,
    watch: Callable[[str], Progress],
    device: str = "auto",
) -> DemoResult:
    """Generate the corpus, learn it twice, write models, results.json and a picture into ``out``.

    Everything is written to a temporary folder, which replaces ``out`` at the end: a demo that is stopped
    does not change an earlier one.
    """
    with atomic_folder(out, refuse=_refuse_strange) as aside:
        _sweep(aside)
        (aside / _MARK).write_text("{}\n")
        with locked(aside):  # so that no other demo removes it
            return _run(aside, demo_stream(size, seed), seed, epochs, encoder, watch, device)


def _run(
    folder: Path,
    stream: TaskStream,
    seed: int,
    epochs: int,
    encoder: str,
    watch: Callable[[str], Progress],
    device: str,
) -> DemoResult:
    results: dict[str, RunResult] = {}
    taggers: dict[str, ContinualTagger] = {}
    for method in METHODS:
        chosen = {"encoder": encoder, "method": method, "seed": seed, "epochs": epochs, "device": device}
        chosen |= {"freeze_layers": _FROZEN.get(encoder, 0)}
        config = TrainingConfig.build({**chosen, **_SETTINGS})
        results[method], taggers[method] = run_stream(stream, config, folder / method, progress=watch(method))
    write_json_atomic(folder / _RESULTS, {"runs": [result.to_json() for result in results.values()]})
    title = "F1 by step and type: a row that fades is a type being forgotten"
    picture = heat_maps({name: result.matrix for name, result in results.items()}, title)
    write_text_atomic(folder / _PICTURE, picture)
    sentence = _telling_sentence(stream)
    predictions = {name: tagger.predict(sentence) for name, tagger in taggers.items()}
    return DemoResult(stream, results, sentence, predictions)


def demo_stream(size: int, seed: int) -> TaskStream:
    """Notes for the steps, and as many without labels for rehearsing old types."""
    notes, text = demo_corpus(size, seed)
    return TaskStream.split(
        notes,
        first=FIRST,
        per_step=PER_STEP,
        order=TYPES,
        seed=seed,
        min_mentions=1,
        unlabelled=text,
    )


def demo_corpus(size: int, seed: int) -> tuple[Corpus, tuple[Sentence, ...]]:
    """(labelled notes, as many more for rehearsing)."""
    made = generate(
        train=2 * size, dev=1, test=max(size // 4, 1), seed=seed, known_templates=_KNOWN_TEMPLATES
    )
    train, dev, test = (tuple(map(_coarse, part)) for part in (made.train, made.dev, made.test))
    return Corpus(made.name, train[:size], dev, test), train[size:]


def _coarse(sentence: Sentence) -> Sentence:
    spans = (replace(span, type=_COARSE.get(span.type, span.type)) for span in sentence.spans)
    return replace(sentence, spans=tuple(spans))


def _telling_sentence(stream: TaskStream) -> Sentence:
    """A test sentence with types from as many different steps as possible, not too long."""
    step_of = {type_: step.index for step in stream for type_ in step.types}

    def worth(sentence: Sentence) -> tuple[int, int, int]:
        steps = {step_of[span.type] for span in sentence.spans}
        return len(steps), len(sentence.types), -len(sentence)

    return max((s for s in stream.test if len(s) <= 30), key=worth)


def _refuse_strange(out: Path) -> None:
    """Refuse a folder that is not an earlier demo's."""
    strange = [] if is_free(out) else sorted(_not_ours(out))
    if strange:
        raise ModelError(
            "The folder contains files that the demo did not write.",
            where=str(strange[0]),
            remedy="Choose a different folder with `out`, or move this one away.",
        )


def _sweep(aside: Path) -> None:
    """Remove temporary folders of killed demos; a running demo holds its lock."""
    beginning = aside.name.rpartition("-")[0]
    for left in aside.parent.glob(f"{glob.escape(beginning)}-*"):
        if left == aside or not (left / _MARK).is_file():
            continue
        try:
            with locked(left, wait=0):
                pass
        except ModelError:
            continue
        shutil.rmtree(left, ignore_errors=True)


def _not_ours(out: Path) -> Iterator[Path]:
    """Files that the demo did not write, and steps that were added to its models."""
    if not (out / _MARK).is_file():
        yield out
    yield from foreign_items(out, {_MARK, _RESULTS, _PICTURE, *METHODS, *_EARLIER})
    for method in (*METHODS, *_EARLIER):
        for step in lineage(out / method) if (out / method).is_dir() else ():
            if step.name != f"step {step.number}":
                yield step.stored.folder
