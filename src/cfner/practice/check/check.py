"""``check``: everything worth knowing about data before a model learns from it. Nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.corpus.split_files import SPLITS
from cfner.errors import CfnerError, ConfigError, nearest
from cfner.practice.check.commands import Asked, next_command
from cfner.practice.check.findings import (
    UNDECIDED,
    CheckReport,
    Finding,
    LearnPlan,
    SplitFacts,
    counted,
    ordered,
)
from cfner.practice.check.mentions import balance_findings, rarity_findings, surface_findings
from cfner.practice.check.names import name_findings
from cfner.practice.check.sentences import (
    character_findings,
    length_findings,
    reading_findings,
    repetition_findings,
)
from cfner.practice.learn.plan import OLD_LABELS, StepPlan, plan_step
from cfner.stream.stream import Step

if TYPE_CHECKING:
    from cfner.practice.check.findings import ModelFacts, TimeEstimate
    from cfner.practice.learn.new_data import NewData
    from cfner.tagger import ContinualTagger

SAMPLE = 500  # sentences that the model is asked about
SECONDS = 8.0  # for timing


def check(
    data: str | Path,
    model: str | Path | None = None,
    *,
    types: Sequence[str] | None = None,
    old_labels: str = "error",
    sample: int = SAMPLE,
    seconds: float = SECONDS,
    reading: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CheckReport:
    """Look at data before anything is trained, alone or beside the model that is to learn from it.

    ``model`` is a model folder or any Hugging Face token classifier; ``types`` and ``old_labels`` mean what
    they mean for ``learn``. ``reading`` are arguments of ``Corpus.read`` (format, tag_column, scheme ...),
    ``settings`` those of TrainingConfig (method, epochs ...). The model tags at most ``sample`` sentences;
    at most about ``seconds`` are spent on timing, 0 for none.

    Data that cannot be read raises CorpusError; whatever else is wrong is a finding.
    """
    if old_labels not in OLD_LABELS:
        raise ConfigError(f"There is no old_labels='{old_labels}'.", remedy=nearest(old_labels, OLD_LABELS))
    asked = Asked(
        data=str(data),
        model=None if model is None else str(model),
        types=None if types is None else tuple(types),
        old_labels=old_labels,
        reading={key: value for key, value in (reading or {}).items() if value is not None},
        settings=dict(settings or {}),
    )
    corpus = Corpus.read(data, **asked.reading)
    tagger: ContinualTagger | None = None
    if asked.model is not None:
        from cfner.tagger import ContinualTagger

        tagger = ContinualTagger.open(asked.model, **asked.settings)
    known = () if tagger is None else tagger.types
    plan, findings = _plan(corpus, known, asked)
    if plan is not None and tagger is not None:
        return _beside_model(corpus, asked, tagger, plan, findings, sample=sample, seconds=seconds)
    learn = None if plan is None else _learn_plan(plan, corpus.train, corpus.dev, held_out=False)
    return _report(corpus, asked, [*findings, *_data_findings(corpus, plan, known)], learn)


def _beside_model(
    corpus: Corpus,
    asked: Asked,
    tagger: ContinualTagger,
    plan: StepPlan,
    findings: list[Finding],
    *,
    sample: int,
    seconds: float,
) -> CheckReport:
    # torch and transformers come with these; data alone is checked without them
    from cfner.practice.check.model import (
        encoded,
        look_at_text,
        refusals,
        sampled,
        text_findings,
        window_findings,
    )
    from cfner.practice.check.time import estimate_time
    from cfner.practice.learn.new_data import NewData

    model = tagger.model
    fresh = NewData.of(corpus)
    held_out = fresh.dev if not corpus.dev else ()
    refused = list(refusals(tagger, plan.current))
    text = encoded(model, fresh.train)
    facts = look_at_text(tagger, asked.model or "", sampled(fresh.train, sample), plan)
    findings += [
        *refused,
        *text_findings(facts),
        *_data_findings(corpus, plan, tagger.types, held_out),
        *window_findings(model, text),
    ]
    time: TimeEstimate | None = None
    if seconds > 0 and not refused:
        try:
            time = estimate_time(tagger, _step(fresh.only(plan.current), plan, tagger), text, seconds=seconds)
        except CfnerError as error:  # what learning a few batches refuses, learning all of them would
            refused = [Finding.refusal(error)]
            findings += refused
    learn = _learn_plan(plan, fresh.train, fresh.dev, held_out=bool(held_out), tagger=tagger)
    return _report(corpus, asked, findings, None if refused else learn, facts, time)


def _step(fresh: NewData, plan: StepPlan, tagger: ContinualTagger) -> Step:
    known = tuple(type_ for type_ in tagger.types if type_ not in plan.current)
    return Step(types=plan.current, train=fresh.train, dev=fresh.dev, known=known, index=1)


def _plan(corpus: Corpus, known: Sequence[str], asked: Asked) -> tuple[StepPlan | None, list[Finding]]:
    """What would be learned, with a note on labels of known types; or why nothing would be."""
    if not corpus.train:
        remedy = "Name the file that holds the sentences to learn from 'train'."
        return None, [Finding("error", "no training data", "The data has no train split.", None, remedy)]
    mentions = corpus.mentions("train") + corpus.mentions("dev")
    try:
        plan = plan_step(list(mentions), known, asked.types, asked.old_labels)
    except ConfigError as error:
        old = sorted(set(mentions) & set(known))
        counts = f" Mentions: {', '.join(f'{t} {mentions[t]:,}' for t in old)}." if old else ""
        kind = UNDECIDED if old and asked.types is None and asked.old_labels == "error" else "refused"
        return None, [Finding("error", kind, error.what + counts, error.where, error.remedy)]
    return plan, list(_old_label_findings(plan, known, mentions))


def _old_label_findings(
    plan: StepPlan, known: Sequence[str], mentions: Mapping[str, int]
) -> Iterator[Finding]:
    dropped = [type_ for type_ in plan.ignored if type_ in known]
    if dropped:
        total = sum(mentions[type_] for type_ in dropped)
        yield Finding(
            "note",
            "old labels",
            f"{counted(total, 'mention')} of types that the model knows ({', '.join(dropped)}) would be "
            "treated as not labelled; the old model's own predictions keep these types.",
        )
    if plan.new and plan.more:
        total = sum(mentions[type_] for type_ in plan.more)
        yield Finding(
            "note",
            "old labels",
            f"{counted(total, 'mention')} of known types ({', '.join(plan.more)}) would be trained on "
            "together with the new ones. Any mention of them that is not labelled teaches that it is none.",
            remedy="If they are not labelled everywhere, use --old-labels ignore.",
        )


def _data_findings(
    corpus: Corpus,
    plan: StepPlan | None,
    known: Sequence[str] = (),
    held_out: Sequence[Sentence] = (),
) -> list[Finding]:
    current = plan.current if plan is not None else tuple(sorted(corpus.mentions("train")))
    return [
        *name_findings(current, known),
        *rarity_findings(corpus, current, held_out),
        *repetition_findings(corpus),
        *balance_findings(corpus.train),
        *surface_findings(corpus.train, current),
        *character_findings([s for split in SPLITS for s in corpus.split_named(split)]),
        *length_findings(corpus.train),
        *reading_findings(corpus.report),
    ]


def _learn_plan(
    plan: StepPlan,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    *,
    held_out: bool,
    tagger: ContinualTagger | None = None,
) -> LearnPlan:
    kept = tuple(t for t in tagger.types if t not in plan.current) if tagger is not None else ()
    frozen = tagger is not None and tagger.method.freezes_old_rows
    return LearnPlan(
        new=plan.new,
        more=plan.more,
        ignored=plan.ignored,
        kept=kept,
        kept_rows=len(tagger.model.labels.ids_of(kept)) if tagger is not None and frozen else 0,
        method=None if tagger is None else tagger.method.variant,
        epochs=None if tagger is None else tagger.config.epochs,
        train_sentences=len(train),
        dev_sentences=len(dev),
        dev_held_out=held_out,
    )


def _report(
    corpus: Corpus,
    asked: Asked,
    findings: Sequence[Finding],
    plan: LearnPlan | None,
    model: ModelFacts | None = None,
    time: TimeEstimate | None = None,
) -> CheckReport:
    splits: dict[str, SplitFacts] = {}
    for split in SPLITS:
        sentences, mentions = corpus.split_named(split), corpus.mentions(split)
        counts = {type_: mentions[type_] for type_ in corpus.types}
        splits[split] = SplitFacts(len(sentences), sum(map(len, sentences)), counts)
    return CheckReport(
        data=asked.data,
        name=corpus.name,
        reading=corpus.report,
        types=tuple(corpus.types),
        splits=splits,
        findings=ordered(findings),
        plan=plan,
        model=model,
        time=time,
        next_command=next_command(corpus, asked, plan, undecided=any(f.kind == UNDECIDED for f in findings)),
    )
