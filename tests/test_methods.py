"""Every registered method through the common checks, the ablations too, and the faults of published code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import oracle
from cfner.batches.encoding import encode
from cfner.batches.loader import collate
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError
from cfner.methods import create, method_names, register
from cfner.methods.context import ExampleContext
from cfner.methods.finetune import Finetune
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.objective.effects import MatchedPredictions
from cfner.objective.library import Distil
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger
from cfner.training.config import PRESETS, TrainingConfig
from cfner.training.loop import BatchLosses
from cfner.training.prepared_step import PreparedStep
from check_method import Subject, check_method, prepared_step, weights_of

ABLATIONS = [
    ("adaptive_weight",),
    ("curriculum",),
    ("curriculum", "adaptive_weight"),
    ("effect_o",),
    ("effect_e",),
    ("effect_e", "effect_o"),
]
ONE_BY_ONE = ["effect_e", "effect_o", "curriculum", "adaptive_weight"]


@pytest.mark.parametrize("name", method_names())
def test_method(name: str, tiny_encoder: Path, tiny_corpus: Corpus) -> None:
    check_method(name, tiny_encoder, tiny_corpus)


@pytest.mark.parametrize("without", ABLATIONS, ids="+".join)
def test_ablation(without: tuple[str, ...], tiny_encoder: Path, tiny_corpus: Corpus) -> None:
    check_method("cfner", tiny_encoder, tiny_corpus, without=without, variant=True)


def test_a_named_variant_of_cfner(tiny_encoder: Path, tiny_corpus: Corpus) -> None:
    check_method("cfner", tiny_encoder, tiny_corpus, parameters={"defined_other": "hard"}, variant=True)


@pytest.fixture(scope="module")
def stream(tiny_corpus: Corpus) -> TaskStream:
    return TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)


def learned(
    stream: TaskStream, encoder: Path, name: str = "cfner", steps: int = 2, **settings: Any
) -> ContinualTagger:
    parts = {key: settings.pop(key) for key in ("without", "parameters") if key in settings}
    tagger = Subject(name, encoder, stream, **parts).tagger(**settings)
    for step in stream.steps[:steps]:
        tagger.learn(replace(step, dev=()))
    return tagger


@pytest.fixture(scope="module")
def tagger(stream: TaskStream, tiny_encoder: Path) -> ContinualTagger:
    """cfner after two steps. Tests may read it, not train it."""
    return learned(stream, tiny_encoder)


# -- the registry ----------------------------------------------------------------------------------------


def test_the_family_is_complete() -> None:
    assert set(method_names()) >= {
        *("finetune", "joint", "self-training", "extendner", "lucir", "podnet"),
        *("cfner", "lucir+cf", "self-training+cf"),
    }


def test_unknown_names_are_errors_that_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="'cfner'"):
        create("cfnr")
    with pytest.raises(ConfigError, match="lambda_base"):
        create("cfner", {"lambda_bse": 1.0})
    with pytest.raises(ConfigError, match="effect_o"):
        create("cfner", without=["efect_o"])
    with pytest.raises(ConfigError, match="k"):
        create("cfner", {"k": -1})


def test_two_methods_cannot_share_a_name() -> None:
    class Impostor(Finetune):
        pass

    with pytest.raises(ConfigError, match="finetune"):
        register(Impostor)


@pytest.mark.parametrize("name", ["cfner", "lucir+cf", "self-training+cf"])
def test_parameters_have_the_papers_names_and_values(name: str) -> None:
    defaults = create(name, as_published=True).parameters.model_dump()
    wanted = {
        "k": 3,
        "delta_1": 1.0,
        "delta_m": 0.0,
        "m": None,
        "lambda_base": 2.0,
        "t_student": 1.0,
        "t_teacher": 1.0,
    }
    assert {key: defaults[key] for key in wanted} == wanted
    assert list(create(name).parts) == ONE_BY_ONE
    assert create(name).parameters.lambda_base == 1.0  # measured better: docs/results.md
    assert create(name, {"lambda_base": 5.0}, as_published=True).parameters.lambda_base == 5.0
    assert TrainingConfig.build({"method": name}, preset="paper").as_published


# -- exactness -------------------------------------------------------------------------------------------


def test_cfner_without_both_effects_trains_the_same_weights_as_extendner(
    stream: TaskStream, tiny_encoder: Path
) -> None:
    ours = learned(stream, tiny_encoder, without=("effect_e", "effect_o"))
    same = {"lambda_base": 1.0, "adaptive": True, "t_student": 1.0}
    theirs = learned(stream, tiny_encoder, "extendner", parameters=same)
    for key, value in weights_of(ours).items():
        assert torch.equal(value, weights_of(theirs)[key]), key


def test_k_of_0_trains_the_same_weights_as_no_effects(stream: TaskStream, tiny_encoder: Path) -> None:
    ours = learned(stream, tiny_encoder, parameters={"k": 0})
    theirs = learned(stream, tiny_encoder, without=("effect_e", "effect_o"))
    for key, value in weights_of(ours).items():
        assert torch.equal(value, weights_of(theirs)[key]), key


@pytest.mark.parametrize("head", ["cosine", "linear"])
@pytest.mark.parametrize(
    "optimiser",
    [
        {"optimiser": "adamw", "weight_decay": 0.5},
        {"optimiser": "sgd", "weight_decay": 0.5, "momentum": 0.9, "lr_encoder": 0.01, "lr_head": 0.1},
    ],
    ids=["adamw", "sgd"],
)
@pytest.mark.parametrize("freeze_other", [False, True])
def test_frozen_rows_do_not_move_by_a_bit(
    stream: TaskStream, tiny_encoder: Path, head: str, optimiser: dict[str, Any], freeze_other: bool
) -> None:
    tagger = learned(
        stream, tiny_encoder, steps=1, epochs=2, head=head, freeze_other=freeze_other, **optimiser
    )
    before = {key: value.clone() for key, value in tagger.model.network.head.state_dict().items()}
    encoder = {key: value.clone() for key, value in tagger.model.network.body.state_dict().items()}
    tagger.learn(replace(stream[1], dev=()))
    after = tagger.model.network.head.state_dict()
    for key in ("weight", "bias") if head == "linear" else ("weight",):
        old, new = before[key], after[key]
        assert torch.equal(new[1 : len(old)], old[1:]), f"rows of old types moved ({key})"
        assert torch.equal(new[0], old[0]) == freeze_other, f"O's row ({key})"
    body = tagger.model.network.body.state_dict()
    assert any(not torch.equal(value, encoder[key]) for key, value in body.items())
    table = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(body[table], encoder[table])  # train_embeddings is off


@pytest.mark.parametrize("name", ["finetune", "cfner"])
def test_only_finetune_moves_old_rows(name: str, stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = learned(stream, tiny_encoder, name, steps=1, epochs=2)
    before = tagger.model.network.head.weight.detach().clone()
    tagger.learn(replace(stream[1], dev=()))
    kept = torch.equal(tagger.model.network.head.weight[1 : len(before)], before[1:])
    assert kept == (name != "finetune")


def test_rows_of_current_types_move_although_they_are_old(stream: TaskStream, tiny_encoder: Path) -> None:
    """More data for a type already known: it is current, so its rows are trained and the others frozen."""
    tagger = learned(stream, tiny_encoder, steps=1, epochs=2)
    assert tagger.types == ("animal", "city")
    before = tagger.model.network.head.weight.detach().clone()
    sentences = tuple(sentence.only(["city"]) for sentence in stream.slices[1])
    tagger.learn(replace(stream[1], types=("city",), known=("animal",), train=sentences, dev=()))
    after, labels = tagger.model.network.head.weight, tagger.model.labels
    assert after.shape == before.shape
    assert torch.equal(after[list(labels.ids_of(["animal"]))], before[list(labels.ids_of(["animal"]))])
    assert not torch.equal(after[list(labels.ids_of(["city"]))], before[list(labels.ids_of(["city"]))])


def test_joint_starts_from_the_pretrained_encoder(stream: TaskStream, tiny_encoder: Path) -> None:
    """Trained on all slices with all labels so far: what an earlier step learned leaves no trace."""
    tagger = learned(stream, tiny_encoder, "joint", epochs=1)
    prepared = prepared_step(tagger)
    assert prepared.teacher is None
    assert len(prepared.data.sentences) == sum(map(len, stream.slices[:2]))
    assert {t for s in prepared.data.sentences for t in s.types} == set(stream[1].types_so_far)
    other = Subject("joint", tiny_encoder, stream).tagger(epochs=1)
    other.learn(replace(stream[0], _slices=(stream.slices[0][:9],), dev=()))
    other.learn(replace(stream[1], dev=()))
    for key, value in weights_of(tagger).items():
        assert torch.equal(value, weights_of(other)[key]), key


# -- the teacher -----------------------------------------------------------------------------------------


def test_the_teacher_is_the_oracles(stream: TaskStream, tiny_encoder: Path) -> None:
    """Defined-other, confidence and pools from the scores of the model as it came out of the first step."""
    tagger = learned(stream, tiny_encoder, steps=1)
    network = tagger.model.network
    text = encode(stream[1].train, tagger.model.tokenizer, max_length=tagger.model.max_length)
    scores: dict[int, list[float]] = {}
    for batch, out in outputs(network, text, batch_size=1):
        scores |= dict(zip(batch.refs.tolist(), out.logits.tolist(), strict=True))
    tagger.learn(replace(stream[1], dev=()))
    prepared = prepared_step(tagger)
    teacher, gold = prepared.teacher, prepared.data.gold
    assert teacher is not None
    kept = list(range(5))  # O and two old types
    pool = []
    for ref in range(len(gold)):
        token = oracle.Token(int(gold[ref]), (), scores[ref])
        assert bool(teacher.defined_other[ref]) == oracle.defined_other(token, kept)
        assert float(teacher.confidence[ref]) == pytest.approx(oracle.confidence(token, kept), abs=1e-5)
        pool += [ref] if token.gold != oracle.OTHER or oracle.defined_other(token, kept) else []
    assert teacher.pool.tolist() == pool
    assert 0 < int(teacher.defined_other.sum()) < int((gold == 0).sum())


def test_the_student_starts_as_the_teacher_with_a_grown_head(stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = learned(stream, tiny_encoder, steps=1)
    text = encode(stream[1].train, tagger.model.tokenizer, max_length=tagger.model.max_length)
    before = {
        int(r): row
        for b, o in outputs(tagger.model.network, text)
        for r, row in zip(b.refs, o.logits, strict=True)
    }
    tagger.config = tagger.config.model_copy(update={"lr_encoder": 0.0, "lr_head": 0.0, "epochs": 1})
    tagger.learn(replace(stream[1], dev=()))
    for batch, out in outputs(tagger.model.network, text):
        for ref, row in zip(batch.refs, out.logits, strict=True):
            torch.testing.assert_close(row[:5], before[int(ref)])


# -- faults of the published code ------------------------------------------------------------------------


def test_padding_and_batch_mates_do_not_matter(tagger: ContinualTagger) -> None:
    """Faults: "the cosine normalises over the sequence axis for batches", "no attention mask"."""
    network, text = tagger.model.network, prepared_step(tagger).data.text
    with torch.no_grad():
        together = network(collate(text, range(text.windows)))
        refs = collate(text, range(text.windows)).refs
        for window in range(text.windows):
            batch = collate(text, [window])
            alone = network(batch).logits
            torch.testing.assert_close(
                alone, together.logits[torch.isin(refs, batch.refs)], rtol=1e-4, atol=1e-4
            )


def test_no_sentence_is_encoded_for_the_sake_of_another(
    stream: TaskStream, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: "matched sentences are encoded again for every batch". Both effects cost no forward pass."""
    read = []
    forward = Network.forward

    def counting(self: Network, batch: Any, *more: Any) -> Any:
        read.append(batch.input_ids.shape[0])
        return forward(self, batch, *more)

    monkeypatch.setattr(Network, "forward", counting)
    counts = []
    for without in ((), ("effect_e", "effect_o")):
        learned(stream, tiny_encoder, without=without, epochs=2)
        counts.append(sum(read))
        read.clear()
    assert counts[0] == counts[1]
    windows = [len(step.train) for step in stream.steps[:2]]
    assert counts[0] == 2 * windows[0] + (1 + 2) * windows[1]  # the teacher once, two epochs


def test_neighbours_survive_shuffling(tagger: ContinualTagger) -> None:
    """Fault: "the training data cannot be shuffled". Any order of any batches sees the same matches."""
    prepared = prepared_step(tagger)
    bank, teacher, text = prepared.bank, prepared.teacher, prepared.data.text
    assert bank is not None and teacher is not None
    whole = collate(text, range(text.windows))
    weights, matched = bank.mixture(whole.refs, 1.0)
    order = np.random.default_rng(0).permutation(text.windows)
    seen: list[Tensor] = []
    for windows in np.array_split(order, 4):
        batch = collate(text, windows)
        places = torch.cat([(whole.refs == ref).nonzero()[:, 0] for ref in batch.refs])
        own_weights, own_matched = bank.mixture(batch.refs, 1.0)
        assert torch.equal(own_weights, weights[places])
        assert torch.equal(own_matched, matched[places])
        assert torch.equal(teacher.view(batch).confidence, teacher.confidence[batch.refs])
        seen.append(batch.refs)
    assert torch.cat(seen).sort().values.tolist() == list(range(text.words))


def test_matching_and_training_see_the_same_scores(tagger: ContinualTagger) -> None:
    """Fault: "defined-other tokens are chosen with logits normalised along another axis than in training".

    The tokens that training may select are exactly those that were matched as defined-other, and the
    distribution that is distilled says so, too.
    """
    prepared = prepared_step(tagger)
    teacher, bank, gold = prepared.teacher, prepared.bank, prepared.data.gold
    assert teacher is not None and bank is not None
    matched = bank.table.row_of_ref >= 0
    assert torch.equal(matched & (gold == prepared.roles.other), teacher.defined_other)
    assert torch.equal(matched & (gold != prepared.roles.other), prepared.roles.is_new[gold])
    batch = collate(prepared.data.text, [3, 0, 2])
    view = teacher.view(batch)
    says_old = prepared.roles.kept[view.logits.argmax(1)] != prepared.roles.other
    assert torch.equal(view.defined_other, says_old & (gold[batch.refs] == prepared.roles.other))
    torch.testing.assert_close(view.confidence, view.logits.softmax(1).max(1).values)
    for row in range(len(bank.table.refs)):  # E with E, defined-other with defined-other
        others = bank.table.refs[[int(n) for n in bank.table.neighbours[row] if n >= 0]]
        assert (teacher.defined_other[others] == teacher.defined_other[bank.table.refs[row]]).all()


def test_the_distilled_label_is_soft(tagger: ContinualTagger) -> None:
    """Fault: "the teacher's label of defined-other tokens is made one-hot". self-training+cf wants that."""
    for name in method_names():
        objective = create(name).objective(_facts(prepared_step(tagger)))
        hard = [term.hard for term in objective.terms if isinstance(term, Distil)]
        assert hard in ([], [name == "self-training+cf"])


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_the_curriculum_is_on_in_every_configuration(tagger: ContinualTagger, preset: str | None) -> None:
    """Fault: "curriculum is off in every shipped configuration". It falls from 1 to 0 over the epochs."""
    config = TrainingConfig.build({"method": "cfner"}, preset=preset)
    method = create(config.method, config.parameters, config.without)
    epochs = config.epochs or 10
    facts = replace(_facts(prepared_step(tagger)), epochs=epochs)
    (reading,) = [term.predictions for term in method.objective(facts).terms if isinstance(term, Distil)]
    assert isinstance(reading, MatchedPredictions)
    assert reading.curriculum is not None
    assert reading.curriculum.threshold(1) == 1.0
    assert reading.curriculum.threshold(epochs) == 0.0
    assert 0 < reading.curriculum.threshold(epochs // 2) < 1


def test_podnets_spatial_term_moves_the_student(stream: TaskStream, tiny_encoder: Path) -> None:
    """Fault: "PODNet's spatial term is computed without gradient". Alone, it changes the encoder."""
    alone = {"lambda_c": 3.0, "lambda_f": 0.0}
    without = {"lambda_c": 0.0, "lambda_f": 0.0}
    trained = [
        weights_of(learned(stream, tiny_encoder, "podnet", parameters=parameters, epochs=1))
        for parameters in (alone, without)
    ]
    moved = [key for key in trained[0] if not torch.equal(trained[0][key], trained[1][key])]
    assert any("layer.0." in key for key in moved)
    assert any("layer.1." in key for key in moved)


def test_rows_are_imprinted_from_training_data(stream: TaskStream, tiny_encoder: Path) -> None:
    """Fault: "new rows are imprinted from validation data". Rows are means of training features."""
    rows = []
    for dev in ((), stream[1].dev):
        tagger = learned(stream, tiny_encoder, steps=1, epochs=2)
        tagger.config = tagger.config.model_copy(update={"lr_encoder": 0.0, "lr_head": 0.0, "epochs": 1})
        tagger.learn(replace(stream[1], dev=dev))
        rows.append(tagger.model.network.head.weight.detach()[5:])
    assert torch.equal(*rows)
    prepared, network = prepared_step(tagger), tagger.model.network
    features = {
        int(ref): oracle.unit(row.tolist())
        for batch, out in outputs(network, prepared.data.text)
        for ref, row in zip(batch.refs, out.features, strict=True)
    }
    for row, label in zip(rows[0], (5, 6), strict=True):
        tokens = [features[ref] for ref, gold in enumerate(prepared.data.gold.tolist()) if gold == label]
        mean = [oracle.mean([token[i] for token in tokens]) for i in range(len(row))]
        assert oracle.cosine(row.tolist(), mean) == pytest.approx(1, abs=1e-5)
    norms = [oracle.norm(row) for row in network.head.weight[:5].tolist()]
    assert oracle.norm(rows[0][0].tolist()) == pytest.approx(oracle.mean(norms), rel=1e-5)


def test_an_inside_label_without_token_takes_its_beginning_row(
    stream: TaskStream, tiny_encoder: Path
) -> None:
    tagger = learned(stream, tiny_encoder, steps=1, epochs=1)
    tagger.config = tagger.config.model_copy(update={"lr_encoder": 0.0, "lr_head": 0.0})
    type_ = stream[1].types[0]
    short = tuple(s for s in stream[1].train if all(span.end - span.start == 1 for span in s.spans))
    assert any(sentence.spans for sentence in short)
    tagger.learn(replace(stream[1], train=short, dev=()))
    begin, inside = tagger.model.labels.ids_of([type_])
    rows = tagger.model.network.head.weight
    torch.testing.assert_close(rows[inside], rows[begin])


@pytest.mark.parametrize("epochs", [1, 2, 7, 20])
def test_the_curriculum_ends_with_the_last_epoch(tagger: ContinualTagger, epochs: int) -> None:
    """m defaults to the number of epochs, and is taken as it is when given."""
    facts = replace(_facts(prepared_step(tagger)), epochs=epochs)
    for given, m in ((None, epochs), (3, 3)):
        (reading,) = [
            term.predictions
            for term in create("cfner", {"m": given}).objective(facts).terms
            if isinstance(term, Distil)
        ]
        assert isinstance(reading, MatchedPredictions) and reading.curriculum is not None
        for epoch in range(1, epochs + 1):
            wanted = oracle.curriculum_delta(epoch, 1.0, 0.0, m)
            assert reading.curriculum.threshold(epoch) == pytest.approx(wanted, abs=1e-12)


# -- matched predictions of the current student ----------------------------------------------------------


def scores_by_ref(tagger: ContinualTagger) -> Tensor:
    """[N, C] what the student says of every word of its last step, in eval mode."""
    text = prepared_step(tagger).data.text
    parts = [(batch.refs, out.logits) for batch, out in outputs(tagger.model.network, text)]
    return torch.cat([logits for _, logits in parts])[torch.cat([refs for refs, _ in parts]).argsort()]


def test_the_bank_starts_with_what_the_student_says(stream: TaskStream, tiny_encoder: Path) -> None:
    tagger = learned(stream, tiny_encoder, steps=1)
    tagger.config = tagger.config.model_copy(update={"lr_encoder": 0.0, "lr_head": 0.0, "epochs": 1})
    tagger.learn(replace(stream[1], dev=()))
    bank = prepared_step(tagger).bank
    assert bank is not None and len(bank.table.refs) > 3
    torch.testing.assert_close(bank.logits, scores_by_ref(tagger)[bank.table.refs], rtol=1e-4, atol=1e-4)


def test_the_bank_follows_the_batches(stream: TaskStream, tiny_encoder: Path) -> None:
    """A batch leaves its scores behind for those who are matched with its words; nobody else's change."""
    tagger = learned(stream, tiny_encoder)
    prepared, network = prepared_step(tagger), tagger.model.network
    bank = prepared.bank
    assert bank is not None
    bank.logits.fill_(99.0)
    batch = collate(prepared.data.text, [1, 4])
    BatchLosses(network, network, prepared, tagger.config).losses(batch, 1)
    seen = torch.isin(bank.table.refs, batch.refs)
    assert seen.any() and not seen.all()
    wanted = scores_by_ref(tagger)[bank.table.refs[seen]]
    torch.testing.assert_close(bank.logits[seen], wanted, rtol=1e-4, atol=1e-4)
    assert (bank.logits[~seen] == 99.0).all()


def test_exact_matches_are_what_the_student_says_now(stream: TaskStream, tiny_encoder: Path) -> None:
    """matches="exact": the bank holds fresh scores of every matched token when a loss reads it."""
    tagger = learned(stream, tiny_encoder, matches="exact", parameters={"delta_1": 0.0, "lambda_base": 2.0})
    prepared, network = prepared_step(tagger), tagger.model.network
    assert prepared.bank is not None and prepared.teacher is not None
    network.eval()  # without dropout, so that anchors and matches can be compared with one reading
    prepared.bank.logits.fill_(99.0)  # stale
    step = BatchLosses(network, network, prepared, tagger.config)
    with torch.no_grad():
        batch = collate(prepared.data.text, [1, 4])
        losses, total = step.losses(batch, tagger.config.epochs)
    says = scores_by_ref(tagger).tolist()
    table, gold = prepared.bank.table, prepared.data.gold
    tokens = []
    for ref in batch.refs.tolist():
        row = int(table.row_of_ref[ref])
        others = [int(table.refs[n]) for n in table.neighbours[row] if n >= 0] if row >= 0 else []
        tokens.append(
            oracle.Token(
                int(gold[ref]),
                says[ref],
                prepared.teacher.logits[ref].tolist(),
                [says[other] for other in others],
            )
        )
    plain = oracle.Batch(tokens, list(range(5)), [5, 6], old_types=2, new_types=1, delta=0.0)
    assert losses["effect_e"].item() == pytest.approx(oracle.effect_e(plain.entities), abs=1e-4)
    assert total.item() == pytest.approx(oracle.cfner(plain), rel=1e-4, abs=1e-4)


def _facts(prepared: PreparedStep) -> ExampleContext:
    return ExampleContext(old_types=2, new_types=1, epochs=10)


def test_a_method_without_an_objective_is_refused_before_anything_is_done(
    tiny_data: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "mine.py", tmp_path / "out"
    file.write_text(
        "from cfner.methods import Method, register\n\n\n@register\nclass Mine(Method):\n"
        "    name = title = paper = good_for = 'mine'\n"
    )
    words = ["train", tiny_data, "--out", out, "--use", file, "--method", "mine"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(done.exception, ConfigError)
    assert str(file) in str(done.exception) and "'mine' has no objective" in str(done.exception)
    assert "mine" not in method_names() and not out.exists()
