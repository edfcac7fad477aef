"""Prediction beside the Hugging Face pipeline: sentences, and documents of any length."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from cfner.corpus.sentence import Sentence
from cfner.evaluation.metrics import score
from cfner.interop.export import export_model, open_for_prediction
from cfner.interop.text_stream import sentence_of_text
from cfner.network.prediction import TaggingModel, tag, tag_stream
from speed_peers import StockPipeline
from speed_setup import Bench, Ratio, ratio_of, seconds

BATCH = 16
OVERLAP = (
    31  # subwords that neighbouring windows share: the default for windows of 128, and so in the pipeline
)
_DOCUMENTS = 24
_SHORTEST, _LONGEST = 10, 2000  # words
_CLOSE = 0.3  # points of F1 that a faster runtime may lose
_ONNX = ("onnx", "onnxscript", "onnxruntime")

Turns = list[tuple[float, float]]


def prediction(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    """Sentences from raw text to entities."""
    said("prediction: torch, ONNX, and the Hugging Face pipeline")
    models = _models(bench)
    stock = StockPipeline(stock_folder(bench), BATCH)
    texts = [text_of(sentence) for sentence in bench.sentences]
    turns: dict[str, Turns] = {name: [] for name in models}
    for _ in range(repeat):
        theirs = seconds(lambda: stock(texts))
        for name, model in models.items():
            turns[name].append((theirs, _seconds(model, texts)))
    quickest = _quickest({name: pairs for name, pairs in turns.items() if name.startswith("torch")})
    for name, pairs in turns.items():
        target = 2.0 if name == quickest else None
        yield ratio_of(pairs, f"sentences/s: {name} / pipeline", target, sense=">=")
    yield from _best(turns, models, "sentences/s: best backend / pipeline")
    f1 = {name: _f1(model, bench.sentences) for name, model in models.items()}
    for name in [name for name in models if name != "torch"]:
        lost = f1["torch"] - f1[name]
        note = f"torch: {f1['torch']:.2f}"
        yield Ratio(f"F1 lost by {name}, in points", lost, lost, lost, _CLOSE, note=note)


def documents(bench: Bench, repeat: int, said: Callable[[str], None]) -> Iterator[Ratio]:
    """All words of documents of very different lengths, whose windows overlap."""
    said("prediction: documents of 10 to 2,000 words")
    models = _models(bench)
    texts = mixed_documents(bench.sentences)
    together = StockPipeline(stock_folder(bench), BATCH, stride=OVERLAP)
    loop = StockPipeline(stock_folder(bench), 1, stride=OVERLAP)
    turns: dict[str, Turns] = {name: [] for name in models}
    naive: dict[str, Turns] = {name: [] for name in models}
    for _ in range(repeat):
        theirs = seconds(lambda: together(texts))
        one_by_one = seconds(lambda: [loop([text]) for text in texts])
        for name, model in models.items():
            ours = _seconds(model, texts)
            turns[name].append((theirs, ours))
            naive[name].append((one_by_one, ours))
    for name in models:
        yield ratio_of(turns[name], f"documents/s: {name} / pipeline", sense=">=")
        yield ratio_of(naive[name], f"documents/s: {name} / one by one", sense=">=")
    yield from _best(turns, models, "documents/s: best backend / pipeline")
    yield from _best(naive, models, "documents/s: best backend / one by one")


def _models(bench: Bench) -> dict[str, TaggingModel]:
    """The same model in every runtime that is installed."""
    models: dict[str, TaggingModel] = {"torch": open_for_prediction(bench.model())}
    if {"bf16", "AMX"} & set(abilities()):
        models["torch bf16"] = open_for_prediction(bench.model(), runtime="torch-bf16")
    if has_onnx():
        for name, int8 in (("ONNX float32", False), ("ONNX int8", True)):
            folder = bench.folder / name.replace(" ", "-")
            if not folder.exists():
                export_model(bench.model(), folder, "onnx", int8=int8)
            models[name] = open_for_prediction(folder)
    return models


def has_onnx() -> bool:
    return all(importlib.util.find_spec(package) for package in _ONNX)


def stock_folder(bench: Bench) -> Path:
    """The same model as a stock checkpoint."""
    folder = bench.folder / "hf"
    if not folder.exists():
        export_model(bench.model(), folder, "hf")
    return folder


def _best(turns: dict[str, Turns], models: dict[str, TaggingModel], name: str) -> Iterator[Ratio]:
    """The fastest runtime. Its target holds for processors that multiply bytes fast."""
    best = _quickest(turns)
    missing = "" if "ONNX int8" in models else "; ONNX is not installed: pip install 'cfner[onnx]'"
    target = 3.0 if "VNNI" in abilities() else None
    yield ratio_of(turns[best], name, target, sense=">=", note=best + missing)


def _quickest(turns: dict[str, Turns]) -> str:
    return max(turns, key=lambda one: statistics.median(theirs / ours for theirs, ours in turns[one]))


def abilities() -> list[str]:
    """What this processor can do that matters for speed."""
    import torch

    info = Path("/proc/cpuinfo")
    flags = set(info.read_text(encoding="utf-8").split()) if info.exists() else set()
    named = {"avx512_vnni": "VNNI", "avx_vnni": "VNNI", "avx512_bf16": "bf16", "amx_bf16": "AMX"}
    found = dict.fromkeys(name for flag, name in named.items() if flag in flags)
    return [torch.backends.cpu.get_cpu_capability(), *found]


def _seconds(model: TaggingModel, texts: Sequence[str]) -> float:
    def run() -> None:
        sentences = (sentence_of_text(text, f"text {at}") for at, text in enumerate(texts, start=1))
        for _ in tag_stream(model, sentences):
            pass

    return seconds(run)


def _f1(model: TaggingModel, sentences: Sequence[Sentence]) -> float:
    found = [prediction.spans for prediction in tag(model, sentences)]
    return score([sentence.spans for sentence in sentences], found, model.labels.types).micro_f1


def text_of(sentence: Sentence) -> str:
    return sentence.text if sentence.text is not None else " ".join(sentence.words)


def mixed_documents(sentences: Sequence[Sentence]) -> list[str]:
    """Sentences joined to documents, as many short ones as long ones on a scale of logarithms."""
    draw = np.random.default_rng(0)
    made = []
    for _ in range(_DOCUMENTS):
        words: list[str] = []
        wanted = round(_SHORTEST * (_LONGEST / _SHORTEST) ** draw.random())
        while len(words) < wanted:
            words += text_of(sentences[draw.integers(len(sentences))]).split()
        made.append(" ".join(words[:wanted]))
    return made
