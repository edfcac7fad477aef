"""Turns a network into experts, adds an expert, and merges experts into one network."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence

import torch

from cfner.errors import ConfigError
from cfner.network.cut_encoder import cut, top_layers
from cfner.network.experts import Expert, ExpertNetwork
from cfner.network.head import START_SIGMA, CosineHead, Head, empty_head
from cfner.network.network import Network, copy_head


def refuse_top(network: Network, top: int | None) -> int:
    """How many layers the top of each expert has: ``top``, or a third; raises if that is not possible."""
    if not isinstance(network, ExpertNetwork):
        return top_layers(network.body, top)
    there = network.top
    if top not in (None, there):
        raise ConfigError(
            f"The top cannot be {top} layers: this model's experts have {there} each, and share the rest.",
            remedy=f"Leave top out, or give {there}.",
        )
    return there


def with_expert(
    network: Network,
    group_of: Sequence[int],
    *,
    top: int | None = None,
    taken: Sequence[int] = (),
    old_wins: bool = False,
    silent: Collection[int] = (),
) -> ExpertNetwork:
    """The network with one more expert, which so far has only the labels ``taken``: those of known types with
    more data. A network without experts becomes the first expert, and must not be used afterwards.

    ``group_of``: the group of every label after the step. The new top starts as a copy of the newest one. If
    the step only brings more data for types of one expert, it starts as a copy of that expert.
    """
    depth_of_top = refuse_top(network, top)
    if isinstance(network, ExpertNetwork):
        shared, experts = network.shared, [*network.experts]
        rows, ranks = network.rows, network.ranks
    else:
        shared, upper = cut(network.body, depth_of_top)
        experts, rows = [Expert(upper, network.head)], (tuple(range(network.labels)),)
        ranks = (0,) * network.labels
    readers = {label: _reader(rows, label) for label in taken}
    start = len(experts) - 1
    if len(group_of) == len(ranks) and len(set(readers.values())) == 1:
        (start,) = set(readers.values())
    head, numbers = _taken_over(experts, rows, readers, group_of)
    newest = Expert(copy.deepcopy(experts[start].body), head)
    grown = ExpertNetwork(shared, [*experts, newest], [*rows, tuple(sorted(taken))], ranks, silent)
    grown.group_numbers = numbers
    grown.new_rank = max(ranks) + (1 if old_wins else 0)
    return grown


def _reader(rows: Sequence[Sequence[int]], label: int) -> int:
    return max(number for number, own in enumerate(rows) if label in own)


def _taken_over(
    experts: Sequence[Expert], rows: Sequence[Sequence[int]], readers: dict[int, int], group_of: Sequence[int]
) -> tuple[Head, dict[int, int]]:
    """(a head with the labels in ``readers`` and unchanged log-odds; the numbers of its groups)."""
    first = experts[0].head
    sigma = first.start_sigma if isinstance(first, CosineHead) else START_SIGMA
    head = empty_head(first.kind, first.hidden, sigma).to(first.weight.device)
    numbers: dict[int, int] = {}
    for label in sorted(readers):
        reader, group = readers[label], group_of[label]
        numbers.setdefault(group, len(numbers) + 1)
        row = label if reader == 0 else 1 + tuple(rows[reader]).index(label)
        head = head.adopted(experts[reader].head, [row], [numbers[group]])
    return head, numbers


def consolidated(network: ExpertNetwork, group_of: Sequence[int]) -> Network:
    """One network with all labels, to be trained by distillation from the experts: the newest expert's
    encoder and the rows of all. Rows of older experts were trained on different features: they are only a
    start.
    """
    head = copy_head(network.first)
    for expert, own in zip(network.experts[1:], network.rows[1:], strict=True):
        new = [label for label in own if label >= head.labels]
        if new:
            places = [1 + own.index(label) for label in new]
            head = head.adopted(expert.head, places, [group_of[label] for label in new])
    with torch.no_grad():
        return Network(network.newest_encoder(), head)
