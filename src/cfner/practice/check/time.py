"""How long learning would take here: a few training batches and the tagging of a sample, timed."""

from __future__ import annotations

import copy
import itertools
import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F

from cfner.batches.encoding import EncodedText
from cfner.batches.loader import LengthBuckets, collate
from cfner.network.inference import outputs
from cfner.network.network import Network, copy_head
from cfner.practice.check.findings import TimeEstimate
from cfner.training.config import TrainingConfig
from cfner.training.optimiser import make_optimiser, trainable

_MOST_BATCHES = 40
_WARM_UP = 2  # batches that are not counted: memory is allocated, kernels are chosen
_OTHER_LOOKS = 3  # at the dev sentences: by the old model, to compare, and to score
_MARGIN = 0.2  # machines are not evenly fast from minute to minute, whatever a few seconds say


def estimate_time(
    network: Network,
    config: TrainingConfig,
    text: EncodedText,
    dev_text: EncodedText,
    *,
    device: torch.device,
    seconds: float,
) -> TimeEstimate | None:
    """Time for all epochs over ``text``, the teacher's pass before them, and ``dev_text`` after each.

    Batches are drawn as training draws them and go forward, backward and through an optimiser step, on a
    copy of the network. ``seconds`` bounds the timing. None if there is nothing to train on.
    """
    if not text.windows:
        return None
    with torch.random.fork_rng(devices=[]):  # a new head and dropout draw numbers: leave the caller's alone
        student = Network(copy.deepcopy(network.body), copy_head(network.head)).to(device)
        timed = _time_batches(student, text, config, seconds * 0.75)
    per_window = _time_tagging(student, text, config.eval_batch_size, seconds * 0.25)
    batches = -(-text.windows // config.batch_size) * config.epochs
    looks = text.windows + dev_text.windows * (config.epochs + _OTHER_LOOKS)
    per_batch = statistics.fmean(timed)
    total = batches * per_batch + looks * per_window
    doubt = 2 * statistics.stdev(timed) / (len(timed) ** 0.5 * per_batch) if len(timed) > 1 else 1.0
    spread = min(max(doubt, _MARGIN), 0.9)
    return TimeEstimate(
        low=total * (1 - spread),
        high=total * (1 + spread),
        batches_timed=len(timed),
        seconds_per_batch=per_batch,
        device=device.type,
    )


def _time_batches(student: Network, text: EncodedText, config: TrainingConfig, seconds: float) -> list[float]:
    """Seconds of each timed batch; at least one, however slow."""
    student.train()
    student.requires_grad_(True)
    student.train_embeddings(config.train_embeddings)
    optimiser = make_optimiser(
        student,
        kind=config.optimiser,
        lr_encoder=0.0,
        lr_head=0.0,
        weight_decay=0.0,
        momentum=config.momentum,
    )
    order = LengthBuckets(text.lengths, config.batch_size, seed=0)
    timed: list[float] = []
    begin = time.perf_counter()
    for windows in itertools.islice(itertools.cycle(list(order)), _WARM_UP + _MOST_BATCHES):
        start = time.perf_counter()
        batch = collate(text, windows).to(student.device)
        logits = student(batch).logits
        loss = F.cross_entropy(logits, logits.detach().argmax(1))
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(trainable(student), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        float(loss.detach())  # waits for the device
        timed.append(time.perf_counter() - start)
        if time.perf_counter() - begin > seconds:
            break
    return timed[_WARM_UP:] or timed[-1:]


def _time_tagging(network: Network, text: EncodedText, batch_size: int, seconds: float) -> float:
    """Seconds per window when tagging, batch by batch until the time is used."""
    random = np.random.default_rng(0)
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds or not done:
        windows = random.choice(text.windows, size=min(batch_size, text.windows), replace=False)
        for _, out in outputs(network, text, batch_size=batch_size, windows=windows):
            float(out.logits.sum())
        done += len(windows)
        if done >= 4 * text.windows:
            break
    return (time.perf_counter() - begin) / done
