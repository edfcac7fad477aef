"""The cost of the causal effect, and the speed of training and prediction compared with other libraries.

    python benchmarks/speed.py [DATA] [--only epochs,steps] [--json] [--check]

Every figure is a ratio, the median of several interleaved rounds. Run nothing else meanwhile; it takes about
half an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cfner.corpus.corpus import Corpus
from cfner.synthetic.generate import generate
from cfner.training.environment import versions
from speed_prediction import abilities
from speed_ratios import PARTS, speed_report
from speed_setup import Bench, Ratio


def main(words: list[str] | None = None) -> int:
    args = _arguments().parse_args(words)
    corpus = generate(train=args.sentences, dev=1, test=1) if args.data is None else Corpus.read(args.data)
    corpus = Corpus(corpus.name, corpus.train[: args.sentences])
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="cfner-bench-") as folder:
        bench = Bench.of(
            corpus, Path(folder), encoder=args.encoder, batch_size=args.batch_size, max_length=128
        )
        said = lambda what: progress.print(f"measuring {what} ...")  # noqa: E731
        ratios = list(speed_report(bench, args.repeat, said, args.only))
    if args.json:
        machine = {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "abilities": abilities(),
            "versions": versions(),
        }
        print(json.dumps({"machine": machine, "ratios": [ratio.to_json() for ratio in ratios]}, indent=2))
    else:
        Console().print(_table(ratios))
        print(f"{os.cpu_count()} cores, {platform.machine()}: {', '.join(abilities())}")
    missed = [ratio.name for ratio in ratios if ratio.missed]
    if args.check and missed:
        print(f"Missed: {'; '.join(missed)}", file=sys.stderr)
        return 1
    return 0


def _arguments() -> argparse.ArgumentParser:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=about)
    parser.add_argument("data", nargs="?", help="a corpus; default: generated text")
    parser.add_argument("--encoder", "-e", default="minilm", help="Hub name, folder, or minilm")
    parser.add_argument("--sentences", type=_positive, default=400, help="sentences to train and predict on")
    parser.add_argument("--batch-size", type=_positive, default=8, help="sentences per batch in training")
    parser.add_argument("--repeat", type=_positive, default=5, help="rounds; their median is reported")
    parser.add_argument("--only", type=_parts, default=[], help=f"parts, comma-separated: {', '.join(PARTS)}")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no part {unknown[0]!r}; parts: {', '.join(PARTS)}")
    return parts


def _table(ratios: list[Ratio]) -> Table:
    table = Table(title="Speed, as ratios: median of the rounds, smallest and largest", title_justify="left")
    for name in ("what", "ratio", "from", "to", "target", ""):
        table.add_column(name, justify="left" if name in {"what", ""} else "right")
    for ratio in ratios:
        target = "" if ratio.target is None else f"{ratio.sense} {ratio.target:g}"
        verdict = "" if ratio.target is None else "missed" if ratio.missed else "met"
        figures = (f"{value:.2f}" for value in (ratio.value, ratio.low, ratio.high))
        name = f"{ratio.name} ({ratio.note})" if ratio.note else ratio.name
        table.add_row(name, *figures, target, verdict, style="red" if ratio.missed else "")
    return table


if __name__ == "__main__":
    sys.exit(main())
