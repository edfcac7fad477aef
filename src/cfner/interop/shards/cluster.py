"""Workers on a Ray cluster. A shard is a task with its text and its output: nodes need no shared disk.

Ray starts a task again if its node dies. Only the process that started the run writes files, once per shard.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

from cfner.errors import CfnerError, import_extra
from cfner.interop.machines import connect
from cfner.interop.shards.cutting import Shard
from cfner.interop.shards.model_source import ModelSource
from cfner.interop.shards.tagging import Refused, Settings, Tagged, tag_shard

_log = logging.getLogger(__name__)
_PURPOSE = "Tagging on a Ray cluster"
_AHEAD = 2  # tasks per core (or GPU), so that a node need not wait for the next
_RETRIES = 3  # after a node or a process died with the task

_opened: dict[str, Any] = {}  # in a process of the cluster: the model of the last run


class RayWorkers:
    def __init__(
        self, address: str | None, workers: int | None, model: ModelSource, settings: Settings, device: str
    ) -> None:
        self._ray = import_extra("ray", "ray", _PURPOSE)
        self._connected = address is not None or not self._ray.is_initialized()
        if self._connected:
            connect(address, _PURPOSE)
        have = self._ray.cluster_resources()
        on_gpu = device.startswith("cuda") or (device == "auto" and have.get("GPU", 0) >= 1)
        self._kind = "GPU" if on_gpu else "CPU"
        if have.get(self._kind, 0) < 1:
            _log.warning("The cluster has no %s now: waiting until a node with one joins.", self._kind)
        self._workers = workers
        task = self._ray.remote(num_cpus=1, num_gpus=int(on_gpu), max_retries=_RETRIES)(_tag)
        # in a list, so that the task gets the reference: only a process without the model fetches it
        held = [self._ray.put(model.packed())]
        run, chosen = uuid.uuid4().hex, "cuda" if on_gpu else "cpu" if device == "auto" else device
        self._task: Callable[[Shard], Any] = lambda shard: task.remote(run, held, chosen, shard, settings)
        self._running: dict[Any, Shard] = {}

    @property
    def slots(self) -> int:
        """Asked again each time, since nodes come and go."""
        return self._workers or _AHEAD * max(1, int(self._ray.cluster_resources().get(self._kind, 0)))

    def start(self, shard: Shard) -> None:
        self._running[self._task(shard)] = shard

    def next(self) -> tuple[Shard, Tagged | Refused]:
        (ready, *_), _ = self._ray.wait(list(self._running), num_returns=1)
        shard = self._running.pop(ready)
        try:
            return shard, self._ray.get(ready)
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            raise CfnerError(
                str(cause if isinstance(cause, CfnerError) else error).strip(),
                where=shard.place,
                remedy="Finished parts are kept: run it again to resume.",
            ) from error

    def stop(self) -> None:
        for ref in self._running:
            self._ray.cancel(ref, force=True)
        if self._connected:
            self._ray.shutdown()


def _tag(run: str, held: list[Any], device: str, shard: Shard, settings: Settings) -> Tagged | Refused:
    """Runs on a machine of the cluster."""
    import ray
    import torch

    torch.set_num_threads(1)
    if run not in _opened:
        _opened.clear()
        _opened[run] = ray.get(held[0]).open(device)
    return tag_shard(_opened[run], shard, settings)
