"""Distil a model's experts into one network, on unlabelled text."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus, sentences_of
from cfner.corpus.in_memory import Data, Texts, source_name
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.errors import CorpusError
from cfner.practice.learn.agreement import AgreementReport
from cfner.practice.learn.attempts import places_of_attempts
from cfner.practice.learn.guard_report import GuardReport
from cfner.practice.learn.judge import Judge
from cfner.practice.learn.learn import (
    as_given,
    carried_calibration,
    refuse_limit,
    refuse_strict,
    score_earlier_steps,
    step_number,
)
from cfner.practice.learn.new_data import NewData, mentioning
from cfner.practice.learn.unlabelled import UnlabelledText, read_unlabelled
from cfner.runs.cost import Cost, disk_of
from cfner.runs.run_step import judge_and_save
from cfner.runs.unfinished import UnfinishedModel
from cfner.store.model_files import FIXED_AT_CREATION
from cfner.stream.manifest import sentences_hash, settings_hash
from cfner.tagger import ContinualTagger
from cfner.training.config import given_settings
from cfner.training.progress import Progress
from cfner.training.step import experts_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Consolidated:
    """The result. ``folder`` contains the new model: the requested one, or ``OUT.refused`` if it was
    refused."""

    folder: Path
    accepted: bool
    step: int
    parent: int  # the step whose experts it was made of
    experts: int
    sentences: int  # that it was taught on
    epochs: tuple[dict[str, float], ...]
    guard: GuardReport | None
    agreement: tuple[AgreementReport, ...]
    calibrated: tuple[str, ...]  # types whose calibration was copied; it was measured before this step
    device: str
    cost: Cost

    def __repr__(self) -> str:
        outcome = "accepted" if self.accepted else "refused"
        return f"Consolidated({self.experts} experts: {outcome}, step {self.step} of {str(self.folder)!r})"

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "accepted": self.accepted,
            "step": self.step,
            "parent": self.parent,
            "experts": self.experts,
            "sentences": self.sentences,
            "epochs": list(self.epochs),
            "guard": None if self.guard is None else self.guard.to_json(),
            "agreement": [report.to_json() for report in self.agreement],
            "calibrated": list(self.calibrated),
            "device": self.device,
            **self.cost.to_json(),
        }


def consolidate(
    model: str | Path,
    text: Texts,
    *,
    out: str | Path | None = None,
    in_place: bool = False,
    guard: Data | None = None,
    max_forgetting: float = 2.0,
    accept_forgetting: Sequence[str] = (),
    strict: bool = False,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Consolidated:
    """As ``cfner.consolidate``; ``settings`` of TrainingConfig as one dictionary."""
    place = UnfinishedModel(model, out, in_place)
    refuse_limit(max_forgetting)
    refuse_strict(strict, guard)
    data = _read(text)
    nothing: tuple[tuple[Sentence, ...], ReadReport, str] = ((), ReadReport(), "")
    judging, read, guard_name = nothing if guard is None else sentences_of(guard, "test")
    for line in read.left_out():
        _log.warning(f"{source_name(guard)}: {line}.")
    given = given_settings(settings, file=config, fixed=FIXED_AT_CREATION)
    tagger = ContinualTagger.open(model, **given)
    call = settings_hash({"config": tagger.config.what_matters(), "consolidate": sentences_hash(data.train)})
    place.refuse_learned(call)
    experts = experts_of(tagger.model)
    guarded = None if guard is None else mentioning(judging, tagger.types, guard)
    no_text = UnlabelledText()
    judge = Judge(
        tagger,
        data,
        (),
        guarded,
        no_text,
        max_forgetting=max_forgetting,
        accepted=accept_forgetting,
        guard_name=guard_name,
        strict=strict,
        beside=places_of_attempts(place.target, model),
    )
    with place.steps_so_far(tagger, call, judge.of_old_model()):
        parent = step_number(tagger)
        score_earlier_steps(place.folder, judge, tagger)
        record = tagger.consolidate(data.train, progress, unfinished=place.folder)
        judged = judge_and_save(place.folder, tagger, judge)
        stored = place.publish(judged.accepted)
    return Consolidated(
        folder=as_given(model if out is None else out, stored.folder.parent.parent, judged.accepted),
        accepted=judged.accepted,
        step=int(stored.name),
        parent=parent,
        experts=experts,
        sentences=len(data.train),
        epochs=tuple(record.history),
        guard=judged.guard,
        agreement=judged.agreement,
        calibrated=carried_calibration(tagger),
        device=str(tagger.device),
        cost=Cost(disk_of(stored), judge.seconds_before, judged.seconds_after),
    )


def _read(text: Texts) -> NewData:
    """The text, a share of it held out to compare the two models on."""
    given = text if isinstance(text, list | tuple) else [text]
    sentences = tuple(s for part in read_unlabelled(given).values() for s in part)
    if not sentences:
        raise CorpusError(
            "The text contains no words.", where=source_name(text), remedy="Give some text of your domain."
        )
    return NewData.of(Corpus(Path(source_name(text)).name, sentences))
