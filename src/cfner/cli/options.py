"""Options that several commands have, with the same name and meaning in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.api.arguments import names

Flag = typer.Option

Json = Annotated[bool, Flag("--json", help="Print JSON and nothing else.")]
Html = Annotated[Path | None, Flag(help="Write a self-contained page to this file.")]
ReplaceHtml = Annotated[bool, Flag("--overwrite", help="Replace an existing --html file.")]

# which model, and where it runs
Model = Annotated[
    str,
    typer.Argument(
        help="A model folder (M@3: its step 3), a Hugging Face checkpoint, or an exported ONNX folder."
    ),
]
Checkpoint = Annotated[
    str,
    typer.Argument(
        help="A model folder (M@3: its step 3), or any Hugging Face token-classification checkpoint."
    ),
]
Step = Annotated[int | None, Flag(min=1, help="Which step of the model; default: the current one.")]
Windows = Annotated[int, Flag(min=1, help="Windows per batch, at most.")]
_device = Flag("--device", help="What to compute on: auto (a GPU if there is one), cpu, cuda, cuda:N or mps.")
Device = Annotated[str, _device]
MinScore = Annotated[
    float | None,
    Flag(
        min=0,
        max=1,
        help="Leave out mentions with a lower score. This replaces the limits that "
        "'cfner calibrate' set; 0 shows everything that the network finds.",
    ),
]
DeviceSetting = Annotated[str | None, _device]  # for commands that also read settings from files

# how data is read
Data = Annotated[str, typer.Argument(help="A file, a folder with train, dev and test files, or a dataset.")]
Format = Annotated[str | None, Flag("--format", help="Format of the data. Default: detected.")]
TagColumn = Annotated[str | None, Flag(help="Column or field of the tags: a name, or a number from 0.")]
Every = Annotated[int, Flag(min=1, help="Use only every n-th sentence of the data, for a quick result.")]
ScoreEvery = Annotated[
    int | None, Flag(min=1, help="The same for the sentences that steps are scored on. Default: as --every.")
]
MinMentions = Annotated[int, Flag(min=0, help="Drop types with fewer training mentions.")]
ScoreOn = Annotated[str, Flag(help="Split that steps are scored on: test, or dev when choosing settings.")]

Unlabelled = Annotated[
    list[str] | None,
    Flag(
        help="Unlabelled text that reminds the model of old types: a file, a corpus, or 'rest' for the "
        "training sentences that --every leaves out; repeatable."
    ),
]
UnlabelledRatio = Annotated[
    float | None, Flag(min=0, help="Unlabelled sentences per labelled one, in each step. Default: 1.")
]

# how it is judged
AcceptForgetting = Annotated[
    list[str] | None,
    Flag(
        help="Types that may be forgotten, comma-separated; may be repeated.",
        callback=lambda given: given and [name for one in given for name in names(one) or []],
    ),
]
Strict = Annotated[
    bool,
    Flag(
        "--strict",
        help="Also refuse the model if the guard does not show that every old type is kept or unchanged, "
        "including types that its sentences do not mention.",
    ),
]

# how it becomes a stream
First = Annotated[int, Flag(min=1, help="Types in the first step (FG).")]
PerStep = Annotated[int, Flag(min=1, help="Types in each later step (PG).")]
Order = Annotated[
    str | None,
    Flag(
        help="Types in the order of learning, comma-separated; types not named are left out. "
        "Default: all, alphabetical."
    ),
]

# what is learned
OldLabels = Annotated[str, Flag(help="Labels of types that the model knows already: error, ignore or use.")]
Types = Annotated[
    str | None, Flag(help="Learn these types only, comma-separated; default: all that are new.")
]

# how a model is trained
Encoder = Annotated[
    str | None, Flag("--encoder", "-e", help="Hub name, folder, or minilm. Default: bert-base-cased.")
]
Use = Annotated[list[Path] | None, Flag(help="A Python file with your own method; may be repeated.")]
Without = Annotated[
    list[str] | None, Flag(help="Leave out a part of the method (ablation); may be repeated.")
]
Epochs = Annotated[int | None, Flag(min=1, help="Epochs per step.")]
Patience = Annotated[int | None, Flag(min=1, help="Stop a step after this many epochs without improvement.")]
BatchSize = Annotated[int | None, Flag(min=1, help="Sentences per batch and process.")]
EncoderRate = Annotated[float | None, Flag(min=0, help="Learning rate of the encoder.")]
HeadRate = Annotated[float | None, Flag(min=0, help="Learning rate of the head.")]
Preset = Annotated[str | None, Flag(help="'paper': the paper's settings.")]
Config = Annotated[Path | None, Flag(help="A .toml or .json file of settings.")]
Set = Annotated[list[str] | None, Flag("--set", help="Any other setting or method parameter, as NAME=VALUE.")]
DryRun = Annotated[bool, Flag("--dry-run", help="Print what would be done, and stop.")]
