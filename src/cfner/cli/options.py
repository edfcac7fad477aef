"""Options that several commands have, with the same name and meaning in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]

# how data is read
Format = Annotated[str | None, typer.Option("--format", help="Format of the data; found out if left out.")]
TagColumn = Annotated[
    str | None, typer.Option(help="Column or field of the tags: a name, or a number from 0.")
]
Every = Annotated[int, typer.Option(min=1, help="Take each n-th sentence of the data, for a quick answer.")]
ScoreEvery = Annotated[
    int | None,
    typer.Option(min=1, help="The same for the sentences that steps are scored on. Default: as --every."),
]
MinMentions = Annotated[int, typer.Option(min=0, help="Drop types with fewer training mentions.")]

_device = typer.Option(
    "--device", help="What to compute on: auto (a graphics card if there is one), cpu, cuda, cuda:N or mps."
)
Device = Annotated[str, _device]
DeviceSetting = Annotated[str | None, _device]  # where settings come from files, too

# how a model is trained
BatchSize = Annotated[int | None, typer.Option(min=1, help="Sentences per batch and process.")]
EncoderRate = Annotated[float | None, typer.Option(min=0, help="Learning rate of the encoder.")]
HeadRate = Annotated[float | None, typer.Option(min=0, help="Learning rate of the head.")]
Preset = Annotated[str | None, typer.Option(help="'paper': the paper's settings.")]
Config = Annotated[Path | None, typer.Option(help="A .toml or .json file of settings.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any other setting or method parameter, as NAME=VALUE.")
]
Use = Annotated[
    list[Path] | None, typer.Option(help="A Python file with a method of your own; may be repeated.")
]
