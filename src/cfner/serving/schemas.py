"""The schemas of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

_GIVE = "give 'text' or 'texts'"


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 2.0 is the integer 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class PredictRequest(BaseModel):
    """One text or many: exactly one of ``text`` and ``texts``."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["texts"]}]},
    )

    text: str = ""
    texts: list[str] = []
    step: Annotated[int | None, BeforeValidator(_whole)] = Field(
        default=None, description="Which step of the model; the current one if left out.", ge=1, lt=2**31
    )
    scores: bool = Field(default=True, description="Whether entities come with their score.")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if ("text" in self.model_fields_set) == ("texts" in self.model_fields_set):
            both = ", not both" if self.model_fields_set >= {"text", "texts"} else ""
            raise PydanticCustomError("one_of_two", f"{_GIVE}{both}")
        return self

    @property
    def all_texts(self) -> list[str]:
        return self.texts if "texts" in self.model_fields_set else [self.text]


def limited_request(max_texts: int, max_text_length: int) -> type[PredictRequest]:
    """The request schema with a server's limits, for validation and for the description."""
    text = Annotated[str, Field(max_length=max_text_length)]

    return create_model(
        "PredictRequest",
        __base__=PredictRequest,
        __doc__=PredictRequest.__doc__,
        text=(text, Field(default="", description="One text.")),
        texts=(list[text], Field(default=[], description="Many texts.", max_length=max_texts)),
    )


def what_is_wrong(error: ValidationError) -> str:
    """The first problem of a request, in one sentence with the remedy."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part)[:50] for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{place}: there is no such field: {_GIVE} (and, if wanted, 'step' and 'scores')."
    return f"{place}: {first['msg']}." if place else f"{first['msg']}."


class FoundEntity(BaseModel):
    """A mention: words ``first`` to ``last``, characters ``start`` to ``end``; ends excluded."""

    type: str
    text: str
    start: int = Field(description="Unicode code points, not UTF-16 units.")
    end: int
    first: int
    last: int
    score: float | None = Field(
        default=None, description="Mean probability of the type over its words, three digits."
    )


class TaggedText(BaseModel):
    entities: list[FoundEntity]


class PredictAnswer(BaseModel):
    """``results`` has one item per text, in order. All of them are from one step."""

    step: int
    hash: str = Field(description="Hash of the step's files.")
    results: list[TaggedText]


class TypeScore(BaseModel):
    f1: float = Field(description="Percent.")
    precision: float
    recall: float
    mentions: int


class StepScores(BaseModel):
    """``micro_f1`` and ``macro_f1`` are over the types in ``per_type``; None where the sentences are not
    recorded."""

    micro_f1: float | None
    macro_f1: float | None
    per_type: dict[str, TypeScore]


class ScoreSeries(BaseModel):
    """Scores that were measured on one set of sentences, by step. Only these are comparable."""

    label: str = Field(description="The source, number and hash of the sentences.")
    recorded: bool = Field(description="False: the sentences are unknown, so the score is not comparable.")
    hash: str | None
    sentences: int | None
    steps: dict[int, StepScores]


class TypeEstimate(BaseModel):
    """F1 of a type in percent when it was learned, with its 95 % interval."""

    type: str
    f1: float
    low: float
    high: float
    enough: bool = Field(description="False if there were too few mentions to rely on it.")


class StepEstimate(BaseModel):
    measured_with: str
    types: list[TypeEstimate]


class StepFacts(BaseModel):
    """A step. ``types``: all types that it can find; ``learned``: the types that this step learned."""

    step: int
    name: str
    kind: str
    hash: str
    types: list[str]
    learned: list[str]
    created: str | None = None
    method: str | None = None
    estimate: StepEstimate | None = Field(
        default=None, description="Scores of its types when it was learned. Not part of a series."
    )
    pruned: bool = Field(default=False, description="Its weights were deleted; its record remains.")
    problem: str | None = Field(default=None, description="Why the step cannot be used, if it cannot.")


class ModelFacts(BaseModel):
    name: str
    encoder: str
    current: int
    has_steps: bool = Field(description="False for a checkpoint without a history.")
    types: list[str]
    steps: list[StepFacts]
    series: list[ScoreSeries] = Field(
        default=[],
        description="The series that covers most steps comes first; the others are not comparable with it.",
    )
    max_text_length: int
    max_texts: int


class Health(BaseModel):
    """``ok``; ``degraded``: an older step is served because the newest cannot be; ``failing``: the last
    batch failed; ``stopping``."""

    status: str
    step: int
    waiting: int
    problem: str | None = None
