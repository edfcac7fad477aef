"""``cfner``: the commands, and how errors are printed. Heavy imports happen inside the commands."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Annotated, NoReturn

import typer

from cfner.cli import (
    bench,
    calibrate,
    check,
    consolidate,
    data,
    demo,
    diff,
    evaluate,
    explain,
    export,
    history,
    learn,
    lists,
    predict,
    serve,
    train,
)
from cfner.cli.panels import WELCOME, arrange
from cfner.cli.show import show_log
from cfner.cli.spelling import Commands
from cfner.errors import CfnerError
from cfner.files.safe_text import visible

_INTERRUPTED = 130  # exit code after Ctrl+C
_KEPT = "Run the same command again to resume."
_GOING_ON = {
    **dict.fromkeys(("learn", "consolidate", "bench"), _KEPT),
    "train": "Run the same command with --resume to continue.",
}
_ESCAPED = "cfner.escaped"  # the handler for characters that the output's encoding lacks

app = typer.Typer(
    name="cfner",
    cls=Commands,
    help=WELCOME,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app)
app.add_typer(bench.app)
app.command()(demo.demo)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(check.check)
app.command()(learn.learn)
app.command()(consolidate.consolidate)
app.command()(calibrate.calibrate)
app.command()(diff.diff)
app.command()(history.history)
app.command()(history.rollback)
app.command()(history.rename)
app.command()(history.merge)
app.command()(history.forget)
app.command()(history.prune)
app.command()(export.export)
app.command()(serve.serve)
app.command()(explain.explain)
app.command()(lists.methods)
app.command()(lists.encoders)
arrange(app)


def _version(wanted: bool) -> None:
    if wanted:
        from cfner import __version__

        typer.echo(f"cfner {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    show_log()
    if debug:
        os.environ["CFNER_DEBUG"] = "1"


def main() -> None:
    """Entry point: a CfnerError is printed as one paragraph, with exit code 2."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _write_any_character()
    try:
        app()
    except CfnerError as error:
        _tell(str(error))
    except SystemExit as end:  # typer catches these two and exits silently
        if isinstance(end.__context__, BrokenPipeError):  # the reader of the output (head, less) closed it
            sys.exit(0)
        if end.code == _INTERRUPTED:
            command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            typer.echo(f"Stopped. {_GOING_ON.get(command, '')}".rstrip(), err=True)
        raise
    except OSError as error:  # a disk, a folder, a port: the system's message is the clearest
        if error.strerror is None:
            raise
        place = f"{error.filename}: " if error.filename else ""
        _tell(f"{place}{error.strerror}.")


def _write_any_character() -> None:
    """Outputs that are not UTF-8 get escapes such as \\u25b6 for other characters; also valid in JSON."""
    codecs.register_error(_ESCAPED, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # it may have been replaced
            stream.reconfigure(errors=_ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # JSON writes a character beyond \uffff as two
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def _tell(what: str) -> NoReturn:
    """Inside an except clause: the error in one paragraph, or all of it with --debug."""
    if os.environ.get("CFNER_DEBUG"):
        raise  # noqa: PLE0704 - called where an exception is being handled

    # the message may contain words and labels from files
    typer.secho(f"Error: {visible(what)}", fg=typer.colors.RED, err=True)
    sys.exit(2)
