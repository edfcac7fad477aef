"""A step that was interrupted between epochs goes on and ends with the very weights of one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cfner import ContinualTagger, TaskStream
from cfner.errors import TrainingError
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


@pytest.mark.parametrize("method", ["cfner", "podnet", "own-other", "own-other+cf"])
@pytest.mark.parametrize("epoch", [2, 4])
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
