"""An old type was lost, or may have been: which remedy helps? Measured with a checkpoint on a real corpus.

    CFNER_DATA=... python benchmarks/after_a_refusal.py [--corpus fewnerd8] [--seeds 0,1]

A stock token classifier is trained on two types and saved as a plain Hugging Face folder, as in
checkpoint_trial.py. It then learns a third type from 300 sentences that are labelled with it alone and
mention none of the old types: once with the defaults, and once with each remedy that `cfner learn` suggests.
All models are scored on the same unseen sentences. Finished runs are read from --work, so that an interrupted
run resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from cfner import Corpus, learn
from cfner.corpus.sentence import Sentence
from cfner.corpus.writers import write_sentences
from cfner.training.config import TrainingConfig
from checkpoint_trial import TRIALS, scores, stock_checkpoint

REPLAYED = 50  # number of replayed old sentences
Runs = dict[str, dict[str, float]]  # by remedy: F1 by type, and the seconds


def remedies(folder: Path, unlabelled: list[Sentence]) -> dict[str, dict[str, Any]]:
    """The arguments that each remedy adds to the plain call, by its name in the table."""
    half = TrainingConfig().lr_encoder / 2
    experts = {"method": "experts"}
    return {
        "defaults": {},
        "--unlabelled, 300 sentences": {"unlabelled": unlabelled},
        f"--replay, {REPLAYED} sentences": {"replay": folder / "replay.conll"},
        "--set lambda_keep=4": {"settings": {"parameters": {"lambda_keep": 4.0}}},
        f"--lr-encoder {half:g}": {"settings": {"lr_encoder": half}},
        "--method experts": {"settings": experts},
        "--method experts --set old_wins=true": {"settings": {**experts, "parameters": {"old_wins": True}}},
    }


def trial(corpus: Corpus, old: tuple[str, ...], new: str, seed: int, folder: Path, args) -> Runs:
    """The checkpoint as it is, and after each remedy."""
    text = [sentence for sentence in corpus.train if len(sentence)]
    text = [text[i] for i in torch.randperm(len(text), generator=torch.Generator().manual_seed(seed))]
    first, rest = text[: args.checkpoint_sentences], text[args.checkpoint_sentences :]
    bare = [s for s in rest if new in s.types and not s.types.intersection(old)][: args.sentences]
    taken = {s.key for s in bare}
    rest = [s for s in rest if s.key not in taken]
    test = [sentence for sentence in corpus.test if len(sentence)][: args.test]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "stock" / "config.json").exists():
        stock_checkpoint(first, old, folder / "stock", args, seed)
    unlabelled = [s.only(()) for s in rest[: args.sentences]]
    replayed = rest[args.sentences : args.sentences + REPLAYED]
    for name, types, part in (("new", [new], bare), ("replay", old, replayed)):
        write_sentences([s.only(types) for s in part], folder / f"{name}.conll", format="conll")
    path = folder / "scores.json"
    found: Runs = json.loads(path.read_text()) if path.exists() else {}
    if "before" not in found:
        found["before"] = scores(folder / "stock", test, (*old, new))
    for number, (name, given) in enumerate(remedies(folder, unlabelled).items()):
        if name not in found:
            began = time.perf_counter()
            settings = {"epochs": args.epochs, "seed": seed, **given.get("settings", {})}
            out = folder / f"model-{number}"
            learn(folder / "stock", str(folder / "new.conll"), out=out, **{**given, "settings": settings})
            found[name] = {**scores(out, test, (*old, new)), "seconds": time.perf_counter() - began}
            path.write_text(json.dumps(found, indent=1))
            shutil.rmtree(out)
        figures = ", ".join(f"{key} {value:.1f}" for key, value in found[name].items())
        print(f"seed {seed}, {name}: {figures}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", choices=TRIALS, default="fewnerd8")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--work", type=Path, default=Path("runs/after-a-refusal"))
    for name, value in {"sentences": 300, "checkpoint-sentences": 1500, "test": 1000, "epochs": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--checkpoint-epochs", type=int, default=4)
    parser.add_argument("--checkpoint-lr", type=float, default=1e-4)
    args = parser.parse_args()
    old, new = TRIALS[args.corpus]
    corpus = Corpus.read(Path(os.environ["CFNER_DATA"]) / args.corpus)
    seeds = args.seeds.split(",")
    runs = [trial(corpus, old, new, int(s), args.work / f"{args.corpus}-{s}", args) for s in seeds]
    before = ", ".join(f"{type_} {mean(run['before'][type_] for run in runs):.1f}" for type_ in old)
    print(f"\n{args.corpus}, seeds {args.seeds}, unseen sentences. F1 of the checkpoint: {before}\n")
    heads = ["", *(f"{type_} lost" for type_ in old), "mean lost", f"{new} F1", "seconds"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for way in [way for way in runs[0] if way != "before"]:
        lost = [mean(run["before"][type_] - run[way][type_] for run in runs) for type_ in old]
        learned, seconds = (mean(run[way][key] for run in runs) for key in (new, "seconds"))
        cells = [way, *(f"{value:.1f}" for value in (*lost, mean(lost), learned)), f"{seconds:.0f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
