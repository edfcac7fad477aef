"""Serving, route by route: every status, keys, limits, reloading, and that company changes no answer."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from cfner.corpus.tokenise import sentence_from_characters
from cfner.errors import CfnerError, ConfigError, ModelError
from cfner.network.prediction import tag
from cfner.serving import middleware, pipeline
from cfner.serving.app import Service, create_app
from cfner.serving.pipeline import DIGITS, NOISE, Pipeline
from cfner.serving.settings import ServeSettings, is_loopback
from cfner.store.model_folder import ModelFolder
from cfner.store.open import open_model
from serving_models import TEXTS, add_step, make_model, spoil

KEY = "a-key-that-is-long-enough"
TYPES = ["person", "city", "<b>&\"'", "__proto__"]


@pytest.fixture(scope="module")
def model(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four steps, the second without scores. Not to be changed."""
    return make_model(tiny_encoder, tmp_path_factory.mktemp("served") / "model", TYPES, unscored=2)


def client_of(source: Path, **settings: Any) -> TestClient:
    return TestClient(
        create_app(source, ServeSettings(**settings)), "http://localhost", raise_server_exceptions=False
    )


@pytest.fixture(scope="module")
def client(model: Path) -> Iterator[TestClient]:
    limits = {"max_text_length": 1000, "max_texts": 20, "max_body": 30_000}
    with client_of(model, **limits) as served:
        yield served


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


# -- the pipeline: an answer does not depend on its company ------------------------------------------------


def test_answers_are_those_of_the_library(model: Path) -> None:
    loaded = open_model(model)
    served = Pipeline(loaded).tag(TEXTS)
    for text, found in zip(TEXTS, served, strict=True):
        expected = tag(loaded, [sentence_from_characters(text, [])[0]], batch_size=1)[0].entities
        assert [(e.type, e.start, e.end, e.first, e.last, e.text) for e in found] == [
            (e.type, e.start, e.end, e.first, e.last, e.text) for e in expected
        ]
        assert [e.score for e in found] == pytest.approx([e.score for e in expected], abs=0.6 * 10**-DIGITS)


@given(st.lists(st.sampled_from(TEXTS) | st.text(max_size=60), min_size=1, max_size=20), st.randoms())
@examples(max_examples=12)
def test_company_changes_no_answer(model: Path, texts: list[str], chance: random.Random) -> None:
    found = dict(zip(texts, _pipeline(model).tag(texts), strict=True))
    chance.shuffle(texts)
    assert dict(zip(texts, _pipeline(model).tag(texts), strict=True)) == found
    assert all(_pipeline(model).tag([text]) == [found[text]] for text in texts)


def test_noise_of_batches_never_shows(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches disturbed by as much noise as is allowed for still give the answers of texts alone."""
    tagger = Pipeline(open_model(model))
    texts = [f"{a} {b} went" for a, b in itertools.product(TEXTS[0].split() + TEXTS[2].split(), repeat=2)]
    alone = [tagger.tag([text])[0] for text in texts]
    drawn = np.random.default_rng(0)
    plain = pipeline._Words.take

    def noisy(words: Any, windows: Any, refs: Any, logits: torch.Tensor) -> None:
        if len(windows) > 1:
            # a probability p moves by at most p (1 - p) <= 1/4 of what its logit moves against the others
            noise = torch.from_numpy(drawn.uniform(-NOISE, NOISE, logits.shape)).float()
            logits = logits + noise
        plain(words, windows, refs, logits)

    monkeypatch.setattr(pipeline._Words, "take", noisy)
    assert tagger.tag(texts) == alone


def test_a_sentence_whose_labels_are_chosen_together_is_computed_alone(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[pipeline._Words] = []
    plain = pipeline._Words.__init__

    def kept(words: pipeline._Words, *given: Any) -> None:
        plain(words, *given)
        made.append(words)

    monkeypatch.setattr(pipeline._Words, "__init__", kept)
    tagger = Pipeline(open_model(model))
    texts = [f"{a} {b} went" for a, b in itertools.product(TEXTS[0].split() + TEXTS[2].split(), repeat=2)]
    tagger.tag(texts)
    (words,) = made
    bounds = words.text.sentence_bounds
    broken = tagger._decoder.broken_alone(words.logits, np.diff(bounds).tolist())
    assert 0 < len(broken) < len(texts)
    of_broken = np.isin(words.sentence_of, broken)
    assert words.alone[words.window_of[of_broken]].all() and not words.alone.all()


_pipelines: dict[Path, Pipeline] = {}


def _pipeline(model: Path) -> Pipeline:
    return _pipelines.setdefault(model, Pipeline(open_model(model)))


def test_scores_that_are_no_numbers_are_refused(model: Path) -> None:
    broken = Pipeline(open_model(model))
    broken.model.network.head.weight.data[0, 0] = float("nan")
    with pytest.raises(ModelError, match="not numbers"):
        broken.tag(["a text"])


# -- routes and statuses -----------------------------------------------------------------------------------


def test_one_text_and_many(client: TestClient) -> None:
    many = client.post("/predict", json={"texts": TEXTS})
    assert many.status_code == 200
    answer = many.json()
    assert answer["step"] == 4
    assert len(answer["results"]) == len(TEXTS)
    for text, result in zip(TEXTS, answer["results"], strict=True):
        assert client.post("/predict", json={"text": text}).json()["results"] == [result]
        for entity in result["entities"]:
            assert text[entity["start"] : entity["end"]] == entity["text"]
            assert entity["type"] in TYPES
    assert client.post("/predict", json={"texts": []}).json()["results"] == []


def test_scores_can_be_left_out(client: TestClient) -> None:
    with_scores = client.post("/predict", json={"text": TEXTS[0]}).json()
    without = client.post("/predict", json={"text": TEXTS[0], "scores": False}).json()
    assert with_scores["results"][0]["entities"]
    for entity in with_scores["results"][0]["entities"]:
        assert entity.pop("score") <= 1
    assert without == with_scores


def test_every_step_can_be_asked(client: TestClient, model: Path) -> None:
    for number in (1, 2, 3, 4, 2, 1):
        answer = client.post("/predict", json={"text": TEXTS[0], "step": number}).json()
        expected = Pipeline(open_model(model, number)).tag([TEXTS[0]])[0]
        assert answer["step"] == number
        assert answer["hash"] == ModelFolder(model).step(number).hash
        assert [(e["type"], e["score"]) for e in answer["results"][0]["entities"]] == [
            (e.type, e.score) for e in expected
        ]
    assert len(service_of(client).steps._others) <= 2


def test_the_model_is_described(client: TestClient) -> None:
    facts = client.get("/model").json()
    assert facts["current"] == 4
    assert facts["types"] == TYPES
    assert facts["has_steps"] is True
    assert [step["step"] for step in facts["steps"]] == [1, 2, 3, 4]
    (series,) = facts["series"]
    assert sorted(series["steps"]) == ["1", "3", "4"] and series["sentences"] == 300
    assert series["steps"]["4"]["per_type"]["__proto__"]["f1"] == pytest.approx(90)
    assert facts["steps"][2]["learned"] == ["<b>&\"'"]
    assert facts["steps"][0]["kind"] == "learn"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"\xff\xfe", 422),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"text": 3}', 422),
        (b'{"text": "a", "texts": ["a"]}', 422),
        (b'{"text": "a", "more": 1}', 422),
        (b'{"texts": "a"}', 422),
        (b'{"texts": ["a", null]}', 422),
        (b'{"text": "\\ud800"}', 422),
        (b'{"text": "a", "step": 0}', 422),
        (b'{"text": "a", "step": 1e400}', 422),
        (b'{"text": "a", "step": "1"}', 422),
        (b'{"text": "a", "step": true}', 422),
        (b'{"text": "a", "scores": 1}', 422),
        (b'{"text": "' + b"a" * 1001 + b'"}', 422),
        (json.dumps({"texts": ["a"] * 21}).encode(), 422),
        (b"[" * 20_000, 422),
        (b'{"text": "a", "step": 5}', 404),
        (b'{"text": "' + b"a" * 30_000 + b'"}', 413),
        (b'{"text": "a\\u0000\\u202e\\u001b[31m"}', 200),
        (b'{"text": "' + "é".encode() * 1000 + b'"}', 200),
    ],
)
def test_bodies_and_their_statuses(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"txt": "a"}, "txt: there is no such field: give 'text' or 'texts' (and, if wanted, "),
        ({"text": "a", "more": 1}, "more: there is no such field: give 'text' or 'texts' (and, if wanted, "),
        ({}, "give 'text' or 'texts'."),
        ({"text": "a", "texts": ["a"]}, "give 'text' or 'texts', not both."),
    ],
)
def test_a_wrong_field_is_answered_with_the_right_ones(client: TestClient, body: Any, told: str) -> None:
    assert client.post("/predict", json=body).json()["detail"].startswith(told)


def test_a_body_of_unknown_length_is_read_up_to_the_limit(client: TestClient) -> None:
    asked = 0

    def chunks() -> Iterator[bytes]:
        nonlocal asked
        for _ in range(1000):
            asked += 1
            yield b"a" * 10_000

    reader = service_of(client).bodies
    answer = client.post("/predict", content=chunks(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert reader.held == 0


def test_what_is_not_json_is_refused(client: TestClient) -> None:
    for headers in ({"Content-Type": "text/plain"}, {}, {"Content-Type": "multipart/form-data"}):
        assert client.post("/predict", content=b'{"text": "a"}', headers=headers).status_code == 415
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/predict", content=b'{"text": "a"}', headers=packed).status_code == 415


def test_unknown_routes_and_methods(client: TestClient) -> None:
    assert client.get("/nothing").status_code == 404
    assert client.get("/predict").status_code == 405
    assert client.post("/model").status_code == 405
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
    assert client.get("/redoc").status_code == 404
    assert client.get("/static/look/../page.py").status_code == 404


def test_the_page_is_strict_and_whole(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for part in ("<style", "style=", "onclick", "http://", "https://", "<script>"):
        assert part not in page.text
    for file in Path(middleware.__file__).parent.joinpath("static").glob("*.js"):
        assert client.get(f"/static/{file.name}").headers["content-type"].startswith("text/javascript")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http:"):
            assert forbidden not in file.read_text()


def test_health_and_metrics(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "ok"
    client.get("/a-path-of-the-client's-choice")
    told = client.get("/metrics").text
    assert 'cfner_requests_total{method="GET",route="/health",status="200"}' in told
    assert "choice" not in told
    assert "cfner_current_step 4" in told
    for line in told.splitlines():
        assert line.startswith("# ") or len(line.rsplit(" ", 1)) == 2


def test_every_metric_has_its_name_and_every_server_counts_for_itself(model: Path) -> None:
    with client_of(model) as one, client_of(model) as other:
        one.post("/predict", json={"text": "a"})
        told, untouched = one.get("/metrics"), other.get("/metrics")
    assert told.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    kinds = dict(line.split()[2:] for line in told.text.splitlines() if line.startswith("# TYPE"))
    assert {name: kind for name, kind in kinds.items() if not name.endswith("_created")} == {
        "cfner_requests_total": "counter",
        "cfner_texts_total": "counter",
        "cfner_entities_total": "counter",
        "cfner_failed_batches_total": "counter",
        "cfner_reloads_total": "counter",
        "cfner_predict_seconds": "histogram",
        "cfner_batch_texts": "histogram",
        "cfner_waiting_requests": "gauge",
        "cfner_waiting_characters": "gauge",
        "cfner_load": "gauge",
        "cfner_current_step": "gauge",
        "cfner_degraded": "gauge",
    }
    assert "cfner_texts_total 1.0" in told.text
    assert "cfner_texts_total 0.0" in untouched.text


# -- who is let in -----------------------------------------------------------------------------------------


def test_every_route_with_no_wrong_and_right_key(model: Path) -> None:
    right: list[dict[str, str]] = [{"Authorization": f"Bearer {KEY}"}, {"X-API-Key": KEY}]
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {KEY}x"},
        {"Authorization": f"Basic {KEY}"},
        {"X-API-Key": KEY[:-1]},
    ]
    closed = [("GET", "/model"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("POST", "/predict")]
    open_to_all = [("GET", "/"), ("GET", "/health"), ("GET", "/favicon.ico"), ("GET", "/docs")]
    open_to_all += [("GET", "/static/page.js"), ("GET", "/static/look/palette.css")]
    with client_of(model, api_key=KEY, host="0.0.0.0") as client:
        routes = {route.path for route in client.app.routes}  # type: ignore[attr-defined]
        parents = {
            path.removesuffix("/page.js").removesuffix("/palette.css") for _, path in [*closed, *open_to_all]
        }
        assert routes == parents
        for method, path in [*closed, *open_to_all, ("GET", "/nothing")]:
            for headers in wrong:
                status = client.request(method, path, headers=headers, json={"text": "a"}).status_code
                assert status == (200 if (method, path) in open_to_all else 401), path
            for headers in right:
                status = client.request(method, path, headers=headers, json={"text": "a"}).status_code
                assert status == (404 if path == "/nothing" else 200), path
        refused = client.get("/model", headers=[(b"X-API-Key", b"\xff\x01")])
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")


def test_keys_are_compared_in_constant_time(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    plain = middleware.hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return plain(one, other)

    monkeypatch.setattr(middleware.hmac, "compare_digest", watched)
    with client_of(model, api_key=KEY) as client:
        for key in ("", "x", KEY[:5], KEY * 50, KEY):
            client.get("/model", headers={"X-API-Key": key})
    assert compared == [(32, 32)] * 5


def test_without_a_key_only_our_own_names_are_answered(client: TestClient) -> None:
    for host in ("localhost", "localhost:8000", "127.0.0.1:80", "[::1]:80", "LOCALHOST"):
        assert client.get("/health", headers={"Host": host}).status_code == 200
    for host in ("evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example:8000", "[::1"):
        assert client.get("/health", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_other_addresses_need_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="CFNER_API_KEY"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, api_key=KEY).api_key == KEY


def test_settings_that_make_no_sense_are_refused() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost"))
    for wrong in (
        {"api_key": "short"},
        {"api_key": "x" * 20 + " "},
        {"port": 70000},
        {"max_body": 0},
        {"reload_seconds": -1.0},
    ):
        with pytest.raises(ConfigError):
            ServeSettings(**wrong)  # type: ignore[arg-type]


# -- too much at once, and failures ------------------------------------------------------------------------


def test_a_full_queue_says_so_at_once(client: TestClient) -> None:
    batcher = service_of(client).batcher
    batcher.waiting = batcher.settings.max_waiting
    try:
        answer = client.post("/predict", json={"text": "a"})
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200
    finally:
        batcher.waiting = 0
    batcher.waiting, batcher.waiting_characters = 1, batcher.settings.max_waiting_characters
    try:
        assert client.post("/predict", json={"text": "a"}).status_code == 429
    finally:
        batcher.waiting = batcher.waiting_characters = 0
    assert client.post("/predict", json={"text": "a"}).status_code == 200


def test_a_server_that_stops_says_so(model: Path) -> None:
    with client_of(model) as client:
        service_of(client).batcher.closing = True
        assert client.post("/predict", json={"text": "a"}).status_code == 503
        assert client.get("/health").status_code == 503


def test_a_fault_of_ours_is_told_counted_and_guarded(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(self: Service) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(Service, "model", fault)
    with client_of(model) as client:
        answer = client.get("/model")
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "content-security-policy" in answer.headers
        assert 'route="/model",status="500"' in client.get("/metrics").text


def test_a_text_that_fails_does_not_fail_the_others(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Pipeline.tag

    def failing(self: Pipeline, texts: Any) -> Any:
        if "poison" in texts:
            raise RuntimeError("out of memory, say")
        return plain(self, texts)

    monkeypatch.setattr(Pipeline, "tag", failing)
    with client_of(model) as client:
        service = service_of(client)

        async def together() -> list[Any]:
            step = service.steps.current
            asked = [service.batcher.tag(step, [text]) for text in ("one", "poison", "two")]
            return await asyncio.gather(*asked, return_exceptions=True)

        one, poison, two = client.portal.call(together)  # type: ignore[union-attr]
        assert isinstance(poison, HTTPException)
        assert isinstance(one, list)
        assert isinstance(two, list)
        assert client.post("/predict", json={"text": "poison"}).status_code == 503
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "failing")
        described = client.get("/openapi.json").json()["paths"]["/health"]["get"]["responses"]
        assert described["503"]["description"] == "The server is shutting down."
        assert client.post("/predict", json={"text": "fine"}).status_code == 200
        assert client.get("/health").json()["status"] == "ok"


def test_a_long_request_does_not_hold_up_short_ones(model: Path) -> None:
    with client_of(model, batch_texts=2) as client:
        service = service_of(client)
        finished: list[str] = []

        async def ask(name: str, texts: list[str]) -> None:
            assert len(await service.batcher.tag(service.steps.current, texts)) == len(texts)
            finished.append(name)

        async def both() -> None:
            await asyncio.gather(ask("long", TEXTS * 4), ask("short", ["a"]))

        client.portal.call(both)  # type: ignore[union-attr]
        assert finished == ["short", "long"]


# -- steps that come and go --------------------------------------------------------------------------------


def test_the_current_step_is_followed(model: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with client_of(folder, reload_seconds=600) as client:
        service = service_of(client)

        def look() -> int:
            client.portal.call(service.steps.look)  # type: ignore[union-attr]
            answer = client.post("/predict", json={"text": TEXTS[0]})
            assert answer.status_code == 200
            return int(answer.json()["step"])

        assert look() == 4
        ModelFolder(folder).point_to(2)  # rolled back
        assert look() == 2
        bad = add_step(tiny_encoder, folder, [*TYPES, "late"], seed=9)
        spoil(bad)
        assert look() == 2
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
        assert str(tmp_path) not in health.text
        told = client.get("/metrics").text
        assert 'cfner_reloads_total{result="failed"} 1' in told
        assert "cfner_degraded 1" in told
        assert client.post("/predict", json={"text": "a", "step": 5}).status_code == 503
        assert client.post("/predict", json={"text": "a", "step": 5}).status_code == 503  # not tried again
        spoil(bad)  # the same byte once more: mended
        service.steps._retry_at = 0
        assert look() == 5
        assert client.get("/health").json()["status"] == "ok"
        assert client.get("/model").json()["types"][-1] == "late"
        (folder / "CURRENT").write_text("no step\n")
        with pytest.raises(ModelError):
            look()
        assert client.post("/predict", json={"text": "a"}).json()["step"] == 5


class ByHand(Executor):
    """Does what it is given one by one, when the test says so."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = asyncio.Queue()

    def submit(self, work: Callable[..., Any], /, *given: Any) -> Future[Any]:  # type: ignore[override]
        done: Future[Any] = Future()
        self.given.put_nowait((done, work, given))
        return done

    async def load_one(self) -> int:
        done, work, (source, number) = await asyncio.wait_for(self.given.get(), 30)
        done.set_result(work(source, number))
        return int(number)

    async def has(self, number: int) -> None:
        async with asyncio.timeout(30):
            while self.given.qsize() < number:
                await asyncio.sleep(0.01)


def test_requests_for_other_steps_do_not_hold_up_what_becomes_current(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    loader = ByHand()

    async def ask_and_leave(number: int) -> BaseException | None:
        asked = asyncio.ensure_future(steps.get(number))
        await asyncio.sleep(0)
        asked.cancel()
        return (await asyncio.gather(asked, return_exceptions=True))[0]  # type: ignore[return-value]

    async def scenario() -> None:
        left = [await ask_and_leave(number) for number in (1, 2, 3) * 20]
        assert {type(each) for each in left} == {asyncio.CancelledError, HTTPException}
        refused = left[2::3]  # two loads are on their way, and no more are kept than two
        assert {each.status_code for each in refused if isinstance(each, HTTPException)} == {429}
        await loader.has(1)
        ModelFolder(folder).point_to(3)
        followed = asyncio.ensure_future(steps.look())
        await loader.has(2)
        assert [await loader.load_one() for _ in range(3)] == [1, 3, 2]
        await followed
        assert steps.current.number == 3
        assert (await steps.get(2)).number == 2  # as it is asked for again

    with client_of(folder, reload_seconds=600, steps_kept=2) as client:
        steps = service_of(client).steps
        steps._loader = loader  # type: ignore[assignment]
        client.portal.call(scenario)  # type: ignore[union-attr]


def test_a_step_with_unreadable_facts_is_listed_with_its_problem(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "steps" / "0002" / "step.json").write_text("[]")
    (folder / "steps" / "0003" / "seal.json").write_text("{")
    with client_of(folder) as client:
        problems = [step["problem"] for step in client.get("/model").json()["steps"]]
        assert [problem is None for problem in problems] == [True, False, False, True]
        for step in (2, 3):
            assert client.post("/predict", json={"text": "a", "step": step}).status_code == 503


def test_a_model_that_cannot_be_loaded_is_told_at_the_start(tmp_path: Path, model: Path) -> None:
    with pytest.raises(CfnerError):
        create_app(tmp_path)
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    spoil(ModelFolder(folder).step())
    with pytest.raises(ModelError, match="changed since"):
        create_app(folder)


def test_a_strangers_checkpoint_is_served_without_steps(tiny_encoder: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    config = AutoConfig.from_pretrained(tiny_encoder, num_labels=5, id2label=dict(enumerate(names)))
    stranger = AutoModelForTokenClassification.from_config(config)
    stranger.save_pretrained(tmp_path / "stranger")
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path / "stranger")
    with client_of(tmp_path / "stranger") as client:
        facts = client.get("/model").json()
        assert facts["has_steps"] is False
        assert facts["types"] == ["PER", "LOC"]
        assert facts["name"] == "stranger"
        assert client.post("/predict", json={"text": TEXTS[0]}).json()["step"] == 1
        assert client.post("/predict", json={"text": TEXTS[0], "step": 1}).status_code == 200
        assert client.post("/predict", json={"text": TEXTS[0], "step": 2}).status_code == 404


# -- the command -------------------------------------------------------------------------------------------


def test_the_command_hands_its_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer
    from typer.testing import CliRunner

    from cfner.cli.serve import serve
    from cfner.serving import server

    given: list[Any] = []
    monkeypatch.setattr(server, "serve", lambda *words, **_: given.append(words))
    command = typer.Typer()
    command.command()(serve)
    monkeypatch.delenv("CFNER_API_KEY", raising=False)
    refused = CliRunner().invoke(command, ["m", "--host", "0.0.0.0"])
    assert isinstance(refused.exception, ConfigError)
    assert not given
    monkeypatch.setenv("CFNER_API_KEY", KEY)
    limits = ["--max-body", "10", "--max-texts", "3", "--max-waiting", "5", "--max-wait", "2"]
    limits += ["--steps-kept", "0"]
    words = ["m", "--host", "0.0.0.0", "--port", "9000", *limits]
    assert CliRunner().invoke(command, words).exit_code == 0
    source, settings = given[0]
    assert source == "m"
    assert settings == ServeSettings(
        host="0.0.0.0",
        port=9000,
        api_key=KEY,
        max_body=10,
        max_texts=3,
        max_waiting=5,
        max_wait_seconds=2.0,
        steps_kept=0,
    )
