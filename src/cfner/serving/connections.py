"""Close connections of clients that are too slow, and the longest idle ones if there are too many.

uvicorn has no settings for this. This code uses only the asyncio protocol interface (connection made and
lost, data received, writing paused and resumed). The application call shows whether a request is being
answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from cfner.serving.settings import ServeSettings


class _Connection:
    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.requests = 0  # being answered
        self.idle_since = self.loop.time()
        self.lost = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def cut_off_in(self, seconds: float, why: str) -> None:
        if why not in self._timers:
            self._timers[why] = self.loop.call_later(seconds, self.transport.abort)

    def keep(self, why: str) -> None:
        if (timer := self._timers.pop(why, None)) is not None:
            timer.cancel()

    def is_lost(self) -> None:
        self.lost.set()
        for why in list(self._timers):
            self.keep(why)


class Connections:
    """Wraps the application, and provides the protocol class to run it with."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app = app
        self.settings = settings
        self._open: dict[Any, _Connection] = {}  # by the client's address and port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = self._open.get(scope.get("client"))
        if connection is None:  # the server starts or stops
            await self.app(scope, receive, send)
            return

        async def send_if_open(message: Message) -> None:
            # an invalid request was answered with 400 and closed: there is nothing left to answer
            if not connection.transport.is_closing():
                try:
                    await send(message)
                except h11.LocalProtocolError:  # from a pipelined request, see below
                    connection.transport.close()

        connection.keep("request")
        connection.requests += 1
        try:
            await self.app(scope, receive, send_if_open)
        finally:
            connection.requests -= 1
            connection.idle_since = connection.loop.time()
            if connection.transport.is_closing():
                connection.cut_off_in(self.settings.stuck_seconds, "writing")
                await connection.lost.wait()  # until then uvicorn expects an answer

    def _add(self, transport: asyncio.Transport) -> _Connection:
        connection = _Connection(transport)
        self._open[_address(transport)] = connection
        connection.cut_off_in(self.settings.header_seconds, "request")
        if len(self._open) > self.settings.max_connections:
            idle = (each for each in self._open.values() if not each.requests)
            min(idle, key=lambda each: each.idle_since).transport.abort()
        return connection

    def protocol(self) -> type[H11Protocol]:
        connections, settings = self, self.settings

        class Watched(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                self._watched = connections._add(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                self._watched.is_lost()
                address = _address(self._watched.transport)
                if connections._open.get(address) is self._watched:
                    del connections._open[address]

            def data_received(self, data: bytes) -> None:
                try:
                    super().data_received(data)
                except (
                    h11.LocalProtocolError
                ):  # invalid data after an answer has started, so no 400 is possible
                    self._watched.transport.close()
                if not self._watched.requests:  # the start of a request, or the rest of a refused body
                    self._watched.cut_off_in(settings.header_seconds, "request")

            def pause_writing(self) -> None:
                super().pause_writing()
                self._watched.cut_off_in(settings.stuck_seconds, "writing")

            def resume_writing(self) -> None:
                self._watched.keep("writing")
                super().resume_writing()

        return Watched


def _address(transport: asyncio.Transport) -> tuple[str, int] | None:
    """The client's address as in ASGI."""
    peer = transport.get_extra_info("peername")
    return None if peer is None else (peer[0], peer[1])
