"""A step that was interrupted between epochs goes on and ends with the very weights of one that was not."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cfner import ContinualTagger, TaskStream
from cfner.errors import TrainingError
from cfner.training.interrupt import deferred_interrupt
from cfner.training.progress import Silent
from cfner.training.unfinished_step import FILE


class Interrupt(Exception):
    pass


class StopAfter(Silent):
    """Raises when an epoch ends, as a crash would."""

    def __init__(self, epoch: int) -> None:
        self.at = epoch

    def epoch(self, number: int, figures: dict[str, float]) -> None:
        if number == self.at:
            raise Interrupt


SETTINGS = {"epochs": 4, "batch_size": 8, "max_length": 32, "checkpoint_minutes": 0}


def _first_step_learned(encoder: Path, stream: TaskStream, folder: Path, method: str) -> Path:
    tagger = ContinualTagger.from_pretrained(str(encoder), method, **SETTINGS)
    tagger.learn(stream[0])
    tagger.save(folder)
    return folder


@pytest.mark.parametrize(
    ("method", "epoch"), [("cfner", 2), ("podnet", 4), ("own-other", 4), ("own-other+cf", 2)]
)
def test_an_interrupted_step_ends_as_if_it_had_not_been(
    tiny_encoder: Path, tiny_corpus, tmp_path: Path, method: str, epoch: int
) -> None:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)
    parent = _first_step_learned(tiny_encoder, stream, tmp_path / "model", method)

    undisturbed = ContinualTagger.load(parent)
    undisturbed.learn(stream[1])

    interrupted = ContinualTagger.load(parent, checkpoint_minutes=0)  # how often is not the model's to say
    with pytest.raises(Interrupt):
        interrupted.learn(stream[1], StopAfter(epoch), unfinished=tmp_path)
    assert (tmp_path / FILE).is_file()
    resumed = ContinualTagger.load(parent)
    state = resumed.learn(stream[1], unfinished=tmp_path)

    assert len(state.history) == SETTINGS["epochs"]
    expected = undisturbed.model.network.state_dict()
    for name, value in resumed.model.network.state_dict().items():
        assert torch.equal(value, expected[name]), name


def test_what_another_step_left_unfinished_is_not_taken_up(
    tiny_encoder: Path, tiny_corpus, tmp_path: Path
) -> None:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)
    other = ContinualTagger.from_pretrained(str(tiny_encoder), **{**SETTINGS, "seed": 5})
    with pytest.raises(Interrupt):
        other.learn(stream[0], StopAfter(3), unfinished=tmp_path)
    mine = ContinualTagger.from_pretrained(str(tiny_encoder), **SETTINGS)
    assert len(mine.learn(stream[0], unfinished=tmp_path).history) == SETTINGS["epochs"]


def test_a_damaged_checkpoint_is_named(tiny_encoder: Path, tiny_corpus, tmp_path: Path) -> None:
    stream = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)
    (tmp_path / FILE).write_bytes(b"not a checkpoint")
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), **SETTINGS)
    with pytest.raises(TrainingError, match=FILE):
        tagger.learn(stream[0], unfinished=tmp_path)


class CtrlC(Silent):
    """Sends this process a real SIGINT after a batch, as Ctrl+C does."""

    def __init__(self, batch: int) -> None:
        self.left = batch

    def batch(self, loss: float, sentences: int) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


# a step has four batches an epoch: inside the first, with accumulation, at the end of one, in the very last
@pytest.mark.parametrize(
    ("batch", "accumulation", "place"),
    [
        (1, 1, "in epoch 1 of 3, after batch 1 of"),
        (1, 2, "in epoch 1 of 3, after batch 2 of"),
        (6, 1, "in epoch 2 of 3, after batch 2 of"),
        (4, 1, "after epoch 1 of 3"),
        (12, 1, "after epoch 3 of 3"),
    ],
)
def test_ctrl_c_in_a_short_run_keeps_every_batch(
    tiny_encoder: Path, tiny_corpus, tmp_path: Path, batch: int, accumulation: int, place: str, caplog
) -> None:
    """With the default of checkpoint_minutes, and with dropout, which draws random numbers in every batch."""
    settings = {"epochs": 3, "batch_size": 8, "max_length": 32, "dropout": 0.1, "accumulation": accumulation}
    stream = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)
    parent = _first_step_learned(tiny_encoder, stream, tmp_path / "model", "cfner")
    step = replace(stream[1], train=stream[1].train[:40], dev=())
    whole = ContinualTagger.load(parent, **settings)
    expected = whole.learn(step)

    caplog.set_level("INFO", "cfner")
    with pytest.raises(KeyboardInterrupt):
        ContinualTagger.load(parent, **settings).learn(step, CtrlC(batch), unfinished=tmp_path)
    assert place in caplog.text and "resumes exactly there" in caplog.text
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = ContinualTagger.load(parent, **settings)
    assert resumed.learn(step, unfinished=tmp_path).history == expected.history
    for name, value in resumed.model.network.state_dict().items():
        assert torch.equal(value, whole.model.network.state_dict()[name]), name


def test_a_second_ctrl_c_is_not_waited_for() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it was waited for")


def test_what_is_stopped_after_the_training_is_not_trained_again(
    tiny_encoder: Path, tiny_corpus, tmp_path: Path
) -> None:
    """Scoring may take long: the epochs before it are kept."""
    stream = TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)
    settings = {**SETTINGS, "checkpoint_minutes": 5, "epochs": 2}
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), **settings)
    tagger.learn(stream[0], unfinished=tmp_path)
    watch = CtrlC(1)
    again = ContinualTagger.from_pretrained(str(tiny_encoder), **settings)
    again.learn(stream[0], watch, unfinished=tmp_path)
    assert watch.left == 1  # no batch was trained
    for name, value in again.model.network.state_dict().items():
        assert torch.equal(value, tagger.model.network.state_dict()[name]), name
