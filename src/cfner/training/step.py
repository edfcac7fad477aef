"""One step from beginning to end: encode its data, prepare it with the method, train, finish."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from accelerate import Accelerator
from accelerate.utils import set_seed

from cfner.batches.step_data import StepData, encode_slices
from cfner.errors import ConfigError, ModelError, StreamError
from cfner.methods.method import Method
from cfner.network.experts import ExpertNetwork
from cfner.network.inference import predict_spans
from cfner.network.network import Network
from cfner.store.model_files import LoadedModel
from cfner.store.origins import Origin
from cfner.stream.labels import LabelSpace
from cfner.stream.step import Slice, Step
from cfner.training.config import TrainingConfig
from cfner.training.loop import derived_seed, train
from cfner.training.new_model import new_model
from cfner.training.preparation import TrainingContext, prepare
from cfner.training.prepared_step import PreparedStep
from cfner.training.progress import Progress
from cfner.training.reminders import Reminders, reminders
from cfner.training.selection import EpochChoice
from cfner.training.state import TrainingState
from cfner.training.unfinished_step import UnfinishedStep

_log = logging.getLogger(__name__)


class TrainedStep(NamedTuple):
    model: LoadedModel
    state: TrainingState
    reminders: Reminders
    before: Network | None  # the network that the step started from, unless it was from scratch


def train_step(
    model: LoadedModel,
    step: Step,
    labels: LabelSpace,
    method: Method,
    config: TrainingConfig,
    accelerator: Accelerator,
    progress: Progress,
    unfinished: UnfinishedStep | None = None,
    origins: Sequence[Origin] = (),
) -> TrainedStep:
    """Train the model's network in place (a new one for methods that start from scratch).

    ``origins``: the earlier networks that learned some of the model's types.
    """
    seed = derived_seed(config.seed, step.index)
    set_seed(seed)
    if method.from_scratch and model.labels.types:
        model = replace(new_model(config), labels=model.labels)
    model.network.to(accelerator.device)
    reminded = _reminded(model, step, method, config)
    step = replace(step, unlabelled=reminded.sentences)
    if reminded.sentences:
        _log.info(reminded.in_words())
    ctx = step_context(model, step, labels, method, config, origins)
    if not ctx.data.sentences:
        raise StreamError(f"'{step.name}' has no training sentences.", remedy="Give some with words.")
    if ctx.data.text.shortened_words:
        _log.warning(
            f"{ctx.data.text.shortened_words} word(s) have more subwords than a window of "
            f"{model.max_length}; the encoder does not see their tail."
        )
    evaluate = _choice(model, step, ctx, method)
    network = method.grow(model.network, ctx)
    split = network.free(lowest=config.freeze_layers, embeddings=config.train_embeddings)
    prepared = prepare(network, ctx, method)
    bf16 = accelerator.mixed_precision == "bf16"
    with ExitStack() as stack:
        for one in (network, prepared.old):
            if one is not None:
                stack.enter_context(one.ready_for(prepared.objective.probes, bf16=bf16))
        state = train(
            network,
            prepared,
            config,
            accelerator,
            name=step.name,
            epochs=ctx.epochs,
            stop_after=step.stop_after,
            first_step=ctx.known is None,
            seed=seed,
            evaluate=evaluate,
            progress=progress,
            split=split,
            unfinished=unfinished,
        )
        if not (ctx.known is None and method.plain_first_step):
            method.finish(network, ctx)
    network.eval()
    # calibration of untrained types stays valid; that of trained types belongs to the earlier network
    calibration = None if model.calibration is None else model.calibration.without(step.types)
    trained = replace(model, network=network, labels=labels, calibration=calibration)
    return TrainedStep(trained, state, reminded, ctx.known)


def refuse_model(method: Method, model: LoadedModel) -> None:
    """A method that trains one network cannot continue from experts. A method with one softmax over all
    labels cannot continue from types with their own Other classes.
    """
    if method.from_scratch:
        return
    if isinstance(model.network, ExpertNetwork) and not method.adds_experts:
        raise ConfigError(
            f"The method '{method.variant}' trains one network, but this model has "
            f"{len(model.network.rows)} experts.",
            remedy="Use the method experts, or merge them into one network: `consolidate(MODEL, TEXT)`.",
        )
    if model.labels.has_own_others and method.grouping is None:
        raise ConfigError(
            f"The method '{method.variant}' needs one Other class for all types, but this model's types have "
            "their own.",
            remedy="Use the method own-other, or continue from a step that was learned without own Others.",
        )


def experts_of(model: LoadedModel) -> int:
    """How many experts a model has; raises if it has none."""
    if not isinstance(model.network, ExpertNetwork):
        raise ModelError(
            "This model is already one network, so there are no experts to merge.",
            remedy="There is nothing to do.",
        )
    return len(model.network.rows)


def step_context(
    model: LoadedModel,
    step: Step,
    labels: LabelSpace,
    method: Method,
    config: TrainingConfig,
    origins: Sequence[Origin] = (),
) -> TrainingContext:
    """The step as the method sees it, with the model as it was before the step."""
    first = method.from_scratch or not model.labels.types
    known = None if first else model.network.frozen_copy()
    current = step.types_so_far if method.from_scratch else step.types
    data = _encoded(model, method.slices(step), labels)
    return TrainingContext(step, labels, current, data, config, known, method.grouping is not None, origins)


def prepared_step(
    model: LoadedModel,
    step: Step,
    labels: LabelSpace,
    method: Method,
    config: TrainingConfig,
    origins: Sequence[Origin] = (),
) -> PreparedStep:
    """The prepared step, without training it: ``model`` is not changed."""
    step = replace(step, unlabelled=_reminded(model, step, method, config).sentences)
    network = model.network.frozen_copy()  # preparing a step grows the network that it is given
    ctx = step_context(replace(model, network=network), step, labels, method, config, origins)
    return prepare(method.grow(network, ctx), ctx, method)


def _reminded(model: LoadedModel, step: Step, method: Method, config: TrainingConfig) -> Reminders:
    """The unlabelled sentences that the old model chooses."""
    if not step.unlabelled or not method.reads_unlabelled:
        return Reminders()
    return reminders(model, step, config)


def _choice(model: LoadedModel, step: Step, ctx: TrainingContext, method: Method) -> EpochChoice | None:
    """The rule that chooses the epoch; None without dev data. Uses the old model before it is trained."""
    sentences = step.joint_dev if method.from_scratch else step.dev
    dev = _encoded(model, (Slice(sentences, frozenset(ctx.current)),), ctx.labels)
    if not dev.sentences or ctx.config.select_on == "last":
        return None
    size, old = ctx.config.eval_batch_size, None
    if ctx.known is not None and ctx.config.select_on == "new+old":
        old = predict_spans(ctx.known, dev.text, model.labels, batch_size=size)
    return EpochChoice(dev, ctx.labels, ctx.current, batch_size=size, old=old)


def _encoded(model: LoadedModel, slices: tuple[Slice, ...], labels: LabelSpace) -> StepData:
    return encode_slices(slices, labels, model.tokenizer, max_length=model.max_length, overlap=model.overlap)
