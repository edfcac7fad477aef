"""Tags shards in a separate process: ``python -m cfner.interop.shards.worker``.

It reads messages from standard input, each a line of JSON: the model first, then shards. It answers each
shard on standard output. It ends when its input ends, so it never outlives the process that started it by
more than a shard.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from typing import IO, Any, Final

import torch
from pydantic import TypeAdapter

from cfner.errors import CfnerError
from cfner.interop.shards.cutting import Shard
from cfner.interop.shards.model_source import ModelSource
from cfner.interop.shards.tagging import Failed, Refused, Settings, Tagged, tag_shard


@dataclass(frozen=True)
class Begin:
    """The first message: what to tag with, and how."""

    model: ModelSource
    device: str
    settings: Settings


Request = Begin | Shard
Answer = Tagged | Refused | Failed
_MESSAGE: Final[TypeAdapter[Any]] = TypeAdapter(Request | Answer)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    begun: Any = None
    while (request := receive(requests)) is not None:
        try:
            if isinstance(request, Begin):
                begun = request.model.open(request.device), request.settings
                continue
            answer: Answer = tag_shard(begun[0], request, begun[1])
        except CfnerError as error:
            answer = Failed(str(error))
        except Exception:
            answer = Failed(traceback.format_exc())
        send(answers, answer)
        if isinstance(answer, Failed):
            return


def send(pipe: IO[bytes], message: Request | Answer) -> None:
    pipe.write(_MESSAGE.dump_json(message) + b"\n")
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next message; None at the end, also in the middle of a message."""
    line = pipe.readline()
    return _MESSAGE.validate_json(line) if line.endswith(b"\n") else None


def main() -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print must not get among the answers
    torch.set_num_threads(1)
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:  # the process that wanted the answer has ended
        os._exit(1)


if __name__ == "__main__":
    main()
