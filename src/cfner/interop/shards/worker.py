"""Tags shards in a separate process: ``python -m cfner.interop.shards.worker``.

It reads pickled messages from standard input: the model first, then shards. It answers each shard on standard
output. It ends when its input ends, so it never outlives the process that started it by more than a shard.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import IO, Any

import torch

from cfner.errors import CfnerError
from cfner.interop.shards.tagging import Failed, tag_shard


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    model: Any = None
    while (request := receive(requests)) is not None:
        try:
            if model is None:
                source, device, settings = request
                model = source.open(device)
                continue
            answer: Any = tag_shard(model, request, settings)
        except CfnerError as error:
            answer = Failed(str(error))
        except Exception:
            answer = Failed(traceback.format_exc())
        send(answers, answer)
        if isinstance(answer, Failed):
            return


def send(pipe: IO[bytes], message: Any) -> None:
    pickle.dump(message, pipe)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next message; None at the end, also in the middle of a message."""
    try:
        return pickle.load(pipe)  # noqa: S301 - between processes of one user, through their own pipe
    except (EOFError, pickle.UnpicklingError):
        return None


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
