"""Is a new type as good as ``learn`` reports? Estimates against F1 on sentences that no model has seen.

    CFNER_DATA=... python benchmarks/told_and_true.py --out runs/told [--encoder minilm] [--cases 100]

Each case: a model that knows two types of a corpus learns a third from 100 to 1,000 of its sentences. The
reported estimate (by cross-validation, or by one held-out part where there are many mentions) is compared
with the F1 on 1,500 other sentences of the corpus. This tests the estimate, not the model: by default the
encoder is the lower half of the embedded one, and every fit makes about 125 updates. Finished cases are saved
in the folder, so that a stopped run resumes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cfner import ContinualTagger, Corpus, Step, learn
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.writers import write_sentences
from cfner.evaluation.metrics import score
from cfner.store.pretrained import resolve

CORPORA = ("fewnerd8", "multiconer2en", "snips-slots", "wnut17")
SIZES = (100, 150, 250, 500, 1000)
TYPES = 5  # of each corpus, the most frequent ones after the two that the model knows
FIRST, TRUTH = 800, 1500  # sentences of the first two types; sentences for the true F1
FEWEST = 10  # mentions of the new type: with fewer, learn gives no figure
UPDATES, BATCH = 125, 8
QUICK = {"lr_encoder": 3e-4}  # learns more in fewer updates


class Case(NamedTuple):
    corpus: str
    type: str
    size: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.corpus}-{self.type.replace('/', '_')}-{self.size}-{self.seed}"


def cases(corpora: dict[str, Corpus]) -> Iterator[Case]:
    """Every corpus and size early on, so that any prefix of the cases is representative."""
    for turn, size_first in itertools.product(range(TYPES), range(len(SIZES))):
        for place, (name, corpus) in enumerate(corpora.items()):
            known = [type_ for type_, _ in mention_counts(corpus.train).most_common(TYPES + 2)]
            if len(known) > turn + 2 or name == "wnut17":
                type_ = known[2 + turn % (len(known) - 2)]
                size = SIZES[(size_first + place) % len(SIZES)]
                yield Case(name, type_, size, turn * len(SIZES) + size_first)


def small_encoder(folder: Path) -> str:
    """The lower half of the embedded encoder."""
    if not folder.exists():
        from transformers import AutoModel, AutoTokenizer

        model = AutoModel.from_pretrained(resolve("minilm"))
        model.encoder.layer = model.encoder.layer[: len(model.encoder.layer) // 2]
        model.config.num_hidden_layers = len(model.encoder.layer)
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(resolve("minilm")).save_pretrained(folder)
    return str(folder)


def shuffled(corpus: Corpus, seed: int) -> list[Sentence]:
    text = [sentence for sentence in corpus.train if len(sentence)]
    random.Random(seed).shuffle(text)  # noqa: S311 - no secret
    return text


def first_model(name: str, corpus: Corpus, encoder: str, folder: Path) -> Path:
    """A model that knows the two most frequent types, from the first sentences of the corpus."""
    path = folder / f"first-{name}"
    if not path.exists():
        types = tuple(type_ for type_, _ in mention_counts(corpus.train).most_common(2))
        train = tuple(sentence.only(types) for sentence in shuffled(corpus, 0)[:FIRST])
        tagger = ContinualTagger.from_pretrained(encoder, epochs=3)
        tagger.learn(Step(types, train))
        tagger.save(path)
    return path


def drawn(corpus: Corpus, case: Case) -> tuple[list[Sentence], list[Sentence]]:
    """(sentences to learn from, sentences for the true F1), both labelled with the new type alone."""
    rest = [sentence.only([case.type]) for sentence in shuffled(corpus, 0)[FIRST:]]
    for attempt in itertools.count():
        random.Random(f"{case.seed} {attempt}").shuffle(rest)  # noqa: S311 - no secret
        if mention_counts(rest[: case.size])[case.type] >= FEWEST:
            return rest[: case.size], rest[case.size : case.size + TRUTH]
    raise AssertionError


def run(case: Case, corpus: Corpus, encoder: str, folder: Path) -> dict[str, Any]:
    model = first_model(case.corpus, corpus, encoder, folder)
    train, truth = drawn(corpus, case)
    with tempfile.TemporaryDirectory() as made:
        data, out = Path(made) / "new.conll", Path(made) / "new"
        write_sentences(train, data, format="conll")
        epochs = max(1, round(UPDATES * BATCH / case.size))
        start = time.perf_counter()
        learned = learn(model, str(data), out=out, **{**QUICK, "epochs": epochs, "seed": case.seed})
        seconds = time.perf_counter() - start
        found = ContinualTagger.load(out).find(truth)
    told = learned.estimate.of_type(case.type)
    right = [sentence.spans for sentence in truth]
    seen = [[span for span in spans if span.type == case.type] for spans in found]
    true = score(right, seen, [case.type]).counts[case.type]
    return {
        **case._asdict(),
        "told": told.to_json(),
        "how": learned.estimate.how,
        "true": {"f1": true.f1, "precision": true.precision, "recall": true.recall},
        "mentions_of_truth": true.n_gold,
        "seconds": seconds,
    }


def summary(results: list[dict[str, Any]]) -> str:
    """How many are within the interval, how wide it is, and how far the figure is off."""
    lines = [
        "| | cases | within the interval | told too high, outside | too low, outside | median width | "
        "mean error | told minus true |",
        "|---|---|---|---|---|---|---|---|",
    ]

    def row(what: str, chosen: list[dict[str, Any]], figure: str = "f1") -> None:
        told = [r for r in chosen if r["told"][figure] is not None]
        if not told:
            return
        inside = [r["told"][figure]["low"] <= r["true"][figure] <= r["told"][figure]["high"] for r in told]
        high = [r["true"][figure] < r["told"][figure]["low"] for r in told]
        apart = [r["told"][figure]["value"] - r["true"][figure] for r in told]
        width = statistics.median(r["told"][figure]["high"] - r["told"][figure]["low"] for r in told)
        lines.append(
            f"| {what} | {len(told)} | {sum(inside)} | {sum(high)} | {len(told) - sum(inside) - sum(high)} | "
            f"{width:.1f} | {statistics.fmean(map(abs, apart)):.1f} | {statistics.fmean(apart):+.1f} |"
        )

    row("F1, all", results)
    row("precision, all", results, "precision")
    row("recall, all", results, "recall")
    for how in ("folds", "held-out"):
        row(f"F1, {how}", [r for r in results if r["how"] == how])
    for size in SIZES:
        row(f"F1, {size} sentences", [r for r in results if r["size"] == size])
    for corpus in CORPORA:
        row(f"F1, {corpus}", [r for r in results if r["corpus"] == corpus])
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--encoder", help="default: the lower half of the embedded one")
    parser.add_argument("--backwards", action="store_true", help="start at the end, for a second process")
    parser.add_argument("--cases", type=int, default=TYPES * len(SIZES) * len(CORPORA))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    encoder = args.encoder or small_encoder(args.out / "encoder")
    root = Path(os.environ["CFNER_DATA"])
    corpora = {name: Corpus.read(root / name) for name in CORPORA}
    results = []
    chosen = list(itertools.islice(cases(corpora), args.cases))
    for case in reversed(chosen) if args.backwards else chosen:
        file = args.out / f"{case.name}.json"
        if not file.exists():
            file.write_text(json.dumps(run(case, corpora[case.corpus], encoder, args.out)))
        results.append(json.loads(file.read_text()))
        last = results[-1]
        f1 = last["told"]["f1"]
        print(
            f"{case.name}: told {f1['value']:.1f} [{f1['low']:.1f}, {f1['high']:.1f}] ({last['how']}), "
            f"true {last['true']['f1']:.1f}, {last['seconds']:.0f} s",
            flush=True,
        )
    print(summary(results))


if __name__ == "__main__":
    main()
