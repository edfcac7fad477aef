"""What does a third-party checkpoint lose when it learns one type, with and without unlabelled text?

    CFNER_DATA=... python benchmarks/checkpoint_trial.py [--corpus fewnerd8] [--seeds 0,1,2]
      [--score-on dev --lambda-keep 1,2]

A stock token classifier is trained on two types and saved as a plain Hugging Face folder. It then learns a
third type from different sentences that are labelled with it alone. All models are scored on unseen
sentences.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from statistics import mean

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, get_linear_schedule_with_warmup

from cfner import ContinualTagger, Corpus, learn
from cfner.batches.encoding import encode
from cfner.batches.loader import training_loader
from cfner.corpus.sentence import Sentence
from cfner.corpus.writers import write_sentences
from cfner.evaluation.metrics import score
from cfner.store.pretrained import resolve
from cfner.stream.labels import LabelSpace

TRIALS = {  # the checkpoint's types, and the one that it learns
    "fewnerd8": (("location", "person"), "organization"),
    "multiconer2en": (("Artist", "HumanSettlement"), "ORG"),
    "snips-slots": (("artist", "city"), "playlist"),
}


def ways(lambdas: str | None) -> dict[str, tuple[str, bool, dict[str, float]]]:
    """By name: the method, whether it gets unlabelled text, and its parameters."""
    found: dict[str, tuple[str, bool, dict[str, float]]] = {"finetune": ("finetune", False, {})}
    for value in lambdas.split(",") if lambdas else [None]:
        name = "own-other" + (f" lambda_keep={value}" if value else "")
        parameters = {"lambda_keep": float(value)} if value else {}
        found |= {name: ("own-other", False, parameters), f"{name} + text": ("own-other", True, parameters)}
    return found


def stock_checkpoint(
    sentences: list[Sentence], types: tuple[str, ...], folder: Path, args, seed: int
) -> None:
    """Trained as in any tutorial: one rate, AdamW, cross-entropy on first subwords."""
    torch.manual_seed(seed)
    labels = LabelSpace.start().grown(types)
    tokenizer = AutoTokenizer.from_pretrained(resolve(args.encoder))
    model = AutoModelForTokenClassification.from_pretrained(
        resolve(args.encoder), id2label=dict(enumerate(labels.labels)), num_labels=len(labels)
    )
    text = encode(sentences, tokenizer, max_length=128)
    gold = torch.tensor([label for s in sentences for label in labels.encode(s.only(types))])
    loader, order = training_loader(text, batch_size=8, seed=seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.checkpoint_lr, weight_decay=0.01)
    updates = len(loader) * args.checkpoint_epochs
    schedule = get_linear_schedule_with_warmup(optimiser, updates // 10, updates)
    model.train()
    for epoch in range(args.checkpoint_epochs):
        order.set_epoch(epoch)
        for batch in loader:
            logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            torch.nn.functional.cross_entropy(
                logits[batch.rows, batch.positions], gold[batch.refs]
            ).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def scores(model: Path, test: list[Sentence], types: tuple[str, ...]) -> dict[str, float]:
    """F1 of each type, and micro over all of them; a type that the model does not know has 0."""
    found = score([s.only(types).spans for s in test], ContinualTagger.open(model).find(test), types)
    return {**found.f1_of, "micro": found.micro_f1}


def tell(seed: int, name: str, figures: dict[str, float]) -> None:
    print(f"seed {seed}, {name}: " + ", ".join(f"{k} {v:.1f}" for k, v in figures.items()), flush=True)


def trial(corpus: Corpus, old: tuple[str, ...], new: str, seed: int, args) -> dict[str, dict[str, float]]:
    """Scores of the checkpoint and of each way to continue from it."""
    text = [sentence for sentence in corpus.train if len(sentence)]
    text = [text[i] for i in torch.randperm(len(text), generator=torch.Generator().manual_seed(seed))]
    first, second = args.checkpoint_sentences, args.checkpoint_sentences + args.sentences
    split = corpus.test if args.score_on == "test" else corpus.dev
    test = [sentence for sentence in split if len(sentence)][: args.test]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        stock_checkpoint(text[:first], old, folder / "stock", args, seed)
        found = {"before": scores(folder / "stock", test, (*old, new))}
        tell(seed, "before", found["before"])
        write_sentences([s.only([new]) for s in text[first:second]], folder / "new.conll", format="conll")
        unlabelled = [s.only(()) for s in text[second : second + args.sentences]]
        for name, (method, with_text, parameters) in ways(args.lambda_keep).items():
            settings = {
                "method": method,
                "epochs": args.epochs,
                "seed": seed,
                "config": {"parameters": parameters},
            }
            data, out = str(folder / "new.conll"), folder / name
            given = unlabelled if with_text else ()
            learn(folder / "stock", data, out=out, unlabelled=given, folds=0, **settings)
            found[name] = scores(out, test, (*old, new))
            tell(seed, name, found[name])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", choices=TRIALS, action="append", help="default: all")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--score-on", choices=["test", "dev"], default="test")
    parser.add_argument("--lambda-keep", help="values to compare, comma-separated; default: the usual one")
    for name, value in {"sentences": 300, "checkpoint-sentences": 1500, "test": 1000, "epochs": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--checkpoint-epochs", type=int, default=4)
    parser.add_argument("--checkpoint-lr", type=float, default=1e-4)
    args = parser.parse_args()
    for name in args.corpus or TRIALS:
        old, new = TRIALS[name]
        corpus = Corpus.read(Path(os.environ["CFNER_DATA"]) / name)
        runs = [trial(corpus, old, new, int(seed), args) for seed in args.seeds.split(",")]
        print(f"\n{name}: F1 on unseen sentences, mean over seeds {args.seeds}. Learned: {new}")
        for way in runs[0]:
            figures = (f"{key} {mean(run[way][key] for run in runs):5.1f}" for key in runs[0][way])
            print(f"  {way:16} " + "   ".join(figures))


if __name__ == "__main__":
    main()
