"""``cfner bench add-method``: a file to begin a method of one's own with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.cli import options as o
from cfner.cli.show import say
from cfner.errors import ConfigError


def add_method(
    name: Annotated[str, typer.Argument(help="The new method's name, such as my-method.")],
    out: Annotated[Path | None, o.Flag("--out", "-o", help="The file. Default: NAME.py here.")] = None,
) -> None:
    """Write a Python file with a whole method in it, to be changed; it is used with --use, without a fork."""
    from cfner.benchmark.method_template import method_file
    from cfner.corpus.writers import whole_file

    file = out or Path(f"{name.replace('-', '_').replace('+', '_')}.py")
    text = method_file(name, file)
    if file.exists():
        raise ConfigError("There is such a file.", where=str(file), remedy="Choose another with --out.")
    with whole_file(file, overwrite=False) as written:
        written.write(text.encode())
    say(
        f"{file} holds the method '{name}'. Compare it:\n"
        f"  cfner bench run --data DATA --use {file} --methods {name},cfner,extendner --out RUNS\n"
        "  cfner bench report RUNS",
        wrap=False,
    )
