"""How often does the guard refuse a model that is equally good, and how often does it detect a loss?

    cfner bench yardstick ... -o GRID
    python benchmarks/guard_power.py GRID [--picture docs/pictures/guard-power.svg]

GRID is the folder of any grid: its cells save counts per test sentence and type for every step. An earlier
and a later step of one cell are a pair of models, before and after. Up to 20 pairs are drawn, from those that
keep at least a third of their F1. Guards are sentences of the test set drawn with replacement, until the
commonest type has as many mentions as wanted.

Equal models: before and after of every sentence are swapped at random, so every refusal is a false alarm.
Losses: after such a swap, found mentions of the commonest type are turned into misses at random, until it has
lost the wanted number of points on the complete test set.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from cfner.evaluation.intervals import Floats, f1_of
from cfner.pages import svg
from cfner.practice.learn.guard import F1, Paired

SIZES = (50, 100, 200, 500)  # mentions of the commonest type
LOSSES = (0, 3, 6, 12)  # points
LIMIT = 2.0
PAIRS = 20
KINDS = ("lost", "undecided", "kept")
COLOURS = ("v-f1", "v-empty", "v-f0")
Pair = tuple[Floats, Floats]  # [S, T, 3] before and after, commonest type first


def pairs_of(grid: Path, types: int, random: np.random.Generator) -> list[Pair]:
    """Pairs that know at least this many types, reduced to the commonest of them."""
    found = [pair for path in sorted(grid.glob("cells/*/counts.npz")) for pair in _pairs_of_cell(path, types)]
    chosen = random.permutation(len(found))[:PAIRS]
    return [found[i] for i in sorted(chosen)]


def _pairs_of_cell(path: Path, types: int) -> list[Pair]:
    stored = np.load(path, allow_pickle=False)
    learned = stored["learned"].tolist()
    steps = np.zeros((len(learned), int(stored["sentences"]), len(stored["types"]), 3))
    place = stored["step"], stored["sentence"], stored["type"]
    for column, name in enumerate(("found", "gold", "predicted")):
        steps[(*place, column)] = stored[name]
    pairs = []
    for first, known in enumerate(learned):
        gold = steps[first, :, :known, 1]
        common = np.argsort(-gold.sum(0), kind="stable")[:types]
        for later in range(first + 1, len(learned)):
            before, after = steps[first][:, common], steps[later][:, common]
            micro = [f1_of(side.sum((0, 1))) for side in (before, after)]
            if len(common) == types and micro[0] > 0 and micro[1] >= micro[0] / 3:
                pairs.append((before, after))
    return pairs


def drawn(pair: Pair, mentions: int, random: np.random.Generator) -> Pair:
    """A guard with this many mentions of the first type."""
    gold = pair[0][:, 0, 1]
    rows = random.integers(0, len(gold), int(3 * mentions / gold.mean()) + 50)
    rows = rows[: int(np.searchsorted(gold[rows].cumsum(), mentions)) + 1]
    return pair[0][rows], pair[1][rows]


def swapped(pair: Pair, random: np.random.Generator) -> Pair:
    swap = random.integers(0, 2, (len(pair[0]), 1, 1)).astype(bool)
    return np.where(swap, pair[1], pair[0]), np.where(swap, pair[0], pair[1])


def degraded(pair: Pair, points: float, random: np.random.Generator) -> Pair | None:
    """Equal models, of which the second then loses mentions of the first type, until it is worse by
    ``points``. If the swap alone made it worse than that, the first loses some. None if there are not enough
    to lose.
    """
    before, after = swapped(pair, random)
    apart = f1_of(before[:, 0].sum(0)) - f1_of(after[:, 0].sum(0))
    side, other = (after, before) if apart < points else (before, after)
    target = f1_of(other[:, 0].sum(0)) + (points if side is before else -points)
    found, gold, predicted = side[:, 0].sum(0)
    # after m misses F1 is 200 (found - m) / (gold + predicted - m)
    misses = round((200 * found - target * (gold + predicted)) / (200 - target))
    if misses > found:
        return None
    rows = random.permutation(np.repeat(np.arange(len(side)), side[:, 0, 0].astype(int)))[:misses]
    missed = np.bincount(rows, minlength=len(side))
    side[:, 0, 0] -= missed
    side[:, 0, 2] -= missed
    return before, after


def false_alarms(pairs: list[Pair], draws: int, swaps: int, random: np.random.Generator) -> dict[int, float]:
    """By size: the share of guards that refuse one of two equal models."""
    shares = {}
    for size in SIZES:
        refused = 0
        for number in range(draws):
            sides = swapped(drawn(pairs[number % len(pairs)], size, random), random)
            judged = Paired(*sides, swaps=swaps, seed=number)
            refused += any(judged.fell(index, F1, LIMIT) for index in range(sides[0].shape[1]))
        shares[size] = refused / draws
    return shares


def verdicts(
    pairs: list[Pair],
    points: float,
    size: int,
    draws: int,
    args: argparse.Namespace,
    random: np.random.Generator,
) -> Counter[str]:
    """The verdicts on the degraded type."""
    told: Counter[str] = Counter()
    for number in range(draws):
        worse = degraded(pairs[number % len(pairs)], points, random)
        if worse is not None:
            sides = drawn(worse, size, random)
            judged = Paired(*sides, swaps=args.swaps, resamples=args.resamples, seed=number)
            told[judged.verdict(0, LIMIT)] += 1
    return told


def picture(found: dict[tuple[int, int], Counter[str]]) -> str:
    """A panel per loss, a bar per size: the shares of the verdicts."""
    left, bar, high, gap = 118, 150, 20, 7
    parts: list[str] = []
    for column, loss in enumerate(LOSSES):
        x = left + column * (bar + 26)
        parts.append(svg.text(x, 84, "nothing lost" if not loss else f"{loss} points lost", weight=600))
        for row, size in enumerate(SIZES):
            y, at = 94 + row * (high + gap), float(x)
            if not column:
                parts.append(svg.text(left - 12, y + 14, f"{size} mentions", anchor="end"))
            told = found[loss, size]
            for kind, colour in zip(KINDS, COLOURS, strict=True):
                wide = bar * told[kind] / max(1, told.total())
                if wide > 0:
                    parts.append(svg.rect(at, y, wide, high, colour, round_=0))
                share = round(100 * told[kind] / max(1, told.total()))
                if wide > 26:
                    ink = "v-ground" if colour != COLOURS[1] else "v-ink"
                    parts.append(svg.text(at + wide / 2, y + 14, str(share), anchor="middle", ink=ink))
                at += wide
    for number, (kind, colour) in enumerate(zip(KINDS, COLOURS, strict=True)):
        x = left + number * 110
        parts += [svg.rect(x, 42, 14, 14, colour), svg.text(x + 20, 53, kind)]
    width = left + len(LOSSES) * (bar + 26)
    title = "What the guard says, in % of guards (limit: 2 points)"
    return svg.Svg.titled(title, width, 94 + len(SIZES) * (high + gap) + 12, parts).file()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("grid", type=Path, nargs="+")
    parser.add_argument("--picture", type=Path)
    for name, value in {"alarms": 1000, "draws": 200, "swaps": 1000, "resamples": 500}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    random = np.random.default_rng(0)
    few, many = ([p for grid in args.grid for p in pairs_of(grid, n, random)][:PAIRS] for n in (2, 16))
    print("| equal models | " + " | ".join(f"{size} mentions" for size in SIZES) + " | all |")
    print("|---" * (len(SIZES) + 2) + "|")
    for types, pairs in ((2, few), (16, many)):
        shares = false_alarms(pairs, args.alarms // len(SIZES), args.swaps, random)
        cells = [
            f"{100 * share:.1f} %" for share in (*shares.values(), float(np.mean(list(shares.values()))))
        ]
        print(f"| {types} types, {len(pairs)} pairs: refused | {' | '.join(cells)} |", flush=True)
    found = {}
    print("\n| lost, mentions | " + " | ".join(KINDS) + " |\n" + "|---" * 4 + "|")
    for loss in LOSSES:
        for size in SIZES:
            told = found[loss, size] = verdicts(few, loss, size, args.draws, args, random)
            shares_ = " | ".join(f"{100 * told[kind] / max(1, told.total()):.0f} %" for kind in KINDS)
            print(f"| {loss} points, {size} | {shares_} |", flush=True)
    if args.picture:
        args.picture.write_text(picture(found), encoding="utf-8")


if __name__ == "__main__":
    main()
