"""Does calibration hold on text that it has not seen? Two real corpora, calibrated on dev, measured on test.

    CFNER_DATA=... python benchmarks/calibration.py [--models runs/calibration]

For each corpus a model learns the first step of a stream. It is calibrated on the dev split, with and without
a wanted precision. On the test split: the calibration error of each type before and after, and the precision
that was promised against the precision reached. Models are kept in --models and trained once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from cfner import ContinualTagger, Corpus, TaskStream, calibrate, open_model
from cfner.corpus.sentence import Sentence
from cfner.files.markdown import table
from cfner.practice.calibrate.held_out import Found, HeldOut
from cfner.practice.calibrate.measure import Measured, measure

CORPORA = {"fewnerd8": (4, 4, 2), "snips-slots": (20, 19, 4)}  # FG, PG, each n-th sentence to learn from
PRECISIONS = (0.8, 0.9, 0.95)
EPOCHS = 4


def trained(name: str, data: Path, folder: Path) -> Path:
    """The first step of the stream, learned unless it is there."""
    if not (folder / "CURRENT").exists():
        first, per_step, every = CORPORA[name]
        stream = TaskStream.split(Corpus.read(str(data / name), every=every), first=first, per_step=per_step)
        tagger = ContinualTagger.from_pretrained("minilm", epochs=EPOCHS)
        tagger.learn(next(iter(stream)))
        tagger.save(folder)
    return folder


def found(model: Path, held_out: HeldOut) -> list[Found]:
    """What the model finds as it is calibrated now: its network never changes, so it is asked once."""
    return held_out.found(open_model(model).calibration)


def share(measured: Measured, name: str) -> str:
    value = getattr(measured, name)
    return "·" if value is None else f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def corpus_report(name: str, data: Path, models: Path, print_: bool = True) -> None:
    model, corpus = trained(name, data, models / name), Corpus.read(str(data / name))
    types = open_model(model).labels.types
    dev, test = ([s.only(types) for s in split if len(s)] for split in (corpus.dev, corpus.test))
    print(f"\n### {name}: {len(types)} types, dev {len(dev):,}, test {len(test):,} sentences\n")
    held_out = HeldOut.of(open_model(model), test)
    with tempfile.TemporaryDirectory() as made:
        reliability(model, dev, held_out, Path(made))
        promises(model, dev, held_out, Path(made))


def reliability(model: Path, dev: list[Sentence], test: HeldOut, made: Path) -> None:
    copy = Path(shutil.copytree(model, made / "scores"))
    report = calibrate(copy, dev)
    before, after = found(model, test), found(copy, test)
    rows = []
    for one in report.types:
        if one.figures is None:
            continue
        a, b = measure(test, before, one.type), measure(test, after, one.type)
        rows.append([one.type, str(one.before.found), str(a.found), share(a, "precision")])
        rows[-1] += [share(a, "error"), share(b, "error"), f"{b.error.value < a.error.value}"]
    left = [one.type for one in report.types if one.figures is None]
    heads = ["type", "found, dev", "found, test", "precision", "error before", "error after", "smaller"]
    print(table(heads, rows))
    mentions = [sum(float(row[2]) for row in rows)]
    for what, column in (("before", 4), ("after", 5)):
        mean = sum(float(row[2]) * float(row[column].split()[0]) for row in rows) / mentions[0]
        print(f"Mean error {what}, weighted by mentions: {mean:.3f}")
    print(f"Too few mentions: {', '.join(left) or 'none'}\n")


def promises(model: Path, dev: list[Sentence], test: HeldOut, made: Path) -> None:
    rows, before = [], found(model, test)
    for precision in PRECISIONS:
        copy = Path(shutil.copytree(model, made / f"precision-{precision}"))
        report = calibrate(copy, dev, precision=precision)
        after = found(copy, test)
        for one in report.types:
            if one.verdict not in {"promised", "aimed at"}:
                continue
            a, b = measure(test, before, one.type), measure(test, after, one.type)
            rows.append([f"{precision:g}", one.type, one.verdict, f"{one.figures.shift:.2f}"])
            rows[-1] += [share(a, "precision"), share(b, "precision"), share(a, "recall"), share(b, "recall")]
            rows[-1] += ["yes" if b.precision and b.precision.value >= precision else "no"]
    heads = ["asked", "type", "verdict", "shift", "precision before", "reached", "recall before", "after"]
    print(table([*heads, "kept"], rows))
    for verdict in ("promised", "aimed at"):
        kept = [row[-1] == "yes" for row in rows if row[2] == verdict]
        print(f"{verdict}: {len(kept)}, reached on test: {sum(kept)}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--models", type=Path, default=Path("runs/calibration"))
    arguments.add_argument("--corpora", default=",".join(CORPORA))
    args = arguments.parse_args()
    for name in args.corpora.split(","):
        corpus_report(name, Path(os.environ["CFNER_DATA"]), args.models)


if __name__ == "__main__":
    main()
