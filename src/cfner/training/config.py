"""The schema of all settings. Files and flags are read and merged here."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cfner.errors import ConfigError, nearest, problems

USUAL_EPOCHS: Final = 10
# settings about progress and hardware: they do not change the result
RUNTIME_ONLY = frozenset({"trackers", "workers", "eval_batch_size", "checkpoint_minutes", "device"})


class TrainingConfig(BaseModel):
    """How a step is trained. The defaults were measured: see docs/decisions.md."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    # what is trained
    encoder: str = Field("bert-base-cased", description="hub name, folder, or 'minilm'")
    method: str = Field("own-other", description="see cfner.methods.method_names()")
    parameters: dict[str, Any] = Field(default_factory=dict, description="the method's own parameters")
    as_published: bool = Field(False, description="parameters that are not given have the paper's values")
    without: tuple[str, ...] = Field((), description="parts of the method left out (ablation)")
    head: Literal["cosine", "linear"] = Field(
        "cosine", description="head of a new model, unless the method requires a different one"
    )
    sigma: float = Field(16.0, gt=0, description="scale of the cosine head at the start; learned")
    freeze_other: bool = Field(False, description="freeze O's row with the old types' rows")
    freeze_layers: int = Field(
        0, ge=0, description="lowest layers to freeze, with the embeddings; their output is computed once"
    )
    train_embeddings: bool = Field(False, description="update the subword embedding table")
    dropout: float | None = Field(
        0.0, ge=0, lt=1, description="dropout of the encoder in training; null: the encoder's own"
    )
    # how long
    epochs: int | None = Field(
        None, ge=1, description="epochs per step; default: 10, or more to reach min_updates"
    )
    min_updates: int = Field(300, ge=0, description="fewest updates per step, if epochs is not given")
    select_on: Literal["new", "new+old", "last"] = Field(
        "last",
        description="how to choose the epoch: not at all (keep the last), by the new types' dev F1 (the "
        "paper's rule), or by that and the agreement with the old model on old types",
    )
    patience: int | None = Field(None, ge=1, description="stop after this many epochs without a better one")
    checkpoint_minutes: float = Field(
        5.0, ge=0, description="minutes between saves of an unfinished step, in a run with a folder"
    )
    unlabelled_ratio: float = Field(
        1.0, ge=0, description="unlabelled sentences per labelled one, if there are any"
    )
    # how
    batch_size: int = Field(8, ge=1, description="windows per batch and process")
    accumulation: int = Field(1, ge=1, description="batches per optimiser step")
    optimiser: Literal["adamw", "sgd"] = "adamw"
    lr_encoder: float = Field(1e-4, ge=0)
    lr_head: float = Field(3e-3, ge=0)
    first_lr: float | None = Field(None, ge=0, description="one rate for all in the first step (sgd preset)")
    schedule: Literal["linear", "constant", "drop"] = Field(
        "linear", description="'drop': times 0.2 after the first step's fifth epoch, constant later"
    )
    warmup: float = Field(0.1, ge=0, le=1, description="share of the batches that warm up")
    weight_decay: float = Field(0.01, ge=0, description="of the encoder; head rows do not decay")
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd only")
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm")
    matches: Literal["bank", "exact"] = Field(
        "bank", description="matched predictions: cached scores, or encoded again for every batch"
    )
    # where and with what
    max_length: int | None = Field(
        None, ge=3, description="subwords per window; default: the encoder's limit"
    )
    overlap: int | None = Field(None, ge=0, description="subwords shared by windows; default: a quarter")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="precision of the encoder; auto: bf16 where the GPU or processor supports it"
    )
    seed: int = Field(0, ge=0)
    device: str = Field("auto", description="auto (a GPU if there is one), cpu, cuda, cuda:N, mps")
    workers: int = Field(0, ge=0, description="processes that prepare batches")
    eval_batch_size: int = Field(64, ge=1)
    trackers: tuple[str, ...] = Field((), description="accelerate trackers, such as 'tensorboard'")

    def what_matters(self) -> dict[str, Any]:
        """The settings that decide the result, without those about progress and hardware; JSON-able."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in RUNTIME_ONLY}

    def epochs_for(self, sentences: int) -> int:
        """How many epochs a step of this many sentences has.

        A small step makes few updates per epoch, and types need some hundreds. Mixed-in text does not count:
        every method sees the new data equally often. Bounds, which learn from all slices, see them as often
        as the stream sees its last one.
        """
        if self.epochs is not None:
            return self.epochs
        per_epoch = max(1, math.ceil(sentences / (self.batch_size * self.accumulation)))
        return max(USUAL_EPOCHS, math.ceil(self.min_updates / per_epoch))

    @property
    def method_named(self) -> bool:
        """Whether the user chose the method; a later version may have a different default."""
        return "method" in self.model_fields_set

    @classmethod
    def build(
        cls,
        flags: Mapping[str, Any] | None = None,
        *,
        file: str | Path | Mapping[str, Any] | None = None,
        preset: str | None = None,
        recorded: Mapping[str, Any] | None = None,
    ) -> TrainingConfig:
        """Defaults < what a model folder records < preset < file < flags."""
        given = given_settings(flags, file=file, preset=preset)
        before = dict(recorded or {})
        usual = before.get("method", cls.model_fields["method"].default)
        if given.get("method", usual) != usual:
            before |= {"parameters": {}, "without": ()}  # a different method has different parameters
        if given.get("as_published"):
            before |= {"parameters": {}}  # the paper's values were requested
        try:
            built = cls(**_over(before, given))
        except ValidationError as error:
            raise ConfigError(
                f"Bad settings: {problems(error)}.", remedy="TrainingConfig lists the valid values."
            ) from error
        if built.patience is not None and built.select_on == "last":
            raise ConfigError(
                "patience is set, but no epoch is chosen: training always keeps the last one.",
                remedy="Set select_on to new+old or new as well, or leave patience out.",
            )
        return built


def given_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    file: str | Path | Mapping[str, Any] | None = None,
    preset: str | None = None,
    fixed: Collection[str] = (),
) -> dict[str, Any]:
    """The settings that were given, merged as preset < file < flags, for all commands and functions.

    ``file``: a path, or the settings themselves.
    ``fixed``: settings that a model got when it was made. A preset does not change them; a file or flag that
    sets one is an error.
    """
    merged: dict[str, Any] = {}
    for source, values in (
        (f"preset '{preset}'", {k: v for k, v in _preset(preset).items() if k not in fixed}),
        _of_file(file),
        ("the arguments", flags or {}),
    ):
        for key in values:
            if key not in TrainingConfig.model_fields:
                remedy = nearest(key, TrainingConfig.model_fields)
                raise ConfigError(f"There is no setting '{key}'.", where=source, remedy=remedy)
            if key in fixed:
                raise ConfigError(
                    f"The setting '{key}' belongs to the model and cannot be changed by learning.",
                    where=source,
                    remedy="Leave it out.",
                )
        if not isinstance(values.get("parameters", {}), Mapping):
            raise ConfigError(
                "The setting 'parameters' is not a table.",
                where=source,
                remedy="Give parameter names with their values.",
            )
        merged = _over(merged, values)
    return merged


def _over(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """``high`` wins, setting by setting and parameter by parameter."""
    parameters = {**low.get("parameters", {}), **high.get("parameters", {})}
    return {**low, **high, **({"parameters": parameters} if parameters else {})}


PRESETS: dict[str, dict[str, Any]] = {
    # the paper's figures; optimiser details from the published code
    "paper": {
        "method": "cfner",
        "encoder": "bert-base-cased",
        "as_published": True,
        "batch_size": 8,
        "max_length": 512,
        "epochs": 10,
        "optimiser": "sgd",
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "lr_encoder": 4e-4,
        "lr_head": 4e-4,
        "first_lr": 2e-3,
        "schedule": "drop",
        "warmup": 0.0,
        "clip": None,
        "freeze_other": True,
        "train_embeddings": True,
        "dropout": None,
        "precision": "fp32",
        "matches": "exact",
        "select_on": "new",
    },
}


def _preset(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    if name not in PRESETS:
        raise ConfigError(f"There is no preset '{name}'.", remedy=nearest(name, PRESETS))
    return PRESETS[name]


def _of_file(file: str | Path | Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    if isinstance(file, str | Path):
        return str(file), read_settings(Path(file))
    return "`config`", file or {}


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a .toml or .json file, not validated yet."""
    try:
        raw = path.read_bytes()
        values = tomllib.loads(raw.decode()) if path.suffix == ".toml" else json.loads(raw)
    except OSError as error:
        raise ConfigError(f"The settings file cannot be read ({error.strerror}).", where=str(path)) from error
    except (ValueError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The settings file is not valid {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}.",
            where=str(path),
            remedy="Settings files are .toml or .json.",
        ) from error
    if not isinstance(values, dict):
        raise ConfigError("The settings file must contain one table of settings.", where=str(path))
    return values
