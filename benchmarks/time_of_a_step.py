"""How long does a step of the default method take, beside plain fine-tuning on as many sentences?

    CFNER_DATA=... python benchmarks/time_of_a_step.py [--repeat 3]

Few-NERD, embedded encoder: two types are known, two are learned from 300 sentences, with and without 300
unlabelled ones. Fine-tuning gets 300 and 600 labelled sentences. The four are timed interleaved; run it with
nothing else running.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import median

from cfner import ContinualTagger, Corpus, Step

OLD, NEW = ("location", "person"), ("organization", "other")


def seconds(method: str, labelled: list, unlabelled: list, first: list, epochs: int) -> float:
    """Of the second step alone: what precedes its first update, the updates, and what follows."""
    tagger = ContinualTagger.from_pretrained("minilm", method=method, epochs=epochs)
    tagger.learn(Step(OLD, tuple(s.only(OLD) for s in first)), progress=False)
    step = Step(
        NEW,
        tuple(s.only(NEW) for s in labelled),
        unlabelled=tuple(s.only(()) for s in unlabelled),
        known=OLD,
        index=1,
    )
    began = time.perf_counter()
    tagger.learn(step, progress=False)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in {"sentences": 300, "epochs": 6, "repeat": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    text = [s for s in Corpus.read(Path(os.environ["CFNER_DATA"]) / "fewnerd8").train if len(s)]
    n = args.sentences
    first, half, rest = text[:n], text[n : 2 * n], text[2 * n : 3 * n]
    ways = {
        "slices only": (("own-other", half, []), ("finetune", half, [])),
        "with unlabelled text": (("own-other", half, rest), ("finetune", half + rest, [])),
    }
    ratios: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.repeat):
        for name, (mine, plain) in ways.items():
            took = [seconds(*way, first, args.epochs) for way in (mine, plain)]
            ratios[name].append(took[0] / took[1])
            print(f"{name}: own-other {took[0]:.1f} s, finetune {took[1]:.1f} s", flush=True)
    for name, found in ratios.items():
        print(f"{name}: {median(found):.2f} ({min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    main()
