"""``cfner bench speed``: what the causal effect costs, and how fast this is beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cfner.cli.options import Json

if TYPE_CHECKING:
    from cfner.benchmark.speed import Ratio


def speed(
    data: Annotated[
        str | None, typer.Argument(help="A corpus; by default text that is generated for the purpose.")
    ] = None,
    encoder: Annotated[str, typer.Option("--encoder", "-e", help="Hub name, folder, or minilm.")] = "minilm",
    sentences: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Sentences to train and predict on.")
    ] = 400,
    batch_size: Annotated[int, typer.Option(min=1, help="Sentences per batch in training.")] = 8,
    repeat: Annotated[int, typer.Option(min=1, help="Turns; what is compared is measured in turns.")] = 5,
    only: Annotated[
        str, typer.Option(help="Parts, with commas: epochs, trainer, steps, prediction, search, memory.")
    ] = "",
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target is missed.")] = False,
    json: Json = False,
) -> None:
    """Measure what the causal effect costs, and how fast training and prediction are beside others.

    Every figure is a ratio, the median of several turns. Let nothing else run meanwhile; it takes about
    half an hour on two cores.
    """
    import tempfile
    from pathlib import Path

    from cfner.benchmark.demo import demo_corpus
    from cfner.benchmark.speed import speed_report
    from cfner.benchmark.speed_setup import Bench
    from cfner.cli.show import console, print_json
    from cfner.corpus.corpus import Corpus

    corpus = demo_corpus(sentences, 0) if data is None else Corpus.read(data)
    corpus = Corpus(corpus.name, corpus.train[:sentences])
    told = console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="cfner-bench-") as folder:
        bench = Bench.of(corpus, Path(folder), encoder=encoder, batch_size=batch_size, max_length=128)
        said = lambda what: told.print(f"measuring {what} ...")  # noqa: E731
        found = list(speed_report(bench, repeat, said, [part for part in only.split(",") if part]))
    if json:
        print_json({"machine": _machine(), "ratios": [ratio.to_json() for ratio in found]})
    else:
        _tell(found)
    missed = [ratio.name for ratio in found if ratio.missed]
    if check and missed:
        typer.echo(f"Missed: {'; '.join(missed)}", err=True)
        raise typer.Exit(1)


def _tell(found: list[Ratio]) -> None:
    from rich.table import Table

    from cfner.cli.show import console

    table = Table(title="Speed, as ratios: median of the turns, smallest and largest", title_justify="left")
    for name in ("what", "ratio", "from", "to", "target", ""):
        table.add_column(name, justify="left" if name in {"what", ""} else "right")
    for ratio in found:
        target = "" if ratio.target is None else f"{ratio.sense} {ratio.target:g}"
        verdict = "" if ratio.target is None else "missed" if ratio.missed else "met"
        figures = (f"{value:.2f}" for value in (ratio.value, ratio.low, ratio.high))
        name = f"{ratio.name} ({ratio.note})" if ratio.note else ratio.name
        table.add_row(name, *figures, target, verdict, style="red" if ratio.missed else "")
    console().print(table)


def _machine() -> dict[str, object]:
    import os
    import platform

    from cfner.training.environment import versions

    return {"cores": os.cpu_count(), "processor": platform.machine(), "versions": versions()}
