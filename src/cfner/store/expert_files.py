"""Experts on disk: one file for what they share and the first of them, and one for each later expert.

A step adds one expert and changes no other, so all other files are the same as in the step before and shared
with it (see ``model_folder``): a step costs its top layers and its head. Each step folder is complete.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt
from torch import nn

from cfner.network.cut_encoder import cut, top_layers
from cfner.network.experts import Expert, ExpertNetwork
from cfner.network.head import HeadKind, make_head
from cfner.network.network import Network
from cfner.stream.labels import LabelSpace

WEIGHTS = "model.safetensors"
_Number = Annotated[StrictInt, Field(ge=0)]


class _Expert(BaseModel):
    """Its labels, and the groups and blocks of its head's rows."""

    model_config = ConfigDict(extra="forbid")

    rows: list[_Number]
    blocks: list[_Number]
    groups: list[_Number] = []


class ExpertFacts(BaseModel):
    """The description of a network of experts in labels.json."""

    model_config = ConfigDict(extra="forbid")

    top: Annotated[StrictInt, Field(ge=1)]  # layers
    ranks: list[_Number]  # of each label
    experts: Annotated[list[_Expert], Field(min_length=2)]

    @classmethod
    def of(cls, network: ExpertNetwork) -> ExpertFacts:
        experts = [
            _Expert(rows=list(rows), blocks=list(expert.head.blocks), groups=list(expert.head.groups))
            for expert, rows in zip(network.experts, network.rows, strict=True)
        ]
        return cls(top=network.top, ranks=list(network.ranks), experts=experts)

    def refuse_other_labels(self, labels: LabelSpace) -> None:
        """A ValueError if the experts do not fit these labels."""
        known = len(self.experts[0].rows)
        numbers = {label for expert in self.experts for label in expert.rows}
        if self.experts[0].rows != list(range(known)) or numbers != set(range(len(labels))):
            raise ValueError("the experts do not cover all labels in order")
        if any(len(set(expert.rows)) != len(expert.rows) for expert in self.experts):
            raise ValueError("an expert has a label twice")
        if len(self.ranks) != len(labels) or set(self.ranks) != set(range(len(set(self.ranks)))):
            raise ValueError(f"the ranks {self.ranks} do not fit {len(labels)} labels")
        if labels.other_id >= known:
            raise ValueError("the first expert does not have the label O")


def experts_in(facts: Mapping[str, Any], labels: LabelSpace) -> ExpertFacts | None:
    """The validated description of experts in a labels.json; None for a model that is one network."""
    if "experts" not in facts:
        return None
    found = ExpertFacts.model_validate(facts["experts"])
    found.refuse_other_labels(labels)
    return found


def place_of(key: str, experts: int) -> tuple[str, str]:
    """(file, name in it) of a weight in a network with this many experts (0: one network), by its key there.

    Keys depend on which expert is the newest; names in files do not, because adding one must not change them.
    """
    if key.startswith("older."):
        _, number, name = key.split(".", 2)
        return expert_file(int(number)), name
    return (WEIGHTS if key.startswith("shared.") else expert_file(experts - 1)), key


def key_of(file: str, name: str, experts: int) -> str:
    """The inverse of ``place_of``."""
    number = 0 if file == WEIGHTS else int(file.removeprefix("expert-").partition(".")[0])
    newest = number == max(0, experts - 1)
    return name if newest or name.startswith("shared.") else f"older.{number}.{name}"


def expert_file(number: int) -> str:
    return f"expert-{number}.safetensors" if number > 0 else WEIGHTS


def build_experts(
    body: nn.Module, kind: HeadKind, hidden: int, labels: LabelSpace, facts: ExpertFacts
) -> Network:
    """The network of experts that the facts describe, on an encoder of that architecture, without weights."""
    shared, upper = cut(body, top_layers(body, facts.top))
    experts = []
    for number, one in enumerate(facts.experts):
        rows, other = (len(one.rows), labels.other_id) if number == 0 else (1 + len(one.rows), 0)
        head = make_head(kind, hidden, rows, blocks=one.blocks, groups=one.groups, other=other)
        experts.append(Expert(copy.deepcopy(upper), head))
    rows_of = [one.rows for one in facts.experts]
    return ExpertNetwork(shared, experts, rows_of, facts.ranks, labels.silent)
