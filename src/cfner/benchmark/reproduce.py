"""The paper's tables and figures as grids: on its licensed corpora, which the user must have, or as the same
comparison on other data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cfner.benchmark.cells import Cell, parse_methods
from cfner.benchmark.grid import cells_of
from cfner.benchmark.published import statistics
from cfner.benchmark.streams import Division, Source
from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError, CorpusError, nearest
from cfner.training.config import TrainingConfig

Settings = tuple[tuple[int, int], ...]

CORPORA: Final[Mapping[str, str]] = {"I2B2": "i2b2", "OntoNotes5": "ontonotes5", "CoNLL2003": "conll2003"}
BASELINES: Final = "finetune, podnet, lucir, self-training, extendner, cfner"
EFFECTS_OFF: Final = "cfner without effect_e & effect_o"
ABLATIONS: Final = (
    "cfner, cfner without adaptive_weight, cfner without curriculum, "
    "cfner without adaptive_weight & curriculum, cfner without effect_o, cfner without effect_e, "
    f"{EFFECTS_OFF}"
)
HYPERPARAMETERS: Final = ", ".join(
    f"cfner with {name}={value}"
    for name, values in {
        "k": (1, 2, 3, 5, 10),
        "delta_1": (0, 0.5, 0.9, 0.95, 1),
        "lambda_base": (0.5, 1, 2, 5, 10),
    }.items()
    for value in values
)


@dataclass(frozen=True)
class Recipe:
    """One table or figure. ``settings``: (FG, PG) per corpus of the paper."""

    what: str
    settings: Mapping[str, Settings]
    methods: str
    samplings: tuple[str, ...] = ("greedy",)
    labels: tuple[str, ...] = ("own",)

    def divisions(self, settings: Settings) -> list[Division]:
        return [
            Division(first, per_step, sampling, labels)
            for first, per_step in settings
            for sampling in self.samplings
            for labels in self.labels
        ]


_FOUR: Settings = ((1, 1), (2, 2), (8, 1), (8, 2))
_ONE: Settings = ((1, 1),)
_BOTH: Mapping[str, Settings] = {"I2B2": _FOUR, "OntoNotes5": _FOUR}
_ALL_ONE: Mapping[str, Settings] = {"I2B2": _ONE, "OntoNotes5": _ONE, "CoNLL2003": _ONE}
_CONLL: Mapping[str, Settings] = {"CoNLL2003": ((1, 1), (2, 1))}

RECIPES: Final[Mapping[str, Recipe]] = {
    "table1": Recipe("all methods on I2B2 and OntoNotes5, four settings", _BOTH, BASELINES),
    "table-conll": Recipe("all methods on CoNLL2003, two settings", _CONLL, BASELINES),
    "table-ablation": Recipe("cfner without its parts", _ALL_ONE, ABLATIONS),
    "table-hyperparameters": Recipe(
        "cfner with other K, delta_1 and lambda_base", {"I2B2": ((8, 2),)}, HYPERPARAMETERS
    ),
    "table-combine": Recipe(
        "LUCIR and self-training, each with and without causal effects",
        _ALL_ONE,
        "cfner, lucir, lucir+cf, self-training, self-training+cf",
    ),
    "figure-other-class": Recipe(
        "what labels hidden in O cost: old slices kept, with and without all labels in the current one",
        {"OntoNotes5": _ONE},
        "finetune",
        labels=("none", "current"),
    ),
    "figure-sampling": Recipe(
        "greedy against random slices: label distributions and F1",
        {"OntoNotes5": _ONE},
        BASELINES,
        samplings=("greedy", "random"),
    ),
    "figure-tsne": Recipe(
        "features of words of six types after the last step", {"OntoNotes5": _ONE}, "extendner, cfner"
    ),
    "figure-steps": Recipe("F1 step by step", {**_BOTH, **_CONLL}, BASELINES),
}


def recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise ConfigError(f"The paper has no '{name}' here.", remedy=nearest(name, RECIPES))
    return RECIPES[name]


def expected_files(name: str) -> str:
    """One sentence about the files that the user must provide."""
    folders = [f"{CORPORA[corpus]}/ ({corpus})" for corpus in recipe(name).settings]
    listed = folders[0] if len(folders) == 1 else f"{', '.join(folders[:-1])} and {folders[-1]}"
    return (
        f"'{name}' expects the folder(s) {listed} in the folder given as `root`, each with the files train, "
        "dev and test in a format that `check` can read."
    )


def cells_on_paper_corpora(
    name: str,
    root: Path,
    config: TrainingConfig,
    seeds: Sequence[int],
    *,
    only: Sequence[str] = (),
    every: int = 1,
    anyway: bool = False,
    epochs_given: bool = False,
) -> list[Cell]:
    """The paper's own grid. ``anyway``: run even if the counts are not the paper's."""
    wanted = recipe(name)
    unknown = [corpus for corpus in only if corpus not in wanted.settings]
    if unknown:
        raise ConfigError(
            f"'{name}' does not use '{unknown[0]}'.", remedy=nearest(unknown[0], wanted.settings)
        )
    cells: list[Cell] = []
    for corpus, settings in wanted.settings.items():
        if only and corpus not in only:
            continue
        folder = root / CORPORA[corpus]
        if not folder.is_dir():
            raise CorpusError("The corpus does not exist.", where=str(folder), remedy=expected_files(name))
        types = check_counts(corpus, Corpus.read(folder), folder, anyway=anyway)
        source = Source(str(folder.resolve()), every=every, order=types)
        for division in wanted.divisions(settings):
            epochs = config.epochs if epochs_given else _papers_epochs(corpus, division.per_step)
            settings_here = config.model_copy(update={"epochs": epochs})
            cells += cells_of([source], [division], parse_methods(wanted.methods), seeds, settings_here)
    return cells


def cells_on_other_data(
    name: str, source: Source, setting: tuple[int, int], config: TrainingConfig, seeds: Sequence[int]
) -> list[Cell]:
    """The same comparison on other data, in one setting."""
    wanted = recipe(name)
    divisions, methods = wanted.divisions((setting,)), parse_methods(wanted.methods)
    return list(cells_of([source], divisions, methods, seeds, config))


def check_counts(name: str, corpus: Corpus, folder: Path, *, anyway: bool) -> tuple[str, ...]:
    """Check that these are the paper's files; returns the types that the paper learned, in its order."""
    paper = statistics(name)
    order = next((names for names in (paper.types, paper.labels) if set(names).issubset(corpus.types)), None)
    if order is None:
        missing = ", ".join(sorted(set(paper.labels).difference(corpus.types)))
        raise CorpusError(
            f"This is not {name}: the types {missing} are not in it.",
            where=str(folder),
            remedy=f"The paper's types are {', '.join(paper.types)}.",
        )
    wanted = {"sentences": paper.sentences, "mentions": paper.mentions}
    splits = (corpus.train, corpus.dev, corpus.test)
    found = {
        "sentences": sum(len(split) for split in splits),
        "mentions": sum(span.type in order for split in splits for s in split for span in s.spans),
    }
    # the paper rounds to thousands; 2 % more because sentences can be counted in different ways
    wrong = [
        f"{found[what]:,} {what} (the paper: {said:,})"
        for what, said in wanted.items()
        if abs(found[what] - said) > max(paper.rounded_to, 0.02 * said)
    ]
    if wrong and not anyway:
        raise CorpusError(
            f"This is not {name} as in the paper: {' and '.join(wrong)}.",
            where=str(folder),
            remedy="Use the files that the paper used, or continue with `anyway=True`.",
        )
    return order


def _papers_epochs(corpus: str, per_step: int) -> int:
    """Ten; twenty where a step has two types, but not on CoNLL2003 (the paper's appendix)."""
    return 20 if per_step == 2 and corpus != "CoNLL2003" else 10
