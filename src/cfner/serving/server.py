"""Run the application: uvicorn, with a protocol that does not wait for ever on slow clients."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cfner.errors import ConfigError
from cfner.files.safe_text import visible
from cfner.serving.app import create_app
from cfner.serving.settings import ServeSettings


def serve(
    source: str | Path,
    settings: ServeSettings | None = None,
    *,
    ready: Callable[[str], None] | None = None,
    access_log: bool = False,
) -> None:
    """Serve a model folder or a Hugging Face checkpoint until SIGTERM or SIGINT.

    What was accepted by then is still answered. ``ready`` is called with the address once it listens.
    """
    settings = settings or ServeSettings()
    with _listening(settings) as listening:
        config = _config(source, settings, access_log=access_log)
        _Server(config, lambda: ready and ready(_address(listening, settings))).run(sockets=[listening])


@contextmanager
def in_background(source: str | Path, settings: ServeSettings | None = None) -> Iterator[str]:
    """Serve from a thread of this process, for notebooks and tests: ``with in_background(model) as url:``.

    The default port is any that is free. On leaving, accepted requests are still answered.
    """
    settings = settings or ServeSettings(port=0)
    with _listening(settings) as listening:
        started = threading.Event()
        server = _Server(_config(source, settings, access_log=False), started.set)
        thread = threading.Thread(target=server.run, args=([listening],), name="cfner-serve", daemon=True)
        thread.start()
        while not started.wait(0.1):
            if not thread.is_alive():
                raise ConfigError("The server did not start.", remedy="Its log says why.")
        try:
            yield _address(listening, settings)
        finally:
            server.should_exit = True
            thread.join()


def _config(source: str | Path, settings: ServeSettings, *, access_log: bool) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(source, settings),
        http=patient_only(settings),
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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish in peace on the first signal, at once on a second Ctrl+C.

        Unlike uvicorn's, the signal is not raised again afterwards: an orderly stop is exit code 0.
        """
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()


@contextmanager
def _listening(settings: ServeSettings) -> Iterator[socket.socket]:
    """Take the port before the model is loaded: a port in use is told at once."""
    host = settings.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        if sys.platform != "win32":  # there it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except UnicodeError as error:  # of a name with a part that is empty or too long
        raise ConfigError(
            f"The address {settings.host} cannot be used: no machine can have that name.",
            remedy="Give --host an address or a name of this machine.",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"The address {settings.host}, port {settings.port}, cannot be used ({error.strerror}).",
            remedy="Choose another --port, or stop the program that has it.",
        ) from error
    with listening:
        yield listening


def _address(listening: socket.socket, settings: ServeSettings) -> str:
    port = listening.getsockname()[1]
    return settings.url.removesuffix(f":{settings.port}/") + f":{port}/"


def patient_only(settings: ServeSettings) -> type[H11Protocol]:
    """A protocol class whose clients have ``header_seconds`` to send a request's head and ``stuck_seconds``
    to read on, and of which at most ``max_connections`` are open: then the one idle longest is closed."""
    idle: dict[H11Protocol, None] = {}  # connections that owe a request, the oldest first

    class Patient(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._owes_request()
            if len(self.connections) > settings.max_connections:
                next(iter(idle)).transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._has_request()
            self._unstuck()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                # the body is nonsense: what the application still says of this request goes nowhere
                self.cycle.disconnected = True
                self.cycle.message_event.set()
                if self.scope["method"] == "HEAD":
                    msg = ""  # whose answers have no body; h11 refuses to send one
            if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                super().send_400_response(msg)
            else:  # an answer has begun, and cannot become another one
                self.transport.close()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unstuck()
            self._stuck = self.loop.call_later(settings.stuck_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._unstuck()
            super().resume_writing()

        def _look(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._has_request()
            elif self.conn.trailing_data[0] or self.conn.their_state is h11.SEND_BODY:
                self._owes_request()  # a head that has begun, or the rest of a body that was refused
            elif self.cycle is not None:
                self._has_request()  # idle between requests: uvicorn's own timeout closes it
                idle[self] = None

        def _owes_request(self) -> None:
            idle.setdefault(self)
            if self._deadline is None:
                self._deadline = self.loop.call_later(settings.header_seconds, self.transport.abort)

        def _has_request(self) -> None:
            idle.pop(self, None)
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _unstuck(self) -> None:
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

    return Patient


class VisibleFormatter(logging.Formatter):
    """A log is read in a terminal, and a message may name labels of a model folder or a client's path."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(visible, super().format(record).split("\n")))


_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"()": VisibleFormatter, "fmt": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn.access": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "cfner.serving": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}
logging.getLogger("cfner.serving").addHandler(logging.NullHandler())
