"""Does cfner learn as well as a plain Hugging Face token classifier? Same encoder, data, epochs, rate.

    CFNER_DATA=... python benchmarks/against_huggingface.py [--corpus fewnerd8] [--every 8] [--epochs 3]

All types are learned in one step (`joint` on a stream of one step), by the cosine head, by cfner's linear
head and by the stock model with AdamW, linear warm-up and decay; scored by the same metric on the same test
data.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from transformers import AutoModelForTokenClassification, get_linear_schedule_with_warmup

from cfner import ContinualTagger, Corpus, TaskStream, TrainingConfig
from cfner.batches.encoding import encode
from cfner.batches.loader import inference_batches, training_loader
from cfner.evaluation.metrics import score
from cfner.store.pretrained import load_encoder, resolve
from cfner.stream.labels import LabelSpace


def stock(stream: TaskStream, args: argparse.Namespace, seed: int, head_rate: float | None = None):
    """A stock token classifier: a linear head, cross-entropy on first subwords, one rate unless given."""
    torch.manual_seed(seed)
    labels = LabelSpace.start().grown(stream.types)
    tokenizer = load_encoder(args.encoder).tokenizer
    model = AutoModelForTokenClassification.from_pretrained(resolve(args.encoder), num_labels=len(labels))
    train, test = stream[0].train, stream.test_up_to(0)
    text = encode(train, tokenizer, max_length=128)
    gold = torch.tensor([label for sentence in train for label in labels.encode(sentence)])
    loader, order = training_loader(text, batch_size=args.batch_size, seed=seed)
    head = list(model.classifier.parameters())
    encoder = [p for p in model.parameters() if all(p is not q for q in head)]
    groups = [{"params": encoder}, {"params": head, "lr": head_rate or args.lr}]
    optimiser = torch.optim.AdamW(groups, lr=args.lr, weight_decay=0.01, fused=True)
    updates = len(loader) * args.epochs
    schedule = get_linear_schedule_with_warmup(optimiser, updates // 10, updates)
    for epoch in range(args.epochs):
        order.set_epoch(epoch)
        model.train()
        for batch in loader:
            logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            loss = torch.nn.functional.cross_entropy(logits[batch.rows, batch.positions], gold[batch.refs])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
    model.eval()
    test_text = encode(test, tokenizer, max_length=128)
    ids = torch.zeros(test_text.words, dtype=torch.long)
    with torch.no_grad():
        for batch in inference_batches(test_text, batch_size=64):
            logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            ids[batch.refs] = logits[batch.rows, batch.positions].argmax(1)
    bounds = test_text.sentence_bounds
    found = [labels.decode(ids[a:b].tolist()) for a, b in pairwise(bounds)]
    return score([sentence.spans for sentence in test], found, stream.types)


def ours(stream: TaskStream, args: argparse.Namespace, seed: int, head: str):
    tagger = ContinualTagger.from_pretrained(
        args.encoder,
        method="joint",
        head=head,
        epochs=args.epochs,
        batch_size=args.batch_size,
        lr_encoder=args.lr,
        max_length=128,
        seed=seed,
    )
    tagger.learn(stream[0])
    return tagger.evaluate(stream.test_up_to(0))


RUNS = {
    "stock Hugging Face": stock,
    "stock, our head rate": partial(stock, head_rate=TrainingConfig().lr_head),
    "cfner, linear head": partial(ours, head="linear"),
    "cfner, cosine head": partial(ours, head="cosine"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="fewnerd8")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    folder = os.environ.get("CFNER_DATA")
    if not folder:
        parser.error("set CFNER_DATA to the folder with the real corpora")
    corpus = Corpus.read(Path(folder) / args.corpus, every=args.every)
    everything = len(corpus.types)
    for seed in args.seeds:
        stream = TaskStream.split(corpus, first=everything, per_step=1, min_mentions=1, seed=seed)
        # the last epoch counts for all three: no selection on dev data
        stream = TaskStream(**{**stream.__dict__, "dev": ()})
        for name in args.only:
            started = time.perf_counter()
            scores = RUNS[name](stream, args, seed)
            seconds = time.perf_counter() - started
            figures = f"micro {scores.micro_f1:5.2f}  macro {scores.macro_f1:5.2f}"
            print(f"seed {seed}  {name:20} {figures}  {seconds:4.0f} s", flush=True)


if __name__ == "__main__":
    main()
