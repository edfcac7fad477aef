"""Run the application with uvicorn, and shut it down gracefully."""

from __future__ import annotations

import logging
import math
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from cfner.errors import ConfigError
from cfner.files.safe_text import visible
from cfner.serving.app import create_app
from cfner.serving.connections import Connections
from cfner.serving.settings import ServeSettings


def serve(
    source: str | Path,
    settings: ServeSettings | None = None,
    *,
    ready: Callable[[str], None] | None = None,
    access_log: bool = False,
) -> None:
    """Serve a model folder or a Hugging Face checkpoint until SIGTERM or SIGINT.

    Requests accepted by then are still answered. ``ready`` is called with the address once it listens.
    """
    settings = settings or ServeSettings()
    with _listening(settings) as listening:
        config = _config(source, settings, access_log=access_log)
        server = _Server(config, lambda: ready and ready(settings.url(listening.getsockname()[1])))
        with _stopped_by_signals(server):
            server.run(sockets=[listening])


@contextmanager
def in_background(source: str | Path, settings: ServeSettings | None = None) -> Iterator[str]:
    """Serve from a thread of this process, for notebooks and tests: ``with in_background(model) as url:``.

    By default, any free port is used. On exit, accepted requests are still answered.
    """
    settings = settings or ServeSettings(port=0)
    with _listening(settings) as listening:
        started = threading.Event()
        server = _Server(_config(source, settings, access_log=False), started.set)
        thread = threading.Thread(target=server.run, args=([listening],), name="cfner-serve", daemon=True)
        thread.start()
        while not started.wait(0.1):
            if not thread.is_alive():
                raise ConfigError("The server did not start.", remedy="See its log.")
        try:
            yield settings.url(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


def _config(source: str | Path, settings: ServeSettings, *, access_log: bool) -> uvicorn.Config:
    watched = Connections(create_app(source, settings), settings)
    return uvicorn.Config(
        watched,
        http=watched.protocol(),
        ws="none",
        lifespan="on",
        log_level="info" if access_log else "warning",
        access_log=access_log,
        log_config=_LOGGING,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(settings.idle_seconds),
        timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds),
        backlog=2048,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """uvicorn shuts down gracefully on a signal, and then raises it again for the previous handler. This is
    that
    handler: a graceful stop gives exit code 0, and a signal before uvicorn handles signals is not lost."""

    def stop(*_: object) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _listening(settings: ServeSettings) -> Iterator[socket.socket]:
    """Bind the port before loading the model, so that a port in use is reported at once."""
    host = settings.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        if sys.platform != "win32":  # on Windows it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except UnicodeError as error:  # the name has a part that is empty or too long
        raise ConfigError(
            f"The address {settings.host} cannot be used: it is not a valid host name.",
            remedy="Give `host` an address or a name of this machine.",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"The address {settings.host}, port {settings.port}, cannot be used ({error.strerror}).",
            remedy="Choose another `port`, or stop the program that uses it.",
        ) from error
    with listening:
        yield listening


class VisibleFormatter(logging.Formatter):
    """Escapes control characters, because messages may contain untrusted labels or paths."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(visible, super().format(record).split("\n")))


_STDERR = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"()": VisibleFormatter, "fmt": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": dict.fromkeys(("uvicorn", "uvicorn.access", "cfner.serving"), _STDERR),
}
logging.getLogger("cfner.serving").addHandler(logging.NullHandler())
