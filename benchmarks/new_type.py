"""How fast is one new type learned, and how well, under different settings?

    CFNER_DATA=... python benchmarks/new_type.py [--corpus fewnerd8] [--seeds 0,1,2] \
        [--settings "default; freeze_layers=2 epochs=6"] [--known Athlete,HumanSettlement --new Artist]

A model that knows two types learns a third from 500 sentences that are labelled with it alone. Only the
fit itself is timed. All models are scored on the same dev sentences: F1 of the new type, mean F1 of the old
types, micro F1 over all. The settings take turns, so that a machine that slows down slows them all.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, NamedTuple

import torch

from cfner import ContinualTagger, Corpus, Sentence, Step, TrainingConfig
from cfner.evaluation.metrics import score

TRIALS = {  # the types that the model knows, and the one that it learns
    "fewnerd8": (("location", "person"), "organization"),
    "multiconer2en": (("Artist", "HumanSettlement"), "ORG"),
    "snips-slots": (("artist", "timeRange"), "object_name"),
}


class Fit(NamedTuple):
    seconds: float
    new: float
    old: float
    micro: float


def parse(settings: str) -> dict[str, Any]:
    """'freeze_layers=2 epochs=6' as values; 'default' as none."""
    pairs = [pair.split("=") for pair in settings.split() if pair != "default"]
    return {name: int(value) if value.isdigit() else _number(value) for name, value in pairs}


def _number(value: str) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


class Trial:
    """One corpus and one seed: the model before, the new data and the sentences that it is scored on."""

    def __init__(self, corpus: Corpus, old: tuple[str, ...], new: str, seed: int, args: Any) -> None:
        text = [sentence for sentence in corpus.train if len(sentence)]
        order = torch.randperm(len(text), generator=torch.Generator().manual_seed(seed)).tolist()
        shuffled = [text[i] for i in order]
        first, second = args.known_sentences, args.known_sentences + args.sentences
        self.old, self.new = old, new
        self.dev = [s.only((*old, new)) for s in corpus.dev if len(s)][: args.dev]
        self.unlabelled = tuple(s.only(()) for s in shuffled[second : second + args.sentences * args.text])
        self.step = self._step([s.only([new]) for s in shuffled[:second][first:]], (new,), old, 1)
        self.base = ContinualTagger.from_pretrained(args.encoder, epochs=6, precision="fp32", seed=seed)
        self.base.learn(self._step([s.only(old) for s in shuffled[:first]], old, (), 0), progress=False)
        self.seed = seed

    def _step(
        self, sentences: list[Sentence], types: tuple[str, ...], known: tuple[str, ...], index: int
    ) -> Step:
        text = self.unlabelled if known else ()
        return Step(types, tuple(sentences), known=known, unlabelled=text, index=index, name=types[0])

    def fit(self, settings: dict[str, Any], encoder: str) -> Fit:
        config = TrainingConfig.build({"encoder": encoder, "seed": self.seed, **settings})
        tagger = self.base.fork(config)
        began = time.perf_counter()
        tagger.learn(self.step, progress=False)
        seconds = time.perf_counter() - began
        found = score([s.spans for s in self.dev], tagger.find(self.dev), (*self.old, self.new))
        return Fit(seconds, found.f1_of[self.new], mean(found.f1_of[one] for one in self.old), found.micro_f1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", choices=TRIALS, action="append", help="default: all")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--settings", default="default", help="separated by ';'; the first is the reference")
    parser.add_argument("--known", help="with one corpus: the types that the model knows, comma-separated")
    parser.add_argument("--new", help="with one corpus: the type that it learns")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--text", type=int, default=0, help="unlabelled sentences per labelled one")
    for name, value in {"sentences": 500, "known-sentences": 1500, "dev": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    ways = [way.strip() for way in args.settings.split(";")]
    for name in args.corpus or TRIALS:
        old, new = TRIALS[name]
        old = tuple(args.known.split(",")) if args.known else old
        new = args.new or new
        corpus = Corpus.read(Path(os.environ["CFNER_DATA"]) / name)
        fits: dict[str, list[Fit]] = {way: [] for way in ways}
        for seed in map(int, args.seeds.split(",")):
            trial = Trial(corpus, old, new, seed, args)
            for way in ways:
                fit = trial.fit(parse(way), args.encoder)
                fits[way].append(fit)
                print(f"{name}, seed {seed}, {way}: " + _shown(fit), flush=True)
        print(f"\n{name}: mean over seeds {args.seeds}; time as a ratio to '{ways[0]}' (median)")
        for way, runs in fits.items():
            ratio = median(
                one.seconds / first.seconds for one, first in zip(runs, fits[ways[0]], strict=True)
            )
            figures = (
                f"{part} {mean(getattr(run, part) for run in runs):5.1f}"
                + (f" ± {stdev(getattr(run, part) for run in runs):.1f}" if len(runs) > 1 else "")
                for part in ("new", "old", "micro")
            )
            print(f"  {way:48} time {ratio:.2f}   " + "   ".join(figures), flush=True)


def _shown(fit: Fit) -> str:
    return f"{fit.seconds:.1f} s, new {fit.new:.1f}, old {fit.old:.1f}, micro {fit.micro:.1f}"


if __name__ == "__main__":
    main()
