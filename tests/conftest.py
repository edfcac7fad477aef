"""What several test files share: an encoder and a corpus, both tiny, made here, never downloaded."""

from __future__ import annotations

import functools
import gc
import os
import random
import shutil
import string
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import settings

import warm
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.stream.stream import TaskStream

# the same examples in every run; more of them with --hypothesis-profile=default
settings.register_profile("cfner", deadline=None, derandomize=True, database=None)
settings.load_profile("cfner")
os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports the hub's client, which reads it once
if "PYTEST_XDIST_WORKER" in os.environ:
    # one thread per worker; set before torch is imported, so that tests without torch need not import it
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# typer makes all commands anew for each that is run, which takes longer than most of them
typer.main.get_command = functools.cache(typer.main.get_command)

WHOLE_WORDS = ["the", "in", "of", "saw", "and", "with", "went", "to", "today", "a"]
VALUES = {
    "animal": ["badger", "heron", "red fox", "otter", "grey seal"],
    "city": ["lisbon", "oslo", "new york", "quito", "cape town"],
    "dish": ["soup", "pad thai", "stew", "apple pie", "curry"],
    "person": ["ada", "mr grace", "alan turing", "emmy", "old kurt"],
}
TEMPLATES = [
    "today {person} saw the {animal} in {city}",
    "a {dish} with {person} and {person}",
    "the {animal} of {city} went to the river",
    "{person} went to {city} with a {dish}",
    "in {city} the {animal} saw {dish} and {dish}",
    "the river went to the old river today",
]


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):
        warm.python()  # one for all workers, which find it in their environment


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 2 layers, 32 wide, 64 positions, with a WordPiece tokenizer that splits most words."""
    return make_encoder(tmp_path_factory.mktemp("encoder"), WHOLE_WORDS)


def make_encoder(folder: Path, whole_words: Iterable[str]) -> Path:
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    signs = string.ascii_lowercase + string.digits + ".,-'"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{sign}" for sign in signs)]
    # "a" is a letter and a word, so take each piece once
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*pieces, *whole_words]))}
    pieces_of = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    pieces_of.normalizer = normalizers.BertNormalizer(lowercase=True)
    pieces_of.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces_of.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces_of,
        model_max_length=64,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.1,  # the usual 0.02 leaves so small a network nearly blind to its input
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertForTokenClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # training collects garbage after each step: spare it the million objects of the libraries imported by now
    gc.collect()
    gc.freeze()
    return folder


@pytest.fixture(scope="session")
def tiny_corpus() -> Corpus:
    """4 types, 60 sentences to train on, 20 each for dev and test; the same in every run."""
    draw = random.Random(0)
    sentences = [_sentence(TEMPLATES[i % len(TEMPLATES)], draw) for i in range(100)]
    return Corpus("tiny", tuple(sentences[:60]), tuple(sentences[60:80]), tuple(sentences[80:]))


def _sentence(template: str, draw: random.Random) -> Sentence:
    words: list[str] = []
    spans: list[Span] = []
    for part in template.split():
        if not part.startswith("{"):
            words.append(part)
            continue
        type_ = part.strip("{}")
        value = draw.choice(VALUES[type_]).split()
        spans.append(Span(len(words), len(words) + len(value), type_))
        words.extend(value)
    return Sentence(tuple(words), tuple(spans))


@pytest.fixture(scope="session")
def tiny_stream(tiny_corpus: Corpus) -> TaskStream:
    """Two steps of two types each."""
    return TaskStream.split(tiny_corpus, first=2, per_step=2, min_mentions=1)


@pytest.fixture(scope="session")
def tiny_settings(tiny_encoder: Path) -> dict[str, Any]:
    """Settings with which the tiny encoder learns something in a few seconds."""
    return {
        "encoder": str(tiny_encoder),
        "method": "cfner",
        "epochs": 10,
        "batch_size": 8,
        "lr_encoder": 5e-3,
        "train_embeddings": True,  # at random, not pretrained
    }


@pytest.fixture(scope="session")
def two_steps(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A model folder with both steps learned, scored and saved. Copy it before you change anything in it."""
    from cfner.tagger import ContinualTagger

    folder = tmp_path_factory.mktemp("two-steps") / "model"
    tagger = ContinualTagger.from_pretrained(**tiny_settings)
    for step in tiny_stream:
        tagger.learn(step)
        scores = tagger.evaluate(tiny_stream.test_up_to(step))
        tagger.save(folder, scores, scored_on=tiny_stream.test_set)
    return folder


@pytest.fixture(scope="session")
def own_others(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same two steps, every type with an Other of its own (a cosine head). Copy it before a change."""
    from cfner.tagger import ContinualTagger

    folder = tmp_path_factory.mktemp("own-others") / "model"
    tagger = ContinualTagger.from_pretrained(**{**tiny_settings, "method": "own-other"})
    for step in tiny_stream:
        tagger.learn(step)
        scores = tagger.evaluate(tiny_stream.test_up_to(step))
        tagger.save(folder, scores, scored_on=tiny_stream.test_set)
    return folder


@pytest.fixture(scope="session")
def checkpoint(two_steps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stock Hugging Face token classifier that knows animal and city, with a linear head."""
    from cfner.interop.export import export_model

    folder = tmp_path_factory.mktemp("checkpoint") / "stock"
    export_model(two_steps, folder, "hf", step=1)
    return folder


@pytest.fixture(scope="session")
def checkpoint_and_own(
    checkpoint: Path,
    tiny_settings: dict[str, Any],
    tiny_stream: TaskStream,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """That classifier as step 1, and dish and person, with Others of their own, learned in step 2."""
    from cfner.tagger import ContinualTagger

    folder = tmp_path_factory.mktemp("checkpoint-and-own") / "model"
    settings = {key: value for key, value in tiny_settings.items() if key != "encoder"}
    tagger = ContinualTagger.open(checkpoint, **{**settings, "method": "own-other"})
    tagger.save(folder)
    tagger.learn(tiny_stream[1])
    tagger.save(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_data(tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny corpus as a folder of files."""
    from cfner.corpus.writers import write_sentences

    folder = tmp_path_factory.mktemp("data") / "tiny"
    for split, sentences in {
        "train": tiny_corpus.train,
        "dev": tiny_corpus.dev,
        "test": tiny_corpus.test,
    }.items():
        write_sentences(sentences, folder / f"{split}.txt", format="conll")
    return folder


@pytest.fixture
def methods_as_before() -> Iterator[None]:
    """Methods from a test's files are its own alone."""
    from cfner.methods import registry

    before = dict(registry._METHODS)
    yield
    registry._METHODS.clear()
    registry._METHODS.update(before)
    for name in [name for name in sys.modules if name.startswith("cfner_method_")]:
        del sys.modules[name]  # so that another test can load the same file


@pytest.fixture
def one_step(two_steps: Path, tmp_path: Path) -> Path:
    """A model that knows animal and city, to be changed."""
    from cfner.practice.history.history import rollback

    model = Path(shutil.copytree(two_steps, tmp_path / "model"))
    rollback(model, 1)
    shutil.rmtree(model / "steps/0002")
    return model
