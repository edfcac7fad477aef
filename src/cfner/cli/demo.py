"""``cfner demo``: the main job end to end, on a generated corpus."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from cfner.cli import options as o
from cfner.cli.show import coloured, console, matrix_table, print_json, say

if TYPE_CHECKING:
    from cfner.benchmark.demo import DemoResult
    from cfner.corpus.sentence import Sentence
    from cfner.training.progress import Progress


def demo(
    out: Annotated[
        Path, o.Flag("--out", "-o", help="Folder for models, results.json and the picture.")
    ] = Path("runs/demo"),
    seed: Annotated[int, o.Flag(min=0, help="Seed of corpus and training.")] = 0,
    size: Annotated[int, o.Flag(min=1, max=1_000_000, help="Labelled sentences to generate.")] = 840,
    epochs: Annotated[int, o.Flag(min=1, help="Epochs per step.")] = 3,
    encoder: Annotated[str, o.Flag("--encoder", "-e", help="Encoder to start from.")] = "minilm",
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Learn five types in three steps, by fine-tuning and by the default method, and compare."""
    from cfner.benchmark.demo import run_demo

    screen = console()
    if not json:
        screen.print(
            "A tagger learns five entity types of clinical notes in three steps. The text of each step is "
            "labelled only with its own types, and earlier text is no longer available. First plain "
            "fine-tuning, then cfner's default method (own-other), which also gets unlabelled notes, like "
            "the text that your model sees every day."
        )
    result = run_demo(
        out,
        seed=seed,
        size=size,
        epochs=epochs,
        encoder=encoder,
        device=device,
        watch=lambda m: _watch(m, json),
    )
    if json:
        print_json({"runs": [run.to_json() for run in result.results.values()]})
        return
    _tell(result, out)


def _watch(method: str, quiet: bool) -> Progress:
    from cfner.training.bars import watcher
    from cfner.training.progress import Silent

    if quiet:
        return Silent()
    console().print(f"\n[bold]{method}[/bold]")
    return watcher(None)


def _tell(result: DemoResult, out: Path) -> None:
    from cfner.benchmark.demo import METHODS

    screen = console()
    for name, run in result.results.items():
        screen.print()
        screen.print(matrix_table(run.matrix, f"{name}: F1 of each type after each step"))
    screen.print("\nOne sentence, tagged by both after the last step:")
    screen.print("[dim]truth    [/dim] ", _truth(result.sentence))
    for name, prediction in result.predictions.items():
        screen.print(f"[dim]{name:9}[/dim] ", coloured(prediction))
    ends = ", ".join(f"{name} {run.matrix.last_micro:.1f}" for name, run in result.results.items())
    screen.print(f"\nAfter the last step, micro-F1 over all {len(result.stream.types)} types: {ends}.")
    say(f"Models, results.json and f1_by_step.svg are in {out}. Try:")
    program, model = _program(), f"{out}/{METHODS[-1]}"
    say(f"  {program} serve {model}", wrap=False)
    say(f'  {program} predict {model} "Dr. Lee saw the 54 year old in Boston on 3 May ."', wrap=False)


def _program() -> str:
    """How to call cfner in this shell: `make demo` installs it into an environment that is not active."""
    if which("cfner") is not None:
        return "cfner"
    script = Path(sys.argv[0])
    return os.path.relpath(script) if script.stem == "cfner" and script.is_file() else "python -m cfner"


def _truth(sentence: Sentence) -> Text:
    from cfner.network.prediction import Prediction, entity_of

    return coloured(Prediction(sentence, tuple(entity_of(sentence, span, 1.0) for span in sentence.spans)))
