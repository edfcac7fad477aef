"""The README of an exported model: what it finds and how well, where it comes from, how to use it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cfner.evaluation.measured import over_all
from cfner.evaluation.scores import Scores
from cfner.files.markdown import escaped, table
from cfner.files.safe_text import visible
from cfner.interop.export_folder import ExportReport
from cfner.interop.reproduction import is_hub_name, public, reproduction
from cfner.interop.usage import usage
from cfner.store.lineage import LineageStep, ancestors
from cfner.store.model_files import LoadedModel
from cfner.store.model_folder import ModelFolder
from cfner.store.open import ModelRef, is_model_folder
from cfner.store.series import Series, series_for, series_of


@dataclass(frozen=True)
class Provenance:
    """The facts in a card. ``steps``: oldest first, the model itself last."""

    name: str
    steps: tuple[LineageStep, ...] = ()
    series: tuple[Series, ...] = ()  # with scores of the model itself; the first is published

    @classmethod
    def of(cls, source: str | Path, step: int | None = None) -> Provenance:
        """Everything that a model folder records; for a checkpoint only its name."""
        ref = ModelRef.parse(source, step)
        path = Path(ref.source)
        if not is_model_folder(path):
            return cls(path.resolve().name if path.exists() else ref.source)
        steps = tuple(ancestors(path, ref.step))
        series = series_for(series_of(ModelFolder(path), steps), steps[-1].number)
        return cls(path.resolve().name, steps, tuple(series))


def model_card(
    model: LoadedModel, report: ExportReport, facts: Provenance, *, license: str | None = None
) -> str:
    """Front matter as the hub expects it, then text. Labels and paths are escaped."""
    parts = [
        f"---\n{_front_matter(model, report, facts, license)}\n---\n",
        f"# {escaped(facts.name)}\n",
        f"Finds entities of {len(model.labels.types)} types in text: "
        f"{', '.join(escaped(type_) for type_ in model.labels.types) or 'none yet'}. "
        f"Encoder: {escaped(public(model.encoder))}.\n",
        "## How to use it\n",
        usage(model, report),
        "## Scores\n",
        _scores(model, facts),
        *_calibration(model),
        "## Where it comes from\n",
        _lineage(facts),
        "## Intended use and limits\n",
        _limits(model, facts, report),
        "## How to reproduce it\n",
        reproduction(model, facts.steps),
        "## Licence\n",
        f"{escaped(license)}\n"
        if license
        else "Not stated. If you publish this model, add `license:` to the lines at the top; "
        "the licences of the encoder and of the training data apply too.\n",
    ]
    return "\n".join(parts)


def _front_matter(model: LoadedModel, report: ExportReport, facts: Provenance, license: str | None) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    figures, on = {}, ""
    if facts.series and facts.series[0].on is not None:  # otherwise the test sentences are unknown
        scores, on = facts.series[0].scores[facts.steps[-1].number], facts.series[0].on.label
        types = _over(scores, model)
        figures = {
            visible(f"F1 (micro, entity level{types})"): scores.micro_f1,
            visible(f"F1 (macro{types or ' over types'})"): scores.macro_f1,
        }
    # every value is one line, because a line of three dashes would end the front matter
    results = [
        EvalResult(
            task_type="token-classification",
            task_name="Named entity recognition",
            dataset_type="unspecified",
            dataset_name=visible(on),
            metric_type="f1",
            metric_name=name,
            metric_value=round(value / 100, 4),
        )
        for name, value in figures.items()
    ]
    data = ModelCardData(
        license=visible(license) if license else None,
        library_name="transformers" if report.kind == "hf" else "onnx",
        pipeline_tag="token-classification",
        tags=["token-classification", "named-entity-recognition", "cfner"],
        base_model=visible(model.encoder) if is_hub_name(model.encoder) else None,
        model_name=visible(facts.name) if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml())


def _over(scores: Scores, model: LoadedModel) -> str:
    """The types that a mean covers, if they are not all types of the model."""
    return "" if over_all(scores.types, model.labels.types) else f" over {', '.join(scores.types)}"


def _scores(model: LoadedModel, facts: Provenance) -> str:
    """The scores on one set of sentences; other sets are only named, because they are not comparable."""
    if not facts.series:
        return "No scores were recorded for this step.\n" + _estimates(facts)
    first, *others = facts.series
    step = facts.steps[-1].number
    scores, over = first.scores[step], _over(first.scores[step], model)
    means = [(f"all (micro{over})", scores.micro)] if first.on is not None else []
    rows = [
        [escaped(name), f"{c.precision:.1f}", f"{c.recall:.1f}", f"{c.f1:.1f}", str(c.n_gold)]
        for name, c in [*scores.counts.items(), *means]
    ]
    if first.on is not None:
        rows.append([escaped(f"all (macro{over})"), "", "", f"{scores.macro_f1:.1f}", ""])
    apart = [f"{one.label} ({', '.join(one.scores[step].types)})" for one in others]
    return (
        "Entity level, in percent: a mention counts if its words and its type are right. Measured with the "
        f"original model on one set of sentences: {escaped(first.label)}.\n\n"
        + table(["type", "precision", "recall", "F1", "mentions"], rows)
        + (
            f"\nAlso measured on other sentences, not comparable: {escaped('; '.join(apart))}.\n"
            if apart
            else ""
        )
        + _estimates(facts)
    )


def _estimates(facts: Provenance) -> str:
    """Scores of each step's types when it was learned; listed separately, since no two steps share
    sentences."""
    lines = [
        f"- Step {step.number}, F1: {escaped(step.estimate.figures())}. Measured with "
        f"{escaped(step.estimate.in_words())}.\n"
        for step in facts.steps
        if step.estimate is not None and step.estimate.types
    ]
    if not lines:
        return ""
    told = "How well types were found when they were learned, with 95 % intervals; not comparable with other"
    return f"\n{told} figures:\n\n" + "".join(lines)


def _lineage(facts: Provenance) -> str:
    if not facts.steps:
        return "Its history is not recorded: it was not exported from a cfner model folder.\n"
    rows = []
    for step in facts.steps:
        train = (step.record.get("data") or {}).get("train") or {}
        rows.append(
            [
                str(step.number),
                escaped(step.kind),
                escaped(step.name),
                ", ".join(escaped(type_) for type_ in step.types),
                escaped(step.method or ""),
                str(train.get("sentences", "")),
                escaped(str(train.get("hash", ""))[:16]),
                escaped(step.hash[:16]),
            ]
        )
    head = ["step", "kind", "name", "types", "method", "sentences", "data (SHA-256)", "step (SHA-256)"]
    return (
        "Learned step by step; in each step only the types named were labelled in the training data.\n\n"
        + table(head, rows)
    )


def _calibration(model: LoadedModel) -> list[str]:
    """The calibration measured on held-out data, if any."""
    if model.calibration is None:
        return []
    rows = [
        [
            escaped(type_),
            f"{one.temperature:.3f}",
            f"{one.bias:+.3f}",
            f"{one.shift:+.3f}",
            "" if one.precision is None else f"{one.precision:g}",
        ]
        for type_, one in model.calibration.types.items()
    ]
    told = (
        "Fitted on held-out sentences, in log-odds. Temperature and bias make cfner's scores the share of "
        "such mentions that are right. The shift moves a type's threshold. A promised precision was "
        "shown for text like those sentences (a test at 95 %); nothing is promised for other types.\n\n"
    )
    return [
        "## Calibration\n",
        told + table(["type", "temperature", "bias", "shift", "promised precision"], rows),
    ]


def _limits(model: LoadedModel, facts: Provenance, report: ExportReport) -> str:
    early = "" if len(facts.steps) < 2 else (
        "Types of earlier steps were kept without their data: look at their scores above before you rely on "
        "them. "
    )  # fmt: skip
    return (
        "For finding mentions of the types above in text like the training data. Other languages, domains or "
        "spellings were not tested unless the scores say so. "
        f"{early}{_scores_meant(model, report)} Mentions "
        "neither nest nor overlap. Do not use it alone for decisions about people, nor to certify that a "
        "text holds no personal data.\n\n"
        f"The encoder reads {model.max_length} subwords at once; cfner reads longer texts in overlapping "
        "windows.\n"
    )


def _scores_meant(model: LoadedModel, report: ExportReport) -> str:
    if model.calibration is None or report.kind == "hf":
        return "Scores of single mentions are uncalibrated probabilities."
    return "Scores of single mentions are calibrated only for the types in the table above."
