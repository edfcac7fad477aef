"""Make one network of a model's experts, taught by them on text without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.report import ReadReport
from cfner.errors import CorpusError
from cfner.interop.text_stream import read_texts
from cfner.practice.evaluate.evaluate import set_name
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
from cfner.practice.learn.new_data import NewData, mentioning, read_labelled
from cfner.practice.learn.unlabelled import UnlabelledText
from cfner.runs.cost import Cost, disk_of
from cfner.runs.run_step import judge_and_save
from cfner.runs.unfinished import UnfinishedModel
from cfner.store.model_files import FIXED_AT_CREATION
from cfner.stream.manifest import sentences_hash, settings_hash
from cfner.tagger import ContinualTagger
from cfner.training.config import given_settings
from cfner.training.progress import Progress
from cfner.training.step import experts_of


@dataclass(frozen=True)
class Consolidated:
    """What came of it. ``folder`` holds the new model: where it was asked for, or aside if it was refused."""

    folder: Path
    accepted: bool
    step: int
    parent: int  # the step whose experts it was made of
    experts: int
    sentences: int  # that it was taught on
    epochs: tuple[dict[str, float], ...]
    guard: GuardReport | None
    agreement: tuple[AgreementReport, ...]
    calibrated: tuple[str, ...]  # types whose calibration was carried along, measured before this step
    device: str
    cost: Cost

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
    text: str | Path,
    *,
    out: str | Path | None = None,
    in_place: bool = False,
    guard: str | Path | None = None,
    max_forgetting: float = 2.0,
    accept_forgetting: Sequence[str] = (),
    strict: bool = False,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Consolidated:
    """Distil all experts of ``model`` into one network, on the sentences in the file ``text``.

    It is a step with no new types. It goes to ``out``, or is added to the model with ``in_place``; if the
    guard refuses it (a type is surely lost or, with ``strict``, not surely kept), it is saved separately
    instead. ``settings`` are those of TrainingConfig, over those in
    the file ``config``.
    """
    place = UnfinishedModel(model, out, in_place)
    refuse_limit(max_forgetting)
    refuse_strict(strict, guard)
    data = _read(Path(text))
    judging, read = ((), ReadReport()) if guard is None else read_labelled(guard)
    if progress is not None:
        for line in read.left_out():
            progress.note(f"{guard}: {line}.")
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
        guard_name="" if guard is None else set_name(guard),
        strict=strict,
        beside=places_of_attempts(place.target, model),
    )
    with place.steps_so_far(tagger, call, judge.of_old_model()):
        parent = step_number(tagger)
        score_earlier_steps(place.folder, judge, tagger, progress)
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


def _read(path: Path) -> NewData:
    """The text, a share of it held out to compare the two models on."""
    sentences = tuple(sentence.only([]) for sentence in read_texts(path) if len(sentence))
    if not sentences:
        raise CorpusError(
            "The file holds no words.", where=str(path), remedy="Give some text of your domain."
        )
    return NewData.of(Corpus(path.name, sentences, (), ()))
