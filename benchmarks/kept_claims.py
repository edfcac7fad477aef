"""Does a model keep what the one before it said, on its own training text and on text that it never saw?

    python benchmarks/kept_claims.py RUN CORPUS [--every 8] [--texts 400]

RUN is a run of several steps with own Others (`cfner train --out RUN`, or a run of a grid with
`--keep-models`), CORPUS its corpus, of which `--every` n-th sentence was used. A type claims a word if its
log-odds are above 0. For each step and each older type: how many of the words that the previous step claimed
are still claimed, and the mean log-odds of these words before and after.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor

from cfner import ContinualTagger, Corpus, Sentence
from cfner.network.inference import outputs
from cfner.runs.rebuild import recorded_stream
from cfner.store.model_files import LoadedModel


def log_odds(model: LoadedModel, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    """By type: the log-odds of each word being of that type against its own Other."""
    text, labels = model.encode(sentences), model.labels
    columns = torch.zeros(text.words, len(labels))
    for batch, out in outputs(model.network, text):
        columns[batch.refs.cpu()] = out.logits.cpu().float()
    odds = columns - columns[:, [labels.other_id]]
    return {type_: odds[:, labels.ids_of([type_])].logsumexp(1) for type_ in labels.types}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("corpus")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--texts", type=int, default=400, help="dev sentences")
    args = parser.parse_args()
    corpus = Corpus.read(args.corpus)
    stream = recorded_stream(args.run, corpus.every(args.every))
    unseen = [sentence for sentence in corpus.dev if len(sentence)][: args.texts]
    print("step, type: words that the step before claimed -> still claimed, mean log-odds before -> after")
    before = ContinualTagger.load(f"{args.run}@1").model
    for number, step in enumerate(stream.steps[1:], start=2):
        after = ContinualTagger.load(f"{args.run}@{number}").model
        for where, sentences in (("its own text", step.train), ("unseen text", unseen)):
            old, new = log_odds(before, sentences), log_odds(after, sentences)
            for type_ in before.labels.types:
                claimed = old[type_] > 0
                kept = (new[type_][claimed] > 0).float().mean().item()
                sizes = (float(each[type_][claimed].mean()) for each in (old, new))
                print(
                    f"{number}, {type_}, {where}: {int(claimed.sum())} words -> {kept:.0%}, "
                    + " -> ".join(f"{size:.1f}" for size in sizes),
                    flush=True,
                )
        before = after


if __name__ == "__main__":
    main()
