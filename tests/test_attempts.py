"""Earlier attempts on the same guard are counted from the reports that lie beside the model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cfner.corpus.sentence import Sentence, Span
from cfner.practice.learn.attempts import earlier_attempts, fingerprint, places_of_attempts

SENTENCES = [Sentence(("oslo", "is", "far"), (Span(0, 1, "city"),))]
MARK = fingerprint(SENTENCES, [(Span(0, 1, "city"),)])


def report(step: Path, **told: Any) -> Path:
    step.mkdir(parents=True)
    (step / "report.json").write_text(json.dumps({"accepted": False, **told}))
    return step


def test_refused_and_accepted_models_count_and_copies_of_a_step_do_not(tmp_path: Path) -> None:
    assert earlier_attempts(MARK, [tmp_path]) == 0
    report(tmp_path / "m2.refused/steps/0002", guard={"fingerprint": MARK, "types": [1]})
    report(tmp_path / "m2.refused-2/steps/0002", guard={"fingerprint": MARK, "types": [2]})
    accepted = report(tmp_path / "m2/steps/0002", accepted=True, guard={"fingerprint": MARK})
    shutil.copytree(accepted, tmp_path / "m3/steps/0002")  # a model that went on from it
    assert earlier_attempts(MARK, [tmp_path, tmp_path]) == 3


OTHERS = ["", "[]", "null", '{"guard": null}', '{"guard": {"types": []}}', '{"guard": 3}']


@pytest.mark.parametrize("text", OTHERS)
def test_reports_of_earlier_versions_and_damaged_ones_are_no_attempts(tmp_path: Path, text: str) -> None:
    report(tmp_path / "m2/steps/0002")
    (tmp_path / "m2/steps/0002/report.json").write_text(text)
    assert earlier_attempts(MARK, [tmp_path]) == 0


def test_another_guard_or_another_old_model_is_another_question(tmp_path: Path) -> None:
    others = [Sentence(("oslo", "is", "near"), (Span(0, 1, "city"),))]
    assert len({MARK, fingerprint(others, [(Span(0, 1, "city"),)]), fingerprint(SENTENCES, [()])}) == 3
    report(tmp_path / "m2/steps/0002", guard={"fingerprint": fingerprint(SENTENCES, [()])})
    assert earlier_attempts(MARK, [tmp_path]) == 0


def test_the_old_model_and_the_new_one_may_lie_apart(tmp_path: Path) -> None:
    (tmp_path / "models/old").mkdir(parents=True)
    places = places_of_attempts(tmp_path / "tries/new", tmp_path / "models/old")
    assert set(places) == {tmp_path / "tries", tmp_path / "models"}
    assert places_of_attempts(tmp_path / "tries/new", "name/on-the-hub") == (tmp_path / "tries",)
