"""Was an old type forgotten, or do later types claim its words? Counts where its mentions go, step by step.

    python benchmarks/claimed_words.py RUN CORPUS [--types building,art | --types all] [--mentions 250]

RUN is a folder with a model of several steps (`cfner train --out RUN`, or a run of a grid with
`--keep-models`), CORPUS a labelled corpus whose dev split is tagged. A mention goes where most of its
words go. With several types, the last two lines are their sums, when learned and at the end.
"""

from __future__ import annotations

import argparse
from collections import Counter

from cfner import Corpus, Sentence, Span, history, predict


def goes_to(mention: Span, found: tuple[Span, ...]) -> str:
    of_word = {word: span.type for span in found for word in range(span.start, span.end)}
    words = range(mention.start, mention.end)
    return Counter(of_word.get(word, "O") for word in words).most_common(1)[0][0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("corpus")
    parser.add_argument(
        "--types", help="with commas, or 'all' before the last step; default: the first step's"
    )
    parser.add_argument("--mentions", type=int, default=250, help="of each type, the first ones")
    args = parser.parse_args()
    dev: list[Sentence] = list(Corpus.read(args.corpus).dev)
    steps = history(args.run)
    given = args.types.split(",") if args.types else steps[0].types
    types = [type_ for step in steps[:-1] for type_ in step.types] if given == ["all"] else given
    ends = {"when learned": Counter(), "at the end": Counter()}
    print("type, step: mentions found as it, as another type (which), as no entity")
    for type_ in types:
        mentions = [(at, span) for at, s in enumerate(dev) for span in s.spans if span.type == type_]
        mentions = mentions[: args.mentions]
        places = sorted({at for at, _ in mentions})
        for step in steps:
            if type_ not in step.all_types:
                continue
            tagged = predict(f"{args.run}@{step.number}", [dev[at] for at in places])
            found = dict(zip(places, (one.spans for one in tagged), strict=True))
            counts = Counter(goes_to(span, found[at]) for at, span in mentions)
            own, none = counts.pop(type_, 0), counts.pop("O", 0)
            sums = {"its type": own, "another": counts.total(), "none": none}
            if type_ in step.types:
                ends["when learned"].update(sums)
            if step is steps[-1]:
                ends["at the end"].update(sums)
            claimed = ", ".join(f"{other} {n}" for other, n in counts.most_common())
            print(f"{type_}, {step.number}: {own}, {counts.total()} ({claimed}), {none}", flush=True)
    if len(types) > 1:
        for when, counts in ends.items():
            shares = (f"{name} {100 * count / counts.total():.1f} %" for name, count in counts.items())
            print(f"all {len(types)} types, {when}: {', '.join(shares)} of {counts.total()} mentions")


if __name__ == "__main__":
    main()
