"""What a worker does with a shard: its text becomes bytes of output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from cfner.errors import CfnerError, ConfigError
from cfner.interop.prediction_files import AS_TEXT, docbin_of, mention_rows
from cfner.interop.shards.cutting import BYTES_IN_JSON, SHARD_BYTES, Shard
from cfner.network.prediction import TaggingModel, tag_stream

SEPARATORS = {"csv": ",", "tsv": "\t"}
FORMATS = ("jsonl", "csv", "tsv", "conll", "docbin")


@dataclass(frozen=True)
class Settings:
    """All that decides about the bytes of an output, apart from the model and the text."""

    format: str = "jsonl"
    input_format: str | None = None
    runtime: str | None = None
    min_score: float | None = None
    batch_size: int = 64
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ConfigError(
                f"Outputs of many files cannot be written as '{self.format}'.",
                remedy=f"Choose one of {', '.join(FORMATS)}.",
            )


@dataclass(frozen=True)
class Tagged:
    __pydantic_config__: ClassVar[ConfigDict] = BYTES_IN_JSON

    content: bytes
    texts: int


@dataclass(frozen=True)
class Refused:
    """A text that cannot be read or written: the parts of its error."""

    what: str
    where: str | None
    remedy: str | None


@dataclass(frozen=True)
class Failed:
    """Not the text's fault: the model cannot be opened, memory ran out, or cfner has a bug."""

    message: str


def tag_shard(model: TaggingModel, shard: Shard, settings: Settings) -> Tagged | Refused:
    """The output of a shard; a shard is small enough to be held in memory."""
    try:
        found = list(
            tag_stream(model, shard.sentences(), min_score=settings.min_score, batch_size=settings.batch_size)
        )
        if settings.format == "docbin":
            return Tagged(docbin_of(found)[1], len(found))
        if settings.format in SEPARATORS:
            separator = SEPARATORS[settings.format]
            pieces = mention_rows(found, separator, shard.first_text, header=shard.number == 1)
        else:
            pieces = AS_TEXT[settings.format](found)
        return Tagged("".join(pieces).encode(), len(found))
    except CfnerError as error:
        return Refused(error.what, error.where, error.remedy)
