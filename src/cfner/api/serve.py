"""``serve``: a model behind HTTP, with a page."""

from __future__ import annotations

from collections.abc import Callable

from cfner.api.arguments import PathLike
from cfner.errors import MissingExtraError


def serve(
    model: PathLike,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key: str | None = None,
    max_body: int = 1_048_576,
    max_texts: int = 256,
    max_text_length: int = 20_000,
    max_waiting: int = 128,
    max_wait: float = 0.5,
    batch_texts: int = 64,
    steps_kept: int = 2,
    reload_seconds: float = 1.0,
    shutdown_seconds: float = 30.0,
    threads: int | None = None,
    min_score: float | None = None,
    device: str = "auto",
    runtime: str | None = None,
    access_log: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a model over HTTP until SIGTERM or Ctrl+C, with a page at /.

    When the model folder's current step changes (``learn`` in place, ``rollback``), the server checks
    the new step and switches to it without losing a request.

    Args:
        model: A model folder ("M@3": its step 3), any Hugging Face token-classification checkpoint, or an
            exported ONNX folder.
        host: Address to listen on. One that other machines can reach needs an API key.
        port: Port to listen on; 0: any that is free.
        api_key: Clients must send this key.
        max_body: Bytes of one request (else 413).
        max_texts: Texts of one request (else 422).
        max_text_length: Characters of one text (else 422).
        max_waiting: Requests waiting for their answer (else 429).
        max_wait: Longest expected wait in seconds, or the request's own computing time if longer (else 429).
        batch_texts: Texts computed together.
        steps_kept: Steps kept in memory besides the current one, for the time slider.
        reload_seconds: How often to check whether the current step has changed.
        shutdown_seconds: How long accepted requests may take after SIGTERM.
        threads: CPU threads for computing; default: torch decides.
        min_score: Leave out mentions with a lower score. This replaces the limits that ``calibrate`` set.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        runtime: "torch" (the default), "torch-bf16", "onnx" or "onnx-int8". The last is the fastest on a
            processor; each step is then exported when it is loaded, which takes some seconds.
        access_log: Log every request (never its text).
        ready: Called with the address once it listens.
    """
    from cfner.serving.settings import ServeSettings

    settings = ServeSettings(
        host=host,
        port=port,
        api_key=api_key or None,
        max_body=max_body,
        max_texts=max_texts,
        max_text_length=max_text_length,
        max_waiting=max_waiting,
        max_wait_seconds=max_wait,
        batch_texts=batch_texts,
        steps_kept=steps_kept,
        reload_seconds=reload_seconds,
        shutdown_seconds=shutdown_seconds,
        device=device,
        runtime=runtime,
        min_score=min_score,
    )
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "serve", "Serving a model") from error
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    from cfner.interop.export import refuse_runtime
    from cfner.network.device import choose_device
    from cfner.serving.server import serve as run

    choose_device(device)  # report what is wrong before binding the port
    refuse_runtime(model, None, runtime)
    run(model, settings, ready=ready, access_log=access_log)
