"""The speed bench can fail: a missed target is named, and the exit code says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import speed
from cfner.corpus.corpus import Corpus
from speed_setup import Bench, Ratio, relabelled

RATIOS = [
    Ratio("met", 1.0, 0.9, 1.1, 1.1),
    Ratio("too slow", 1.2, 1.1, 1.3, 1.1),
    Ratio("fast enough", 3.5, 3, 4, 3, ">="),
    Ratio("not fast enough", 2.5, 2, 4, 3, ">="),
    Ratio("only reported", 9.0, 8, 10),
]


def test_targets_are_missed_in_their_own_sense() -> None:
    assert [ratio.missed for ratio in RATIOS] == [False, True, False, True, False]


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--check"], 1)])
def test_check_exits_with_1_and_names_each_target_missed(
    flags: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("faker", reason="the extra 'demo' is not installed")

    def report(*_: Any) -> Iterator[Ratio]:
        yield from RATIOS

    monkeypatch.setattr(speed, "speed_report", report)
    assert speed.main(["--sentences", "5", "--json", *flags]) == code
    said = capsys.readouterr()
    figures = {row["name"]: row["missed"] for row in json.loads(said.out)["ratios"]}
    assert figures == {ratio.name: ratio.missed for ratio in RATIOS}
    assert ("Missed: too slow; not fast enough" in said.err) == bool(code)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "epochs,predictions"], "no part 'predictions'; parts: epochs, trainer"),
        (["--repeat", "0"], "0 is less than 1"),
        (["--sentences", "-3"], "-3 is less than 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        speed.main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("wanted", [1, 2, 3, 16])
def test_a_teacher_can_know_as_many_types_as_wanted(wanted: int, tiny_corpus: Corpus) -> None:
    sentences = relabelled(tiny_corpus.train, ["dish", "person"], wanted)
    assert len({span.type for s in sentences for span in s.spans}) == wanted
    assert [s.words for s in sentences] == [s.words for s in tiny_corpus.train]


def test_the_clock_sees_every_epoch(tiny_corpus: Corpus, tiny_encoder: Path, tmp_path: Path) -> None:
    bench = Bench.of(
        Corpus("tiny", tiny_corpus.train[:20]),
        tmp_path,
        encoder=str(tiny_encoder),
        batch_size=8,
        max_length=64,
    )
    assert len(bench.new) == 4
    narrow = Bench(bench.sentences, ("city", "dish"), bench.settings, tmp_path)
    tagger, clock, learn = narrow.learn(old_types=2, epochs=3, method="finetune")
    learn()
    assert len(clock.epochs) == 3 and all(seconds > 0 for seconds in clock.epochs)
    assert {"city", "dish"} < set(tagger.types)
