"""The tables of docs/results.md, from the published runs: one per stream of the yardstick, and one of all.

    python benchmarks/results_tables.py [--runs docs/results/yardstick] [--write PAGE ...]

With ``--write``, the tables in these pages are replaced, each between ``<!-- table CORPUS -->`` (or
``short``, ``search``) and ``<!-- end -->``. A test compares the pages with the runs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from cfner.benchmark.league_file import Searched, read_league
from cfner.benchmark.report.bounds_table import FLOOR, share_of_the_way
from cfner.benchmark.report.grouping import BOUNDS, NONE, Group, Pick, groups_of
from cfner.benchmark.report.league import at_chosen_settings
from cfner.benchmark.report.reading import Run, Runs, read_runs
from cfner.benchmark.yardstick import STREAMS
from cfner.evaluation.type_losses import MANY_MENTIONS

DOCS = Path(__file__).parents[1] / "docs"
ORDER = ("finetune", "extendner", "cfner", "lucir+cf", "rdp", "cpfd", "is3", "tbcl", "seq-star", "ice-o")
ORDER += ("experts", "own-other+cf", "own-other", *BOUNDS)
NAMES = {"fewnerd8": "Few-NERD", "snips-slots": "slots", "multiconer2en": "MultiCoNER"}
DEFAULT, CEILING = "own-other", "joint-own"
HEAD = ("method", "unlabelled text", "seeds", "mean micro / macro", "last micro / macro")
HEAD += ("last macro, 30 or more", "when learned", "at the end", "lost", "worst", "share of the gap")


def last_micro(run: Run) -> float:
    return run.last_micro_f1


def last_macro(run: Run) -> float:
    return run.last_macro_f1


def lost(run: Run) -> float | None:
    return run.mean_lost


def decimal(value: float | None) -> str:
    return NONE if value is None else f"{round(value, 1) + 0.0:.1f}".replace("-", "−")


def figure(group: Group, method: str, pick: Pick, *, deviation: bool = False) -> str:
    found = group.mean(method, pick)
    if found is None:
        return NONE
    return decimal(found.mean) + (f" ± {found.std:.1f}" if deviation and found.std is not None else "")


def worst(group: Group, method: str) -> str:
    """The type with the largest loss, on average over the seeds."""
    runs = group.by_method[method]
    losses = {
        type_: sum(found) / len(found)
        for type_ in runs[0].types
        if runs[0].mentions.get(type_, 0) >= MANY_MENTIONS
        and len(found := [loss for run in runs if (loss := run.lost.get(type_)) is not None]) == len(runs)
    }
    type_ = max(losses, key=lambda one: losses[one], default=None)
    return NONE if type_ is None or losses[type_] <= 0 else f"{type_} {decimal(losses[type_])}"


def row(group: Group, bounds: Group, method: str, text: str) -> list[str]:
    """``bounds``: the runs of the same stream that contain finetune and the ceiling."""
    known = {**bounds.by_method, method: group.by_method[method]}
    together = Group(group.number, group.setting, group.apart, group.cells, known)
    shares = [
        None
        if method in (FLOOR, CEILING) or FLOOR not in known or CEILING not in known
        else share_of_the_way(together, method, CEILING, pick)
        for pick in (last_micro, last_macro)
    ]
    closed = " / ".join(f"{share.mean:.0f}".replace("-", "−") for share in shares if share is not None)
    name = f"`{group.by_method[method][0].method}`" + (" (the fair ceiling)" if method == CEILING else "")
    return [
        f"**{name}**" if method == DEFAULT else name,
        text,
        ", ".join(str(run.seed) for run in group.by_method[method]),
        " / ".join(
            figure(group, method, pick) for pick in (lambda r: r.mean_micro_f1, lambda r: r.mean_macro_f1)
        ),
        " / ".join(figure(group, method, pick, deviation=True) for pick in (last_micro, last_macro)),
        figure(group, method, lambda r: r.last_macro_f1_30),
        figure(group, method, lambda r: r.mean_when_learned),
        figure(group, method, lambda r: r.mean_at_the_end),
        figure(group, method, lost),
        worst(group, method),
        f"{closed} %" if closed else NONE,
    ]


def place(method: str) -> tuple[int, str]:
    """Methods that are not in ORDER come last."""
    return (ORDER.index(method) if method in ORDER else len(ORDER)), method


def table(groups: Sequence[Group]) -> str:
    """Of one stream: the runs with slices only, then those with unlabelled text."""
    rows, bounds = [HEAD, ("---",) * len(HEAD)], groups[0]
    for group, text in zip(groups, (NONE, "as much"), strict=False):
        for method in sorted(group.methods, key=place):
            rows.append(tuple(row(group, bounds, method, text)))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def short_table(streams: Mapping[str, Sequence[Group]]) -> str:
    """All methods that were run on every stream: micro F1 at the end and points lost, stream by stream."""
    rows = [["method", "unlabelled text"], ["---", "---"]]
    for data in streams:
        rows[0] += [f"{NAMES.get(data, data)}: micro F1 at the end", "lost"]
        rows[1] += ["---", "---"]
    for text, groups in zip((NONE, "as much"), zip_longest(*streams.values()), strict=False):
        everywhere = [m for m in groups[0].methods if all(g and m in g.by_method for g in groups)]
        for method in sorted(everywhere, key=place):
            cells = [
                cell for g in groups for cell in (figure(g, method, last_micro), figure(g, method, lost))
            ]
            rows.append([f"**`{method}`**" if method == DEFAULT else f"`{method}`", text, *cells])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def search_table(searched: Mapping[str, Searched]) -> str:
    """Micro F1 on dev data of all settings that the league tried; the chosen one in bold."""
    settings = list(dict.fromkeys(tried.setting for one in searched.values() for tried in one.tried))
    rows = [["method", "what is varied", *settings], ["---"] * (2 + len(settings))]
    for method in sorted(searched, key=place):
        one, cells = searched[method], dict.fromkeys(settings, "")
        for tried in one.tried:
            bold = "**" if tried.method == one.chosen else ""
            cells[tried.setting] = f"{bold}{tried.dev_f1:.2f}{bold}"
        knob = one.knob if " " in one.knob else f"`{one.knob}`"
        rows.append([f"`{method}`", knob, *cells.values()])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def tables(runs: Runs) -> dict[str, str]:
    """By corpus, ``short``, and ``search`` if there was one. Only what was scored on test data, with as much
    unlabelled text as slices or none.
    """
    searched = read_league(runs.folder)
    found: dict[str, dict[str, Group]] = {}
    for group in groups_of(runs):
        shared = dict(group.setting.shared)
        usual = shared["score_on"] == "test" and float(shared["unlabelled_ratio"]) == 1
        if usual and group.by_method and shared["unlabelled"] in ("none", "rest"):
            known = found.setdefault(group.setting.data, {})
            if shared["unlabelled"] in known:
                raise SystemExit(f"{group.setting.data} was run with several settings: {group.apart}.")
            known[shared["unlabelled"]] = at_chosen_settings(group, searched)
    streams = {
        data: [known[text] for text in ("none", "rest") if text in known] for data, known in found.items()
    }
    long = {stream.corpus for stream in STREAMS if stream.methods is not None}  # has only some of the methods
    compared = {data: groups for data, groups in streams.items() if data not in long}
    found_tables = {data: table(groups) for data, groups in streams.items()}
    found_tables["short"] = short_table(compared)
    return found_tables | ({"search": search_table(searched)} if searched else {})


def replaced(page: str, found: dict[str, str]) -> str:
    def fresh(match: re.Match[str]) -> str:
        return f"<!-- table {match[1]} -->\n{found[match[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table (\S+) -->\n.*?<!-- end -->", fresh, page, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=DOCS / "results" / "yardstick")
    parser.add_argument("--write", type=Path, nargs="+", help="pages whose tables are replaced")
    args = parser.parse_args()
    found = tables(read_runs(args.runs))
    for page in args.write or ():
        page.write_text(replaced(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    if args.write:
        return
    for data, text in found.items():
        print(f"{data}\n\n{text}\n")


if __name__ == "__main__":
    main()
