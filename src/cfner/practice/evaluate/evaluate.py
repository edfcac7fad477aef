"""Score a model on labelled data: one step or all of them, and keep the figures with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError, CorpusError
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
from cfner.training.progress import Progress, Silent


@dataclass(frozen=True)
class Evaluated:
    """How a model did on a set of sentences."""

    on: SentenceSet
    scores: Scores
    unknown: tuple[str, ...]  # labelled, and not known to the model: set aside
    unlabelled: tuple[str, ...]  # known, and not labelled: set aside, unless all types were asked for
    device: str
    saved: bool
    left_out: tuple[str, ...] = ()  # what of the data is not used, in words

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
    """How all steps of a model did on one set of sentences. ``known``: the types that each of them knows."""

    on: SentenceSet
    scores: Mapping[int, Scores]
    known: Mapping[int, tuple[str, ...]]
    device: str
    saved: bool
    left_out: tuple[str, ...] = ()  # what of the data is not used, in words

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
    data: str | Path | Sequence[Sentence],
    *,
    step: int | None = None,
    save: bool = False,
    all_types: bool = False,
    batch_size: int = 64,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> Evaluated:
    """Entity-level scores of a model on a labelled file, a folder's test split, or sentences.

    ``save`` keeps them with the model, named after the sentences, for ``history``, the page and the card.
    ``all_types``: types that the data does not label are scored, too, and all their finds are wrong.
    ``reading``: options of Corpus.read.
    """
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
    data: str | Path | Sequence[Sentence],
    *,
    save: bool = False,
    batch_size: int = 64,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> EvaluatedSteps:
    """The same for every step of a model folder, one in memory at a time.

    Steps that have stored scores on these very sentences are not scored again.
    """
    if not is_model_folder(model):
        raise ConfigError(
            "Only a model folder has several steps.", where=str(model), remedy="Leave out all_steps."
        )
    folder, note = ModelFolder(model), (progress or Silent()).note
    sentences, on, left_out = labelled_set(data, **(reading or {}))

    def keep(scores: dict[str, Scores]) -> None:
        if save:
            _store(folder, on, scores)

    scored = score_steps(model, sentences, on, batch_size=batch_size, device=device, note=note, kept=keep)
    known = {number: lineage_step(model, number).known for number in scored}
    return EvaluatedSteps(on, scored, known, str(choose_device(device)), save, left_out)


def labelled_set(
    data: str | Path | Sequence[Sentence], **reading: Any
) -> tuple[Sequence[Sentence], SentenceSet, tuple[str, ...]]:
    """The sentences of a labelled file or of a folder's test split, what they are called, and what of the
    data is not used.
    """
    if not isinstance(data, str | Path):
        return data, SentenceSet.of(data, "sentences"), ()
    corpus = Corpus.read(data, **reading)
    sentences = corpus.test if Path(data).is_dir() else corpus.train
    if not sentences:
        raise CorpusError("There is no test split.", where=str(data), remedy="Name a labelled file instead.")
    left_out = tuple(f"{corpus.name}: {line}" for line in corpus.report.left_out())
    return sentences, SentenceSet.of(sentences, set_name(data)), left_out


def set_name(data: str | Path) -> str:
    """What a set of sentences is called: the file's name without its path, or the folder's and its split."""
    path = Path(data)
    return f"{path.resolve().name} (test)" if path.is_dir() else path.name


def _store(folder: ModelFolder, on: SentenceSet, scores: Mapping[str, Scores]) -> None:
    with locked(folder.path, wait=PATIENCE):
        add_scores(folder, on, scores)


def _refuse_saving(ref: ModelRef, save: bool, all_types: bool) -> None:
    if save and not is_model_folder(ref.source):
        raise ConfigError("Only a model folder keeps scores.", where=ref.source, remedy="Leave out saving.")
    if save and all_types:
        raise ConfigError(
            "Scores of types that the data does not label are not kept: they would say that all finds of "
            "these types are wrong.",
            remedy="Leave out --save or --all-types.",
        )
