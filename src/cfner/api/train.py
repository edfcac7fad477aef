"""``train``: a whole stream of steps."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from cfner.api.arguments import Names, PathLike, load_methods, names, settings_of, several
from cfner.corpus.in_memory import Data, Texts
from cfner.errors import ConfigError

if TYPE_CHECKING:
    from cfner.runs.stream_run import PlannedRun, RunResult
    from cfner.training.progress import Progress

_log = logging.getLogger(__name__)


@overload
def train(data: Data, out: PathLike, *, dry_run: Literal[False] = False, **arguments: Any) -> RunResult: ...


@overload
def train(data: Data, out: PathLike, *, dry_run: Literal[True], **arguments: Any) -> PlannedRun: ...


def train(
    data: Data,
    out: PathLike,
    *,
    first: int = 1,
    per_step: int = 1,
    order: Names | None = None,
    types: Names | None = None,
    sampling: str = "greedy",
    min_mentions: int = 50,
    every: int = 1,
    score_every: int | None = None,
    score_on: str = "test",
    unlabelled: Texts | None = None,
    unlabelled_ratio: float | None = None,
    format: str | None = None,
    tag_column: str | int | None = None,
    method: str | None = None,
    use: PathLike | Sequence[PathLike] | None = None,
    without: Names | None = None,
    encoder: str | None = None,
    epochs: int | None = None,
    patience: int | None = None,
    batch_size: int | None = None,
    lr_encoder: float | None = None,
    lr_head: float | None = None,
    precision: str | None = None,
    matches: str | None = None,
    seed: int | None = None,
    trackers: Names | None = None,
    preset: str | None = None,
    config: PathLike | Mapping[str, Any] | None = None,
    device: str | None = None,
    resume: bool = False,
    dry_run: bool = False,
    progress: bool | Progress | None = None,
    **settings: Any,
) -> RunResult | PlannedRun:
    """Learn a stream of entity types step by step, score every step, and save every step's model.

    Args:
        data: A folder with train, dev and test files, or data in memory with these splits (see
            ``Corpus.read``).
        out: Folder for the models and results.json.
        first: Types in the first step (FG).
        per_step: Types in each later step (PG).
        order: Types in the order of learning; types not named are left out. Default: all,
            alphabetically.
        types: Learn these types only, alphabetically.
        sampling: How sentences are assigned to steps: "greedy" (the paper's) or "random".
        min_mentions: Drop types with fewer training mentions.
        every: Use only every n-th sentence of the data, for a quick result.
        score_every: The same for the sentences that steps are scored on. Default: as ``every``.
        score_on: Split that steps are scored on: "test", or "dev" when choosing settings.
        unlabelled: Unlabelled text that reminds the model of old types: a file, a corpus, texts, or
            "rest" for the training sentences that ``every`` leaves out; or a list of these.
        unlabelled_ratio: Unlabelled sentences per labelled one, in each step. Default: 1.
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        method: The training method; ``cfner.methods.method_names()`` lists them. Default: own-other.
        use: Python files with your own methods.
        without: Parts of the method to leave out (ablation).
        encoder: Hub name, folder, or "minilm". Default: bert-base-cased.
        epochs: Epochs per step.
        patience: Stop a step after this many epochs without improvement.
        batch_size: Sentences per batch and process.
        lr_encoder: Learning rate of the encoder.
        lr_head: Learning rate of the head.
        precision: "fp32", "bf16", or "auto": bf16 where the hardware has it.
        matches: How matched predictions are computed: "bank" or "exact".
        seed: Seed of the split and of the training. Default: 0.
        trackers: Where losses are logged, such as "tensorboard".
        preset: "paper": the paper's settings.
        config: A .toml or .json file of settings, or a dictionary of them.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        resume: Resume the run in ``out``.
        dry_run: Train nothing, and return the plan.
        progress: Whether to show progress bars. Default: in a terminal or a notebook.
        **settings: Any other setting of ``TrainingConfig``, or a parameter of the method, such as ``k``.

    Returns:
        The scores after every step; with ``dry_run``, the steps and the settings.
    """
    if order is not None and types is not None:
        raise ConfigError(
            "`order` and `types` both say which types are learned.",
            remedy="Give only `order`: types not named there are left out.",
        )
    load_methods(use)
    given = settings_of(train, locals())
    from cfner.benchmark.streams import Division, Source
    from cfner.methods import create
    from cfner.runs.stream_run import PlannedRun, run_stream
    from cfner.store.pretrained import require_encoder
    from cfner.training.bars import watcher
    from cfner.training.config import TrainingConfig

    chosen = TrainingConfig.build(given, file=config, preset=preset)
    create(chosen.method, chosen.parameters, chosen.without)  # report a wrong one before any work
    source = Source.of(
        data,
        several(unlabelled),
        format=format,
        tag_column=tag_column,
        every=every,
        score_every=score_every,
        score_on=score_on,
        min_mentions=min_mentions,
        order=tuple(names(order) or sorted(names(types) or ())) or None,
    )
    corpus = source.read()
    for line in corpus.report.left_out():
        _log.warning("%s: %s.", corpus.name, line)
    stream = Division(first, per_step, sampling).stream(corpus, source, chosen.seed)
    if dry_run:
        return PlannedRun(stream, chosen)
    if not resume:  # a run that has started may no longer need it
        require_encoder(chosen.encoder)
    return run_stream(stream, chosen, out, resume=resume, progress=watcher(progress))[0]
