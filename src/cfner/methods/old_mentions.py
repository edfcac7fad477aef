"""The old model's predictions of old types in a step: where it is confident, and which types are refined."""

from __future__ import annotations

import torch
from torch import Tensor

from cfner.batches.step_data import IGNORE
from cfner.methods.context import StepContext
from cfner.objective.groups import KEEP
from cfner.objective.teacher import WordScores


class OldMentions:
    """Old types T by words N and groups G. If an old type claims at least the share ``refines`` of a group's
    own words, the group refines it (CITY inside LOCATION): neither is then a negative of the other. A type
    claims a word if it is likelier than its own Other, even if a different type claims the word more.
    """

    def __init__(self, ctx: StepContext, old: WordScores, refines: float) -> None:
        groups, labels = ctx.groups, ctx.labels
        gold = ctx.data.gold.cpu()
        self.is_new = groups.is_new
        # [N, G] words that are labelled with a label of the group
        self.labelled = (groups.row_of[gold][:, None] == torch.arange(len(groups.numbers))) & (
            groups.place[gold] > 0
        )[:, None]
        probabilities = groups.old_log_probs(old.logits.cpu()).exp()  # [N, G, M]
        kept = ctx.roles.kept.cpu()
        claim = probabilities.argmax(2)  # [N, G] members
        types = [type_ for type_ in labels.types if type_ not in ctx.current]
        self.sureness = torch.zeros(len(gold), len(types))  # [N, T]
        self.refined = torch.zeros(len(types), len(groups.numbers), dtype=torch.bool)  # [T, G]
        self.groups_of = torch.zeros(len(types), len(groups.numbers), dtype=torch.bool)  # [T, G]
        own_words = self.labelled.sum(0).clamp_min(1)  # [G]
        for row, type_ in enumerate(types):
            ids = torch.tensor(labels.ids_of([type_]))
            ids = ids[torch.isin(ids, kept)]
            claims = torch.zeros(len(gold), dtype=torch.bool)
            # the parts of a merged type are each looked up in their own group
            for group in sorted(set(groups.row_of[ids].tolist())):
                places = groups.place[ids[groups.row_of[ids] == group]]
                in_group = probabilities[:, group, places].sum(1)
                self.sureness[:, row] = torch.maximum(self.sureness[:, row], in_group)
                self.groups_of[row, group] = True
                claims |= torch.isin(claim[:, group], places)
            claimed = claims[:, None] & self.labelled
            self.refined[row] = (claimed.sum(0) > 0) & (claimed.sum(0) >= refines * own_words)

    def as_negatives(self, taught: Tensor, sure: float) -> Tensor:
        """Where the data gives no target for a word in a new group: the group's Other, if the word is
        confidently of an old type that the group does not refine. ``taught [N, G]``: see ``group_targets``.
        """
        against = (self.sureness > sure).float() @ (~self.refined).float() > 0  # [N, G]
        return torch.where((taught == IGNORE) & self.is_new & against, 0, taught)

    def exclusive(self, taught: Tensor) -> Tensor:
        """Words labelled with a new type are negatives of the old groups that it does not refine."""
        refined = self.groups_of.T.float() @ self.refined.float() > 0  # [G, G]: the old one by the new one
        against = (self.labelled & self.is_new).float() @ (~refined).T.float() > 0  # [N, G]
        return torch.where((taught == KEEP) & against, 0, taught)
