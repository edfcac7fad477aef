"""Score one step or all steps of a model on labelled data, and store the scores with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import sentences_of
from cfner.corpus.in_memory import Data, source_name
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError
from cfner.evaluation.measured import over_all
from cfner.evaluation.scores import Scores
from cfner.files.lock import PATIENCE, locked
from cfner.interop.onnx import OnnxTagger, is_onnx_folder
from cfner.network.device import choose_device
from cfner.practice.evaluate.steps import score_steps
from cfner.store.lineage import lineage_step
from cfner.store.model_folder import ModelFolder
from cfner.store.open import ModelRef, is_model_folder
from cfner.store.series import add_scores
from cfner.stream.sentence_set import SentenceSet
from cfner.tagger import ContinualTagger


@dataclass(frozen=True)
class Evaluated:
    """The scores of a model on a set of sentences."""

    on: SentenceSet
    scores: Scores
    unknown: tuple[str, ...]  # labelled, but not known to the model: set aside
    unlabelled: tuple[str, ...]  # known, but not labelled: set aside unless ``all_types``
    device: str
    saved: bool
    left_out: tuple[str, ...] = ()  # what of the data is not used, in words

    def __repr__(self) -> str:
        return f"Evaluated({self.on.label}: {self.scores})"

    @property
    def set_aside(self) -> int:
        """Mentions of types that the model does not know."""
        return sum(self.on.mentions[type_] for type_ in self.unknown)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.scores.to_json(),
            "set": self.on.to_json(),
            "unknown_types": list(self.unknown),
            "mentions_set_aside": self.set_aside,
            "unlabelled_types": list(self.unlabelled),
            "device": self.device,
            "saved": self.saved,
            "left_out": list(self.left_out),
        }


@dataclass(frozen=True)
class EvaluatedSteps:
    """The scores of all steps of a model on one set of sentences. ``known``: the types that each step
    knows."""

    on: SentenceSet
    scores: Mapping[int, Scores]
    known: Mapping[int, tuple[str, ...]]
    device: str
    saved: bool
    left_out: tuple[str, ...] = ()  # what of the data is not used, in words

    def __repr__(self) -> str:
        steps = ", ".join(f"step {number} {scores.micro_f1:.1f}" for number, scores in self.scores.items())
        return f"EvaluatedSteps({self.on.label}: micro F1 {steps})"

    @property
    def types(self) -> list[str]:
        """All that were scored, in the order of learning."""
        return list(dict.fromkeys(t for known in self.known.values() for t in known if t in self.on.mentions))

    def to_json(self) -> dict[str, Any]:
        steps = [
            {
                "step": number,
                "known": list(self.known[number]),
                "over_all_types": over_all(scores.types, self.known[number]),
                **scores.to_json(),
            }
            for number, scores in self.scores.items()
        ]
        return {
            "set": self.on.to_json(),
            "steps": steps,
            "device": self.device,
            "saved": self.saved,
            "left_out": list(self.left_out),
        }


def evaluate(
    model: str | Path,
    data: Data,
    *,
    step: int | None = None,
    save: bool = False,
    all_types: bool = False,
    batch_size: int = 64,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> Evaluated:
    """As ``cfner.evaluate`` of one step; options for reading as one dictionary."""
    ref = ModelRef.parse(model, step)
    _refuse_saving(ref, save, all_types)
    sentences, on, left_out = labelled_set(data, **(reading or {}))
    tagger: ContinualTagger | OnnxTagger
    if is_onnx_folder(ref.source):
        tagger = OnnxTagger.read(ref.source, batch_size=batch_size, device=device)
    else:
        tagger = ContinualTagger.open(ref.source, ref.step, eval_batch_size=batch_size, device=device)
    unlabelled = () if all_types else tuple(t for t in tagger.types if t not in on.mentions)
    scores = tagger.evaluate([sentence.only(tagger.types) for sentence in sentences]).without(unlabelled)
    if save:
        stored = lineage_step(ref.source, ref.step)
        _store(ModelFolder(ref.source), on, {stored.hash: scores})
    unknown = tuple(t for t in on.mentions if t not in tagger.types)
    return Evaluated(on, scores, unknown, unlabelled, str(tagger.device), save, left_out)


def evaluate_steps(
    model: str | Path,
    data: Data,
    *,
    save: bool = False,
    batch_size: int = 64,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> EvaluatedSteps:
    """The same for every step of a model folder, one in memory at a time.

    Steps that have stored scores on exactly these sentences are not scored again.
    """
    if not is_model_folder(model):
        raise ConfigError(
            "Only a model folder has several steps.", where=str(model), remedy="Leave out `all_steps`."
        )
    folder = ModelFolder(model)
    sentences, on, left_out = labelled_set(data, **(reading or {}))

    def keep(scores: dict[str, Scores]) -> None:
        if save:
            _store(folder, on, scores)

    scored = score_steps(model, sentences, on, batch_size=batch_size, device=device, kept=keep)
    known = {number: lineage_step(model, number).known for number in scored}
    return EvaluatedSteps(on, scored, known, str(choose_device(device)), save, left_out)


def labelled_set(data: Data, **reading: Any) -> tuple[Sequence[Sentence], SentenceSet, tuple[str, ...]]:
    """The sentences of labelled data, what they are called, and what of the data is not used."""
    sentences, report, name = sentences_of(data, "test", **reading)
    left_out = tuple(f"{source_name(data)}: {line}" for line in report.left_out())
    return sentences, SentenceSet.of(sentences, name), left_out


def _store(folder: ModelFolder, on: SentenceSet, scores: Mapping[str, Scores]) -> None:
    with locked(folder.path, wait=PATIENCE):
        add_scores(folder, on, scores)


def _refuse_saving(ref: ModelRef, save: bool, all_types: bool) -> None:
    if save and not is_model_folder(ref.source):
        raise ConfigError(
            "Only a model folder can store scores.", where=ref.source, remedy="Leave out `save`."
        )
    if save and all_types:
        raise ConfigError(
            "Scores of types that the data does not label cannot be stored: they count all predictions of "
            "these types as wrong.",
            remedy="Leave out `save` or `all_types`.",
        )
