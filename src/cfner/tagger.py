"""ContinualTagger, the main class: it learns steps, predicts, evaluates, and can be saved."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from cfner.corpus.sentence import Sentence, Span
from cfner.errors import ConfigError, ModelError, StreamError
from cfner.evaluation.measured import Measured
from cfner.evaluation.metrics import confusions, score
from cfner.evaluation.scores import Evaluation, Scores
from cfner.interop.texts_to_tag import TextsToTag
from cfner.methods.consolidation import Consolidation
from cfner.methods.method import Method, MethodParameters
from cfner.methods.registry import create
from cfner.network.device import choose_device
from cfner.network.inference import predict_spans
from cfner.network.prediction import Prediction, tag_stream
from cfner.store.model_files import LoadedModel, read_model
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.open import ModelRef, is_model_folder, open_model
from cfner.store.origins import Origin, later, origins_of, same_groups
from cfner.store.save import save_step
from cfner.store.step_files import SCORES, read_facts, read_if_there
from cfner.stream.sentence_set import SentenceSet
from cfner.stream.step import Step
from cfner.training.bars import watcher
from cfner.training.config import TrainingConfig
from cfner.training.environment import make_accelerator
from cfner.training.new_model import new_model
from cfner.training.progress import Progress
from cfner.training.record import StepRecord, refuse_bad_settings, usable_settings
from cfner.training.step import experts_of, refuse_model, train_step
from cfner.training.unfinished_step import UnfinishedStep

if TYPE_CHECKING:
    from accelerate import Accelerator

_log = logging.getLogger(__name__)


class ContinualTagger:
    """A named-entity tagger that learns new types step by step.

    Create one with ``from_pretrained`` (new, on an encoder) or ``load`` (saved).
    """

    def __init__(self, model: LoadedModel, config: TrainingConfig) -> None:
        self.device = choose_device(config.device)
        model.network.to(self.device)
        self.model = model
        self.config = config
        self.method = create(
            config.method, config.parameters, config.without, as_published=config.as_published
        )
        self.record: StepRecord | None = None  # how the latest step was trained
        self._saved: StoredStep | None = None
        self._parent: str | None = None  # hash of the step that this one was learned from
        # which networks learned the model's types, as long as they are not all in its folder
        self._origins: tuple[Origin, ...] = ()
        self._accelerator: Accelerator | None = None
        self._half_learned = False

    @classmethod
    def from_pretrained(
        cls, encoder: str | Path, method: str | None = None, **settings: Any
    ) -> ContinualTagger:
        """A tagger that knows no types yet. ``settings`` are those of TrainingConfig."""
        named = {} if method is None else {"method": method}
        return cls.from_config(TrainingConfig.build({"encoder": str(encoder), **named, **settings}))

    @classmethod
    def from_config(cls, config: TrainingConfig) -> ContinualTagger:
        _refuse_early(config)
        return cls(new_model(config), config)

    @classmethod
    def load(cls, folder: str | Path, step: int | None = None, **settings: Any) -> ContinualTagger:
        """Load a saved tagger at its current step, or at ``step``. ``settings`` override the recorded ones.

        Settings of monitoring and of the machine (trackers, workers and the like) are never read from the
        folder.
        """
        ref = ModelRef.parse(folder, step)
        stored = ModelFolder(ref.source).verified(ref.step)
        record = read_facts(stored)
        read_if_there(stored, SCORES, Measured.from_json)  # refuse a step with a damaged file
        recorded = usable_settings(record)
        try:
            _refuse_early(TrainingConfig.build(settings, recorded=recorded))
            model = read_model(stored)
            config = TrainingConfig.build(settings, recorded={**recorded, "encoder": model.encoder})
        except ConfigError:
            refuse_bad_settings(recorded, stored.folder)
            raise
        tagger = cls(model, config)
        tagger.record = StepRecord.from_json(record)
        tagger._saved, tagger._parent = stored, record["parent"]
        return tagger

    @classmethod
    def open(cls, source: str | Path, step: int | None = None, **settings: Any) -> ContinualTagger:
        """Open a cfner model folder, as ``load`` does, or any Hugging Face token classifier."""
        ref = ModelRef.parse(source, step)
        if is_model_folder(ref.source):
            return cls.load(ref.source, ref.step, **settings)
        _refuse_early(TrainingConfig.build({**settings, "encoder": ref.source}))
        model = open_model(ref.source, ref.step, device=str(settings.get("device", "auto")))
        tagger = cls(model, TrainingConfig.build({**settings, "encoder": model.encoder}))
        tagger.record = StepRecord.of_import(model.labels, model.encoder, tagger.config)
        return tagger

    def __repr__(self) -> str:
        saved = "not saved" if self._saved is None else f"step {int(self._saved.name)}"
        known = ", ".join(self.types) or "none yet"
        return f"ContinualTagger({self.model.encoder}, {self.method.variant}, {saved}; types: {known})"

    @property
    def types(self) -> tuple[str, ...]:
        """All types learned so far, in order."""
        return self.model.labels.types

    @property
    def saved_step(self) -> StoredStep | None:
        """The step on disk; None until it is saved."""
        return self._saved

    @property
    def accelerator(self) -> Accelerator:
        if self._accelerator is None:
            self._accelerator = make_accelerator(self.config)
        return self._accelerator

    @property
    def parent_hash(self) -> str | None:
        """The hash of the saved step that the next one would be learned from; None if there is none."""
        return self._saved.hash if self._saved is not None else self._parent

    def fork(self, config: TrainingConfig) -> ContinualTagger:
        """A copy with different settings, for trials: what the copy learns does not change this tagger."""
        self._refuse_half_learned()
        copied = ContinualTagger(replace(self.model, network=copy.deepcopy(self.model.network)), config)
        copied.record, copied._parent = self.record, self.parent_hash
        copied._origins = self.origins()
        return copied

    def origins(self) -> tuple[Origin, ...]:
        """The earlier networks that learned some of its types, unless later steps trained these again.

        None for a method that keeps types as the last network predicts them.
        """
        if not self.method.keeps_as_learned:
            return ()
        found = self._origins or (() if self._saved is None else origins_of(self._saved))
        if gone := [origin for origin in found if not origin.there]:
            groups = frozenset().union(*(origin.groups for origin in gone))
            labels = self.model.labels
            types = [type_ for type_ in labels.types if labels.group_of_type(type_) in groups]
            _log.warning(
                f"The step that learned {', '.join(types)} is gone: what the last step predicts is kept."
            )
        return tuple(origin for origin in found if origin.there)

    def learn(
        self,
        step: Step,
        progress: bool | Progress | None = None,
        *,
        unfinished: str | Path | None = None,
    ) -> StepRecord:
        """Learn the step's types from its data, keeping what was learned before.

        Args:
            step: The sentences and the types that they are labelled with, one of a ``TaskStream``.
            progress: Whether to show progress bars. Default: in a terminal or a notebook.
            unfinished: A folder for checkpoints between epochs. After an interruption the same call resumes
                from there.

        Returns:
            The record of the step.
        """
        self._refuse_half_learned()
        refuse_model(self.method, self.model)
        return self._trained(step, self.method, progress, unfinished)

    def consolidate(
        self,
        text: Sequence[Sentence],
        progress: bool | Progress | None = None,
        *,
        unfinished: str | Path | None = None,
    ) -> StepRecord:
        """Distil all experts into one network on ``text``, whose labels are ignored. Returns the record of
        the step.
        """
        self._refuse_half_learned()
        experts = experts_of(self.model)
        words = tuple(sentence.only([]) for sentence in text if len(sentence))
        step = Step((), (), known=self.types, unlabelled=words, index=experts, name="consolidate")
        return self._trained(step, Consolidation(MethodParameters()), progress, unfinished)

    def _trained(
        self, step: Step, method: Method, progress: bool | Progress | None, unfinished: str | Path | None
    ) -> StepRecord:
        unknown = set(step.known) - set(self.types)
        if unknown:
            raise StreamError(
                f"The step counts {', '.join(sorted(unknown))} as known, but this tagger does not know them.",
                remedy="Learn the steps of a stream in order, or load the model that knows these types.",
            )
        parent, saved, known, origins = self.parent_hash, self._saved, self.model.labels, self.origins()
        kept = None
        if unfinished is not None:
            teachers = [origin.name for origin in origins]
            kept = UnfinishedStep(Path(unfinished), step, self.config, parent, teachers)
        replayed = sorted({type_ for sentence in step.replay for type_ in sentence.types})
        labels = self.model.labels.grown((*step.types, *replayed), method.grouping)
        self._half_learned = True  # until the step ends: an interruption leaves a head without its labels
        trained = train_step(
            self.model,
            step,
            labels,
            method,
            self.config,
            self.accelerator,
            watcher(progress),
            kept,
            origins,
        )
        self.model, self._half_learned = trained.model, False
        self._origins = ()
        if trained.before is not None and method.keeps_as_learned:
            self._origins = later(origins, known, saved or trained.before.cpu(), labels, step.types)
        self.record = StepRecord.of_learning(
            step,
            labels,
            trained.state,
            self.config,
            method.variant,
            trained.reminders,
            from_scratch=method.from_scratch,
        )
        self._parent, self._saved = parent, None
        return self.record

    def evaluate(self, sentences: Sequence[Sentence]) -> Evaluation:
        """Entity-level scores over all types learned so far, with the two confusions and what was found."""
        found = self.find(sentences)
        gold = [sentence.spans for sentence in sentences]
        scores = score(gold, found, self.types)
        lost = None
        if self.record is not None:
            new = self.record.types
            old = [type_ for type_ in self.types if type_ not in new]
            lost = confusions(gold, found, [len(sentence) for sentence in sentences], old, new)
        return Evaluation(scores.types, scores.counts, lost, found)

    def find(self, sentences: Sequence[Sentence]) -> tuple[tuple[Span, ...], ...]:
        """The mentions in each sentence, without scores; ``predict`` returns scores too."""
        self._refuse_half_learned()
        model = self.model
        text = model.encode(sentences)
        found = predict_spans(
            model.network,
            text,
            model.labels,
            calibration=model.calibration,
            batch_size=self.config.eval_batch_size,
        )
        return tuple(found)

    # a str is also a sequence of str; the first matching overload is used
    @overload
    def predict(self, texts: str | Sentence | Mapping[str, Any]) -> Prediction: ...

    @overload
    def predict(self, texts: Iterator[Any]) -> Iterator[Prediction]: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, texts: Iterable[Any]) -> list[Prediction]: ...

    def predict(self, texts: Any) -> Prediction | list[Prediction] | Iterator[Prediction]:
        """Find the entities in one text or in many.

        Args:
            texts: A text; a list of texts; a list of sentences that are lists of words, which are kept as
                they are; dictionaries with "text" or "tokens"; or a generator of any of these, which is
                tagged while it is read.

        Returns:
            One prediction for one text, a list for a list, an iterator for a generator.
        """
        self._refuse_half_learned()
        given = TextsToTag.of(texts)
        found = tag_stream(self.model, given.sentences, batch_size=self.config.eval_batch_size)
        return given.answer(found)

    def save(
        self,
        folder: str | Path,
        scores: Scores | None = None,
        *,
        scored_on: SentenceSet | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> StoredStep:
        """Add the step learned last to a model folder and make it current.

        ``scores`` of this step are stored with it. ``scored_on`` names the sentences that they were measured
        on (``stream.test_set``); without it they cannot be compared with those of other steps. ``extras``:
        further JSON files to store with the step, by name.
        """
        self._refuse_half_learned()
        if self.record is None:
            raise ModelError("This tagger has learned nothing yet.", remedy="Call learn(step) before save().")
        origins = self.origins()
        self._saved = save_step(
            folder,
            self.model,
            self.record.to_json(self._parent),
            parent=self._parent,
            measured=None if scores is None else Measured(scores, scored_on),
            extras=extras,
            saved=self._saved,
        )
        # from now on they are read from the folder, if it has them all
        self._origins = () if not origins or same_groups(origins, origins_of(self._saved)) else origins
        return self._saved

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, token: str | None = None, **more: Any
    ) -> str:
        """Upload it as a stock token classifier with a model card. Returns the URL of the commit.

        The card describes what the saved model records, so save it first.
        """
        self._refuse_half_learned()
        from cfner.interop.hub import push_to_hub

        source = self.model if self._saved is None else self._saved.folder.parent.parent
        step = None if self._saved is None else int(self._saved.name)
        return push_to_hub(source, repo_id, step=step, private=private, token=token, **more)

    def _refuse_half_learned(self) -> None:
        if self._half_learned:
            raise ModelError(
                "An earlier learn() was interrupted, so weights and labels no longer match.",
                remedy="Load the last saved step again with ContinualTagger.load.",
            )


def _refuse_early(config: TrainingConfig) -> None:
    """Report a wrong method or device before loading a model."""
    choose_device(config.device)
    create(config.method, config.parameters, config.without, as_published=config.as_published)
