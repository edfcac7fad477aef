"""Counters and histograms in the text format that Prometheus reads. Used from the event loop only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


@dataclass
class Histogram:
    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        running = 0
        for bound, count in zip((*map(repr, self.bounds), "+Inf"), self.counts, strict=True):
            running += count
            yield f'{name}_bucket{{le="{bound}"}} {running}'
        yield f"{name}_sum {self.total!r}"
        yield f"{name}_count {running}"


class Metrics:
    """Labels are routes, methods and status codes of ours, never anything that a client sent."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = {}
        self.texts = 0
        self.entities = 0
        self.failed_batches = 0
        self.reloads = {"ok": 0, "failed": 0}
        self.seconds = Histogram(SECONDS)
        self.batch_texts = Histogram(SIZES)

    def count(self, method: str, route: str, status: int) -> None:
        key = (method, route, status)
        self.requests[key] = self.requests.get(key, 0) + 1

    def render(self, gauges: dict[str, tuple[str, float]]) -> str:
        """All of it. ``gauges``: name -> (help, value), measured now."""
        lines = ["# HELP cfner_requests_total Requests answered.", "# TYPE cfner_requests_total counter"]
        for (method, route, status), number in sorted(self.requests.items()):
            lines.append(
                f'cfner_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}'
            )
        counters = {
            "texts": ("Texts tagged.", self.texts),
            "entities": ("Entities found.", self.entities),
            "failed_batches": ("Batches that the model could not compute.", self.failed_batches),
        }
        for name, (meaning, number) in counters.items():
            lines += [f"# HELP cfner_{name}_total {meaning}", f"# TYPE cfner_{name}_total counter"]
            lines.append(f"cfner_{name}_total {number}")
        lines += [
            "# HELP cfner_reloads_total Changes of the current step.",
            "# TYPE cfner_reloads_total counter",
        ]
        lines += [f'cfner_reloads_total{{result="{how}"}} {n}' for how, n in self.reloads.items()]
        for name, meaning, histogram in (
            ("cfner_predict_seconds", "Time from a request's last byte to its answer.", self.seconds),
            ("cfner_batch_texts", "Texts computed together.", self.batch_texts),
        ):
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} histogram", *histogram.lines(name)]
        for name, (meaning, value) in gauges.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {value!r}"]
        return "\n".join(lines) + "\n"
