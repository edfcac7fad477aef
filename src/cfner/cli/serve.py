"""``cfner serve``: a model behind HTTP, with a page."""

from __future__ import annotations

from typing import Annotated

import typer

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.files.safe_text import visible

_DAY = 86_400  # seconds


def serve(
    model: o.Model,
    host: Annotated[
        str, o.Flag(help="Address to listen on. One that other machines can reach needs an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, o.Flag(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = 8000,
    api_key: Annotated[
        str | None,
        o.Flag(
            envvar="CFNER_API_KEY",
            help="Clients must send this key. Better set it as environment variable: other users of "
            "the machine can see options.",
        ),
    ] = None,
    max_body: Annotated[int, o.Flag(min=1, help="Bytes of one request (else 413).")] = 1_048_576,
    max_texts: Annotated[int, o.Flag(min=1, help="Texts of one request (else 422).")] = 256,
    max_text_length: Annotated[int, o.Flag(min=1, help="Characters of one text (else 422).")] = 20_000,
    max_waiting: Annotated[int, o.Flag(min=1, help="Requests waiting for their answer (else 429).")] = 128,
    max_wait: Annotated[
        float,
        o.Flag(
            "--max-wait",
            min=0,
            max=_DAY,
            help="Longest expected wait in seconds, or the request's own time if longer (else 429).",
        ),
    ] = 0.5,
    batch_texts: Annotated[int, o.Flag(min=1, help="Texts computed together.")] = 64,
    steps_kept: Annotated[
        int, o.Flag(min=0, help="Steps kept in memory besides the current one, for the time slider.")
    ] = 2,
    reload_seconds: Annotated[
        float, o.Flag(min=0, max=_DAY, help="How often to check whether the current step has changed.")
    ] = 1.0,
    shutdown_seconds: Annotated[
        float, o.Flag(min=0, max=_DAY, help="How long accepted requests may take after SIGTERM.")
    ] = 30.0,
    threads: Annotated[
        int | None,
        o.Flag(min=1, max=1024, help="CPU threads for computing; default: torch decides."),
    ] = None,
    min_score: o.MinScore = None,
    device: o.Device = "auto",
    runtime: Annotated[
        str | None,
        o.Flag(
            help="torch, torch-bf16, onnx or onnx-int8 (the fastest on a processor). With onnx, each step is "
            "exported when it is loaded, which takes some seconds. Default: torch."
        ),
    ] = None,
    access_log: Annotated[bool, o.Flag(help="Log every request (never its text).")] = False,
) -> None:
    """Serve a model: a page at /, POST /predict, GET /model, /health, /metrics and /openapi.json.

    When the model folder's current step changes ('cfner learn --in-place', 'cfner rollback'), the server
    checks the new step and switches to it without losing a request.
    """
    arguments = call_of(locals())
    from cfner.api.serve import serve as run
    from cfner.network.device import choose_device

    def ready(url: str) -> None:
        on = choose_device(device)
        typer.echo(visible(f"Serving {model} at {url} on {on}  (Ctrl+C stops)"), err=True)

    run(**arguments, ready=ready)
