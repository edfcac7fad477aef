"""The ASGI application (``create_app``): its routes and their shared state."""

from __future__ import annotations

import asyncio
import mimetypes
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import ValidationError
from starlette.staticfiles import StaticFiles

from cfner.pages.page import CSS
from cfner.serving.admission import Admission, Cost
from cfner.serving.api_page import api_page
from cfner.serving.batching import Batcher
from cfner.serving.http_errors import refusal
from cfner.serving.metrics import Metrics
from cfner.serving.middleware import BodyReader, Guard, declared_length
from cfner.serving.openapi import DESCRIPTION, KEY, json_body, refusals
from cfner.serving.schemas import (
    FoundEntity,
    Health,
    ModelFacts,
    PredictAnswer,
    PredictRequest,
    TaggedText,
    limited_request,
    what_is_wrong,
)
from cfner.serving.settings import ServeSettings
from cfner.serving.steps import Steps

mimetypes.add_type("text/javascript", ".js")  # some systems map it differently, and browsers then refuse it
STATIC: Final = Path(__file__).parent / "static"


class Service:
    """The shared state of the routes: the steps, the queue, the counters."""

    def __init__(self, source: str, settings: ServeSettings) -> None:
        self.settings = settings
        self.metrics = metrics = Metrics()
        self.steps = steps = Steps(
            source, settings.steps_kept, metrics, settings.device, settings.min_score, settings.runtime
        )
        admission = Admission(settings, Cost.measured(steps.current.pipeline.tag))
        self.batcher = batcher = Batcher(settings, metrics, admission)
        self.bodies = BodyReader(settings)
        self.request_model = limited_request(settings.max_texts, settings.max_text_length)
        metrics.gauge(
            "cfner_waiting_requests", "Requests accepted and not answered.", lambda: batcher.waiting
        )
        metrics.gauge(
            "cfner_waiting_characters",
            "Characters of the requests that are waiting.",
            lambda: batcher.waiting_characters,
        )
        metrics.gauge(
            "cfner_load",
            "Recent load: seconds of work requested per second.",
            lambda: round(admission.load, 3),
        )
        metrics.gauge("cfner_current_step", "The current step.", lambda: steps.current.number)
        metrics.gauge(
            "cfner_degraded",
            "1 when the folder's current step could not be loaded.",
            lambda: steps.problem is not None,
        )

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self.batcher.run()),
            asyncio.create_task(self.steps.watch(self.settings.reload_seconds)),
        ]
        try:
            yield
        finally:
            await self.batcher.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.steps.close()

    async def read(self, request: Request) -> PredictRequest:
        """The validated body of a request."""
        length = declared_length(request)
        self.bodies.refuse_if_too_large(length or 0)
        self.batcher.refuse_if_full(length)  # before reading anything

        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or "content-encoding" in request.headers:
            raise refusal(415, "Send JSON, uncompressed: 'Content-Type: application/json'.", close=True)
        body = await self.bodies.read(request)
        try:
            return self.request_model.model_validate_json(body)
        except ValidationError as error:
            raise refusal(422, what_is_wrong(error)) from None

    async def predict(self, asked: PredictRequest) -> PredictAnswer:
        started, texts = time.perf_counter(), asked.all_texts
        with self.batcher.admitted(texts):
            step = await self.steps.get(asked.step)
            found = await self.batcher.tag(step, texts)
        self.metrics.seconds.observe(time.perf_counter() - started)
        left_out = {} if asked.scores else {"score": None}
        results = [
            TaggedText(entities=[FoundEntity(**asdict(entity) | left_out) for entity in entities])
            for entities in found
        ]
        return PredictAnswer(step=step.number, hash=step.hash, results=results)

    def model(self) -> ModelFacts:
        steps, model = self.steps, self.steps.current.pipeline.model
        return ModelFacts(
            name=steps.name,
            encoder=Path(model.encoder).name,
            current=steps.current.number,
            has_steps=steps.has_steps,
            types=list(model.labels.types),
            steps=steps.facts,
            series=steps.list.series,
            max_text_length=self.settings.max_text_length,
            max_texts=self.settings.max_texts,
        )

    def health(self) -> Health:
        status, problem = "ok", self.steps.problem
        if problem is not None:
            status = "degraded"
        if self.batcher.failing:
            status, problem = "failing", "The last batch could not be computed; the log says why."
        if self.batcher.closing:
            status, problem = "stopping", "The server is shutting down."
        return Health(
            status=status, step=self.steps.current.number, waiting=self.batcher.waiting, problem=problem
        )


def create_app(source: str | Path, settings: ServeSettings | None = None) -> FastAPI:
    """An ASGI application that serves a model folder or a Hugging Face checkpoint.

    Loads the model at once, so that a model that cannot be loaded raises here, not later.
    """
    settings = settings or ServeSettings()
    service = Service(str(source), settings)
    app = FastAPI(
        title="cfner",
        version=version("cfner"),
        description=DESCRIPTION,
        lifespan=service.running,
        docs_url=None,  # FastAPI's pages load external scripts: see api_page
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.add_middleware(Guard, settings=settings, metrics=service.metrics)
    _add_routes(app, service)
    app.mount("/static/look", StaticFiles(directory=CSS), name="look")
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    key = KEY if service.settings.api_key is not None else []

    @app.post(
        "/predict",
        dependencies=key,
        openapi_extra=json_body(service.request_model),
        responses=refusals(401, 404, 408, 413, 415, 422, 429, 503),
        response_model_exclude_none=True,  # leaves out scores that were not requested
    )
    async def predict(request: Request) -> PredictAnswer:
        """Find the entities in one text or many."""
        asked = await service.read(request)
        answer = asyncio.ensure_future(service.predict(asked))
        gone = asyncio.ensure_future(request.receive())  # after the body, only 'disconnected' can follow
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():  # the client has disconnected, so stop computing
                raise refusal(499, "The client disconnected.")
            return answer.result()
        finally:
            gone.cancel()
            answer.cancel()

    @app.get("/model", dependencies=key, responses=refusals(401))
    async def model() -> ModelFacts:
        """What is served: the types, the steps and their scores."""
        return service.model()

    stopping = {"model": Health, "description": "The server is shutting down."}

    @app.get("/health", responses={**refusals(), 503: stopping})
    async def health(response: Response) -> Health:
        """Whether requests are answered. Returns 200 also when degraded (an older step still answers) or
        failing (the last batch failed, the next may succeed)."""
        found = service.health()
        response.status_code = 503 if found.status == "stopping" else 200
        return found

    @app.get("/metrics", dependencies=key, responses=refusals(401), response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        counters = generate_latest(service.metrics.registry)
        return PlainTextResponse(counters, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi(), key=service.settings.api_key is not None))

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> FileResponse:
        return FileResponse(STATIC / "icon.svg")
