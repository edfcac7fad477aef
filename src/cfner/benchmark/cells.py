"""One cell of a grid: a method on a stream with a seed. Its key is a hash of all that decides its result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from cfner.benchmark.streams import Division, Source
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.methods.files import source_hash
from cfner.methods.method import shared_first_step
from cfner.methods.registry import create, method_class
from cfner.store.pretrained import files_hash
from cfner.stream.manifest import sentences_hash, settings_hash
from cfner.stream.stream import TaskStream
from cfner.training.config import TrainingConfig

# Raise this when a change of cfner changes the result of a run: finished cells are then run again.
RECIPE: Final = 2  # 2: the labels of a sentence are chosen together
# The same for runs with unlabelled text of methods with one Other class. 2: the text no longer counts as O of
# the new types
SHARED_OTHER_WITH_TEXT: Final = 2
# Settings without effect on a first step, which has no teacher ...
_LATER_STEPS_ONLY: Final = frozenset({"without", "matches", "unlabelled_ratio"})
# ... and on a plain one, which is the same cross-entropy for every method
_NOT_IN_A_PLAIN_ONE: Final = frozenset({"method", "parameters"})

# Training settings that may differ per method in a comparison, written like the method's parameters.
_OWN_SETTINGS: Final = ("lr_encoder", "lr_head", "epochs")

# Settings in which the runs of one comparison may differ.
_OF_ONE_RUN: Final = frozenset({"method", "parameters", "without", "seed"})


@dataclass(frozen=True)
class MethodChoice:
    """A method with its own parameters and without some of its parts, written as in tables:
    ``cfner with k=1 & lambda_base=1 without effect_o & curriculum``."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()
    without: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> MethodChoice:
        shape = r"\s*(\S+)(?:\s+with\s+(?P<with>.+?))?(?:\s+without\s+(?P<without>.+?))?\s*"
        found = re.fullmatch(shape, text)
        if found is None:
            raise ConfigError(f"'{text}' does not name a method.", remedy=_HOW)
        parameters = {}
        for pair in _listed(found["with"]):
            name, equals, value = pair.partition("=")
            if not equals:
                raise ConfigError(f"'{pair}' in '{text.strip()}' is not NAME=VALUE.", remedy=_HOW)
            parameters[name.strip()] = _value(value.strip())
        without = tuple(sorted(set(_listed(found["without"]))))
        choice = cls(found[1], tuple(sorted(parameters.items())), without)
        settings = choice.settings
        own = {name: value for name, value in parameters.items() if name not in settings}
        create(found[1], own, without)  # raises for a wrong name before any work
        TrainingConfig.build(settings)
        return choice

    @property
    def settings(self) -> dict[str, Any]:
        """The training settings among its own settings."""
        known = method_class(self.name).Parameters.model_fields
        return {k: v for k, v in self.parameters if k in _OWN_SETTINGS and k not in known}

    def __str__(self) -> str:
        with_ = _pairs(self.parameters)
        without = " & ".join(self.without)
        return self.name + (f" with {with_}" if with_ else "") + (f" without {without}" if without else "")

    def applied_to(self, config: TrainingConfig) -> TrainingConfig:
        """The same settings for this method. Parameters that it does not have are for other methods."""
        known, settings = method_class(self.name).Parameters.model_fields, self.settings
        common = {name: value for name, value in config.parameters.items() if name in known}
        own = {name: value for name, value in self.parameters if name not in settings}
        return config.model_copy(
            update={"method": self.name, "parameters": {**common, **own}, "without": self.without, **settings}
        )


_HOW = "Write for example: cfner, extendner, cfner with k=1 & lambda_base=1, cfner without effect_o."


def parse_methods(text: str) -> list[MethodChoice]:
    """Comma-separated methods."""
    choices = [MethodChoice.parse(part) for part in text.split(",") if part.strip()]
    if not choices:
        raise ConfigError("No method was given.", remedy=_HOW)
    return list(dict.fromkeys(choices))


@dataclass(frozen=True)
class Cell:
    """What to run. ``uses``: files of third-party methods."""

    source: Source
    division: Division
    method: str  # its name in tables
    config: TrainingConfig  # for this method, with its seed
    uses: tuple[str, ...] = ()
    common: Mapping[str, Any] = field(default_factory=dict)  # parameters given to all methods of the grid
    # the common values of settings for which this method has its own
    instead_of: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        return self.config.seed

    def stream(self, corpus: Corpus) -> TaskStream:
        return self.division.stream(corpus, self.source, self.seed)

    def _settings(self) -> dict[str, Any]:
        """The settings that decide a result. A local encoder is identified by its files, not by its path."""
        settings, files = self.config.what_matters(), files_hash(self.config.encoder)
        return settings if files is None else settings | {"encoder": {"files": files}}

    def _code(self) -> str | None:
        """What the method computes, besides its settings: a third-party method's code, or the number of one
        of cfner's own methods that has changed.
        """
        kind = method_class(self.config.method)
        code = source_hash(self.config.method) or (f"recipe {kind.recipe}" if kind.recipe > 1 else None)
        shared_other = (
            create(self.config.method, self.config.parameters, self.config.without).grouping is None
        )
        if self.source.unlabelled and kind.reads_unlabelled and shared_other:
            return f"{code or ''} with text {SHARED_OTHER_WITH_TEXT}"
        return code

    def key(self, stream: TaskStream) -> str:
        """Equal keys mean equal results on machines of one kind: the key covers the text, its division, the
        settings, a local encoder's files, and the method's code. With ``precision = "auto"`` it does not
        cover what the processor made of it, which each result records.
        """
        return settings_hash(
            {
                "recipe": RECIPE,
                "stream": stream.manifest()["hash"],
                "config": self._settings(),
                "code": self._code(),
            }
        )[:24]

    def first_step_key(self, stream: TaskStream) -> str:
        """Equal for cells whose first step is the same computation on the same data."""
        first, cell = stream[0], self.first_step()
        settings, code = cell._settings(), cell._code()
        if cell is not self:
            settings = {k: v for k, v in settings.items() if k not in _LATER_STEPS_ONLY}
        if method_class(self.config.method).plain_first_step:
            settings, code = {k: v for k, v in settings.items() if k not in _NOT_IN_A_PLAIN_ONE}, None
        data = {"train": first.train, "dev": first.dev, "test": stream.test_up_to(first)}
        hashes = {name: sentences_hash(sentences) for name, sentences in data.items()}
        return settings_hash(
            {"recipe": RECIPE, "types": first.types, "config": settings, "code": code, **hashes}
        )[:24]

    def shared(self, text: str) -> dict[str, Any]:
        """What runs must have in common to be compared, besides their steps. ``text``: hash of the data."""
        settings = {k: v for k, v in self.config.what_matters().items() if k not in _OF_ONE_RUN}
        if (files := files_hash(self.config.encoder)) is not None:
            settings["encoder"] = f"{Path(self.config.encoder).name} ({files[:8]})"
        return {
            **settings,
            **self.instead_of,
            **self.source.facts(),
            "recipe": RECIPE,
            "parameters": _pairs(sorted(self.common.items())) or "none",
            "text": text[:12],
        }

    def first_step(self) -> Cell:
        """A cell whose first step is shared by all cells with the same ``first_step_key``."""
        kind = method_class(self.config.method)
        if kind.plain_first_step:
            choice = MethodChoice("finetune")
        elif (shared := shared_first_step(kind)) is not None:
            given = sorted(self.config.parameters.items())
            choice = MethodChoice(
                shared.method, tuple(pair for pair in given if pair[0] in shared.parameters)
            )
        else:
            return self
        alone = self.config.model_copy(update={"parameters": {}})
        uses = () if kind.plain_first_step else self.uses
        return replace(self, method=str(choice), config=choice.applied_to(alone), uses=uses)

    def to_json(self) -> dict[str, Any]:
        return dict(_JSON.dump_python(self, mode="json"))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        return _JSON.validate_python(data)


_JSON = TypeAdapter(Cell)


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in text.split("&") if part.strip()] if text else []


def _pairs(parameters: Iterable[tuple[str, Any]]) -> str:
    texts = ((name, value if isinstance(value, str) else json.dumps(value)) for name, value in parameters)
    return " & ".join(f"{name}={text}" for name, text in texts)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
