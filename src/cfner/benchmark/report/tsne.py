"""Exact t-SNE for a few hundred points: it uses every pair, and no random numbers.

L. van der Maaten and G. Hinton 2008, Visualizing Data using t-SNE. It starts from the first two principal
components instead of noise, so the same features give the same map.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_EXAGGERATED = 100  # rounds of early exaggeration, which lets clusters form
_ROUNDS = 350


def tsne(features: NDArray[np.floating], perplexity: float = 30.0, rounds: int = _ROUNDS) -> Floats:
    """A map [n, 2] of features [n, d] that keeps near points near."""
    points = np.asarray(features, dtype=np.float64)
    if len(points) < 3:
        return np.zeros((len(points), 2))
    wanted = min(perplexity, (len(points) - 1) / 3)
    near = _joint(_distances(points), wanted)
    harder = near * 12
    place = _main_directions(points)
    speed, gain = np.zeros_like(place), np.ones_like(place)
    rate = max(len(points) / 48, 50.0)
    for turn in range(rounds):
        early = turn < _EXAGGERATED
        momentum = 0.5 if early else 0.8
        slope = _gradient(harder if early else near, place)
        same_way = np.sign(slope) == np.sign(speed)
        gain = np.maximum(np.where(same_way, gain * 0.8, gain + 0.2), 0.01)
        speed = momentum * speed - rate * gain * slope
        place = place + speed
        place -= place.mean(0)
    return place


def _distances(points: Floats) -> Floats:
    """Squared distances of all pairs, [n, n]."""
    squares = (points**2).sum(1)
    apart: Floats = points @ points.T
    apart *= -2
    apart += squares[:, None]
    apart += squares
    np.maximum(apart, 0, out=apart)
    np.fill_diagonal(apart, 0)
    return apart


def _joint(apart: Floats, perplexity: float) -> Floats:
    """How likely two points are neighbours, [n, n]; bisection finds the width of each point."""
    n = len(apart)
    low, high, beta = np.zeros(n), np.full(n, np.inf), np.ones(n) / max(float(np.median(apart)), 1e-12)
    others = ~np.eye(n, dtype=bool)
    nearest = np.where(others, apart, np.inf).min(1, keepdims=True)
    chance = np.zeros_like(apart)
    for _ in range(60):
        chance = np.exp(-(apart - nearest) * beta[:, None]) * others
        chance /= chance.sum(1, keepdims=True)
        entropy = -(chance * np.log(np.maximum(chance, 1e-300))).sum(1)
        too_wide = entropy > np.log(perplexity)
        low, high = np.where(too_wide, beta, low), np.where(too_wide, high, beta)
        beta = np.where(np.isinf(high), beta * 2, (low + high) / 2)
    return np.maximum((chance + chance.T) / (2 * n), 1e-12)


def _gradient(near: Floats, place: Floats) -> Floats:
    """The gradient of the divergence between the neighbourhoods of the data and those of the map."""
    weight = _distances(place)
    np.reciprocal(np.add(weight, 1, out=weight), out=weight)
    np.fill_diagonal(weight, 0)
    pull = weight / -weight.sum()
    pull += near
    pull *= weight
    slope: Floats = 4 * (pull.sum(1)[:, None] * place - pull @ place)
    return slope


def _main_directions(points: Floats) -> Floats:
    """The first two principal components, scaled down and with fixed signs."""
    centred = points - points.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    start: Floats = np.zeros((len(points), 2))
    for number, direction in enumerate(directions[:2]):
        start[:, number] = centred @ (direction * np.sign(direction[np.abs(direction).argmax()]))
    spread = start[:, 0].std()
    return start / spread * 1e-4 if spread > 0 else start
