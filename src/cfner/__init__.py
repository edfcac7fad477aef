"""cfner: teach a named-entity recogniser new entity types over time, without forgetting the old ones.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cfner.corpus.corpus import Corpus
    from cfner.corpus.sentence import Sentence, Span
    from cfner.errors import CfnerError
    from cfner.practice.calibrate.calibrate import calibrate
    from cfner.practice.check.check import check
    from cfner.practice.consolidate.consolidate import consolidate
    from cfner.practice.diff.diff import diff_models
    from cfner.practice.evaluate.evaluate import evaluate, evaluate_steps
    from cfner.practice.history.history import forget
    from cfner.practice.learn.learn import learn
    from cfner.store.open import open_model
    from cfner.stream.step import Step
    from cfner.stream.stream import TaskStream
    from cfner.tagger import ContinualTagger
    from cfner.training.config import TrainingConfig

__version__ = "0.2.0.dev0"

__all__ = [
    "CfnerError",
    "ContinualTagger",
    "Corpus",
    "Sentence",
    "Span",
    "Step",
    "TaskStream",
    "TrainingConfig",
    "calibrate",
    "check",
    "consolidate",
    "diff_models",
    "evaluate",
    "evaluate_steps",
    "forget",
    "learn",
    "open_model",
]

_HOME = {
    "CfnerError": "cfner.errors",
    "ContinualTagger": "cfner.tagger",
    "Corpus": "cfner.corpus.corpus",
    "Sentence": "cfner.corpus.sentence",
    "Span": "cfner.corpus.sentence",
    "Step": "cfner.stream.step",
    "TaskStream": "cfner.stream.stream",
    "TrainingConfig": "cfner.training.config",
    "calibrate": "cfner.practice.calibrate.calibrate",
    "check": "cfner.practice.check.check",
    "consolidate": "cfner.practice.consolidate.consolidate",
    "diff_models": "cfner.practice.diff.diff",
    "evaluate": "cfner.practice.evaluate.evaluate",
    "evaluate_steps": "cfner.practice.evaluate.evaluate",
    "forget": "cfner.practice.history.history",
    "learn": "cfner.practice.learn.learn",
    "open_model": "cfner.store.open",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cfner' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
