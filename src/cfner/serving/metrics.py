"""Counters for Prometheus, in one registry per server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Metrics:
    """Labels are the server's routes, methods and status codes, never client input."""

    def __init__(self) -> None:
        self.registry = to = CollectorRegistry()
        named = ("method", "route", "status")
        self.requests = Counter("cfner_requests", "Requests answered.", named, registry=to)
        self.texts = Counter("cfner_texts", "Texts tagged.", registry=to)
        self.entities = Counter("cfner_entities", "Entities found.", registry=to)
        failed = "Batches that the model could not compute."
        self.failed_batches = Counter("cfner_failed_batches", failed, registry=to)
        reloads = Counter("cfner_reloads", "Changes of the current step.", ["result"], registry=to)
        self.reloads, self.failed_reloads = reloads.labels("ok"), reloads.labels("failed")
        taken = "Time from a request's last byte to its answer."
        self.seconds = Histogram("cfner_predict_seconds", taken, buckets=SECONDS, registry=to)
        together = "Texts computed together."
        self.batch_texts = Histogram("cfner_batch_texts", together, buckets=SIZES, registry=to)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """``read`` is called whenever metrics are collected."""
        Gauge(name, meaning, registry=self.registry).set_function(read)
