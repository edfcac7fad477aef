"""A model as a stock Hugging Face token classifier: same labels, and a card that says what is so."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import string
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from torch import nn
from typer.testing import CliRunner

from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.errors import CfnerError, ConfigError, CorpusError, ModelError
from cfner.files.atomic import atomic_folder
from cfner.files.markdown import escaped
from cfner.interop.check_text import built_in, compare, read_check_text, word_logits
from cfner.interop.export import export_model, open_for_prediction
from cfner.interop.export_folder import ExportReport, refuse_occupied
from cfner.interop.hf_export import folded
from cfner.interop.hub import push_to_hub
from cfner.interop.model_card import Provenance, model_card
from cfner.network.encoders import strip_classifier
from cfner.network.head import CosineHead, LinearHead, make_head
from cfner.network.network import Network
from cfner.network.prediction import tag
from cfner.store.lineage import LineageStep
from cfner.store.model_files import LoadedModel
from cfner.store.model_folder import StoredStep
from cfner.store.open import open_model
from cfner.stream.labels import LabelSpace
from cfner.tagger import ContinualTagger
from reading import word_by_word


@pytest.fixture(scope="module")
def model(two_steps: Path) -> LoadedModel:
    return open_model(two_steps)


@pytest.fixture(scope="module")
def exported(two_steps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "hf"
    export_model(two_steps, folder, "hf")
    return folder


def in_pipeline(folder: Path, sentences: list[Sentence]) -> list[list[tuple[str, int, int]]]:
    """What stock transformers find, with the aggregation strategy that the card names."""
    from transformers import pipeline

    find = pipeline("token-classification", str(folder), aggregation_strategy="first", device="cpu")
    texts = [" ".join(sentence.words) for sentence in sentences]
    return [[(e["entity_group"], e["start"], e["end"]) for e in answer] for answer in find(texts)]


def in_ours(model: LoadedModel, sentences: list[Sentence]) -> list[list[tuple[str, Any, Any]]]:
    return [[(e.type, e.start, e.end) for e in prediction.entities] for prediction in tag(model, sentences)]


# -- the head ----------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    labels=st.integers(1, 6),
    hidden=st.integers(2, 9),
    seed=st.integers(0, 99),
    sigma=st.floats(0.5, 40),
    mean=st.floats(0.1, 30),
)
def test_a_folded_head_scales_all_logits_of_a_word_alike(
    labels: int, hidden: int, seed: int, sigma: float, mean: float
) -> None:
    draw = torch.Generator().manual_seed(seed)
    head = CosineHead(hidden, labels, sigma)
    features = torch.randn(20, hidden, generator=draw) * 3
    with torch.no_grad():
        head.weight.copy_(torch.randn(labels, hidden, generator=draw))
        weight, bias = folded(head, mean)
        scaled = head(features) * (features.norm(dim=1, keepdim=True) / mean)
        torch.testing.assert_close(features @ weight.T + bias, scaled, rtol=1e-3, atol=1e-3)
    assert not bias.any()


def test_a_linear_head_is_written_as_it_is(model: LoadedModel, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from transformers import AutoModelForTokenClassification

    head = LinearHead(model.network.head.hidden, len(model.labels))
    torch.nn.init.normal_(head.bias, generator=torch.Generator().manual_seed(0))
    linear = replace(model, network=Network(model.network.body, head))
    report = export_model(linear, tmp_path / "hf")
    stock = AutoModelForTokenClassification.from_pretrained(tmp_path / "hf")
    assert torch.equal(stock.classifier.weight, head.weight)
    assert torch.equal(stock.classifier.bias, head.bias)
    assert report.mean_feature_norm is None
    assert report.agreement.largest_logit_difference < 1e-5
    # and a checkpoint that is opened and exported again is the same one
    export_model(tmp_path / "hf", tmp_path / "again", "hf")
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("hf", "again"))
    assert one == other
    sentences = list(tiny_corpus.test)
    assert in_ours(open_model(tmp_path / "again"), sentences) == in_ours(linear, sentences)


# -- the folder --------------------------------------------------------------------------------------------


def test_stock_transformers_find_the_same_entities(
    exported: Path, model: LoadedModel, tiny_corpus: Corpus
) -> None:
    sentences = list(tiny_corpus.test) + list(tiny_corpus.dev)
    theirs = in_pipeline(exported, sentences)
    assert theirs == in_ours(word_by_word(model), sentences)
    # a sentence is only found differently if the labels of its words do not follow the scheme
    text = model.encode(sentences)
    lengths = [len(sentence) for sentence in sentences]
    broken = model.decoder().broken_alone(word_logits(model.network, text), lengths)
    ours = in_ours(model, sentences)
    assert {at for at, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b} <= set(broken)
    assert 0 < len(broken) < len(sentences) and sum(map(len, ours)) > 20


def test_nothing_of_ours_is_needed_to_load_it(exported: Path) -> None:
    settings = json.loads((exported / "config.json").read_text())
    assert settings["architectures"] == ["BertForTokenClassification"]
    assert "auto_map" not in settings
    assert settings["label2id"]["B-animal"] == 1 and settings["id2label"]["1"] == "B-animal"
    assert json.loads((exported / "tokenizer_config.json").read_text())["model_max_length"] == 64
    assert {file.suffix for file in exported.iterdir()} == {".json", ".safetensors", ".md"}
    assert all(file.stat().st_mode & 0o044 for file in exported.iterdir())


def test_it_opens_as_a_model_again(exported: Path, model: LoadedModel, tiny_corpus: Corpus) -> None:
    again = open_model(exported)
    assert again.labels == model.labels
    assert in_ours(again, list(tiny_corpus.test)) == in_ours(model, list(tiny_corpus.test))


@pytest.mark.parametrize("free", [99, -1])
def test_a_number_of_free_labels_that_does_not_fit_is_refused(
    exported: Path, tmp_path: Path, free: int
) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "hf"))
    facts = json.loads((folder / "config.json").read_text())
    facts["cfner_label_order"]["free"] = free
    (folder / "config.json").write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="labels cannot be free"):
        open_model(folder)


def test_an_export_that_somebody_trained_on_with_other_labels_has_free_labels(
    exported: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "hf"))
    facts = json.loads((folder / "config.json").read_text())
    facts["id2label"] = {
        number: name.replace("animal", "beast") for number, name in facts["id2label"].items()
    }
    facts["label2id"] = {name: int(number) for number, name in facts["id2label"].items()}
    (folder / "config.json").write_text(json.dumps(facts))
    labels = open_model(folder).labels
    assert "beast" in labels.types and labels.free == len(labels)
    assert open_model(exported).labels.free == 0


def test_long_texts_are_cut_by_the_pipeline_not_refused(exported: Path) -> None:
    assert in_pipeline(exported, [Sentence(("badger",) * 200)])


def test_a_merged_type_has_one_name(model: LoadedModel, tiny_corpus: Corpus, tmp_path: Path) -> None:
    merged = replace(model, labels=model.labels.renamed(["animal", "dish"], "thing"))
    export_model(merged, tmp_path / "hf")
    sentences = list(tiny_corpus.test)
    assert in_pipeline(tmp_path / "hf", sentences) == in_ours(word_by_word(merged), sentences)


def test_an_earlier_step(two_steps: Path, tmp_path: Path) -> None:
    report = export_model(two_steps, tmp_path / "first", step=1)
    assert report.types == ("animal", "city")
    assert open_model(tmp_path / "first").labels.types == ("animal", "city")


# -- words of a tokenizer that does not mark where they begin ----------------------------------------------


@pytest.fixture(scope="module")
def byte_level() -> LoadedModel:
    """A RoBERTa of one layer with a byte-level tokenizer of single signs."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import AutoModelForTokenClassification, PreTrainedTokenizerFast, RobertaConfig

    signs = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = [("\u0120", sign) for sign in string.ascii_letters + string.punctuation]  # blank and sign
    vocabulary = {sign: number for number, sign in enumerate([*signs, *map("".join, merges)])}
    backend = Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        model_max_length=10**30,
    )
    tokenizer.split_special_tokens = True
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        body = AutoModelForTokenClassification.from_config(
            RobertaConfig(
                vocab_size=len(vocabulary),
                hidden_size=32,
                num_hidden_layers=1,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=130,
                initializer_range=0.3,
            )
        )
        strip_classifier(body)
        labels = LabelSpace.of(["O", "B-x", "I-x", "B-y", "I-y"])
        network = Network(body, make_head("cosine", 32, len(labels)))
    network.eval()
    return LoadedModel(network, tokenizer, labels, 128, "somewhere/else", None)


def test_words_between_blanks_are_ours(byte_level: LoadedModel, tmp_path: Path) -> None:
    from transformers import pipeline

    export_model(byte_level, tmp_path / "hf")
    sentences = [Sentence(tuple(text.split())) for text in ("ada saw a fox .", "the soup , of Oslo !")]
    ours = in_ours(byte_level, sentences)
    assert in_pipeline(tmp_path / "hf", sentences) == ours
    assert sum(map(len, ours)) > 2
    find = pipeline("token-classification", str(tmp_path / "hf"), aggregation_strategy="first", device="cpu")
    given_words = find(
        [list(sentence.words) for sentence in sentences], is_split_into_words=True, delimiter=" "
    )
    assert [[(e["entity_group"], e["start"], e["end"]) for e in answer] for answer in given_words] == ours
    assert "Put spaces around punctuation" in (tmp_path / "hf" / "README.md").read_text()


# -- the card ----------------------------------------------------------------------------------------------


def front_matter(folder: Path) -> dict[str, Any]:
    text = (folder / "README.md").read_text()
    assert text.startswith("---\n")
    facts: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return facts


def test_the_card_has_types_scores_lineage_and_how_to(exported: Path, two_steps: Path) -> None:
    facts, text = front_matter(exported), (exported / "README.md").read_text()
    assert facts["pipeline_tag"] == "token-classification"
    assert facts["library_name"] == "transformers"
    assert "license" not in facts and "base_model" not in facts
    metrics = facts["model-index"][0]["results"][0]["metrics"]
    scores = json.loads((two_steps / "steps" / "0002" / "scores.json").read_text())
    assert metrics[0]["value"] == pytest.approx(scores["micro_f1"] / 100, abs=1e-4)
    for type_, counts in scores["per_type"].items():
        assert (
            f"| {type_} | {counts['precision']:.1f} | {counts['recall']:.1f} | {counts['f1']:.1f} |" in text
        )
    for number, types_ in ((1, "animal, city"), (2, "dish, person")):
        step = json.loads((two_steps / "steps" / f"{number:04d}" / "step.json").read_text())
        assert f"| {types_} | cfner | {step['data']['train']['sentences']} |" in text
        assert step["data"]["train"]["hash"][:16] in text
    for part in (
        "Intended use",
        "How to reproduce",
        "Licence",
        'aggregation_strategy="first"',
        '"epochs": 10',
    ):
        assert part in text
    assert "the mean length of the features" in text


def test_the_cards_command_makes_the_same_stream(
    tiny_data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, flags = CliRunner(), ["--order", "person,city,dish,animal", "--min-mentions", "1", "--every", "2"]
    stream = ["--first", "3", "--per-step", "1", "--sampling", "random", "--seed", "7", *flags]
    asked = ["train", str(tiny_data), *stream, "--encoder", str(tiny_encoder), "--epochs", "1"]
    assert run.invoke(app, [*asked, "--out", "model"]).exit_code == 0
    export_model("model", "out")
    card = Path("out/README.md").read_text()
    (command,) = re.findall("^cfner train .*$", card, re.MULTILINE)
    assert "Learned by the same command" in card
    settings = json.loads(card.split("```json\n")[1].split("```")[0]) | {"encoder": str(tiny_encoder)}
    Path("settings.json").write_text(json.dumps(settings))
    words = [str(tiny_data) if word == "DATA" else word for word in shlex.split(command)[1:]]
    again = run.invoke(app, [*words, "--dry-run", "--json"])
    assert again.exit_code == 0, again.output
    plan, made = json.loads(again.stdout), json.loads(Path("model/run.json").read_text())
    assert plan["manifest"]["hash"] == made["manifest"]["hash"]
    assert plan["config"]["epochs"] == 1


def test_hostile_words_in_a_streams_record_stay_one_line(model: LoadedModel) -> None:
    from cfner.interop.reproduction import _command

    hostile = {"first": "1; rm", "order": ["a\n```\n# x", 3], "sampling": "$(rm -r /)", "every": True}
    line = _command(hostile, first=True)
    assert "\n" not in line and shlex.split(line)[3:5] == ["--sampling", "$(rm -r /)"]
    assert "--first" not in line and "--every" not in line


def test_nothing_says_where_on_this_disk_it_was_made(exported: Path, two_steps: Path) -> None:
    root = str(two_steps.parents[1])
    for file in exported.iterdir():
        if file.suffix != ".safetensors":
            assert root not in file.read_text(), file.name


@pytest.mark.parametrize(
    ("encoder", "shown", "on_hub"),
    [
        ("bert-base-cased", "bert-base-cased", True),
        ("dslim/bert_base.NER", "dslim/bert_base.NER", True),
        ("minilm", "minilm", False),
        ("models/secret-client/v2/bert", "bert", False),
        ("C:\\Users\\alice\\bert", "bert", False),
        ("alice\\bert", "bert", False),
        ("./alice/bert/", "bert", False),
        ("alice/../bert", "bert", False),
        ("~/bert", "bert", False),
        ("/home/alice/bert", "bert", False),
        ("alice smith/bert", "bert", False),
    ],
)
def test_an_encoder_is_told_by_its_name_on_the_hub_alone(
    encoder: str, shown: str, on_hub: bool, model: LoadedModel, two_steps: Path, exported: Path
) -> None:
    known = Provenance.of(two_steps)
    first = known.steps[0]
    config = {**first.record["config"], "encoder": encoder, "parameters": {"words": encoder, "k": 3}}
    facts = replace(known, steps=(replace(first, record={**first.record, "config": config}), known.steps[1]))
    same = compare(torch.eye(2), torch.eye(2))
    report = ExportReport(
        "hf", exported, model.labels.types, "BIO", "cosine", 64, "built in", None, same, 12, 0
    )
    card = model_card(replace(model, encoder=encoder), report, facts)
    assert yaml.safe_load(card.split("---\n")[1]).get("base_model") == (encoder if on_hub else None)
    settings = json.loads(card.split("```json\n")[1].split("```")[0])
    assert (settings["encoder"], settings["parameters"]) == (shown, {"words": shown, "k": 3})
    assert f"Encoder: {escaped(shown)}." in card
    assert shown == encoder or encoder not in card


def test_a_folder_is_never_taken_for_a_name_on_the_hub(
    tiny_settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also later, when it is gone: a model remembers its encoder's folder by the whole path."""
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "bert").symlink_to(tiny_settings["encoder"])
    monkeypatch.chdir(tmp_path)
    tagger = ContinualTagger.from_pretrained(**{**tiny_settings, "encoder": "alice/bert"})
    assert tagger.model.encoder == str(Path(tiny_settings["encoder"]).resolve())


def test_hostile_names_stay_text(model: LoadedModel, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>|[x](http://y)`---`"
    named = replace(model, labels=model.labels.renamed(["animal"], hostile))
    record = {"name": hostile, "kind": hostile, "types": [hostile], "data": {"train": {"hash": hostile}}}
    step = LineageStep(StoredStep(tmp_path, "0001", hostile), record, (hostile,), None, None, None)
    facts = Provenance(f"m\n---\n# {hostile}", (step,))
    text = model_card(named, export_model(named, tmp_path / "hf"), facts, license="mit")
    (tmp_path / "hf" / "README.md").write_text(text)
    assert front_matter(tmp_path / "hf")["license"] == "mit"
    assert "\n# m" in text and "\n---\n# <" not in text
    body = text.split("---\n", 2)[2]
    for sign in ("<script", "[x]", "|[", "`---`"):
        assert sign not in body
    assert escaped(hostile) in body


@given(st.text(max_size=30))
def test_escaped_text_is_one_line_without_live_markup(text: str) -> None:
    shown = escaped(text)
    assert len(shown.splitlines()) <= 1
    for number, sign in enumerate(shown):
        assert sign not in "<>"
        if sign in "`*_[]|":
            assert shown[number - 1] == "\\"


@pytest.mark.parametrize("text", ["1. a", "1234) a", "7.", "12.5 a", "- a", "+ a", "a. 1. b", "1.a"])
def test_the_beginning_of_a_line_means_nothing(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(escaped(text))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert "".join(child.content for child in tokens[1].children or ()) == text


def test_numbers_stay_readable_in_the_source() -> None:
    assert escaped("36.45 ± 0.51") == "36.45 ± 0.51"


def test_a_model_without_history_says_so(model: LoadedModel, tmp_path: Path) -> None:
    export_model(model, tmp_path / "hf")
    text = (tmp_path / "hf" / "README.md").read_text()
    assert "history is not recorded" in text and "No scores were recorded" in text
    assert "model-index" not in front_matter(tmp_path / "hf")


def test_a_scheme_that_the_pipeline_does_not_know_is_told(model: LoadedModel, tmp_path: Path) -> None:
    labels = LabelSpace.of(["O", "B-a", "I-a", "E-a", "S-a", "B-b", "I-b", "E-b", "S-b"])
    assert len(labels) == len(model.labels)
    export_model(replace(model, labels=labels), tmp_path / "hf")
    assert "scheme BIOES" in (tmp_path / "hf" / "README.md").read_text()


# -- measured on -------------------------------------------------------------------------------------------


def test_the_norm_is_measured_on_the_given_text(two_steps: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("today ada saw the badger\n\nthe heron of oslo\n")
    report = export_model(two_steps, tmp_path / "hf", check_text=tmp_path / "mine.txt")
    assert (report.checked_on, report.agreement.words) == ("mine.txt", 9)
    facts = json.loads((tmp_path / "hf" / "cfner_export.json").read_text())
    assert facts["mean_feature_norm"] == report.mean_feature_norm
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(CorpusError, match="contains no words"):
        read_check_text(tmp_path / "empty.txt")


def test_comparing_counts_other_labels_and_forgives_ties() -> None:
    one = torch.tensor([[2.0, 1.0], [1.0, 1.0], [0.0, 3.0]])
    other = torch.tensor([[1.0, 2.0], [1.0, 1.0001], [0.0, 4.0]])
    found = compare(one, other)
    assert (found.words, found.same_label) == (3, 2)
    assert found.largest_logit_difference == 1.0
    assert all(len(sentence) > 5 for sentence in built_in().sentences)


def test_an_export_that_says_something_else_is_an_error(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(head: nn.Module, norm: float) -> tuple[torch.Tensor, torch.Tensor]:
        weight, bias = folded(model.network.head, norm)
        return -weight, bias

    monkeypatch.setattr("cfner.interop.hf_export.folded", wrong)
    with pytest.raises(ModelError, match="another label than the original"):
        export_model(model, tmp_path / "hf")
    assert list(tmp_path.iterdir()) == []


# -- folders of the user's ---------------------------------------------------------------------------------


def test_only_an_earlier_export_is_replaced(two_steps: Path, tmp_path: Path) -> None:
    target = tmp_path / "hf"
    target.mkdir()
    export_model(two_steps, target, step=1)  # an empty folder may be filled
    with pytest.raises(ModelError, match="exported model here already"):
        export_model(two_steps, target)
    assert export_model(two_steps, target, overwrite=True).types == ("animal", "city", "dish", "person")
    assert [file.name for file in tmp_path.iterdir()] == ["hf"]
    for occupied in (two_steps, tmp_path):
        with pytest.raises(ModelError, match="is not an exported model"):
            export_model(two_steps, occupied, overwrite=True)


@pytest.mark.parametrize("stranger", [".git/HEAD", "notes.txt", "model.safetensors/mine"])
def test_an_export_with_something_of_the_users_is_not_replaced(
    stranger: str, exported: Path, two_steps: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "hf"))
    assert json.loads((folder / "cfner_export.json").read_text())["files"] == FILES
    name = Path(stranger).parts[0]
    (folder / name).unlink(missing_ok=True)
    (folder / stranger).parent.mkdir(exist_ok=True)
    (folder / stranger).write_text("mine")
    for overwrite in (True, False):
        with pytest.raises(ModelError, match=rf"not part of it: '{re.escape(name)}'\..*elsewhere"):
            refuse_occupied(folder, overwrite)
    with pytest.raises(ModelError, match="not part of it"):
        export_model(two_steps, folder, overwrite=True)
    assert (folder / stranger).read_text() == "mine"


def test_an_export_is_known_by_its_files(exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "hf"))
    refuse_occupied(folder, overwrite=True)
    (folder / "cfner_export.json").write_text("{")
    with pytest.raises(ModelError, match=r"cfner_export\.json: The file cannot be read.*another folder"):
        refuse_occupied(folder, overwrite=True)


def not_replaced_yet(folder: Path) -> None:
    folder.mkdir()
    (folder / "old").write_text("old")


def replace_it(folder: Path) -> None:
    with atomic_folder(folder, refuse=lambda _: None) as partial:
        (partial / "new").write_text("new")


def test_whenever_it_is_killed_there_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, rename = tmp_path / "hf", Path.rename
    not_replaced_yet(target)

    def last(self: Path, name: Path) -> None:
        rename(self, name)
        os._exit(9)

    if (child := os.fork()) == 0:
        monkeypatch.setattr(Path, "rename", last)
        replace_it(target)
        os._exit(0)
    os.waitpid(child, 0)
    assert [file.name for file in target.iterdir()] in (["old"], ["new"])


def test_a_folder_is_flushed_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, fsync = [], os.fsync

    def seen(handle: int) -> None:
        flushed.append((os.fstat(handle).st_ino, (tmp_path / "hf" / "new").exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", seen)
    for _ in range(2):
        flushed.clear()
        replace_it(tmp_path / "hf")
        (tmp_path / "hf" / "new").rename(tmp_path / "hf" / "old")
        content = [tmp_path / "hf" / "old", tmp_path / "hf"]
        assert flushed == [*((path.stat().st_ino, False) for path in content), (tmp_path.stat().st_ino, True)]


@pytest.mark.parametrize("atomic", [True, False])
def test_a_folder_is_replaced_with_and_without_an_exchange_of_names(
    atomic: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not atomic:
        monkeypatch.setattr("cfner.files.atomic._exchange", lambda one, other: False)
    not_replaced_yet(tmp_path / "hf")
    (tmp_path / "link").symlink_to("hf")
    replace_it(tmp_path / "link")
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["hf", "link", "new"]
    assert (tmp_path / "link").is_symlink()


def test_what_cannot_be_put_in_place_leaves_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if ".partial-" in self.name and not self.name.endswith("-replaced"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr("cfner.files.atomic._exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", fails)
    not_replaced_yet(tmp_path / "hf")
    with pytest.raises(ModelError, match="hf: Writing failed: Input/output error"):
        replace_it(tmp_path / "hf")
    assert [file.name for file in tmp_path.rglob("*")] == ["hf", "old"]


def test_a_tokenizer_that_does_not_fit_is_told(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, folder: Path) -> None:
        raise Exception("No space left on device (os error 28)")  # all that the tokenizers library says

    monkeypatch.setattr(type(model.tokenizer), "save_pretrained", full)
    with pytest.raises(ModelError, match="Writing failed: No space left"):
        export_model(model, tmp_path / "hf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings_", "expected"), [({"to": "onx"}, "Did you mean 'onnx'"), ({"int8": True}, "Only ONNX")]
)
def test_what_makes_no_sense(
    settings_: dict[str, Any], expected: str, two_steps: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=expected):
        export_model(two_steps, tmp_path / "x", **settings_)
    with pytest.raises(ModelError, match="There is no model here"):
        open_for_prediction(tmp_path)


# -- the hub -----------------------------------------------------------------------------------------------


class FakeHub:
    """What was asked of huggingface_hub.HfApi."""

    calls: list[tuple[str, Any]]

    def __init__(self, token: str | None = None) -> None:
        self.calls.append(("token", token))

    def create_repo(self, repo_id: str, **more: Any) -> None:
        if "/" not in repo_id:
            raise OSError("not logged in")
        self.calls.append(("create", (repo_id, more["private"], more["exist_ok"])))

    def upload_folder(self, *, folder_path: Path, repo_id: str, **more: Any) -> str:
        self.calls.append(("upload", (repo_id, sorted(file.name for file in Path(folder_path).iterdir()))))
        return f"https://hub/{repo_id}/commit/1"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> type[FakeHub]:
    fake = types.new_class("Fake", (FakeHub,))
    fake.calls = []
    monkeypatch.setattr("huggingface_hub.HfApi", fake)
    return fake


FILES = [
    "README.md",
    "cfner_export.json",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
]


@pytest.mark.parametrize("what", ["folder", "loaded", "steps"])
def test_push_to_hub(
    what: str, hub: type[FakeHub], exported: Path, model: LoadedModel, two_steps: Path
) -> None:
    source = {"folder": exported, "loaded": model, "steps": two_steps}[what]
    address = push_to_hub(source, "me/tiny", private=True, token="secret")  # type: ignore[arg-type]
    assert address == "https://hub/me/tiny/commit/1"
    assert hub.calls == [
        ("token", "secret"),
        ("create", ("me/tiny", True, True)),
        ("upload", ("me/tiny", FILES)),
    ]


def test_a_hub_that_refuses_is_one_paragraph(hub: type[FakeHub], exported: Path) -> None:
    with pytest.raises(ModelError, match=r"not logged in.*hf auth login"):
        push_to_hub(exported, "tiny")


# -- the command -------------------------------------------------------------------------------------------


def test_the_command(two_steps: Path, tmp_path: Path, hub: type[FakeHub]) -> None:
    import typer

    from cfner.cli.export import export

    app = typer.Typer()
    app.command()(export)
    run = CliRunner().invoke
    said = run(app, [str(two_steps), "--out", str(tmp_path / "a"), "--json", "--push-to", "me/x"])
    facts = json.loads(said.stdout)
    assert said.exit_code == 0
    assert facts["types"] == ["animal", "city", "dish", "person"]
    assert facts["uploaded"].startswith("https://hub/me/x")
    said = run(app, [str(two_steps), "--out", str(tmp_path / "b"), "--step", "1", "--license", "mit"])
    assert "animal, city" in said.stdout and "aggregation_strategy='first'" in said.stdout
    assert front_matter(tmp_path / "b")["license"] == "mit"
    refused = run(app, [str(two_steps), "--out", str(tmp_path / "b")])
    assert isinstance(refused.exception, CfnerError)


def test_a_tagger_can_be_pushed(hub: type[FakeHub], two_steps: Path) -> None:
    address = ContinualTagger.load(two_steps, 1).push_to_hub("me/mine", private=True, token="t")
    assert address == "https://hub/me/mine/commit/1"
    (_, token), (_, created), (_, (name, files)) = hub.calls
    assert (token, created, name) == ("t", ("me/mine", True, True), "me/mine")
    assert {"README.md", "config.json", "model.safetensors"} <= set(files)
