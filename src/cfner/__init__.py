"""cfner: teach a named-entity recogniser new entity types over time, without forgetting the old ones.

Every command has a function of the same name, with the same arguments:

    from cfner import learn, predict

    learned = learn("my-model", "new.conll", out="my-model-2", guard="old.conll")
    predict(learned.folder, "Ada Lovelace lived in London.").entities

Use a model: predict, evaluate, export, serve. Teach it: learn, calibrate, consolidate. Look back and undo:
diff, history, rollback, rename, merge, forget, prune. Prepare data: check, and Corpus.read, which lists the
accepted kinds of data in memory. Research: train, explain, encoders, TaskStream and the package
cfner.methods.

A ContinualTagger keeps a model in memory: it learns steps, predicts, evaluates and can be saved. open_model
loads the network only. All errors that cfner raises on purpose are CfnerErrors. Notices and warnings go to
the logger "cfner".

Names are loaded on first use, so importing the package is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cfner.api.calibrate import calibrate
    from cfner.api.check import check
    from cfner.api.consolidate import consolidate
    from cfner.api.diff import diff
    from cfner.api.evaluate import evaluate
    from cfner.api.explain import explain
    from cfner.api.export import export
    from cfner.api.history import forget, history, merge, prune, rename, rollback
    from cfner.api.learn import learn
    from cfner.api.predict import predict
    from cfner.api.serve import serve
    from cfner.api.train import train
    from cfner.corpus.corpus import Corpus
    from cfner.corpus.sentence import Sentence, Span
    from cfner.errors import CfnerError, ConfigError, CorpusError, ModelError
    from cfner.network.prediction import Prediction
    from cfner.store.open import open_model
    from cfner.store.pretrained import encoders
    from cfner.stream.step import Step
    from cfner.stream.stream import TaskStream
    from cfner.tagger import ContinualTagger
    from cfner.training.config import TrainingConfig

__version__ = "0.2.0.dev0"

__all__ = [
    "CfnerError",
    "ConfigError",
    "ContinualTagger",
    "Corpus",
    "CorpusError",
    "ModelError",
    "Prediction",
    "Sentence",
    "Span",
    "Step",
    "TaskStream",
    "TrainingConfig",
    "calibrate",
    "check",
    "consolidate",
    "diff",
    "encoders",
    "evaluate",
    "explain",
    "export",
    "forget",
    "history",
    "learn",
    "merge",
    "open_model",
    "predict",
    "prune",
    "rename",
    "rollback",
    "serve",
    "train",
]

_HOME = {
    "CfnerError": "cfner.errors",
    "ConfigError": "cfner.errors",
    "ContinualTagger": "cfner.tagger",
    "Corpus": "cfner.corpus.corpus",
    "CorpusError": "cfner.errors",
    "ModelError": "cfner.errors",
    "Prediction": "cfner.network.prediction",
    "Sentence": "cfner.corpus.sentence",
    "Span": "cfner.corpus.sentence",
    "Step": "cfner.stream.step",
    "TaskStream": "cfner.stream.stream",
    "TrainingConfig": "cfner.training.config",
    "calibrate": "cfner.api.calibrate",
    "check": "cfner.api.check",
    "consolidate": "cfner.api.consolidate",
    "diff": "cfner.api.diff",
    "encoders": "cfner.store.pretrained",
    "evaluate": "cfner.api.evaluate",
    "explain": "cfner.api.explain",
    "export": "cfner.api.export",
    "forget": "cfner.api.history",
    "history": "cfner.api.history",
    "learn": "cfner.api.learn",
    "merge": "cfner.api.history",
    "open_model": "cfner.store.open",
    "predict": "cfner.api.predict",
    "prune": "cfner.api.history",
    "rename": "cfner.api.history",
    "rollback": "cfner.api.history",
    "serve": "cfner.api.serve",
    "train": "cfner.api.train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cfner' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
