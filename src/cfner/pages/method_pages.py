"""A page per method, written from the registry: ``python -m cfner.pages.method_pages docs/methods``."""

from __future__ import annotations

import inspect
import math
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from cfner.errors import ConfigError
from cfner.methods import Method, Wrapper, create, method_class, method_names, wrapper_class, wrapper_names
from cfner.methods.context import ExampleContext
from cfner.methods.registry import package_of
from cfner.objective.effects import MatchedPredictions
from cfner.objective.library import ClassifyAll
from cfner.objective.own_others import ClassifyGroups, KeepGroups
from cfner.objective.schedules import Curriculum
from cfner.objective.terms import Objective, Term

# Example step for computing weights: four old types, one new one, ten epochs.
_EXAMPLE, _MORE_OLD = ExampleContext(4, 1), ExampleContext(16, 1)
_NO_OLD = ExampleContext(0, 5)  # for bounds that start from scratch
_ROLES = {"learn_new": "learn the new", "keep_old": "keep the old"}
_SYMBOLS = (
    "E tokens carry a label of the step's types, O tokens the label O. $y_i$ is a token's label, $p_i$ the "
    "student's distribution over all labels, $s$ the same at the student's temperature, $q$ the teacher's "
    "over O and the old labels. Means are over the tokens of a batch."
)
_OWN_OTHERS = (
    "Labels form groups $g$, each with an Other class $O_g$ of its own: here {whose} one. $p_g$ is the "
    "student's softmax over $O_g$ and the labels of the group, $q_g$ the teacher's, $y_{i,g}$ a word's "
    "label in the group. Means are over the words of a batch, one for each group; groups are summed."
)
_NOTE = (
    "<!-- Written by `python -m cfner.pages.method_pages docs/methods`; edit the method, not this page. -->"
)


_INDEX = f"""{_NOTE}
# Methods

One page for each method in this folder: what a step after the first minimises, its parameters, its paper. The
first step is plain cross-entropy for all of them. `cfner methods` lists them with a line each, and
`cfner methods NAME` shows one in the terminal. The idea behind the causal effects is in
[concepts](../concepts.md).
"""


def method_pages() -> dict[str, str]:
    """File name -> text of every page, including the index: for methods of cfner and of installed packages,
    not for methods in a user's file.
    """
    kinds = [method_class(name) for name in method_names()] + [wrapper_class(n) for n in wrapper_names()]
    installed = [k for k in kinds if k.__module__.startswith("cfner.") or package_of(k.name) is not None]
    return {"README.md": _INDEX, **{f"{kind.name}.md": method_page(kind) for kind in installed}}


def method_page(kind: type[Method]) -> str:
    """One method: its losses, parameters, parts and origin."""
    wrapper = issubclass(kind, Wrapper)
    name = f"extendner+{kind.name}" if wrapper else kind.name
    return "\n".join(
        [
            _NOTE,
            f"# {kind.title} (`{kind.name}`)",
            "",
            _prose(kind),
            "",
            f"**Good for.** {kind.good_for}",
            "",
            f"**From.** {_origin(kind)}.",
            "",
            "```",
            f"cfner train DATA --out RUN --method {name}",
            "```",
            "",
            "## Losses",
            "",
            *(_added(kind) if wrapper else _losses(create(kind.name))),
            "",
            "## Parameters",
            "",
            *_parameters(kind),
            "",
            "## Parts to leave out",
            "",
            *_parts(kind),
            "",
        ]
    )


def _origin(kind: type[Method]) -> str:
    if (package := package_of(kind.name)) is not None:
        return f"{kind.paper}; installed with the package `{package}`"
    if kind.paper != "-":
        return kind.paper
    bound = kind.from_scratch or not kind.freezes_old_rows
    return "no paper, a bound to compare with" if bound else "no paper, this project"


def _added(wrapper: type[Method]) -> list[str]:
    added = [hook for hook in ("begin", "teachers", "targets", "finish") if hook in vars(wrapper)]
    return [
        f"Those of the method that it is added to: `NAME+{wrapper.name}` for any method NAME.",
        "",
        *(_first_paragraph(getattr(wrapper, hook)) for hook in added),
    ]


def _prose(kind: type[Method]) -> str:
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def _losses(method: Method) -> list[str]:
    if method.from_scratch and not method.grouping:
        objective, more = Objective((ClassifyAll(),)), Objective((ClassifyAll(),))
    elif method.from_scratch:
        objective, more = method.objective(_NO_OLD), method.objective(_NO_OLD)
    else:
        objective, more = method.objective(_EXAMPLE), method.objective(_MORE_OLD)
    lines = []
    for term, later in zip(objective.terms, more.terms, strict=True):
        lines += [
            f"### `{term.name}`: {_ROLES[term.role]}",
            "",
            _first_line(term),
            "",
            "```math",
            term.formula if _is_matched(term) else term.formula.replace(r"\bar y_i", "p_i"),
            "```",
            "",
            f"Weight: {_weight(term.weight, later.weight)}.{_settings(term)}",
            "",
            *([_effect(term), ""] if _effect(term) else []),
        ]
    whose = "the types of a step are" if method.grouping == "step" else "each type is"
    symbols = _OWN_OTHERS.replace("{whose}", whose) if method.grouping else _SYMBOLS
    return [symbols, "", *lines, _habits(method)]


def _first_line(term: Term) -> str:
    return _first_paragraph(type(term))


def _first_paragraph(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _weight(example: float, more_old: float) -> str:
    """The weight, and how it grows when there are four times as many old types."""
    if math.isclose(example, more_old):
        return f"{example:g}"
    return (
        f"{example:.3g} with 4 old types and 1 new one, {more_old:.3g} with 16 old ones "
        "(it grows with the number of old types)"
    )


def _settings(term: Term) -> str:
    """The term's own numbers, such as temperatures and margins."""
    own = [
        f"`{field.name}` = {getattr(term, field.name)}"
        for field in fields(term)
        if field.name not in {"name", "weight", "predictions"}
        and not isinstance(getattr(term, field.name), Objective)
    ]
    return f" With {', '.join(own)}." if own else ""


def _is_matched(term: Term) -> bool:
    return isinstance(getattr(term, "predictions", None), MatchedPredictions)


def _effect(term: Term) -> str:
    """Which predictions the term reads."""
    predictions = getattr(term, "predictions", None)
    if predictions is None:
        return ""
    if not isinstance(predictions, MatchedPredictions):
        return "It reads each token's own prediction: there are no matched tokens."
    k, curriculum = predictions.k, predictions.curriculum
    average = r"$\bar y_i = W_i\, p_i + \sum_{k=1}^{K} W_{ik}\, p_{ik}$"
    if curriculum is None:
        return (
            f"**Effect_E.** Every token of a new type reads {average} in place of its own prediction $p_i$: "
            f"itself and its K = {k} nearest tokens of {_matched_in(term, 'new types')} in the teacher's "
            "feature space. "
            "Only the token itself gets a gradient."
        )
    return (
        f"**Effect_O.** Selected defined-other tokens read {average} in place of their own prediction; their "
        f"matches are the K = {k} nearest defined-other tokens{_matched_in(term, '')}. All other tokens "
        "labelled O read their own. "
        f"{_selection(curriculum)}"
    )


def _matched_in(term: Term, usual: str) -> str:
    """The tokens that matches are searched among."""
    if not isinstance(term, ClassifyGroups | KeepGroups):
        return usual
    return "its type's group" if usual else " of the same group, in which they are read"


def _selection(curriculum: Curriculum) -> str:
    return (
        "Selected in epoch $i$ are those of which the teacher is surer than $\\delta_i$, which falls from "
        f"{curriculum.delta_1:g} in the first epoch to {curriculum.delta_m:g} in the last "
        f"(for example {curriculum.threshold(5):.2f} in epoch 5 of {curriculum.m})."
    )


def _habits(method: Method) -> str:
    """What a method does besides its losses."""
    lines = []
    if type(method).views is not Method.views:
        lines.append(_first_paragraph(type(method).views))
    if type(method).targets is not Method.targets:
        lines.append(_first_paragraph(type(method).targets))
    if type(method).finish is not Method.finish:
        lines.append(_first_paragraph(type(method).finish))
    if method.from_scratch:
        lines.append("Each step starts again from the pretrained encoder, on the data of all steps so far.")
    if type(method).begin is not Method.begin:
        lines.append(_first_paragraph(type(method).begin))
    elif method.freezes_old_rows:
        lines.append("The head's rows of old types are frozen (O's row too with `freeze_other`).")
    else:
        lines.append("Nothing is frozen.")
    return " ".join(lines)


def _parameters(kind: type[Method]) -> list[str]:
    known = kind.Parameters.model_fields
    if not known:
        return ["None."]
    rows = []
    for name, field in known.items():
        default = "not set" if field.default is None else str(field.default)
        paper = f" (with `--preset paper`: {kind.published[name]})" if name in kind.published else ""
        rows.append(f"| `{name}` | {default}{paper} | {_cell(field.description or '')} |")
    return [
        "| parameter | default | meaning |",
        "|---|---|---|",
        *rows,
        "",
        "Give one with `--set NAME=VALUE`; those of the paper also have a flag of their own "
        "(`cfner train --help`).",
    ]


def _parts(kind: type[Method]) -> list[str]:
    if not kind.parts:
        return ["None."]
    return [
        "`--without PART` leaves one out; it may be given several times.",
        "",
        "| part | what is left out |",
        "|---|---|",
        *(f"| `{part}` | {_cell(what)} |" for part, what in kind.parts.items()),
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_pages(folder: Path) -> list[Path]:
    """Write every page; pages of methods that are gone are removed."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError("This is not a folder.", where=str(folder), remedy="Name the folder of the pages.")
    folder.mkdir(parents=True, exist_ok=True)
    pages = method_pages()
    for stale in folder.glob("*.md"):
        if stale.name not in pages and stale.read_text(encoding="utf-8").startswith(_NOTE):
            stale.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m cfner.pages.method_pages FOLDER")
    for path in write_pages(Path(sys.argv[1])):
        sys.stdout.write(f"{path}\n")
