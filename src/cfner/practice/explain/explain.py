"""Explain one sentence: each anchor, its matched tokens, and the losses that each token contributed to.

Teacher scores, pools, matches and selection come from the same functions that training uses, and the inputs
of a loss come from the loss itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.objective.effects import matching_of
from cfner.objective.terms import TeacherView, TermInputs
from cfner.practice.explain.explanation import EpochSelection, Explanation, SliceSummary, TermFacts
from cfner.practice.explain.learned import GivenToLearn, learned_step
from cfner.practice.explain.replay import ReplayedStep, best_epoch, effect_of, replay_step
from cfner.practice.explain.tokens import explain_tokens
from cfner.runs.rebuild import recorded_stream
from cfner.runs.run_folder import RUN, read_run
from cfner.store.lineage import LineageStep, ancestors, lineage
from cfner.store.open import ModelRef
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger


def explain_run(
    folder: str | Path,
    corpus: Corpus,
    step: int | None = None,
    *,
    given: GivenToLearn | None = None,
    sentence: int | None = None,
    epoch: int | None = None,
    top: int = 3,
    device: str = "auto",
) -> Explanation:
    """Explain a sentence of a step that ``train`` or ``learn`` wrote.

    ``corpus`` is the training data of the run or step. ``step`` counts from 1; default: the latest trained
    step in the history of the current one. ``given``: the other inputs of ``learn``.
    """
    ref = ModelRef.parse(folder, step)
    folder = ref.source
    learned = _with_teacher(folder, ref.step)
    method = {key: learned.record["config"].get(key) for key in ("method", "parameters", "without")}
    replayed = _recorded_step(folder, learned, corpus, given or GivenToLearn())
    teacher = ContinualTagger.load(folder, learned.parent, device=device)
    named = {key: value for key, value in method.items() if value is not None}
    student = ContinualTagger.load(folder, learned.number, device=device, **named)
    found = explain_step(teacher, student, replayed, sentence=sentence, epoch=epoch, top=top)
    return replace(found, step=learned.number)


def _with_teacher(folder: str | Path, step: int | None) -> LineageStep:
    """The step to explain, which must have a teacher."""
    steps = [found for found in lineage(folder) if found.kind == "learn" and found.parent is not None]
    if step is None:
        wanted = {found.number for found in ancestors(folder)}
        chosen = next((found for found in reversed(steps) if found.number in wanted), None)
    else:
        chosen = next((found for found in steps if found.number == step), None)
    if chosen is None:
        numbers = ", ".join(str(found.number) for found in steps)
        what = "No step" if step is None else f"Step {step}"
        raise ConfigError(
            f"{what} {'can' if step is None else 'cannot'} be explained: the explanation needs the "
            "teacher, the step that it was learned from.",
            where=str(folder),
            remedy=f"Steps with a teacher: {numbers}." if numbers else "Learn a second step first.",
        )
    return chosen


def _recorded_step(folder: str | Path, learned: LineageStep, corpus: Corpus, given: GivenToLearn) -> Step:
    """The step as it was trained, by ``train`` or by ``learn``."""
    if (Path(folder) / RUN).is_file():
        names = [step["name"] for step in read_run(Path(folder))["manifest"]["steps"]]
        if learned.name in names:  # later steps may have been added
            return recorded_stream(folder, corpus)[names.index(learned.name)]
    return learned_step(learned, corpus, given)


def explain_step(
    teacher: ContinualTagger,
    student: ContinualTagger,
    step: Step,
    *,
    sentence: int | None = None,
    epoch: int | None = None,
    top: int = 3,
) -> Explanation:
    """Explain one sentence of a step's training slice.

    ``teacher`` is the tagger as it was before the step, ``student`` as it was after. ``sentence`` counts
    from 0; by default it is the one with most E and defined-other tokens. ``epoch`` sets the curriculum's
    threshold; by default it is the epoch whose weights the student has.
    """
    scene = replay_step(teacher, student, step, epoch, top)
    sentences = scene.data.sentences
    chosen = _busiest(scene) if sentence is None else sentence
    if not 0 <= chosen < len(sentences):
        raise ConfigError(
            f"There is no sentence {chosen} in the training slice of '{step.name}'.",
            remedy=f"Sentences are numbered 0 to {len(sentences) - 1}.",
        )
    matching = matching_of(scene.prepared.objective)
    return Explanation(
        method=student.method.variant,
        step=step.index + 1,
        new_types=step.types,
        old_types=tuple(type_ for type_ in scene.labels.types if type_ not in step.types),
        epoch=scene.epoch,
        epochs=scene.epochs,
        best_epoch=best_epoch(student),
        k=matching.k if matching else 0,
        terms=tuple(
            TermFacts(term.name, term.role, term.weight, term.formula, effect_of(term) is not None)
            for term in scene.prepared.objective.terms
        ),
        slice=_summary(scene),
        sentence=chosen,
        source=sentences[chosen].source,
        tokens=explain_tokens(scene, chosen),
    )


def _busiest(scene: ReplayedStep) -> int:
    """The sentence with most E and defined-other tokens."""
    pooled = np.zeros(scene.data.text.words, dtype=np.int64)
    pooled[scene.scores.pool.cpu().numpy()] = 1
    before = np.concatenate([[0], np.cumsum(pooled)])
    return int(np.diff(before[scene.data.text.sentence_bounds]).argmax())


def _summary(scene: ReplayedStep) -> SliceSummary:
    gold, roles = scene.data.gold, scene.prepared.roles
    other, defined = gold == roles.other, scene.scores.defined_other
    hidden = right = right_type = None
    if scene.truth is not None:
        type_of = torch.tensor(_type_numbers(scene.labels), device=gold.device)
        hidden = other & (scene.truth != roles.other)
        right = scene.teacher_ids == scene.truth
        right_type = type_of[scene.teacher_ids] == type_of[scene.truth]
    return SliceSummary(
        sentences=len(scene.data.sentences),
        tokens=len(gold),
        entity_tokens=int(roles.is_new[gold].sum()),
        other_tokens=int(other.sum()),
        hidden_old=None if hidden is None else int(hidden.sum()),
        hidden_old_found=None if hidden is None else _both(hidden, right_type),
        defined_other=int(defined.sum()),
        defined_other_right=_both(defined, right),
        epochs=_curriculum(scene, right, right_type),
    )


def _curriculum(
    scene: ReplayedStep, right: Tensor | None, right_type: Tensor | None
) -> tuple[EpochSelection, ...]:
    """The tokens that each epoch selects for Effect_O; empty for a method without it."""
    effect = scene.effect("keep_old")
    if effect is None or effect.curriculum is None:
        return ()
    gold, scores = scene.data.gold, scene.scores
    nothing = scores.logits.new_empty(len(gold), 0)  # the selection does not depend on the student
    inputs = TermInputs(
        logits=nothing,
        features=nothing,
        gold=gold,
        refs=torch.arange(len(gold), device=gold.device),
        roles=scene.prepared.roles,
        teachers={"old": TeacherView(scores.logits, scores.defined_other, scores.confidence)},
    )
    found = []
    for epoch in range(1, scene.epochs + 1):
        selected, delta = effect.selected(replace(inputs, epoch=epoch)), effect.curriculum.threshold(epoch)
        agreed = _both(selected, right), _both(selected, right_type)
        found.append(EpochSelection(epoch, delta, int(selected.sum()), *agreed))
    return tuple(found)


def _type_numbers(labels: LabelSpace) -> list[int]:
    """The index of each label's type, -1 for O."""
    number = {type_: index for index, type_ in enumerate(labels.types)}
    return [number.get(labels.type_of(label) or "", -1) for label in range(len(labels))]


def _both(mask: Tensor, other: Tensor | None) -> int | None:
    return None if other is None else int((mask & other).sum())
