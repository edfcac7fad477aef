"""Experts: what was learned before stays, bit for bit, in memory, on disk and in exports."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from cfner.batches.encoding import EncodedText
from cfner.batches.loader import collate, inference_batches
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError, ModelError
from cfner.interop.export import export_model, open_for_prediction
from cfner.methods import method_class
from cfner.network.cut_encoder import joined
from cfner.network.experts import OUTRANKED, ExpertNetwork
from cfner.network.inference import label_words
from cfner.network.prediction import tag
from cfner.practice.history.history import verify
from cfner.practice.history.relabel import rename
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.progress import Silent
from made_steps import seal
from strangers import FAMILIES, ORDERS, make_checkpoint

HEADS = ["cosine", "linear"]


@pytest.fixture(scope="module")
def stream(tiny_corpus: Corpus) -> TaskStream:
    """Four types in four steps."""
    return TaskStream.split(tiny_corpus, first=1, per_step=1, min_mentions=1)


def tagger_of(encoder: Path, head: str = "cosine", epochs: int = 3, **parameters: Any) -> ContinualTagger:
    return ContinualTagger.from_pretrained(
        str(encoder),
        method="experts",
        parameters=parameters,
        head=head,
        epochs=epochs,
        batch_size=8,
        lr_encoder=5e-3,
        lr_head=1e-2,
        train_embeddings=True,
    )


def text_of(model: LoadedModel, sentences: Sequence[Sentence]) -> EncodedText:
    return model.encode([sentence.only([]) for sentence in sentences])


@torch.no_grad()
def columns(model: LoadedModel, sentences: Sequence[Sentence]) -> Tensor:
    """[N, C] in batches that are the same for every model."""
    model.network.eval()
    text = text_of(model, sentences)
    return torch.cat([model.network(batch).logits for batch in inference_batches(text, batch_size=7)])


def labels_of(model: LoadedModel, sentences: Sequence[Sentence]) -> Tensor:
    return label_words(model.network, text_of(model, sentences), model.decoder())[0]


def network_of(tagger: ContinualTagger) -> ExpertNetwork:
    network = tagger.model.network
    assert isinstance(network, ExpertNetwork)
    return network


# -- nothing old changes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("old_wins", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_old_log_odds_stay_bit_for_bit(
    head: str, old_wins: bool, stream: TaskStream, tiny_encoder: Path
) -> None:
    tagger = tagger_of(tiny_encoder, head, epochs=24, old_wins=old_wins)
    seen: Tensor | None = None
    predicted: list[tuple[Span, ...]] = []
    for step in stream.steps[:3]:
        tagger.learn(replace(step, dev=()))
        now = columns(tagger.model, stream.test)
        found = list(tagger.find(stream.test))
        if seen is not None:
            assert torch.equal(now[:, : seen.shape[1]], seen)
            assert not torch.equal(
                now[:, seen.shape[1] :], now[:, :1].expand(-1, now.shape[1] - seen.shape[1])
            )
        if old_wins:
            for before, after in zip(predicted, found, strict=bool(predicted)):
                assert set(before) <= set(after)
        seen, predicted = now, found
    assert any(span.type in stream[0].types for spans in predicted for span in spans)
    assert len(network_of(tagger).rows) == 3


def test_with_old_wins_a_new_type_claims_only_what_nobody_claimed(
    stream: TaskStream, tiny_encoder: Path
) -> None:
    """The new type is labelled on the very words of the old one: without ranks it would win some."""
    rival = tuple(
        Sentence(s.words, tuple(Span(span.start, span.end, "rival") for span in s.spans))
        for s in stream[0].train
    )
    outvoted = []
    for old_wins in (False, True):
        tagger = tagger_of(tiny_encoder, epochs=6, old_wins=old_wins)
        tagger.learn(replace(stream[0], dev=()))
        before = labels_of(tagger.model, stream.test)
        tagger.learn(Step(("rival",), rival, known=stream[0].types))
        after = labels_of(tagger.model, stream.test)
        outvoted.append(int(((before > 0) & (before != after)).sum()))
        assert bool(((before == 0) | (before == after)).all()) == old_wins
    assert outvoted[0] > 0 and outvoted[1] == 0


def test_only_the_newest_expert_moves(stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = tagger_of(tiny_encoder)
    for step in stream.steps[:2]:
        tagger.learn(replace(step, dev=()))
    network = network_of(tagger)
    kept = {id(p): (n, p.detach().clone()) for n, p in network.named_parameters()}
    tagger.learn(replace(stream[2], dev=()))
    now = {id(p): p for p in network_of(tagger).parameters()}
    for key, (name, value) in kept.items():
        assert torch.equal(now[key], value), name
    new = [p for key, p in now.items() if key not in kept]
    assert new and all(p.requires_grad for p in new)


def test_more_data_gives_a_known_type_a_new_expert(stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = tagger_of(tiny_encoder)
    for step in stream.steps[:3]:
        tagger.learn(replace(step, dev=()))
    before = columns(tagger.model, stream.test)
    type_, others = stream[0].types[0], (*stream[1].types, *stream[2].types)
    sentences = tuple(s.only([type_]) for s in stream.slices[3])
    again = Step((type_,), sentences, known=others, unlabelled=tuple(s.only([]) for s in stream.slices[1]))
    tagger.learn(again)
    network, labels = network_of(tagger), tagger.model.labels
    own, rest = list(labels.ids_of([type_])), [0, *labels.ids_of(others)]
    after = columns(tagger.model, stream.test)
    assert network.rows[-1] == tuple(own) and network.reader(own[0]) == 3
    assert torch.equal(after[:, rest], before[:, rest])
    assert not torch.equal(after[:, own], before[:, own])


@pytest.mark.parametrize("head", HEADS)
def test_a_new_expert_for_a_known_type_starts_as_what_is_known(
    head: str, stream: TaskStream, tiny_encoder: Path
) -> None:
    tagger = tagger_of(tiny_encoder, head)
    for step in stream.steps[:3]:
        tagger.learn(replace(step, dev=()))
    before = columns(tagger.model, stream.test)
    tagger.config = tagger.config.model_copy(update={"lr_encoder": 0.0, "lr_head": 0.0, "epochs": 1})
    for step in stream.steps[:2]:
        known = tuple(t for t in tagger.types if t not in step.types)
        tagger.learn(Step(step.types, step.train, known=known))
        torch.testing.assert_close(columns(tagger.model, stream.test), before, atol=1e-4, rtol=1e-4)


# -- an independent oracle -------------------------------------------------------------------------------


@pytest.mark.parametrize("head", HEADS)
def test_the_columns_are_the_oracles(head: str, stream: TaskStream, tiny_encoder: Path) -> None:
    """Word by word, expert by expert, from complete encoders and the definition of log-odds."""
    tagger = tagger_of(tiny_encoder, head, old_wins=True)
    for step in stream.steps[:3]:
        tagger.learn(replace(step, dev=()))
    network, model = network_of(tagger), tagger.model
    bodies = [joined(network.shared, expert.body).eval() for expert in network.experts]
    text = text_of(model, stream.test[:6])
    for window in range(text.windows):
        batch = collate(text, [window])
        with torch.no_grad():
            found = network(batch).logits
            hidden = [
                b(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits for b in bodies
            ]
        for word, (row, position) in enumerate(zip(batch.rows, batch.positions, strict=True)):
            wanted = _slow_columns(network, [states[row, position] for states in hidden])
            assert found[word].tolist() == pytest.approx(wanted, abs=2e-4)


def _slow_columns(network: ExpertNetwork, features: list[Tensor]) -> list[float]:
    """One word: the odds of every label in its own expert; then ranks; then O's column below all."""
    heads = [expert.head for expert in network.experts]
    odds: dict[int, float] = {}
    for head, rows, h in zip(heads, network.rows, features, strict=True):
        local = list(rows) if head is heads[0] else [None, *rows]
        for row, label in enumerate(local):
            if label is not None and row != head.other:
                group = head.groups[row]
                odds[label] = _slow_score(head, h, row) - (
                    _slow_other(head, h, group) if group else _slow_score(head, h, head.other)
                )
    highest = {
        rank: max(o for c, o in odds.items() if network.ranks[c] == rank) for rank in set(network.ranks)
    }
    other = _slow_score(heads[0], features[0], heads[0].other)
    result = [other]
    for label in sorted(odds):
        outranked = any(highest[rank] > 0 for rank in range(network.ranks[label]))
        result.append(other + (OUTRANKED if outranked else odds[label]))
    # one that is itself outranked claims nothing, but then a lower rank claimed the word, and outranks all
    return result


def _slow_score(head: Any, h: Tensor, row: int) -> float:
    if head.kind == "linear":
        return float((h @ head.weight[row] + head.bias[row]).detach())
    sigma = head.sigmas[head.groups[row] - 1] if head.groups[row] else head.sigma
    return float((sigma * torch.nn.functional.cosine_similarity(h, head.weight[row], dim=0)).detach())


def _slow_other(head: Any, h: Tensor, group: int) -> float:
    if head.kind == "linear":
        return 0.0
    other = head.others[group - 1]
    return float((head.sigmas[group - 1] * torch.nn.functional.cosine_similarity(h, other, dim=0)).detach())


# -- somebody's checkpoint -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_is_the_first_expert_as_it_came(
    family: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    source = make_checkpoint(tmp_path / "m", family, ORDERS["odd"])
    original = open_model(source, device="cpu")
    before = columns(original, tiny_corpus.test)
    tagger = ContinualTagger.open(source, method="experts", epochs=1, lr_encoder=1e-3)
    for type_ in ("dish", "person"):
        sentences = tuple(s.only([type_]) for s in tiny_corpus.train[:16])
        tagger.learn(Step((type_,), sentences, known=tagger.types))
    after = columns(tagger.model, tiny_corpus.test)
    assert torch.equal(after[:, : before.shape[1]], before)
    tagger.save(tmp_path / "saved")
    assert torch.equal(columns(open_model(tmp_path / "saved"), tiny_corpus.test), after)


# -- on disk ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(
    stream: TaskStream, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Tensor]:
    """Three steps on disk, and the columns of the last. Copy the folder before you change it."""
    folder = tmp_path_factory.mktemp("experts") / "model"
    tagger = tagger_of(tiny_encoder, old_wins=True)
    for step in stream.steps[:3]:
        tagger.learn(replace(step, dev=()))
        tagger.save(folder)
    return folder, columns(tagger.model, stream.test)


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def test_a_saved_model_is_the_same_to_the_last_bit(saved: tuple[Path, Tensor], stream: TaskStream) -> None:
    folder, then = saved
    assert torch.equal(columns(open_model(folder), stream.test), then)
    verify(folder)


def test_a_step_costs_its_top_and_its_head_on_disk(saved: tuple[Path, Tensor]) -> None:
    steps = saved[0] / "steps"
    first, second, third = (sorted(p.name for p in (steps / n).glob("*.safetensors")) for n in _NAMES)
    assert first == ["model.safetensors"]
    assert second == ["expert-1.safetensors", "model.safetensors"]
    assert third == ["expert-1.safetensors", "expert-2.safetensors", "model.safetensors"]
    for name in second:
        assert (steps / "0002" / name).samefile(steps / "0003" / name)
    assert [json.loads((steps / n / "step.json").read_text())["format"] for n in _NAMES] == [6, 6, 6]


_NAMES = ("0001", "0002", "0003")


def test_a_rename_keeps_the_experts(saved: tuple[Path, Tensor], stream: TaskStream, tmp_path: Path) -> None:
    folder = copied(saved[0], tmp_path / "m")
    rename(folder, stream[0].types[0], "other-name")
    assert torch.equal(columns(open_model(folder), stream.test), saved[1])
    assert json.loads((folder / "steps" / "0004" / "step.json").read_text())["format"] == 6


@pytest.mark.parametrize(
    "change",
    [
        {"top": 2},
        {"top": 0},
        {"ranks": [0, 0, 0]},
        {"ranks": [0, 0, 0, 10**9, 1, 1, 1]},
        {"experts": []},
        {"experts": [{"rows": [0, 1, 2], "blocks": [3]}] * 2},
        {"more": 1},
    ],
    ids=str,
)
def test_facts_that_do_not_fit_are_refused(
    change: dict[str, Any], saved: tuple[Path, Tensor], tmp_path: Path
) -> None:
    step = copied(saved[0], tmp_path / "m") / "steps" / "0003"
    facts = json.loads((step / "labels.json").read_text())
    facts["experts"] = {**facts["experts"], **change}
    (step / "labels.json").write_text(json.dumps(facts))
    seal(step)
    with pytest.raises(ModelError):
        open_model(tmp_path / "m")


def test_a_missing_expert_is_refused(saved: tuple[Path, Tensor], tmp_path: Path) -> None:
    step = copied(saved[0], tmp_path / "m") / "steps" / "0003"
    (step / "expert-2.safetensors").unlink()
    seal(step)
    with pytest.raises(ModelError):
        open_model(tmp_path / "m")


def test_an_interrupted_step_goes_on_bit_for_bit(
    saved: tuple[Path, Tensor], stream: TaskStream, tmp_path: Path
) -> None:
    class Stop(Exception):
        pass

    class Stopping(Silent):
        def epoch(self, number: int, figures: Any) -> None:
            if number == 2:
                raise Stop

    whole = ContinualTagger.load(saved[0], epochs=4, checkpoint_minutes=0)
    whole.learn(stream[3])
    stopped = ContinualTagger.load(saved[0], epochs=4, checkpoint_minutes=0)
    with pytest.raises(Stop):
        stopped.learn(stream[3], Stopping(), unfinished=tmp_path)
    resumed = ContinualTagger.load(saved[0], epochs=4, checkpoint_minutes=0)
    resumed.learn(stream[3], unfinished=tmp_path)
    for key, value in whole.model.network.state_dict().items():
        assert torch.equal(value, resumed.model.network.state_dict()[key]), key


# -- out to others ---------------------------------------------------------------------------------------


def test_onnx_says_the_same_in_one_forward(
    saved: tuple[Path, Tensor], stream: TaskStream, tmp_path: Path
) -> None:
    export_model(saved[0], tmp_path / "onnx", "onnx")
    ours, theirs = open_model(saved[0], device="cpu"), open_for_prediction(tmp_path / "onnx")
    sentences = [s.only([]) for s in stream.test]
    before, after = tag(ours, sentences), tag(theirs, sentences)
    assert [p.spans for p in before] == [p.spans for p in after]
    assert any(p.spans for p in before)


def test_a_stock_export_is_refused_with_the_way_out(saved: tuple[Path, Tensor], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"`consolidate\("):
        export_model(saved[0], tmp_path / "hf", "hf")
    assert not (tmp_path / "hf").exists()


@pytest.mark.parametrize("head", HEADS)
def test_own_others_fold_into_a_stock_model(
    head: str, stream: TaskStream, tiny_encoder: Path, tmp_path: Path
) -> None:
    """What consolidation gives can be exported: O's column plus the log-odds, as one linear layer."""
    tagger = tagger_of(tiny_encoder, head)
    tagger.learn(replace(stream[0], dev=()))
    report = export_model(tagger.model, tmp_path / "hf", "hf")
    assert report.agreement.same_label == report.agreement.words


# -- what cannot be ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["own-other", "cfner"])
def test_other_methods_cannot_go_on(method: str, saved: tuple[Path, Tensor], stream: TaskStream) -> None:
    tagger = ContinualTagger.load(saved[0], method=method)
    with pytest.raises(ConfigError, match="consolidate"):
        tagger.learn(stream[3])


def test_experts_go_on_from_own_others(stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = ContinualTagger.from_pretrained(str(tiny_encoder), method="own-other", epochs=2)
    for step in stream.steps[:2]:
        tagger.learn(replace(step, dev=()))
    before = columns(tagger.model, stream.test)
    later = ContinualTagger(tagger.model, tagger.config.model_copy(update={"method": "experts"}))
    later.learn(replace(stream[2], dev=()))
    assert torch.equal(columns(later.model, stream.test)[:, : before.shape[1]], before)


def test_a_top_that_cannot_be_is_refused_in_the_first_step(stream: TaskStream, tiny_encoder: Path) -> None:
    with pytest.raises(ConfigError, match="2, and experts share"):
        tagger_of(tiny_encoder, top=2).learn(stream[0])


def test_another_top_is_refused_later(saved: tuple[Path, Tensor], stream: TaskStream) -> None:
    tagger = ContinualTagger.load(saved[0], parameters={"top": 2})
    with pytest.raises(ConfigError, match="have 1 each"):
        tagger.learn(stream[3])


def test_wrappers_are_refused() -> None:
    with pytest.raises(ConfigError, match="does not change the old ones"):
        method_class("experts+fusion")


# -- as somebody types it --------------------------------------------------------------------------------


def test_learn_predict_and_evaluate_from_the_command_line(
    saved: tuple[Path, Tensor], stream: TaskStream, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    model, types = copied(saved[0], tmp_path / "m"), stream[3].types
    write_sentences([s.only(types) for s in tiny_corpus.train], tmp_path / "new.conll", format="conll")
    write_sentences(
        [s.only(stream[2].types_so_far) for s in stream.test], tmp_path / "old.conll", format="conll"
    )
    before = ContinualTagger.load(model).find(stream.test)
    arguments = ["learn", str(model), str(tmp_path / "new.conll"), "--in-place", "--epochs", "2", "--json"]
    chosen = ["--method", "experts", "--set", "old_wins=true", "--guard", str(tmp_path / "old.conll")]
    done = CliRunner().invoke(app, [*arguments, *chosen, "--strict"])
    assert done.exit_code == 0, done.output
    learned = json.loads(done.stdout)
    assert learned["accepted"] and learned["step"] == 4
    assert {row["verdict"] for row in learned["guard"]["types"]} == {"unchanged"}
    assert all(row["loss"]["high"] == 0 for row in learned["guard"]["types"])
    newest = model / "steps" / "0004"
    assert (newest / "expert-3.safetensors").stat().st_size < learned["disk_bytes"]
    assert learned["disk_bytes"] < sum(file.stat().st_size for file in newest.iterdir())
    assert learned["seconds_per_sentence"] > 0
    after = ContinualTagger.load(model).find(stream.test)
    assert all(set(old) <= set(new) for old, new in zip(before, after, strict=True))
    words = " ".join(stream.test[0].words)
    found = CliRunner().invoke(app, ["predict", str(model), words])
    assert found.exit_code == 0 and json.loads(found.stdout)["tokens"]


def test_diff_and_explain_from_the_command_line(tiny_encoder: Path, tiny_data: Path, tmp_path: Path) -> None:
    words = ["--method", "experts", "--encoder", str(tiny_encoder), "--epochs", "1"]
    words += ["--set", "top=1", "--set", "old_wins=true"]
    division = ["--first", "3", "--per-step", "1", "--min-mentions", "1", "--out", str(tmp_path / "m")]
    done = CliRunner().invoke(app, ["train", str(tiny_data), *words, *division], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    told = CliRunner().invoke(app, ["explain", str(tmp_path / "m"), str(tiny_data), "--json"])
    assert told.exit_code == 0, told.exception
    found = json.loads(told.stdout)
    assert found["method"] == "experts" and found["new_types"] == ["person"]
    assert {loss["role"] for token in found["tokens"] for loss in token["losses"]} == {"learn_new"}
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "m"), str(tiny_data)])
    assert shown.exit_code == 0 and "went to" in shown.output
    told = CliRunner().invoke(app, ["diff", str(tmp_path / "m"), str(tiny_data), "--json"])
    assert told.exit_code == 0, told.exception
    found = json.loads(told.stdout)
    assert set(found["per_type"]) >= {"dish"}  # or this shows nothing
    assert {kind for kind, count in found["counts"].items() if count} <= {"gained"}  # nothing old changes


def test_threads_do_not_get_each_others_words(saved: tuple[Path, Tensor], stream: TaskStream) -> None:
    """Hidden states go from the lower layers to the tops: not through the modules, which threads share."""
    model = open_model(saved[0], device="cpu")
    sentences = [s.only([]) for s in stream.test]
    alone = [tag(model, [sentence])[0].entities for sentence in sentences]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda sentence: tag(model, [sentence])[0].entities, sentences * 3))
    assert together == alone * 3
