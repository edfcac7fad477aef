"""The server under more than it can bear: ten times its capacity, crowds of slow clients, endless bodies,
malformed requests, reloads of damaged steps, SIGTERM in the middle. Counts: see counts.py."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cfner.files.atomic import write_text_atomic
from cfner.serving.pipeline import Pipeline
from cfner.store.model_folder import ModelFolder, StoredStep
from cfner.store.open import open_model
from counts import TIMED, tell, times
from malformed import malformed
from serving_models import TEXTS, add_step, make_model, spoil
from serving_process import Answer, Caller, Running, running, share

TYPES = ["person", "city", "animal"]
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def model(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tiny_encoder, tmp_path_factory.mktemp("tortured") / "model", TYPES)


@pytest.fixture(scope="module")
def real_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a real encoder: what it computes takes longer than receiving the request."""
    return make_model(Path("minilm"), tmp_path_factory.mktemp("real") / "model", TYPES[:1])


# -- ten times the capacity --------------------------------------------------------------------------------


@dataclass
class Load:
    answers: list[Answer] = field(default_factory=list)
    health: list[Answer] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)


async def alone(server: Running, asked: bytes, number: int) -> list[float]:
    """Seconds that a request takes on an idle server."""
    caller = Caller(server.address)
    answers = [await caller.predict(asked) for _ in range(number + 5)][5:]
    caller.close()
    assert {answer.status for answer in answers} == {200}
    return [answer.seconds for answer in answers]


async def at_a_rate(server: Running, asked: bytes, per_second: float, seconds: float) -> Load:
    """Requests at fixed moments, however long the answers take; health and memory are watched meanwhile."""
    load, free = Load(), [(time.perf_counter(), Caller(server.address)) for _ in range(32)]
    every, end = Caller(server.address), time.perf_counter() + seconds

    async def one() -> None:
        since, caller = free.pop() if free else (time.perf_counter(), Caller(server.address))
        if time.perf_counter() - since > 1:  # the server closes what is idle, as it should
            caller.close()
            caller = Caller(server.address)
        load.answers.append(await caller.predict(asked))
        free.append((time.perf_counter(), caller))

    async def watch() -> None:
        while time.perf_counter() < end:
            load.health.append(await every.get("/health"))
            load.megabytes.append(server.megabytes)
            await asyncio.sleep(0.2)

    watching, asking, due = asyncio.create_task(watch()), set(), time.perf_counter()
    while due < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asking.add(asyncio.create_task(one()))
        due += 1 / per_second
    await asyncio.gather(watching, *asking)
    for caller in (*(caller for _, caller in free), every):
        caller.close()
    return load


def test_at_ten_times_the_capacity_who_is_let_in_is_answered_soon(real_model: Path, tmp_path: Path) -> None:
    asked = json.dumps({"texts": [" ".join(TEXTS[:4])] * 8}).encode()
    with running(real_model, tmp_path / "log") as server:
        quiet = asyncio.run(alone(server, asked, times(200, quick=50, short=5)))
        per_second = 10 / share(quiet, 0.5)
        load = asyncio.run(at_a_rate(server, asked, per_second, times(120, quick=20, short=2)))
        assert server.stop() == 0
    # a burst is let through at first: of two minutes that is less than one in a hundred, of less it is not
    begun = load.answers[0].sent + times(0, quick=2, short=0)
    accepted = [answer.seconds for answer in load.answers if answer.status == 200 and answer.sent >= begun]
    refused = [answer.seconds for answer in load.answers if answer.status != 200]
    assert Counter(answer.status for answer in load.answers).keys() <= {200, 429}
    assert accepted
    assert refused
    assert all(int(a.headers["retry-after"]) >= 1 for a in load.answers if a.status == 429)
    assert {answer.status for answer in load.health} == {200}
    assert len({answer.body for answer in load.answers if answer.status == 200}) == 1
    assert "Traceback" not in (tmp_path / "log").read_text()
    ratio = share(accepted, 0.99) / share(quiet, 0.99)
    tell(
        f"{per_second:.0f} a second; alone p50 {share(quiet, 0.5):.3f} s, p99 {share(quiet, 0.99):.3f}"
        f" s; {len(accepted)} accepted, p50 {share(accepted, 0.5):.3f} s, p99 {share(accepted, 0.99):.3f} s, "
        f"{ratio:.2f} times; {len(refused)} refused, p99 {share(refused, 0.99):.3f} s; "
        f"health at most {max(a.seconds for a in load.health):.3f} s; "
        f"memory {load.megabytes[len(load.megabytes) // 4]:.0f} to {load.megabytes[-1]:.0f} MB"
    )
    assert load.megabytes[-1] < load.megabytes[len(load.megabytes) // 4] + 30
    if TIMED:
        assert ratio <= 2
        assert share(refused, 0.99) <= share(quiet, 0.99)
        assert max(answer.seconds for answer in load.health) < 1
        # it is no use to answer soon by answering few: at least half of what it can do alone
        assert len(accepted) >= 0.5 * times(120, quick=20, short=2) / share(quiet, 0.5)


# -- slow, endless and broken clients ----------------------------------------------------------------------


def receive_all(connection: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionError, TimeoutError):
        while block := connection.recv(65536):
            received += block
    return received


# a head, a body and a first line that go on for ever, whatever letters follow
_BEGUN = (b"GET /health HTTP/1.1\r\nX-Slow: ", HEAD + b'Content-Length: 100000\r\n\r\n{"te', b"")


def test_a_crowd_of_slow_clients_keeps_nobody_waiting(model: Path, tmp_path: Path) -> None:
    crowd_size, seconds = times(500, quick=500, short=60), times(30, quick=5, short=2)
    with running(model, tmp_path / "log", header_seconds=seconds, body_seconds=seconds) as server:
        before = server.megabytes
        crowd = [socket.create_connection(server.address, 10) for _ in range(crowd_size)]
        for index, each in enumerate(crowd):
            each.sendall(_BEGUN[index % 3])
        end, answered, due = time.perf_counter() + 0.7 * seconds, [], 0.0

        async def ask() -> None:
            nonlocal due
            caller = Caller(server.address)
            while time.perf_counter() < end:
                answered.append(await caller.predict(b'{"text": "ada"}'))
                answered.append(await caller.get("/health"))
                if time.perf_counter() < due:
                    continue
                due = time.perf_counter() + 0.2
                for each in crowd[::2]:  # a byte now and then keeps nobody in
                    with suppress(OSError):
                        each.send(b"a")
            caller.close()

        asyncio.run(ask())
        assert {answer.status for answer in answered} == {200}
        time.sleep(seconds)
        ends = Counter(receive_all(each)[9:12] for each in crowd)
        assert ends.keys() <= {b"", b"408"}  # every one of them was cut off
        after = server.megabytes
        assert after < before + 30
        assert server.stop() == 0
    tell(
        f"{crowd_size} slow sockets, ended with {dict(ends)}; "
        f"slowest of {len(answered)} answers meanwhile {max(a.seconds for a in answered):.3f} s; "
        f"memory {before:.0f} to {after:.0f} MB"
    )
    for each in crowd:
        each.close()


def test_endless_bodies_are_cut_off_and_not_kept(model: Path, tmp_path: Path) -> None:
    block, gigabyte = b"a" * 65536, 1_000_000_000

    def pour(address: tuple[str, int], chunked: bool) -> tuple[int, bytes]:
        """Bytes that could be sent, and the answer, if it could be read."""
        with socket.create_connection(address, 20) as connection:
            length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % gigabyte
            connection.sendall(HEAD + length + b"\r\n\r\n" + (b"" if chunked else b'{"text": "'))
            sent = 0
            with suppress(ConnectionError, TimeoutError):
                while sent < gigabyte:
                    sent += connection.send(b"10000\r\n" + block + b"\r\n" if chunked else block)
            return sent, receive_all(connection)

    number, poured = times(200, quick=20, short=4), []
    with running(model, tmp_path / "log") as server:
        before = server.megabytes
        for index in range(number):
            clients = [
                threading.Thread(target=lambda i=index: poured.append(pour(server.address, bool(i % 2))))
                for _ in range(5)
            ]
            for each in clients:
                each.start()
            assert asyncio.run(Caller(server.address).get("/health")).status == 200
            for each in clients:
                each.join()
        after = server.megabytes
        assert server.stop() == 0
    tell(
        f"{len(poured)} endless bodies, half of them 1 GB; at most {max(n for n, _ in poured) / 2**20:.1f} MB"
        f" taken; memory {before:.0f} to {after:.0f} MB"
    )
    assert {answer[9:12] for _, answer in poured} <= {b"413", b""}
    assert max(sent for sent, _ in poured) < 50_000_000  # what the kernel's buffers hold
    assert after < before + 80  # five megabytes of bodies at a time, at most


def test_malformed_requests_get_a_refusal(model: Path, tmp_path: Path) -> None:
    number, seen, megabytes = times(20_000, quick=3000, short=300), Counter[bytes](), []

    def send(request: bytes) -> tuple[bytes, bytes]:
        """The request, and the status of its answer; nothing if the connection was closed without one."""
        with socket.create_connection(server.address, 30) as connection:
            with suppress(ConnectionError):
                connection.sendall(request)
            return request, receive_all(connection)[9:12]

    # what is never complete is given up after a second
    limits = {"header_seconds": 1, "body_seconds": 1, "idle_seconds": 1}
    with running(model, tmp_path / "log", **limits) as server, ThreadPoolExecutor(50) as clients:
        for index, (request, status) in enumerate(clients.map(send, malformed(random.Random(0), number))):
            seen[status] += 1
            assert not status.startswith(b"5"), request
            if index % 50 == 0:
                megabytes.append(server.megabytes)
        assert asyncio.run(Caller(server.address).predict(b'{"text": "ada"}')).status == 200
        assert server.stop() == 0
    before, after = megabytes[len(megabytes) // 4], megabytes[-1]
    tell(f"{number} malformed requests: {dict(seen)}; memory {before:.0f} to {after:.0f} MB")
    assert after < before + 30
    assert seen[b"400"]
    assert seen[b"422"]
    assert "Traceback" not in (tmp_path / "log").read_text()


# -- steps that come and go, good and damaged --------------------------------------------------------------


def damaged_steps(encoder: Path, folder: Path, elsewhere: Path) -> list[StoredStep]:
    """Steps that cannot be served, each damaged in another way. Made elsewhere, not to be current."""
    shutil.copytree(folder, elsewhere)
    made = [add_step(encoder, elsewhere, [*TYPES, f"late {n}"], seed=20 + n) for n in range(5)]
    spoil(made[0])
    weights = made[1].folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    (made[2].folder / "seal.json").write_text("{")
    (made[3].folder / "config.json").unlink(missing_ok=True)
    (made[3].folder / "step.json").write_text("[]")
    (made[4].folder / "model.safetensors").unlink()
    for step in made:
        shutil.copytree(step.folder, folder / "steps" / step.name)
    return made


def expected(folder: Path, step: int, texts: list[str]) -> list[list[tuple[Any, ...]]]:
    found = Pipeline(open_model(folder, step)).tag(texts)
    return [[(e.type, e.start, e.end, e.score) for e in entities] for entities in found]


def told(answer: Answer) -> list[list[tuple[Any, ...]]]:
    keys = ("type", "start", "end", "score")
    return [[tuple(e[key] for key in keys) for e in r["entities"]] for r in answer.json()["results"]]


def test_reloads_under_load_never_mix_steps(model: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    bad = damaged_steps(tiny_encoder, folder, tmp_path / "elsewhere")
    texts, seen, megabytes = TEXTS[:4], set[tuple[int, str, str]](), []
    reloads, answered = times(200, quick=50, short=10), 0

    async def client(server: Running, stop: asyncio.Event) -> None:
        nonlocal answered
        caller, asked = Caller(server.address), json.dumps({"texts": texts}).encode()
        while not stop.is_set():
            answer = await caller.predict(asked)
            assert answer.status in {200, 429}, answer
            if answer.status == 200:
                answered += 1
                seen.add((answer.json()["step"], answer.json()["hash"], repr(told(answer))))

    async def drive(server: Running) -> None:
        stop, health = asyncio.Event(), Caller(server.address)
        clients = [asyncio.create_task(client(server, stop)) for _ in range(4)]
        for number in range(reloads):
            damaged = number % 5 == 4
            step = 1 + number % 3
            if damaged:  # after it was made current: now point_to itself would refuse
                broken = bad[number // 5 % len(bad)]
                write_text_atomic(folder / "CURRENT", f"{broken.name} {broken.hash}\n")
            else:
                ModelFolder(folder).point_to(step)
            end = time.perf_counter() + 30
            while True:
                facts = (await health.get("/health")).json()
                assert facts["status"] in {"ok", "degraded"}, facts
                if facts["status"] == "degraded" if damaged else facts["step"] == step:
                    break
                assert time.perf_counter() < end, (step, facts)
                assert not any(each.done() for each in clients)
                await asyncio.sleep(0.01)
            megabytes.append(server.megabytes)
        stop.set()
        await asyncio.gather(*clients)

    with running(folder, tmp_path / "log", reload_seconds=0.02) as server:
        asyncio.run(drive(server))
        assert server.stop() == 0
    tell(
        f"{reloads} reloads, one in five damaged; {answered} answers; "
        f"memory {megabytes[len(megabytes) // 4]:.0f} to {megabytes[-1]:.0f} MB"
    )
    assert {step for step, *_ in seen} == {1, 2, 3}
    for step, hash_, results in seen:
        assert hash_ == ModelFolder(folder).step(step).hash
        assert results == repr(expected(folder, step, texts))
    assert megabytes[-1] < megabytes[len(megabytes) // 4] + 60


# -- stopped in the middle ---------------------------------------------------------------------------------


def test_sigterm_under_load_answers_what_was_accepted(model: Path, tmp_path: Path) -> None:
    chance, counts = random.Random(0), Counter[str]()
    for number in range(times(50, quick=2, short=1)):
        log = tmp_path / f"log-{number}"
        with running(model, log) as server:
            _stop_under_load(server, 0.3 + chance.random() / 2, counts)
        assert "Traceback" not in log.read_text(), log.read_text()
    tell(f"stopped under load: {dict(counts)}")
    assert counts["answered"]


def _stop_under_load(server: Running, after: float, counts: Counter[str]) -> None:
    asked = json.dumps({"texts": TEXTS * 4}).encode()
    signalled: list[float] = []

    async def client() -> None:
        caller = Caller(server.address)
        while True:
            started = time.perf_counter()
            try:
                answer = await caller.predict(asked)
            except (OSError, asyncio.IncompleteReadError):
                # the server was told to stop: what comes then may find the door closed, what came before not
                assert signalled
                assert started > signalled[0] - 0.02
                counts["came too late"] += 1
                return
            assert answer.status in {200, 429, 503}, answer
            counts["answered" if answer.status == 200 else "refused"] += 1
            if answer.status == 503:
                return

    async def drive() -> int:
        clients = [asyncio.create_task(client()) for _ in range(6)]
        await asyncio.sleep(after)
        signalled.append(time.perf_counter())
        server.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*clients)
        return await asyncio.to_thread(server.process.wait, 30)

    assert asyncio.run(drive()) == 0


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    """Enough descriptors for the crowd."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
