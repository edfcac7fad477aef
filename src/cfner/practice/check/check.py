"""``check``: report on data before a model learns from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.in_memory import Data, source_name
from cfner.errors import CfnerError, ConfigError, nearest
from cfner.interop.text_names import is_file
from cfner.practice.check.commands import next_command
from cfner.practice.check.findings import (
    SEVERITIES,
    UNDECIDED,
    CheckReport,
    Finding,
    LearnPlan,
    ModelFacts,
    TimeEstimate,
    counted,
    note,
    split_facts,
)
from cfner.practice.check.quick import data_findings
from cfner.practice.learn.new_data import HELD_OUT, NewData
from cfner.practice.learn.plan import OLD_LABELS, StepPlan, plan_step
from cfner.practice.learn.types_found import SAMPLE
from cfner.practice.learn.unlabelled import Given, Texts, UnlabelledText, read_unlabelled
from cfner.stream.step import Step

if TYPE_CHECKING:
    from cfner.practice.check.curve import LearningCurve
    from cfner.tagger import ContinualTagger
    from cfner.training.progress import Progress

SECONDS = 8.0  # for timing


def check(
    data: Data,
    model: str | Path | None = None,
    *,
    types: Sequence[str] | None = None,
    old_labels: str = "error",
    unlabelled: Sequence[Given] = (),
    sample: int = SAMPLE,
    seconds: float = SECONDS,
    curve: bool = False,
    reading: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """As ``cfner.check``; ``settings`` of TrainingConfig and options for reading as one dictionary each.

    The model tags at most ``sample`` sentences of the data, and as many unlabelled ones. Timing takes about
    ``seconds``; 0 turns it off.
    """
    if old_labels not in OLD_LABELS:
        raise ConfigError(f"`old_labels` cannot be '{old_labels}'.", remedy=nearest(old_labels, OLD_LABELS))
    if curve and model is None:
        raise ConfigError(
            "A learning curve needs a model, but none was given.",
            remedy="Name it (`model`).",
        )
    if unlabelled and model is None:
        raise ConfigError(
            "Checking unlabelled text needs a model, but none was given.",
            remedy="Name it (`model`), or leave the text out.",
        )
    reading = {key: value for key, value in (reading or {}).items() if value is not None}
    corpus, place = Corpus.read(data, **reading), source_name(data)
    texts = read_unlabelled(unlabelled)  # report a missing file before loading a model
    tagger: ContinualTagger | None = None
    if model is not None:
        from cfner.tagger import ContinualTagger

        tagger = ContinualTagger.open(str(model), **(settings or {}))
    known = () if tagger is None else tagger.types
    plan, findings = _plan(corpus, known, types, old_labels)
    facts: ModelFacts | None = None
    time: TimeEstimate | None = None
    learn: LearnPlan | None = None
    shape: LearningCurve | None = None
    if plan is None or tagger is None:
        current = sorted(corpus.mentions("train")) if plan is None else plan.current
        findings += data_findings(corpus, current, known, place, reading)
        if plan is not None:
            train, dev = len(corpus.train), len(corpus.dev)
            learn = LearnPlan(**asdict(plan), train_sentences=train, dev_sentences=dev, chooses_epoch=False)
    else:
        found, learn, facts, time, step = _beside_model(
            corpus, tagger, plan, place, reading, str(model), texts, sample, seconds
        )
        findings += found
        if curve and learn is not None:
            from cfner.practice.check.curve import learning_curve

            shape = learning_curve(tagger, step, progress)
    if any(finding.kind == UNDECIDED for finding in findings):
        old_labels = "ignore"
    asked = (place, None if model is None else str(model), types or None, old_labels)
    return CheckReport(
        data=place,
        name=corpus.name,
        reading=corpus.report,
        types=tuple(corpus.types),
        splits=split_facts(corpus),
        findings=tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
        plan=learn,
        model=facts,
        time=time,
        curve=shape,
        next_command=next_command(
            corpus, learn, *asked, reading, settings or {}, [str(one) for one in unlabelled if is_file(one)]
        ),
    )


def _beside_model(
    corpus: Corpus,
    tagger: ContinualTagger,
    plan: StepPlan,
    data: str,
    reading: Mapping[str, Any],
    source: str,
    texts: Texts,
    sample: int,
    seconds: float,
) -> tuple[list[Finding], LearnPlan | None, ModelFacts, TimeEstimate | None, Step]:
    # these import torch and transformers, which checking data alone does not need
    from cfner.practice.check import model as of_model
    from cfner.practice.check.old_types import text_findings
    from cfner.practice.check.time import estimate_time
    from cfner.practice.learn.cross_validation import Scoring
    from cfner.training.reminders import reminder_count

    chooses = tagger.config.select_on != "last"
    fresh = NewData.of(corpus, 0)
    scoring = Scoring.of(fresh.only(plan.current), chooses, None, HELD_OUT)
    labelled = scoring.data
    if labelled.dev and not fresh.dev:  # hold out the same sentences, whatever their labels
        fresh = fresh.with_dev(HELD_OUT)
    kept = tuple(type_ for type_ in tagger.types if type_ not in plan.current)
    refused = list(of_model.refusals(tagger, plan.current))
    text = of_model.encoded(tagger.model, fresh.train)
    reads = tagger.method.reads_unlabelled and tagger.config.unlabelled_ratio > 0
    pool = UnlabelledText.divide(texts, fresh.train, (*fresh.dev, *fresh.test)).pool if reads else ()
    facts = of_model.look_at_text(tagger, source, fresh.train, plan, pool, sample)
    step = Step(
        types=plan.current, train=labelled.train, dev=labelled.dev, known=kept, index=1, unlabelled=pool
    )
    findings = [
        *refused,
        *text_findings(facts),
        *([] if reads or not texts else [_not_read(tagger.method.variant)]),
        *data_findings(corpus, plan.current, tagger.types, data, reading, () if corpus.dev else fresh.dev),
        *of_model.window_findings(tagger.model, text),
    ]
    time = None
    if seconds > 0 and not refused:
        try:
            time = estimate_time(tagger, step, text, seconds=seconds, folds=scoring.folds)
        except CfnerError as error:  # an error in a few batches would also stop learning
            refused = [Finding.refusal(error)]
            findings += refused
    if refused:
        return findings, None, facts, time, step
    learn = LearnPlan(
        **asdict(plan),
        kept=kept,
        kept_rows=len(tagger.model.labels.ids_of(kept)) if tagger.method.freezes_old_rows else 0,
        method=tagger.method.variant,
        epochs=tagger.config.epochs_for(len(fresh.train)),
        train_sentences=len(fresh.train),
        unlabelled_sentences=reminder_count(step, tagger.config),
        dev_sentences=len(fresh.dev),
        chooses_epoch=chooses,
        dev_held_out=bool(fresh.dev) and not corpus.dev,
        test_sentences=len(scoring.tested),
        folds=scoring.folds,
    )
    return findings, learn, facts, time, step


def _not_read(method: str) -> Finding:
    return note(
        "unlabelled text not used",
        f"The method '{method}' does not train on unlabelled text: it would only be used to compare the "
        "old and the new model.",
    )


def _plan(
    corpus: Corpus, known: Sequence[str], types: Sequence[str] | None, old_labels: str
) -> tuple[StepPlan | None, list[Finding]]:
    """What would be learned, with a note on labels of known types; or why learning is impossible."""
    if not corpus.train:
        remedy = "Name the file that holds the sentences to learn from 'train'."
        return None, [Finding("error", "no training data", "The data has no train split.", None, remedy)]
    mentions = corpus.mentions("train") + corpus.mentions("dev")
    try:
        plan = plan_step(list(mentions), known, types, old_labels)
    except ConfigError as error:
        old = sorted(set(mentions) & set(known))
        counts = f" Mentions: {', '.join(f'{t} {mentions[t]:,}' for t in old)}." if old else ""
        kind = UNDECIDED if old and types is None and old_labels == "error" else "refused"
        return None, [Finding("error", kind, error.what + counts, error.where, error.remedy)]
    return plan, list(_old_label_findings(plan, known, mentions))


def _old_label_findings(
    plan: StepPlan, known: Sequence[str], mentions: Mapping[str, int]
) -> Iterator[Finding]:
    dropped = [type_ for type_ in plan.ignored if type_ in known]
    if dropped:
        total = sum(mentions[type_] for type_ in dropped)
        yield note(
            "old labels",
            f"{counted(total, 'mention')} of types that the model knows ({', '.join(dropped)}) would be "
            "treated as not labelled; the old model's own predictions keep these types.",
        )
    if plan.new and plan.more:
        total = sum(mentions[type_] for type_ in plan.more)
        yield note(
            "old labels",
            f"{counted(total, 'mention')} of known types ({', '.join(plan.more)}) would be trained on "
            "together with the new ones. Every unlabelled mention of them is a wrong training example.",
            remedy='If they are not labelled everywhere, use `old_labels="ignore"`.',
        )
