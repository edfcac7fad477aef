"""The training loop of one step. It knows batches, terms and an optimiser, but no specific method."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor
from torch.nn.utils import get_total_norm

from cfner.batches.loader import LengthBuckets, TokenBatch, training_loader
from cfner.errors import TrainingError
from cfner.network.dropout import set_dropout
from cfner.network.frozen_layers import CachedLowerLayers, Frozen
from cfner.network.inference import outputs
from cfner.network.network import Network, TaggerOutput
from cfner.objective.matching import ScoreBank
from cfner.store.untrusted import first_not_finite
from cfner.training.config import TrainingConfig
from cfner.training.environment import other_threads
from cfner.training.interrupt import Interrupt, deferred_interrupt
from cfner.training.optimiser import make_optimiser, make_schedule, trainable
from cfner.training.prepared_step import PreparedStep
from cfner.training.progress import Progress
from cfner.training.randomness import random_state, restore_random
from cfner.training.state import PartOfEpoch, TrainingState
from cfner.training.unfinished_step import UnfinishedStep

_log = logging.getLogger(__name__)


def train(
    network: Network,
    prepared: PreparedStep,
    config: TrainingConfig,
    accelerator: Accelerator,
    *,
    name: str,
    epochs: int,
    first_step: bool,
    seed: int,
    evaluate: Callable[[Network], dict[str, float]] | None,
    progress: Progress,
    split: Frozen | None = None,
    unfinished: UnfinishedStep | None = None,
    stop_after: int | None = None,
) -> TrainingState:
    """Train the network in place; it ends with the weights of the best epoch (the last without dev data).

    ``split``: the frozen layers, if there are any: their output is computed once. With ``unfinished``, an
    interrupted step resumes after its last saved epoch, bit-identically. ``stop_after``: the epoch to stop
    after.
    """
    set_dropout(network.body, config.dropout)
    loader, order = training_loader(
        prepared.data.text, batch_size=config.batch_size, seed=seed, workers=config.workers
    )
    rate = config.first_lr if first_step and config.first_lr is not None else None
    optimiser = make_optimiser(
        network,
        kind=config.optimiser,
        lr_encoder=config.lr_encoder if rate is None else rate,
        lr_head=config.lr_head if rate is None else rate,
        weight_decay=config.weight_decay,
        momentum=config.momentum,
    )
    accelerator.gradient_accumulation_steps = config.accumulation  # accelerate stores it per process
    model, optimiser, loader = accelerator.prepare(network, optimiser, loader)
    schedule = make_schedule(
        optimiser,
        kind=config.schedule,
        per_epoch=math.ceil(len(loader) / config.accumulation),
        epochs=epochs,
        warmup=config.warmup,
        first_step=first_step,
    )
    step = BatchLosses(model, network, prepared.on(network.device), config)
    if split is not None and not any(p.hidden_states or p.attentions for p in step.probes):
        text = prepared.data.text
        step.lower = split.cached(text, network.device, batch_size=config.eval_batch_size)
    bank = step.prepared.bank
    resumed = unfinished.read(network, optimiser, schedule, bank) if unfinished is not None else None
    state = resumed or TrainingState()
    _note_threads(state, progress)
    last = epochs if stop_after is None else min(stop_after, epochs)
    progress.start(name, last - state.epoch, len(loader))
    with ExitStack() as stack:
        stack.callback(progress.end)
        # several processes are stopped by their launcher, not all in the same batch
        alone = unfinished is not None and accelerator.num_processes == 1
        interrupt = stack.enter_context(deferred_interrupt()) if alone else Interrupt()

        def stop_if_asked(batches: int = 0, sums: dict[str, Tensor] | None = None) -> None:
            if not interrupt.asked or unfinished is None:
                return
            if sums is not None:
                state.part = PartOfEpoch(batches, sums, *random_state(network.device))
            unfinished.write(network, optimiser, schedule, bank, state)
            _log.info(_stopped(name, state, last, len(loader)))
            raise KeyboardInterrupt

        for epoch in range(state.epoch + 1, last + 1):
            if _out_of_patience(state, config):
                break
            _begin_epoch(epoch, seed, loader, order)
            part, state.part = state.part, None
            sums = _epoch(
                step, epoch, name, loader, optimiser, schedule, accelerator, progress, part, stop_if_asked
            )
            if bank is not None and accelerator.num_processes > 1:
                bank.exchange(lambda part: accelerator.reduce(part, "sum"))
            figures = _means(sums, len(loader)) | ({} if evaluate is None else evaluate(network))
            if state.note(epoch, figures) and evaluate is not None:
                state.best_weights = {key: value.clone() for key, value in network.state_dict().items()}
            accelerator.log({f"{name}/{key}": value for key, value in figures.items()}, step=epoch)
            progress.epoch(epoch, figures)
            stop_if_asked()
            # no barrier: clocks differ, so processes would not agree on when to save
            if unfinished is not None and accelerator.is_main_process and epoch < last:
                unfinished.write_if_due(network, optimiser, schedule, bank, state)
        if unfinished is not None and accelerator.is_main_process:  # finishing the step may be stopped, too
            unfinished.write(network, optimiser, schedule, bank, state, trained=True)
    _release(accelerator, model, network)
    if state.best_epoch != state.epoch:
        network.load_state_dict(state.best_weights)
    state.best_weights = {}
    return state


def _epoch(
    step: BatchLosses,
    epoch: int,
    name: str,
    loader: Any,
    optimiser: Any,
    schedule: Any,
    accelerator: Accelerator,
    progress: Progress,
    part: PartOfEpoch | None,
    stop_if_asked: Callable[[int, dict[str, Tensor]], None],
) -> dict[str, Tensor]:
    """All batches once, or those after ``part``; the sum of each term over all."""
    clip, accumulation = step.config.clip, step.config.accumulation
    done = 0 if part is None else part.batches
    sums: dict[str, Tensor] = (
        {} if part is None else {term: value.to(step.network.device) for term, value in part.sums.items()}
    )
    step.model.train()
    for number, batch in enumerate(loader, start=1):
        if number <= done:
            if (
                part is not None and number == done
            ):  # restore here, because the loader draws random numbers too
                restore_random(part.generators, part.numbers, step.network.device)
            continue
        with accelerator.accumulate(step.model):
            losses, total = step.losses(batch, epoch)
            if not torch.isfinite(total):
                raise _not_finite(name, epoch, number, losses)
            accelerator.backward(total)
            if accelerator.sync_gradients and not torch.isfinite(_clipped(step.network, clip, accelerator)):
                raise _not_finite(name, epoch, number, losses, "gradient")
            optimiser.step()
            if accelerator.sync_gradients:
                schedule.step()
            optimiser.zero_grad()
        for term, value in losses.items():
            sums[term] = sums.get(term, value.new_zeros(())) + value.detach()
        progress.batch(float(total.detach()), len(batch.windows))
        if number % accumulation == 0 and number < len(loader):
            stop_if_asked(number, sums)
    if (broken := first_not_finite(step.network.state_dict())) is not None:
        raise _not_finite(name, epoch, number, losses, f"weight {broken}")
    return sums


def _clipped(network: Network, clip: float | None, accelerator: Accelerator) -> Tensor:
    """Clip the gradients if requested; returns their norm before that."""
    if clip is not None:
        norm: Tensor = accelerator.clip_grad_norm_(trainable(network), clip)
        return norm
    return get_total_norm([p.grad for p in trainable(network) if p.grad is not None])


class BatchLosses:
    """Computes the losses of a batch."""

    def __init__(self, model: Any, network: Network, prepared: PreparedStep, config: TrainingConfig) -> None:
        self.model = model  # the network, possibly wrapped for several processes
        self.network = network
        self.prepared = prepared
        self.config = config
        self.probes = prepared.objective.probes
        self.lower: CachedLowerLayers | None = None
        self.window_of_ref = (
            torch.from_numpy(prepared.data.text.window_of_refs()) if config.matches == "exact" else None
        )

    def losses(self, batch: TokenBatch, epoch: int) -> tuple[dict[str, Tensor], Tensor]:
        prepared, bank = self.prepared, self.prepared.bank
        if bank is not None and self.window_of_ref is not None:
            self._encode_matches(bank, batch, self.window_of_ref)
        out: TaggerOutput = self.model(batch, self.probes, self.lower)
        losses = prepared.objective.losses(prepared.inputs(self.network, batch, out, epoch, self.model))
        if bank is not None:
            bank.update(batch.refs, out.logits)
        return losses, prepared.objective.total(losses)

    def _encode_matches(self, bank: ScoreBank, batch: TokenBatch, window_of_ref: Tensor) -> None:
        """matches="exact": the current student reads the sentences of all matched tokens, once each."""
        rows = bank.table.row_of_ref[batch.refs]
        matched = bank.table.neighbours[rows[rows >= 0]]
        refs = bank.table.refs[torch.unique(matched[matched >= 0])]
        windows = np.unique(window_of_ref[refs.cpu()].numpy())
        for seen, out in outputs(
            self.network, self.prepared.data.text, batch_size=self.config.eval_batch_size, windows=windows
        ):
            bank.update(seen.refs, out.logits)


def derived_seed(*parts: int) -> int:
    """A 32-bit seed that depends on all parts and their order, the same on every machine. So each step and
    each epoch has its own, however large the user's seed is.
    """
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def _begin_epoch(epoch: int, seed: int, loader: Any, order: LengthBuckets) -> None:
    """Randomness depends on seed and epoch alone, so an interrupted step resumes exactly."""
    set_seed(derived_seed(seed, epoch))
    loader.set_epoch(epoch)  # accelerate's own counter would otherwise start at 0 in a resumed step
    order.set_epoch(epoch)


def _release(accelerator: Accelerator, model: Any, network: Network) -> None:
    """Remove accelerate's wrappers from the network.

    Outside training it computes in full precision, as it will when it is loaded, and the next step prepares
    it again.
    """
    accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    vars(network).pop("_is_accelerate_prepared", None)
    accelerator.free_memory()


def _note_threads(state: TrainingState, progress: Progress) -> None:
    """Record the number of threads, and warn if a resumed step had a different number."""
    if state.threads and (warning := other_threads(state.threads[-1])):
        _log.warning(warning)
    now = torch.get_num_threads()
    if state.threads[-1:] != [now]:
        state.threads.append(now)


def _stopped(name: str, state: TrainingState, epochs: int, batches: int) -> str:
    place = f"after epoch {state.epoch} of {epochs}"
    if state.part is not None:
        place = f"in epoch {state.epoch + 1} of {epochs}, after batch {state.part.batches} of {batches}"
    return f"{name} was stopped {place}. All of this is saved: the next call resumes exactly there."


def _means(sums: dict[str, Tensor], batches: int) -> dict[str, float]:
    return {term: float(value) / batches for term, value in sums.items()}


def _out_of_patience(state: TrainingState, config: TrainingConfig) -> bool:
    return config.patience is not None and state.epochs_without_gain >= config.patience


def _not_finite(
    name: str, epoch: int, batch: int, losses: dict[str, Tensor], what: str = "loss"
) -> TrainingError:
    """``what`` is the loss, or the result of a finite loss: then all its terms are named."""
    bad = [term for term, value in losses.items() if not torch.isfinite(value)]
    terms = ", ".join(bad or losses) or "total"
    return TrainingError(
        f"The {what} is not finite in {name}, epoch {epoch}, batch {batch}, term {terms}. Nothing was saved.",
        remedy="Lower the learning rates (lr_encoder, lr_head) or clip gradients more (clip).",
    )
