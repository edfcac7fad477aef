"""What does a model gain by choosing the labels of a sentence together, instead of word by word?

    python benchmarks/labels_of_a_sentence.py RUN CORPUS [--split dev] [--every 1]

RUN is a folder with a model (`cfner train --out RUN`, or a run of a grid with `--keep-models`), CORPUS a
labelled corpus. Each step of the model is scored on all types that it knows, in both ways, with the same
scores of words.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise

from cfner import ContinualTagger, Corpus, history
from cfner.evaluation.metrics import score
from cfner.interop.check_text import word_logits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("corpus")
    parser.add_argument("--split", choices=["dev", "test"], default="dev")
    parser.add_argument("--every", type=int, default=1, help="only every n-th sentence")
    args = parser.parse_args()
    sentences = [one for one in getattr(Corpus.read(args.corpus), args.split) if len(one)][:: args.every]
    print("step: sentences whose words do not fit together; micro / macro F1 word by word -> by sentence")
    for step in history(args.run):
        model = ContinualTagger.load(args.run, step.number).model
        # as a new model: labels of checkpoints and of older folders are free
        model = replace(model, labels=replace(model.labels, free=0))
        text, decoder, types = model.encode(sentences), model.decoder(), model.labels.types
        columns, bounds = word_logits(model.network, text), text.sentence_bounds.tolist()
        lengths = [end - first for first, end in pairwise(bounds)]
        gold = [sentence.only(types).spans for sentence in sentences]
        ways = (decoder.words_alone(columns), decoder.labels_of(columns, lengths))
        before, after = (score(gold, decoder.spans(ids, bounds), types) for ids in ways)
        broken = len(decoder.broken_alone(columns, lengths))
        print(
            f"{step.number}: {broken} of {len(sentences)}; {before.micro_f1:.1f} / {before.macro_f1:.1f} -> "
            f"{after.micro_f1:.1f} / {after.macro_f1:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
