"""Somebody's checkpoint, of any family and label order, is taken over exactly, and learns on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cfner.batches.loader import inference_batches
from cfner.batches.step_data import encode_slices
from cfner.corpus.corpus import Corpus
from cfner.errors import ModelError
from cfner.objective.teacher import score_words
from cfner.store.open import open_model
from cfner.stream.step import Slice, Step
from cfner.tagger import ContinualTagger
from cfner.training.preparation import grow, roles_of
from strangers import FAMILIES, ORDERS, make_checkpoint

CASES = [(family, order) for family in FAMILIES for order in ORDERS if family == "bert" or order == "odd"]
CASES += [("roberta", "BIOES"), ("distilbert", "IOB1"), ("electra", "BIO")]


@pytest.mark.parametrize(("family", "order"), CASES)
def test_before_training_a_grown_model_says_of_old_labels_what_the_checkpoint_said(
    family: str, order: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    from transformers import AutoModelForTokenClassification

    folder = make_checkpoint(tmp_path / "m", family, ORDERS[order])
    stock = AutoModelForTokenClassification.from_pretrained(folder).eval()
    model = open_model(folder)
    labels = model.labels.grown(["person", "dish", "city"])
    assert labels.labels[: len(ORDERS[order])] == tuple(ORDERS[order])
    sentences = [s.only(["person", "dish"]) for s in tiny_corpus.train]
    slices = [Slice(tuple(sentences), frozenset(["person", "dish"]))]
    data = encode_slices(slices, labels, model.tokenizer, max_length=model.max_length, overlap=None)
    roles = roles_of(labels, ["person", "dish"])
    network = model.network
    teacher = score_words(network, data, roles, batch_size=16)
    grow(network, teacher, data.gold, labels)
    assert network.head.labels == len(labels) > len(ORDERS[order])
    with torch.no_grad():
        for batch in inference_batches(data.text, batch_size=16):
            theirs = stock(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            ours = network(batch).logits[:, : len(ORDERS[order])]
            assert torch.equal(ours, theirs[batch.rows, batch.positions])


@pytest.mark.parametrize(
    ("family", "order"),
    [("bert", "IOB1"), ("roberta", "BIOES"), ("distilbert", "odd"), ("modernbert", "BIO")],
)
def test_a_checkpoint_learns_new_types_and_is_saved_with_its_origin(
    family: str, order: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    folder = make_checkpoint(tmp_path / "m", family, ORDERS[order])
    tagger = ContinualTagger.open(folder, epochs=2, batch_size=16)
    before = tagger.predict("ada saw the heron in oslo").spans
    tagger.save(tmp_path / "out")
    known = tagger.types
    train = tuple(s.only(["person", "dish"]) for s in tiny_corpus.train)
    tagger.learn(Step(types=("dish", "person"), train=train, known=known))
    tagger.save(tmp_path / "out")
    assert set(tagger.types) == {"city", "animal", "dish", "person"}
    first = ContinualTagger.load(tmp_path / "out", 1)
    assert first.predict("ada saw the heron in oslo").spans == before
    facts = json.loads((tmp_path / "out/steps/0001/step.json").read_text())
    assert (facts["kind"], facts["origin"]) == ("import", str(folder))
    again = ContinualTagger.load(tmp_path / "out")
    text = "alan turing ate soup in cape town"
    assert again.predict(text) == tagger.predict(text)


def test_an_encoder_without_a_head_is_no_ner_model(tiny_encoder: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    AutoModel.from_pretrained(tiny_encoder).save_pretrained(tmp_path)
    for file in tiny_encoder.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ModelError, match=r"no token-classification head.*`train\("):
        open_model(tmp_path)


def test_labels_without_an_o_are_refused_with_the_place(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "m", "bert", ["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(ModelError, match="None of these labels is 'O'"):
        open_model(tmp_path / "m")


def test_a_step_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    with pytest.raises(ModelError, match="without steps"):
        open_model(tmp_path / "m", 2)


def test_pickled_weights_are_not_opened(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="safetensors"):
        open_model(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "../elsewhere.safetensors", "a\\b.safetensors", 7])
def test_an_index_leads_neither_to_pickles_nor_out_of_the_folder(name: Any, tmp_path: Path) -> None:
    """The weights are there, and good: they are only not where weights may be."""
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    weights = load_file(folder / "model.safetensors")
    if name == "pytorch_model.bin":
        torch.save(weights, folder / name)
    else:
        save_file(weights, folder / str(name), metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="The index refers to") as caught:
        open_model(folder)
    assert str(folder) in str(caught.value)


def test_weights_in_several_files_are_read(tmp_path: Path) -> None:
    from transformers import AutoModelForTokenClassification

    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    whole = open_model(folder).network.state_dict()
    stock = AutoModelForTokenClassification.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    stock.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    parts = open_model(folder).network.state_dict()
    assert all(torch.equal(parts[name], whole[name]) for name in whole)


def test_weights_of_half_the_bits_are_learned_saved_and_read_back_as_they_are(tmp_path: Path) -> None:
    """Its settings say 16 bits; what is learned has 32, and is not rounded when it is loaded again."""
    from transformers import AutoModelForTokenClassification

    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    AutoModelForTokenClassification.from_pretrained(folder).half().save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"
    tagger = ContinualTagger.open(folder)
    with torch.no_grad():
        for weight in tagger.model.network.parameters():
            weight.add_(1e-6)  # as little as a step of learning changes, and more than 16 bits can hold
    tagger.save(tmp_path / "saved")
    learned = tagger.model.network.state_dict()
    loaded = ContinualTagger.load(tmp_path / "saved").model.network.state_dict()
    assert {value.dtype for value in loaded.values()} == {torch.float32}
    assert all(torch.equal(value, loaded[name]) for name, value in learned.items())


def test_a_tokenizer_without_its_vocabulary_is_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    (folder / "tokenizer.json").unlink()
    _change(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    with pytest.raises(ModelError, match="The tokenizer has an empty vocabulary"):
        open_model(folder)


def test_a_folder_of_links_is_read_as_the_hubs_cache_is_made(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "blobs", "bert", ORDERS["BIO"])
    (tmp_path / "snapshot").mkdir()
    for file in folder.iterdir():
        (tmp_path / "snapshot" / file.name).symlink_to(file)
    assert open_model(tmp_path / "snapshot").labels.labels == tuple(ORDERS["BIO"])


@pytest.mark.parametrize(
    ("asked", "used"), [("eager", "eager"), ("sdpa", "sdpa"), ("flash_attention_2", "sdpa"), (None, "sdpa")]
)
def test_attention_that_this_machine_has_not_is_not_asked_for(
    asked: str | None, used: str, tmp_path: Path
) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    _change(folder / "config.json", attn_implementation=asked)
    config: Any = open_model(folder).network.body.config
    assert config._attn_implementation == used


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_a_kernel_from_the_hub_is_refused(key: str, tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    _change(folder / "config.json", **{key: "someone/kernel"})
    with pytest.raises(ModelError, match=r"config\.json: .*'someone/kernel', which is third-party code"):
        open_model(folder)


def test_quantized_weights_are_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    _change(
        folder / "config.json", quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}
    )
    with pytest.raises(ModelError, match=r"'quantization_config'.*plain float weights"):
        open_model(folder)


def test_an_adapter_is_not_left_out_in_silence(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/else"}')
    with pytest.raises(ModelError, match=r"contains an adapter.*Merge it"):
        open_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused_by_name(value: float, tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    weights = load_file(folder / "model.safetensors")
    bias = weights.pop("classifier.bias")
    save_file(
        {**weights, "classifier.bias": torch.full_like(bias, value)},
        folder / "model.safetensors.new",
        metadata={"format": "pt"},
    )
    (folder / "model.safetensors.new").replace(folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"'classifier\.bias' is not finite") as caught:
        open_model(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hidden_size": 64}, "is 32 in the file and 64 in its architecture"),
        ({"hidden_size": "x"}, "expected int, got str"),
        ({"hidden_act": "unheard-of"}, "KeyError: 'unheard-of'"),
        ({"model_type": [1]}, "unhashable"),
        ({"id2label": {"0": "O", "7": "B-city"}}, "'classifier.bias' is 5 in the file and 2"),
        ({"id2label": dict(zip("01237", ORDERS["BIO"], strict=True))}, "without gaps"),
        ({"num_hidden_layers": 10**6}, "'num_hidden_layers' cannot be 1000000"),
        ({"vocab_size": 2 * 10**9}, "its architecture has 64,0"),
        ({"text_config": {"num_labels": 10**9}}, "'num_labels' cannot be 1000000000"),
    ],
)
def test_settings_that_do_not_fit_the_weights_are_one_error(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    _change(folder / "config.json", **changes)
    _refused(folder, reason)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("config.json", "[" * 100_000, "recursion"),
        ("config.json", "[1]", "contains no settings"),
        ("tokenizer.json", '{"x": 1}', "KeyError: 'added_tokens'"),
        ("tokenizer_config.json", "[1]", "contains no settings"),
        ("tokenizer_config.json", '{"model_max_length": "x"}', "not supported"),
        ("tokenizer_config.json", '{"model_max_length": 0}', "reads 0 subwords"),
        ("model.safetensors", "no weights", "header"),
        ("model.safetensors", None, "header"),
    ],
)
def test_a_damaged_file_is_one_error(file: str, content: str | None, reason: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"]) / file
    path.write_bytes(path.read_bytes()[:5000] if content is None else content.encode())
    _refused(path.parent, reason)


def _refused(folder: Path, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        open_model(folder)
    assert reason in str(caught.value)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_checkpoint_that_is_written_anew_changes_no_opened_model(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["BIO"])
    model = open_model(folder)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(8000)
        file.write(bytes(40_000))
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())


def _change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_agreement_with_the_old_model_is_part_of_the_choice_of_epoch(
    two_steps: Path, tiny_corpus: Corpus
) -> None:
    tagger = ContinualTagger.load(two_steps, 1, select_on="new+old", epochs=3)
    current = ("dish", "person")
    step = Step(
        types=current,
        train=tuple(s.only(current) for s in tiny_corpus.train),
        dev=tuple(s.only(current) for s in tiny_corpus.dev),
        known=tagger.types,
    )
    history = tagger.learn(step).history
    for figures in history:
        new, old = figures["dev_f1"], figures["dev_agreement"]
        assert figures["dev_choice"] == pytest.approx(2 * new * old / (new + old) if new + old else 0)
    assert 0 < history[0]["dev_agreement"] <= 100


def test_replayed_sentences_teach_old_types(two_steps: Path, tiny_corpus: Corpus) -> None:
    """With the distillation weighted to nothing, only replay keeps the old types."""
    current = ("dish", "person")

    def old_f1(replay: tuple[Any, ...]) -> float:
        tagger = ContinualTagger.load(two_steps, 1, method="extendner", parameters={"lambda_base": 0.0})
        known = tagger.types
        step = Step(
            types=current,
            train=tuple(s.only(current) for s in tiny_corpus.train),
            known=known,
            replay=tuple(s.only(known) for s in replay),
        )
        tagger.learn(step)
        scores = tagger.evaluate(tiny_corpus.test)
        return sum(scores.f1_of[type_] for type_ in known) / len(known)

    assert old_f1(tiny_corpus.train[:30]) > old_f1(()) + 10


@pytest.mark.parametrize("method", ["cfner", "extendner", "self-training", "finetune"])
def test_replay_may_bring_a_label_that_an_old_type_never_had(
    method: str, tmp_path: Path, tiny_corpus: Corpus
) -> None:
    """Published checkpoints in IOB1 lack B- for a type whose mentions never touched. It is learned here."""
    folder = make_checkpoint(tmp_path / "m", "bert", ORDERS["IOB1"])
    tagger = ContinualTagger.open(folder, method=method, epochs=1, batch_size=8)
    assert "B-animal" not in tagger.model.labels.labels
    known = tagger.types
    step = Step(
        types=("person",),
        train=tuple(s.only(["person"]) for s in tiny_corpus.train),
        known=known,
        replay=tuple(s.only(known) for s in tiny_corpus.train[:10]),
    )
    before = tagger.model.network.head.weight.detach().clone()
    tagger.learn(step)
    labels, head = tagger.model.labels, tagger.model.network.head
    added = labels.labels.index("B-animal")
    assert added >= len(before)
    assert bool(torch.isfinite(head.weight).all())
    if method != "finetune":  # which freezes nothing
        assert torch.equal(head.weight[1 : len(before)], before[1:])
