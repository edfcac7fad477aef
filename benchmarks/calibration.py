"""Does calibration hold on unseen text? Real corpora, calibrated on dev, measured on test.

    CFNER_DATA=... python benchmarks/calibration.py [CORPUS ...] [--models runs/calibration]

For each corpus a model learns the first step of a stream. It is calibrated on the dev split, with and without
a wanted precision. On the test split: the calibration error of each type before and after, and the promised
and reached precision. Models are saved in --models and trained once.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cfner import ContinualTagger, Corpus, TaskStream, open_model
from cfner.files.markdown import table
from cfner.practice.calibrate.calibrate import verdict
from cfner.practice.calibrate.fit import enough_found, fit
from cfner.practice.calibrate.held_out import HeldOut
from cfner.practice.calibrate.measure import Reliability, measure

PRECISIONS = (0.6, 0.7, 0.8, 0.9, 0.95)


class Training(NamedTuple):
    """FG and PG of the stream, every n-th sentence to keep, and how its first step is trained."""

    first: int
    per_step: int
    every: int
    epochs: int
    seed: int
    min_mentions: int
    precision: str


CORPORA = {
    "snips-slots": Training(9, 10, every=6, epochs=5, seed=2, min_mentions=10, precision="fp32"),
    "multiconer2en": Training(9, 8, every=6, epochs=6, seed=2, min_mentions=10, precision="fp32"),
    "fewnerd8": Training(4, 4, every=2, epochs=4, seed=0, min_mentions=50, precision="bf16"),
}


def trained(name: str, data: Path, folder: Path) -> Path:
    """The first step of the stream; trained if it does not exist."""
    if not (folder / "CURRENT").exists():
        how = CORPORA[name]
        stream = TaskStream.split(
            Corpus.read(str(data / name), every=how.every),
            first=how.first,
            per_step=how.per_step,
            seed=how.seed,
            min_mentions=how.min_mentions,
        )
        settings = {"epochs": how.epochs, "seed": how.seed, "precision": how.precision}
        tagger = ContinualTagger.from_pretrained("minilm", **settings)
        tagger.learn(next(iter(stream)))
        tagger.save(folder)
    return folder


def share(measured: Reliability, name: str) -> str:
    value = getattr(measured, name)
    return "·" if value is None else f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def corpus_report(name: str, data: Path, folder: Path) -> None:
    model, corpus = open_model(trained(name, data, folder)), Corpus.read(str(data / name))
    types = model.labels.types
    # run the network once, then decide for every set of figures, as calibrate() does
    dev, test = (
        HeldOut.of(model, [sentence.only(types) for sentence in split if len(sentence)])
        for split in (corpus.dev, corpus.test)
    )
    print(f"\n### {name}: {len(types)} types, dev {len(dev.gold):,}, test {len(test.gold):,} sentences\n")
    enough = enough_found(dev, types, None)
    reliability(dev, test, enough)
    print(f"Too few mentions in dev: {', '.join(t for t in types if t not in enough) or 'none'}\n")
    promises(dev, test, enough)


def reliability(dev: HeldOut, test: HeldOut, types: Sequence[str]) -> None:
    found = Counter(mention.type for mention in dev.found(None))
    before, after = test.found(None), test.found(fit(dev, types, None))
    rows, errors = [], []
    for type_ in types:
        a, b = measure(test, before, type_), measure(test, after, type_)
        figures = [share(a, "precision"), share(a, "error"), share(b, "error")]
        rows.append([type_, str(found[type_]), str(a.found), *figures])
        if a.error is not None and b.error is not None:
            errors.append((a.found, a.error.value, b.error.value))
    heads = ["type", "found in dev", "found in test", "precision", "error before", "error after"]
    print(table(heads, rows))
    total = sum(count for count, _, _ in errors)
    means = [sum(row[0] * row[column] for row in errors) / total for column in (1, 2)]
    smaller = sum(after < before for _, before, after in errors)
    print(f"Mean error, weighted by mentions: {means[0]:.3f} before, {means[1]:.3f} after. "
          f"Smaller for {smaller} of {len(errors)} types.")  # fmt: skip


def promises(dev: HeldOut, test: HeldOut, types: Sequence[str]) -> None:
    rows, before = [], test.found(None)
    for precision in PRECISIONS:
        fitted = fit(dev, types, precision)
        reached, after = dev.found(fitted), test.found(fitted)
        for type_ in types:
            if (said := verdict(type_, fitted, reached, precision)) == "not reached":
                continue
            a, b = measure(test, before, type_), measure(test, after, type_)
            kept = "·" if b.precision is None else "yes" if b.precision.value >= precision else "no"
            figures = [share(a, "precision"), share(b, "precision"), share(a, "recall"), share(b, "recall")]
            rows.append([f"{precision:g}", type_, said, f"{fitted.of(type_).shift:.2f}", *figures, kept])
    heads = [
        "asked",
        "type",
        "verdict",
        "shift",
        "precision before",
        "reached",
        "recall before",
        "recall after",
    ]
    print(table([*heads, "kept"], rows))
    for said in ("promised", "aimed at"):
        kept = [row[-1] == "yes" for row in rows if row[2] == said]
        print(f"{said}: {len(kept)}, reached on test: {sum(kept)}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--models", type=Path, default=Path("runs/calibration"))
    arguments.add_argument("corpora", nargs="*", default=list(CORPORA))
    args = arguments.parse_args()
    for name in args.corpora:
        corpus_report(name, Path(os.environ["CFNER_DATA"]), args.models / name)


if __name__ == "__main__":
    main()
