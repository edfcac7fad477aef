"""The file that ``cfner bench add-method`` writes: a complete method, small enough to change at once."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from cfner.errors import ConfigError
from cfner.methods.registry import method_names

_FILE = Template('''\
"""$title: a method of your own.

A method defines the losses that a step minimises; cfner has the loop, the teacher's scores, matching,
evaluation and saving. Change ``objective`` to make a different method. Try it:

    cfner train DATA --use $file --method $name --out RUN
    cfner bench run --data DATA --use $file --methods $name,cfner,extendner --out RUNS
    cfner bench report RUNS
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cfner.methods import (
    DISTILS,
    ClassifyEntities,
    Curriculum,
    Distil,
    Method,
    MethodParameters,
    Objective,
    StepContext,
    register,
    with_causal_effect,
)


class ${stem}Parameters(MethodParameters):
    """Each is a flag: --set NAME=VALUE, or 'with NAME=VALUE' in a grid."""

    weight: float = Field(1.0, ge=0, description="weight of keeping the old types")
    k: int = Field(3, ge=0, description="matched tokens per anchor; 0: no causal effect")


@register
class $stem(Method):
    """Cross-entropy on new entities, distillation on O words, and the causal effect of the O words alone."""

    name: ClassVar[str] = "$name"
    title: ClassVar[str] = "$title"
    paper: ClassVar[str] = "yours"
    good_for: ClassVar[str] = "A start."
    promise: ClassVar[str] = DISTILS  # what users read about their old types, in your own words
    Parameters = ${stem}Parameters

    def objective(self, ctx: StepContext) -> Objective:
        """The terms of a step after the first. ``ctx`` has the numbers of old and new types, and epochs.

        Terms to choose from are in ``cfner.methods``. A new one is a subclass of ``Term``, a dataclass with a
        ``name``, a ``role`` ("learn_new" or "keep_old") and a ``__call__`` that takes TermInputs (scores,
        features, labels of a batch's words) and returns a scalar. More hooks (begin, teachers, targets,
        finish) are described in ``cfner.methods.Method``.
        """
        p: ${stem}Parameters = self.parameters
        terms = Objective((ClassifyEntities(), Distil(weight=p.weight)))
        curriculum = Curriculum(1.0, 0.0, ctx.epochs)
        return with_causal_effect(terms, effect_e=False, effect_o=True, k=p.k, curriculum=curriculum)
''')


def method_file(name: str, file: Path) -> str:
    """The text of a file with a method of this name."""
    stem = "".join(part.capitalize() for part in re.split(r"[^a-zA-Z0-9]+", name) if part)
    if not re.fullmatch(r"[a-z][a-z0-9_+-]*", name) or not stem.isidentifier() or keyword.iskeyword(stem):
        raise ConfigError(
            f"'{name}' cannot be a method's name.",
            remedy="Use lower-case letters, digits and hyphens, beginning with a letter: my-method.",
        )
    if name in method_names():
        raise ConfigError(f"There is already a method '{name}'.", remedy="Choose a different name.")
    return _FILE.substitute(name=name, stem=stem, title=stem, file=str(file))
