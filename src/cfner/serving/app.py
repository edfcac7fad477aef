"""The application: routes, and how refusals are told. ``create_app`` gives an ASGI application."""

from __future__ import annotations

import asyncio
import mimetypes
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from cfner.network.prediction import Entity
from cfner.serving.admission import Admission, Cost
from cfner.serving.batching import Batcher
from cfner.serving.http_errors import RefusalError
from cfner.serving.metrics import Metrics
from cfner.serving.middleware import BodyReader, Guard, declared_length
from cfner.serving.openapi import DESCRIPTION, describe, refusals
from cfner.serving.schemas import (
    FoundEntity,
    Health,
    ModelFacts,
    PredictAnswer,
    PredictRequest,
    TaggedText,
)
from cfner.serving.settings import ServeSettings
from cfner.serving.steps import Steps

mimetypes.add_type("text/javascript", ".js")  # some systems say otherwise, and browsers then refuse it
STATIC: Final = Path(__file__).parent / "static"
_NOT_HEALTHY: Final[dict[int | str, dict[str, Any]]] = {
    503: {"model": Health, "description": "The server is shutting down."}
}


class Service:
    """What the routes share: the steps, the queue, the counters."""

    def __init__(self, source: str, settings: ServeSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.steps = Steps.open(source, settings.steps_kept, self.metrics)
        cost = Cost.measured(self.steps.current.pipeline.tag)
        self.batcher = Batcher(settings, self.metrics, Admission(settings, cost))
        self.bodies = BodyReader(settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
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
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            self.steps.close()

    async def read(self, request: Request) -> PredictRequest:
        """The request's body, checked."""
        self.bodies.refuse_if_too_large(request)
        self.batcher.refuse_if_full(declared_length(request))  # before anything is read
        return self._checked(await self._body(request))

    async def predict(self, asked: PredictRequest) -> PredictAnswer:
        started = time.perf_counter()
        texts = asked.all_texts
        with self.batcher.admitted(texts):
            step = await self.steps.get(asked.step)
            found = await self.batcher.tag(step, texts)
        self.metrics.seconds.observe(time.perf_counter() - started)
        return PredictAnswer(
            step=step.number,
            hash=step.hash,
            results=[TaggedText(entities=[_message(e, asked.scores) for e in each]) for each in found],
        )

    async def _body(self, request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or "content-encoding" in request.headers:
            raise RefusalError(415, "Send JSON, uncompressed: 'Content-Type: application/json'.", close=True)
        return await self.bodies.read(request)

    def _checked(self, body: bytes) -> PredictRequest:
        try:
            asked = PredictRequest.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part)[:50] for part in first["loc"])
            raise RefusalError(422, f"{place}: {first['msg']}." if place else f"{first['msg']}.") from None
        limits = self.settings
        if len(asked.all_texts) > limits.max_texts:
            raise RefusalError(
                422, f"{len(asked.all_texts)} texts; at most {limits.max_texts} in one request."
            )
        for index, text in enumerate(asked.all_texts):
            if len(text) > limits.max_text_length:
                raise RefusalError(
                    422, f"Text {index} has {len(text)} characters; at most {limits.max_text_length}."
                )
        return asked

    def model(self) -> ModelFacts:
        steps = self.steps
        return ModelFacts(
            name=Path(steps.source).name or steps.source,
            encoder=Path(steps.current.pipeline.model.encoder).name,
            current=steps.current.number,
            has_steps=steps.has_steps,
            types=list(steps.current.pipeline.types),
            steps=steps.facts,
            max_text_length=self.settings.max_text_length,
            max_texts=self.settings.max_texts,
        )

    def health(self) -> Health:
        status, problem = "ok", None
        if self.steps.problem is not None:
            status, problem = "degraded", self.steps.problem
        if self.batcher.failing:
            status, problem = "failing", "The last batch could not be computed; the log says why."
        if self.batcher.closing:
            status, problem = "stopping", "The server is shutting down."
        return Health(
            status=status, step=self.steps.current.number, waiting=self.batcher.waiting, problem=problem
        )

    def metrics_text(self) -> str:
        return self.metrics.render(
            {
                "cfner_waiting_requests": ("Requests accepted and not answered.", self.batcher.waiting),
                "cfner_waiting_characters": ("Characters of them.", self.batcher.waiting_characters),
                "cfner_load": (
                    "Seconds of work asked for in a second, lately.",
                    round(self.batcher.admission.load, 3),
                ),
                "cfner_current_step": ("The step that is served.", self.steps.current.number),
                "cfner_degraded": (
                    "1 when the folder's current step could not be loaded.",
                    int(self.steps.problem is not None),
                ),
            }
        )


def create_app(source: str | Path, settings: ServeSettings | None = None) -> FastAPI:
    """An ASGI application that serves a model folder or a Hugging Face checkpoint.

    Loads the model first: one that cannot be loaded is an error here, not later.
    """
    settings = settings or ServeSettings()
    service = Service(str(source), settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="cfner",
        version=version("cfner"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.add_middleware(Guard, settings=settings, metrics=service.metrics)
    app.add_exception_handler(RefusalError, _tell_refusal)
    app.add_exception_handler(HTTPException, _tell_http)
    _add_routes(app, service)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    describe(app, settings)
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    @app.post(
        "/predict",
        responses=refusals(404, 408, 413, 415, 422, 429, 503),
        response_model_exclude_none=True,  # a score that was not asked for
    )
    async def predict(request: Request) -> PredictAnswer:
        """Find the entities of one text or many."""
        asked = await service.read(request)
        answer = asyncio.ensure_future(service.predict(asked))
        gone = asyncio.ensure_future(request.receive())  # after the body there is only 'disconnected' to hear
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():  # nobody is there to read it, so nothing need be computed
                raise RefusalError(499, "The client went away.")
            return answer.result()
        finally:
            gone.cancel()
            answer.cancel()

    @app.get("/model", responses=refusals())
    async def model() -> ModelFacts:
        """What is served: the types, the steps and their scores."""
        return service.model()

    @app.get("/health", response_model=Health, responses=refusals(open_to_all=True) | _NOT_HEALTHY)
    async def health() -> JSONResponse:
        """Whether requests are answered. 200 also when degraded (an older step still answers) or failing (the
        last batch failed, the next may not)."""
        found = service.health()
        return JSONResponse(found.model_dump(), 503 if found.status == "stopping" else 200)

    @app.get("/metrics", responses=refusals(), response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        return PlainTextResponse(
            service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> FileResponse:
        return FileResponse(STATIC / "icon.svg")


def _message(entity: Entity, with_score: bool) -> FoundEntity:
    return FoundEntity(
        type=entity.type,
        text=entity.text,
        start=entity.start or 0,
        end=entity.end or 0,
        first=entity.first,
        last=entity.last,
        score=entity.score if with_score else None,
    )


async def _tell_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError)  # noqa: S101 - what the handler is registered for
    return JSONResponse({"detail": error.detail}, error.status, error.headers)


async def _tell_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)
