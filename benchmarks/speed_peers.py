"""Other libraries doing the same work: the Hugging Face trainer and pipeline, and faiss."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

from cfner.corpus.sentence import Sentence
from cfner.network.dropout import set_dropout
from cfner.objective.matching import nearest_neighbours
from cfner.store.pretrained import load_pretrained, resolve
from cfner.stream.labels import LabelSpace
from cfner.training.config import TrainingConfig
from speed_setup import Bench, seconds

IGNORED = -100  # the label of positions that a stock classifier does not learn


def trainer_epoch(bench: Bench, *, alike: bool, folder: Path) -> float:
    """Seconds of one epoch in which the stock trainer fine-tunes the same encoder on the same sentences.

    ``alike``: grouped by length, embedding table not trained, the same dropout. Otherwise its defaults.
    """
    from transformers import (
        AutoModelForTokenClassification,
        DataCollatorForTokenClassification,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    labels = LabelSpace.start().grown(bench.new)
    encoder = bench.settings["encoder"]
    tokenizer = load_pretrained(encoder).tokenizer
    rows = _encoded(bench.sentences, bench.new, labels, tokenizer, bench.settings["max_length"])
    model = AutoModelForTokenClassification.from_pretrained(resolve(encoder), num_labels=len(labels))
    if alike:
        model.get_input_embeddings().requires_grad_(False)
        set_dropout(model, TrainingConfig().dropout)
    took: list[float] = []

    class Stopwatch(TrainerCallback):
        def on_epoch_begin(self, *_: Any, **__: Any) -> None:
            self.started = time.perf_counter()

        def on_epoch_end(self, *_: Any, **__: Any) -> None:
            took.append(time.perf_counter() - self.started)

    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=bench.settings["batch_size"],
        num_train_epochs=2,
        learning_rate=1e-4,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        **({"train_sampling_strategy": "group_by_length"} if alike else {}),
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        callbacks=[Stopwatch()],
    )
    with redirect_stdout(sys.stderr):  # it prints its figures
        trainer.train()
    return min(took)


def _encoded(
    sentences: Sequence[Sentence], types: Sequence[str], labels: LabelSpace, tokenizer: Any, limit: int
) -> list[dict[str, Any]]:
    """As a user of the trainer would prepare it: the first subword of a word has its label."""
    rows = []
    for sentence in sentences:
        encoded = tokenizer(list(sentence.words), is_split_into_words=True, truncation=True, max_length=limit)
        ids, seen, gold = labels.encode(sentence.only(types)), set(), []
        for word in encoded.word_ids():
            gold.append(IGNORED if word is None or word in seen else ids[word])
            seen.add(word)
        rows.append({"input_ids": encoded["input_ids"], "labels": gold, "length": len(gold)})
    return rows


class StockPipeline:
    """The stock pipeline on an exported model, in batches. ``stride``: it reads all of a long text, in
    windows that share this many subwords."""

    def __init__(self, folder: Path, batch_size: int, *, stride: int | None = None) -> None:
        from transformers import pipeline

        more = {} if stride is None else {"stride": stride}
        self.find = pipeline(
            "token-classification", str(folder), aggregation_strategy="first", device="cpu", **more
        )
        self.batch_size = batch_size

    def __call__(self, texts: Sequence[str]) -> None:
        self.find(list(texts), batch_size=self.batch_size)


def has_faiss() -> bool:
    return importlib.util.find_spec("faiss") is not None


def search_seconds(tokens: int, queries: int, width: int = 384, k: int = 3) -> tuple[float, float | None]:
    """(cfner, faiss flat or None) for the k nearest of this many tokens, both exact, on random features."""
    features = torch.nn.functional.normalize(torch.randn(tokens, width), dim=1)
    wanted = torch.arange(queries)
    here = seconds(lambda: nearest_neighbours(features, k, wanted))
    if not has_faiss():
        return here, None
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    table = features.numpy()

    def search() -> None:
        index = faiss.IndexFlatIP(width)
        index.add(table)
        index.search(table[:queries], k + 1)  # each token finds itself too

    return here, seconds(search)
