"""How long learning would take here: a copy of the tagger learns a few batches, and tags a sample."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

from cfner.batches.encoding import EncodedText
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.practice.check.findings import TimeEstimate
from cfner.practice.check.model import encoded
from cfner.practice.learn.new_data import HELD_OUT
from cfner.practice.learn.types_found import sampled
from cfner.stream.step import Step
from cfner.tagger import ContinualTagger
from cfner.training.progress import Silent
from cfner.training.reminders import CANDIDATES, reminder_count

_EPOCHS = 2  # that are timed
_MOST_BATCHES = 20  # per timed epoch
_SHARE = 0.12  # of the time, for timing how fast the model tags: training takes several times as long
_WARM_UP = 2  # batches that are not counted: memory is allocated, kernels are chosen
_OTHER_LOOKS = 3  # passes over the dev sentences: by the old model, to compare, and to score
_MARGIN = 0.2  # a machine's speed varies from minute to minute


class Stopwatch(Silent):
    """Seconds before the first batch, and of each batch."""

    def __init__(self) -> None:
        self.before = 0.0
        self.batches: list[float] = []
        self._last = time.perf_counter()

    def start(self, name: str, epochs: int, batches: int) -> None:
        self.before = self._lap()

    def batch(self, loss: float, sentences: int) -> None:
        self.batches.append(self._lap())

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        self._lap()  # time between epochs does not count

    def _lap(self) -> float:
        now = time.perf_counter()
        took, self._last = now - self._last, now
        return took


def estimate_time(
    tagger: ContinualTagger, step: Step, text: EncodedText, *, seconds: float, folds: int = 0
) -> TimeEstimate | None:
    """Time to learn the step: what comes before its epochs, the epochs, and the dev data after each.

    ``text`` is the step's training data, ``folds`` the number of models that estimate the new types before.
    About ``seconds`` are spent. None if there is nothing to train on.
    """
    if not text.windows:
        return None
    config = tagger.config
    dev = encoded(tagger.model, step.dev)
    per_window = _time_tagging(tagger.model.network, text, config.eval_batch_size, seconds * 0.1)
    batches = seconds * _SHARE / per_window / config.batch_size
    sample = sampled(step.train, round(min(max(batches, 1), _MOST_BATCHES) * config.batch_size))
    watch = time_learning(tagger, replace(step, train=tuple(sample), dev=(), replay=(), unlabelled=()))
    timed = watch.batches[_WARM_UP:] or watch.batches[-1:]
    per_batch = statistics.fmean(timed)
    epochs = config.epochs_for(len(step.train))
    reminders = reminder_count(step, config)
    windows = round(
        text.windows * (1 + reminders / len(step.train))
    )  # unlabelled sentences are about as long
    total = (
        watch.before * (len(step.train) + reminders) / len(sample)
        + per_batch * -(-windows // config.batch_size) * epochs
        + per_window * dev.windows * (epochs + _OTHER_LOOKS)
        + per_window * min(CANDIDATES * reminders, len(step.unlabelled))
    )
    whole = total + folds * (1 - 1 / folds if folds > 1 else 1 - HELD_OUT) * total
    doubt = 2 * statistics.stdev(timed) / (len(timed) ** 0.5 * per_batch) if len(timed) > 1 else 1.0
    spread = min(max(doubt, _MARGIN), 0.9)
    return TimeEstimate(
        low=whole * (1 - spread),
        high=whole * (1 + spread),
        batches_timed=len(timed),
        seconds_per_batch=per_batch,
        device=tagger.device.type,
        estimate=1 - total / whole,
    )


def time_learning(tagger: ContinualTagger, step: Step) -> Stopwatch:
    """Let a copy of the tagger learn the step for a few epochs, with all its settings, without logging."""
    epochs = min(tagger.config.epochs_for(len(step.train)), _EPOCHS)
    config = tagger.config.model_copy(update={"epochs": epochs, "trackers": ()})
    with _randomness_kept():
        student = tagger.fork(config)
        student.accelerator  # noqa: B018  created now, so that it is not timed
        watch = Stopwatch()
        student.learn(step, watch)
    return watch


@contextmanager
def _randomness_kept() -> Iterator[None]:
    """Restore the caller's random state, because learning sets the seeds of the process."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _time_tagging(network: Network, text: EncodedText, batch_size: int, seconds: float) -> float:
    """Seconds per window when tagging, measured batch by batch until the time is up."""
    random = np.random.default_rng(0)
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds or not done:
        windows = random.choice(text.windows, size=min(batch_size, text.windows), replace=False)
        for _, out in outputs(network, text, batch_size=batch_size, windows=windows):
            float(out.logits.sum())
        done += len(windows)
        if done >= 4 * text.windows:
            break
    return (time.perf_counter() - begin) / done
