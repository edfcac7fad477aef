"""A model as ONNX: the same words, windows and decoding, and the same numbers from another runtime."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import cfner
from cfner.network.probes import Features

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from cfner.batches.encoding import encode
from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError, MissingExtraError, ModelError
from cfner.interop import onnx_export
from cfner.interop.check_text import word_logits
from cfner.interop.export import export_model, open_for_prediction
from cfner.interop.export_folder import refuse_occupied
from cfner.interop.onnx import OnnxNetwork, OnnxTagger, is_onnx_folder, read_onnx
from cfner.interop.onnx_export import write_onnx
from cfner.network.encoders import strip_classifier
from cfner.network.head import make_head
from cfner.network.inference import outputs
from cfner.network.network import Network
from cfner.network.prediction import Prediction, tag
from cfner.serving.app import create_app
from cfner.serving.pipeline import Pipeline
from cfner.serving.settings import ServeSettings
from cfner.store.model_files import LoadedModel
from cfner.store.open import open_model
from cfner.stream.labels import LabelSpace
from cfner.tagger import ContinualTagger


@pytest.fixture(scope="module")
def model(two_steps: Path) -> LoadedModel:
    return open_model(two_steps)


@pytest.fixture(scope="module")
def exported(two_steps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "onnx"
    export_model(two_steps, folder, "onnx")
    return folder


@pytest.fixture(scope="module")
def small(two_steps: Path, exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "int8"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(onnx_export, "_trace", copied_from(exported))
        export_model(two_steps, folder, "onnx", int8=True)
    return folder


def copied_from(folder: Path) -> Callable[[LoadedModel, Path, bool], None]:
    """In place of tracing, which takes its time, when the same model was traced before."""
    return lambda model, file, large: shutil.copyfile(folder / "model.onnx", file) and None


def entities(predictions: list[Prediction]) -> list[list[tuple[str, int, int]]]:
    return [[(e.type, e.first, e.last) for e in prediction.entities] for prediction in predictions]


def long_and_short(corpus: Corpus) -> list[Sentence]:
    """All lengths, among them none, one word, and more than a window."""
    words = [word for sentence in corpus.test for word in sentence.words]
    return [Sentence(()), Sentence(("ada",)), *corpus.test, Sentence(tuple(words[:150]))]


def test_the_same_predictions(exported: Path, model: LoadedModel, tiny_corpus: Corpus) -> None:
    sentences = long_and_short(tiny_corpus)
    theirs = read_onnx(exported)
    text = model.encode(sentences)
    torch.testing.assert_close(
        word_logits(theirs.network, text), word_logits(model.network, text), rtol=0, atol=1e-4
    )
    ours, others = tag(model, sentences), tag(theirs, sentences)
    assert entities(others) == entities(ours)
    assert sum(map(len, entities(ours))) > 20
    for one, other in zip(ours, others, strict=True):
        assert [e.score for e in one.entities] == pytest.approx([e.score for e in other.entities], abs=1e-4)


def test_a_batch_of_any_size_says_the_same(exported: Path, tiny_corpus: Corpus) -> None:
    model, sentences = read_onnx(exported), long_and_short(tiny_corpus)
    answers = [entities(tag(model, sentences, batch_size=size)) for size in (1, 3, 64)]
    assert answers[0] == answers[1] == answers[2]


def test_batches_are_computed_at_once_and_in_order(
    small: Path, tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the order nor an 8-bit score depends on how many threads there are."""
    model = read_onnx(small)
    text = model.encode([*long_and_short(tiny_corpus), *tiny_corpus.train])
    network, threads = model.network, torch.get_num_threads()
    forward, together = network.forward, threading.Barrier(2, timeout=60)
    calls = itertools.count()

    def waiting_for_each_other(*given: Any) -> Any:
        if next(calls) < 2:
            together.wait()  # ends only if two batches are computed at the same time
        return forward(*given)

    answers = []
    for at_once in (1, 3):
        network.batches_at_once = at_once
        monkeypatch.setattr(network, "forward", forward if at_once == 1 else waiting_for_each_other)
        found = list(outputs(network, text, subwords=network.subwords_per_batch))
        answers.append([(batch.refs.tolist(), out.logits.tolist()) for batch, out in found])
    assert len(answers[0]) > 3 and answers[0] == answers[1]
    assert torch.get_num_threads() == threads


def test_an_error_in_one_of_many_batches_is_raised(exported: Path, tiny_corpus: Corpus) -> None:
    model = read_onnx(exported)
    network, text = model.network, model.encode(tiny_corpus.test)
    network.batches_at_once = 2
    session, calls = network.session, itertools.count()

    class Failing:
        def run(self, *given: Any) -> Any:
            if next(calls) == 1:
                raise RuntimeError("out of memory")
            return session.run(*given)

    network.session = Failing()
    with pytest.raises(RuntimeError, match="out of memory"):
        list(outputs(network, text, batch_size=2))


@pytest.mark.parametrize("runtime", ["small", "bf16"])
def test_a_server_with_a_faster_runtime_answers_alike_in_any_company(
    runtime: str, small: Path, two_steps: Path, tiny_corpus: Corpus
) -> None:
    """8-bit and bf16 scores depend on the batch; those of the server do not."""
    model = read_onnx(small) if runtime == "small" else open_for_prediction(two_steps, runtime="torch-bf16")
    server = Pipeline(model)
    texts = [" ".join(sentence.words) for sentence in long_and_short(tiny_corpus)]
    together = server.tag(texts)
    assert together == [server.tag([text])[0] for text in texts]
    assert sum(map(len, together)) > 20


def test_an_exported_folder_is_served(small: Path) -> None:
    with TestClient(create_app(small), base_url="http://127.0.0.1") as client:
        answer = client.post("/predict", json={"text": "today ada saw the badger in new york"}).json()
        assert answer["results"][0]["entities"]
        facts = client.get("/model").json()
        assert not facts["has_steps"] and "animal" in facts["types"]


def test_a_folder_is_served_in_another_runtime(
    two_steps: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "_trace", copied_from(exported))
    settings = ServeSettings(runtime="onnx-int8")
    with TestClient(create_app(two_steps, settings), base_url="http://127.0.0.1") as client:
        served = client.app.state.service.steps.current  # type: ignore[attr-defined]
        assert isinstance(served.pipeline.model.network, OnnxNetwork)
        assert client.post("/predict", json={"text": "ada saw the badger"}).json()["step"] == served.number
    with pytest.raises(ConfigError, match="no runtime 'onx'"):
        cfner.serve(two_steps, runtime="onx")


def test_the_tagger_predicts_and_evaluates(exported: Path, two_steps: Path, tiny_corpus: Corpus) -> None:
    theirs, ours = OnnxTagger.read(exported), ContinualTagger.load(two_steps)
    assert theirs.types == ours.types
    text = "today ada saw the badger in new york"
    assert entities([theirs.predict(text)]) == entities([ours.predict(text)])
    assert entities(theirs.predict([text, text])) == entities(ours.predict([text, text]))
    assert theirs.evaluate(tiny_corpus.test).counts == ours.evaluate(tiny_corpus.test).counts


def test_the_folder_has_what_others_need(exported: Path) -> None:
    assert json.loads((exported / "config.json").read_text())["id2label"]["1"] == "B-animal"
    session = OnnxNetwork(exported / "model.onnx").session
    assert [given.name for given in session.get_inputs()] == ["input_ids", "attention_mask"]
    assert [given.name for given in session.get_outputs()] == ["logits"]
    assert all(isinstance(size, str) for given in session.get_inputs() for size in given.shape)
    card = (exported / "README.md").read_text()
    assert "OnnxTagger" in card and "| animal |" in card and "library_name: onnx" in card
    assert json.loads((exported / "cfner_export.json").read_text())["kind"] == "onnx"


def test_eight_bits_are_smaller_and_nearly_the_same(
    small: Path, exported: Path, model: LoadedModel, tiny_corpus: Corpus
) -> None:
    sizes = [(folder / "model.onnx").stat().st_size for folder in (small, exported)]
    assert sizes[0] < sizes[1]
    text = model.encode(tiny_corpus.test)
    logits = [word_logits(network, text) for network in (read_onnx(small).network, model.network)]
    same = (logits[0].argmax(1) == logits[1].argmax(1)).float().mean()
    assert same > 0.9
    facts = json.loads((small / "cfner_export.json").read_text())
    assert facts["kind"] == "onnx-int8"
    assert 0 < facts["agreement"]["same_label"] <= facts["agreement"]["words"]
    assert "8-bit" in (small / "README.md").read_text()
    assert not list(small.glob("small*"))


@pytest.mark.parametrize("encoder", ["/home/alice/gone", "a/secret/gone", "C:\\Users\\alice\\gone", "gone"])
def test_a_folder_that_is_gone_is_not_told(
    encoder: str, model: LoadedModel, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "_trace", copied_from(exported))
    export_model(replace(model, encoder=encoder), tmp_path / "onnx", "onnx")
    assert json.loads((tmp_path / "onnx" / "labels.json").read_text())["encoder"] == "gone"


def test_an_export_with_something_of_the_users_is_not_replaced(exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "onnx"))
    facts = json.loads((folder / "cfner_export.json").read_text())
    assert facts.pop("files") == sorted(file.name for file in folder.iterdir())
    refuse_occupied(folder, overwrite=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match=r"not part of it: 'notes\.txt'"):
        refuse_occupied(folder, overwrite=True)
    (folder / "notes.txt").unlink()
    refuse_occupied(folder, overwrite=True)
    (folder / "cfner_export.json").write_text(json.dumps(facts))  # one that does not say what it wrote
    with pytest.raises(ModelError, match=r"not part of it: 'README\.md'"):
        refuse_occupied(folder, overwrite=True)


on_request = pytest.mark.skipif(
    not os.environ.get("CFNER_SLOW"),
    reason="takes seconds, and is much like BERT; set CFNER_SLOW=1 to run it",
)


# -- families ----------------------------------------------------------------------------------------------


def configurations(vocabulary: int) -> dict[str, Callable[[], Any]]:
    """One layer of each family, built here."""
    import transformers as t

    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 66,
        "pad_token_id": 0,
        "initializer_range": 0.3,
    }
    distil = {"vocab_size": vocabulary, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    special = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    return {
        "roberta": lambda: t.RobertaConfig(**sizes),
        "distilbert": lambda: t.DistilBertConfig(**distil, initializer_range=0.3),
        "electra": lambda: t.ElectraConfig(**sizes, embedding_size=8),
        "modernbert": lambda: t.ModernBertConfig(
            **{**sizes, "num_hidden_layers": 2}, **special, local_attention=8, global_attn_every_n_layers=2
        ),
        "deberta-v2": lambda: t.DebertaV2Config(**sizes, **relative, position_buckets=8, share_att_key=True),
    }


def of_family(family: str, model: LoadedModel, head: str = "cosine") -> LoadedModel:
    from transformers import AutoModelForTokenClassification

    labels = LabelSpace.of(["O", "B-x", "I-x", "B-y", "I-y"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = configurations(len(model.tokenizer))[family]()
        body = AutoModelForTokenClassification.from_config(config)
        network = Network(body, make_head(head, strip_classifier(body).in_features, len(labels)))  # type: ignore[arg-type]
    network.eval()
    return LoadedModel(network, model.tokenizer, labels, 48, family, None)


@pytest.mark.parametrize(
    ("family", "head"),
    [
        pytest.param("roberta", "linear", marks=on_request),
        pytest.param("distilbert", "cosine", marks=on_request),
        pytest.param("electra", "cosine", marks=on_request),
        ("modernbert", "cosine"),
        ("deberta-v2", "linear"),
    ],
)
def test_logits_of_every_family(
    family: str, head: str, model: LoadedModel, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    original = of_family(family, model, head)
    write_onnx(original, tmp_path / "model.onnx")
    text = encode(long_and_short(tiny_corpus), model.tokenizer, max_length=48)
    logits = word_logits(original.network, text)
    assert logits.std() > 0.01
    torch.testing.assert_close(
        word_logits(OnnxNetwork(tmp_path / "model.onnx"), text), logits, rtol=0, atol=1e-4
    )


def test_a_family_that_cannot_be_traced_is_named(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XLNet is one (with torch 2.13): decomposing its graph fails, after a long while."""

    def fails(*_: object, **__: object) -> None:
        raise torch.onnx.OnnxExporterError("Failed to decompose the FX graph\nand much more")

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(ModelError, match=r"'bert' as ONNX.*`to='hf'`") as caught:
        export_model(model, tmp_path / "x", "onnx")
    assert len(str(caught.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


# -- what may go wrong -------------------------------------------------------------------------------------


def test_a_file_that_computes_something_else_is_not_exported(
    model: LoadedModel, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "_trace", copied_from(exported))
    export_model(model, tmp_path / "same", "onnx")
    other = LoadedModel(
        Network(model.network.body, make_head("linear", 32, len(model.labels))),
        model.tokenizer,
        model.labels,
        64,
        "x",
        None,
    )
    with pytest.raises(ModelError, match="computes different logits"):
        export_model(other, tmp_path / "other", "onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["same"]


def test_damage_and_misuse_are_told(exported: Path, two_steps: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="cannot be loaded"):
        OnnxNetwork(tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="no exported ONNX model"):
        read_onnx(two_steps)
    with pytest.raises(ModelError, match="it has one step"):
        open_for_prediction(exported, step=1)
    with pytest.raises(ModelError, match="no weights for torch"):
        open_for_prediction(exported, runtime="torch")
    network = read_onnx(exported).network
    text = read_onnx(exported).encode([Sentence(("ada",))])
    with pytest.raises(ModelError, match="does not provide features of its layers"):
        list(outputs(network, text, probes=[Features()]))
    assert is_onnx_folder(exported) and not is_onnx_folder(two_steps)


def test_a_missing_package_is_named(
    model: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[onnx\]'"):
        write_onnx(model, tmp_path / "x.onnx")


# -- the command -------------------------------------------------------------------------------------------


def test_predict_takes_an_onnx_folder(exported: Path, two_steps: Path, tmp_path: Path) -> None:
    text = "today ada saw the badger in new york"
    said = CliRunner().invoke(app, ["predict", str(exported), text, "--json"])
    asked = CliRunner().invoke(app, ["predict", str(two_steps), text, "--json"])
    assert said.exit_code == 0
    one, other = json.loads(said.stdout)["entities"], json.loads(asked.stdout)["entities"]
    assert [{**e, "score": 0} for e in one] == [{**e, "score": 0} for e in other] != []
    (tmp_path / "in.txt").write_text(f"{text}\n" * 3)
    assert cfner.predict(read_onnx(exported), file=tmp_path / "in.txt", out=tmp_path / "out.jsonl") == 3


def test_diff_takes_an_onnx_folder(exported: Path, two_steps: Path, tiny_data: Path) -> None:
    def differences(*models: object) -> Any:
        words = ["diff", *map(str, models), str(tiny_data), "--json"]
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    same = differences(two_steps, exported)
    assert same["changed"] == [] and same["unchanged"] > 0
    grown, original = differences(f"{two_steps}@1", exported), differences(f"{two_steps}@1", two_steps)
    assert grown["counts"] == original["counts"] and grown["per_type"] == original["per_type"] != {}
    with pytest.raises(ModelError, match="it has one step"):
        differences(f"{exported}@2", two_steps)


def test_the_runtime_exports_and_leaves_nothing_behind(
    two_steps: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "_trace", copied_from(exported))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = open_for_prediction(two_steps, runtime="onnx")
    assert isinstance(opened.network, OnnxNetwork)
    assert tag(opened, [Sentence(("ada",))])
    assert list(tmp_path.iterdir()) == []
