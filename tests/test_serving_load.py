"""The server as clients meet it: many at once, slow ones, broken ones, reloads under load, SIGTERM."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from schemathesis.specs.openapi.checks import ignored_auth
from uvicorn.protocols.http.h11_impl import H11Protocol

import warm
from cfner.errors import ConfigError
from cfner.serving.app import create_app
from cfner.serving.connections import Connections
from cfner.serving.pipeline import Pipeline
from cfner.serving.server import _stopped_by_signals, in_background, serve
from cfner.serving.settings import ServeSettings
from cfner.store.model_folder import ModelFolder
from serving_models import TEXTS, add_step, make_model, spoil

TYPES = ["person", "city", "animal"]
CLIENTS = 64


@pytest.fixture(scope="module")
def model(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tiny_encoder, tmp_path_factory.mktemp("loaded") / "model", TYPES)


def get(url: str, **rest: Any) -> httpx.Response:
    # without 'verify' each call would read all certificates of the system first
    return httpx.get(url, timeout=30, verify=False, **rest)


def post(url: str, **rest: Any) -> httpx.Response:
    return httpx.post(url, timeout=30, verify=False, **rest)


def all_at_once(number: int, work: Callable[[int], Any]) -> list[Any]:
    """What ``work`` gives to each of so many clients, who all start together."""
    start = threading.Barrier(number)

    def one(index: int) -> Any:
        start.wait()
        return work(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def test_64_clients_get_their_serial_answers(model: Path) -> None:
    asked = [
        {"texts": [TEXTS[(index + k) % len(TEXTS)] + f" no {index}" for k in range(1 + index % 3)]}
        for index in range(CLIENTS)
    ]
    with in_background(model, ServeSettings(port=0, max_wait_seconds=60)) as url:
        with httpx.Client(base_url=url, timeout=30, verify=False) as client:
            serial = [client.post("/predict", json=body).json() for body in asked]
        together = all_at_once(CLIENTS, lambda index: post(f"{url}predict", json=asked[index]))
        told = get(f"{url}metrics").text
    assert [answer.status_code for answer in together] == [200] * CLIENTS
    assert [answer.json() for answer in together] == serial
    batches = [line for line in told.splitlines() if line.startswith("cfner_batch_texts_count")]
    assert float(batches[0].split()[1]) < 2 * CLIENTS  # fewer batches than requests: some were together


def test_health_answers_and_the_queue_is_bounded_under_overload(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Pipeline.tag

    def slow(self: Pipeline, texts: Any) -> Any:
        time.sleep(0.1)
        return plain(self, texts)

    monkeypatch.setattr(Pipeline, "tag", slow)
    settings = ServeSettings(port=0, max_waiting=8)
    with in_background(model, settings) as url:

        def one(index: int) -> tuple[str, int, float]:
            started = time.perf_counter()
            if index % 8:
                status = post(f"{url}predict", json={"text": "a"}).status_code
                return "predict", status, time.perf_counter() - started
            return "health", get(f"{url}health").status_code, time.perf_counter() - started

        seen = all_at_once(40, one)
    assert {status for kind, status, _ in seen if kind == "health"} == {200}
    assert {status for kind, status, _ in seen if kind == "predict"} == {200, 429}
    assert max(seconds for *_, seconds in seen) < 10


def test_reloads_under_load_lose_nothing(model: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    settings = ServeSettings(port=0, reload_seconds=0.02, steps_kept=1, max_wait_seconds=60)
    stop = threading.Event()
    seen: list[tuple[int, str, str]] = []
    with in_background(folder, settings) as url:

        def client(_: int) -> None:
            with httpx.Client(base_url=url, timeout=30, verify=False) as session:
                while not stop.is_set():
                    answer = session.post("/predict", json={"texts": TEXTS[:3]})
                    assert answer.status_code == 200, answer.text
                    told = answer.json()
                    seen.append((told["step"], told["hash"], json.dumps(told["results"])))

        with ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(client, index) for index in range(4)]
            try:
                for round_ in range(5):
                    ModelFolder(folder).point_to(1 + round_ % 3)
                    _until(lambda: get(f"{url}health").json()["step"], 1 + round_ % 3)
                # made elsewhere: here it would be current, and served, before it is spoilt
                shutil.copytree(model, tmp_path / "elsewhere")
                bad = add_step(tiny_encoder, tmp_path / "elsewhere", [*TYPES, "late"], seed=7)
                spoil(bad)
                shutil.copytree(bad.folder, folder / "steps" / bad.name)
                ModelFolder(folder).point_to(4)
                _until(lambda: get(f"{url}health").json()["status"], "degraded")
                good = add_step(tiny_encoder, folder, [*TYPES, "later"], seed=8)
                _until(lambda: get(f"{url}health").json()["step"], int(good.name))
                assert get(f"{url}health").json()["status"] == "ok"
            finally:
                stop.set()
            for each in clients:
                each.result()
    assert {step for step, *_ in seen} >= {1, 2, 3}
    assert 4 not in {step for step, *_ in seen}
    # every answer is wholly that of the step that it names
    for step in {step for step, *_ in seen}:
        stored = ModelFolder(folder).step(step)
        expected = _results(folder, step)
        assert {(h, r) for s, h, r in seen if s == step} == {(stored.hash, expected)}


def _results(folder: Path, step: int) -> str:
    with in_background(folder) as url:
        answer = post(f"{url}predict", json={"texts": TEXTS[:3], "step": step})
    return json.dumps(answer.json()["results"])


def _until(look: Callable[[], Any], wanted: Any, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while (found := look()) != wanted:
        assert time.monotonic() < end, f"still {found}, not {wanted}"
        time.sleep(0.02)


# -- the description ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "a-key-that-is-long-enough"])
def test_the_api_is_as_described(model: Path, key: str | None) -> None:
    headers = {} if key is None else {"X-API-Key": key}
    settings = ServeSettings(port=0, api_key=key, max_text_length=200, max_texts=4)
    tried = 0
    with in_background(model, settings) as url:
        schema = schemathesis.openapi.from_url(f"{url}openapi.json", headers=headers)
        for found in schema.get_all_operations():
            operation = found.ok()
            wrong = [schemathesis.GenerationMode.NEGATIVE] if operation.method == "post" else []
            for mode in [schemathesis.GenerationMode.POSITIVE, *wrong]:

                @examples(
                    max_examples=25 if operation.method == "post" else 3,
                    deadline=None,
                    database=None,
                    derandomize=True,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(case=operation.as_strategy(generation_mode=mode))
                def holds(case: Any) -> None:
                    nonlocal tried
                    tried += 1
                    answer = case.call(headers=headers)
                    assert answer.status_code < 500, answer.content
                    # one right key is enough, whatever else is sent; test_serving.py tries the wrong ones
                    case.validate_response(answer, headers=headers, excluded_checks=[ignored_auth])

                holds()
        told = get(f"{url}metrics", headers=headers).text
    assert tried > 30
    assert 'status="5' not in told


# -- slow and broken clients -------------------------------------------------------------------------------


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def all_of(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection; a reset ends it too."""
    received = b""
    try:
        while block := connection.recv(65536):
            received += block
    except ConnectionError:
        pass
    return received


def one_answer(connection: socket.socket) -> bytes:
    """The next answer, which is JSON, and nothing behind it."""
    received = b""
    while not received.endswith(b"}"):
        block = connection.recv(65536)
        assert block, received
        received += block
    return received


HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_slow_and_endless_clients_are_cut_off(model: Path) -> None:
    settings = ServeSettings(
        port=0, header_seconds=0.5, body_seconds=0.5, idle_seconds=1, max_body=100_000, max_connections=30
    )
    with in_background(model, settings) as url:
        silent, half_head, half_body = (connect(url) for _ in range(3))
        half_head.sendall(b"GET /health HT")
        half_body.sendall(HEAD + b'Content-Length: 100\r\n\r\n{"te')
        assert all_of(silent) == b""
        assert all_of(half_head) == b""
        assert b" 408 " in all_of(half_body).split(b"\r\n")[0]
        # a head that follows an answer is awaited no longer than the first one
        again = connect(url)
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.2)
        again.sendall(b"GET /hea")
        assert all_of(again).count(b"HTTP/1.1 200") == 1
        endless = connect(url)
        endless.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 50_000_000:
                sent += endless.send(b"10000\r\n" + b"a" * 65536 + b"\r\n")
        except (ConnectionError, TimeoutError):
            pass
        assert sent < 20_000_000  # buffers of the kernel take a few
        declared = connect(url)
        declared.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n")
        assert b" 413 " in all_of(declared).split(b"\r\n")[0]
        crowd = [connect(url) for _ in range(60)]
        assert get(f"{url}health").status_code == 200
        for each in (*crowd, silent, half_head, half_body, again, endless, declared):
            each.close()


def test_a_client_that_does_not_read_is_cut_off(model: Path) -> None:
    with in_background(model, ServeSettings(port=0, stuck_seconds=0.5, idle_seconds=60)) as url:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect((urlsplit(url).hostname, urlsplit(url).port))
            deaf.settimeout(0.2)
            end = time.monotonic() + 20
            with pytest.raises(ConnectionError):
                while time.monotonic() < end:
                    with suppress(TimeoutError):
                        deaf.sendall(b"GET /static/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        assert get(f"{url}health").status_code == 200


def test_who_waits_for_an_answer_or_has_one_is_not_cut_off(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Pipeline.tag

    def slow(self: Pipeline, texts: Any) -> Any:
        time.sleep(1.0 if texts == ["slow"] else 0)
        return plain(self, texts)

    monkeypatch.setattr(Pipeline, "tag", slow)
    with in_background(model, ServeSettings(port=0, header_seconds=0.3)) as url, connect(url) as connection:
        body = b'{"text": "slow"}'
        for _ in range(2):
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert b" 200 " in one_answer(connection)
            time.sleep(0.6)  # idle is not slow


def test_of_too_many_connections_the_one_idle_longest_is_closed(model: Path) -> None:
    with in_background(model, ServeSettings(port=0, max_connections=3)) as url:
        used, *idle = (connect(url) for _ in range(3))
        used.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in one_answer(used)
        with connect(url) as newest:
            assert all_of(idle[0]) == b""
            for each in (used, idle[1], newest):
                each.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b" 200 " in one_answer(each)
        for each in (used, *idle):
            each.close()


def test_uvicorn_still_has_what_is_built_on(model: Path) -> None:
    """Of its protocol only what asyncio promises; a release that changes more fails here, by name."""
    watched = Connections(create_app(model), ServeSettings()).protocol()
    ours = {name for name in vars(watched) if not name.startswith("__")}
    assert ours == {
        "connection_made",
        "connection_lost",
        "data_received",
        "pause_writing",
        "resume_writing",
    }
    assert ours <= set(dir(asyncio.Protocol)) & set(vars(H11Protocol))
    assert uvicorn.Config("app:app", http=watched).http is watched
    assert list(inspect.signature(uvicorn.Server.startup).parameters) == ["self", "sockets"]
    assert inspect.iscoroutinefunction(uvicorn.Server.startup)


def test_garbage_gets_400_or_nothing(model: Path) -> None:
    with in_background(model) as url:
        for garbage in (
            b"\x00\xff\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /%00%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            b"GET /static/%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            b"GET /static/" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n",
            b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        ):
            with connect(url) as connection:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                first = all_of(connection).split(b"\r\n")[0]
                assert first == b"" or first.split()[1] in {b"400", b"404", b"421"}, (garbage[:60], first)
        assert get(f"{url}health").status_code == 200


def test_a_body_that_turns_into_nonsense_gets_400_and_leaves_no_traceback(
    model: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with in_background(model) as url, connect(url) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        time.sleep(0.3)  # the request is being read
        connection.sendall(b"ZZZ\r\n")
        assert b" 400 " in all_of(connection).split(b"\r\n")[0]
        _until(lambda: get(f"{url}health").json()["waiting"], 0)
        assert 'status="5' not in get(f"{url}metrics").text
    said = capfd.readouterr().err
    assert "Invalid HTTP request" in said
    assert "Traceback" not in said
    assert not [record for record in caplog.records if record.exc_info]  # asyncio's are not printed here


def test_nonsense_after_a_head_request_gets_400_without_a_body(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with in_background(model) as url, connect(url) as connection:
        connection.sendall(
            b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n"
        )
        head, _, body = all_of(connection).partition(b"\r\n\r\n")
    assert b" 400 " in head.split(b"\r\n")[0]
    assert body == b""
    assert not [record for record in caplog.records if record.exc_info]


def test_work_for_a_client_that_left_is_dropped(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, may_go_on = Pipeline.tag, threading.Event()
    tagged: list[str] = []

    def slow(self: Pipeline, texts: Any) -> Any:
        tagged.extend(texts)
        assert texts != ["first"] or may_go_on.wait(60)
        return plain(self, texts)

    monkeypatch.setattr(Pipeline, "tag", slow)
    with in_background(model, ServeSettings(port=0, batch_texts=1, max_wait_seconds=60)) as url:
        connections = []
        for waiting, text in enumerate(["first", "second", "third"]):
            _until(lambda: get(f"{url}health").json()["waiting"], waiting)
            body = json.dumps({"text": text}).encode()
            connections.append(connect(url))
            connections[-1].sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        first, second, third = connections
        _until(lambda: get(f"{url}health").json()["waiting"], 3)
        second.close()
        _until(lambda: get(f"{url}health").json()["waiting"], 2)
        may_go_on.set()
        assert b" 200 " in first.recv(65536)
        assert b" 200 " in third.recv(65536)  # whose turn is after that of the second
        first.close()
        third.close()
    assert [text for text in tagged if text in {"first", "second", "third"}] == ["first", "third"]


# -- as a user starts and stops it -------------------------------------------------------------------------

COMMAND = "import typer; from cfner.cli.serve import serve; typer.run(serve)"


def test_sigterm_finishes_what_was_accepted(model: Path) -> None:
    words = [warm.python(), "-c", COMMAND, str(model), "--port", "0", "--threads", "1", "--max-wait", "60"]
    environment = {k: v for k, v in os.environ.items() if k != "CFNER_API_KEY"}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "Serving" in line, line + process.stderr.read()
        url = next(word for word in line.split() if word.startswith("http"))
        body = {"texts": [text * 3 for text in TEXTS] * 8}

        def one(index: int) -> int:
            if index == 0:  # once all the others have been accepted
                _until(lambda: get(f"{url}health").json()["waiting"] >= 4, True)
                process.send_signal(signal.SIGTERM)
                return 200
            return post(f"{url}predict", json=body).status_code

        assert all_at_once(5, one) == [200] * 5
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def test_a_signal_before_uvicorn_listens_is_heard_and_other_threads_do_not_handle_signals() -> None:
    server = uvicorn.Server(uvicorn.Config("app:app"))

    def elsewhere() -> bool:
        with _stopped_by_signals(server):
            return server.should_exit

    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(elsewhere).result()
    before = signal.getsignal(signal.SIGTERM)
    with _stopped_by_signals(server):
        signal.raise_signal(signal.SIGTERM)
    assert server.should_exit
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_port_in_use_is_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot be used"):
            serve(tmp_path, ServeSettings(port=taken.getsockname()[1]))


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_a_name_that_no_machine_can_have_is_told(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError, match="not a valid host name"):
        serve(tmp_path, ServeSettings(host=host, api_key="a-key-that-is-long-enough"))
