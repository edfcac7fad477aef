"""Own Others, once more: every definition as loops over single words, with ``math`` on plain lists.

Slow and repetitive on purpose, like ``oracle``: it shares nothing with the package. A group is a list of
labels; ``scores[c]`` is z_c, ``others[g]`` is z of the Other of group g (for group 0: the score of O itself).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oracle import Vector, averaged, dot, matched_weights, mean, softmax, unit

KEEP, REST, NOTHING = "keep", "rest", "nothing"
Target = str | int  # one of the three, or a label: O's number means the Other of the group


@dataclass
class Space:
    """Which label is in which group, and which are O and silent."""

    group_of: list[int]
    other: int
    type_of: list[str | None]

    def labels(self, group: int) -> list[int]:
        return [c for c, its in enumerate(self.group_of) if its == group and c != self.other]

    @property
    def groups(self) -> list[int]:
        """Those with a label that means something: a group whose types were all taken away is not asked."""
        return [g for g in sorted(set(self.group_of)) if any(c not in self.silent for c in self.labels(g))]

    @property
    def silent(self) -> list[int]:
        return [c for c, its in enumerate(self.type_of) if its is None and c != self.other]

    def trained(self, group: int, types: set[str]) -> list[int]:
        """Labels of the group that text annotated for these types trains: a type is trained in the group of
        its first label, whatever it was merged with.
        """
        return [
            c
            for c in self.labels(group)
            if self.type_of[c] in types and self.group_of[self.type_of.index(self.type_of[c])] == group
        ]


# -- heads -----------------------------------------------------------------------------------------------


def cosine_scores(
    feature: Vector, rows: list[Vector], sigmas: Vector, others: list[Vector], space: Space
) -> tuple[list[float], list[float]]:
    """(z of each label, z of each group's Other)."""
    h = unit(feature)
    z = [sigmas[space.group_of[c]] * dot(h, unit(row)) for c, row in enumerate(rows)]
    own = [sigmas[g] * dot(h, unit(row)) for g, row in enumerate(others, start=1)]
    return z, [z[space.other], *own]


def linear_scores(
    feature: Vector, rows: list[Vector], biases: Vector, space: Space
) -> tuple[list[float], list[float]]:
    z = [dot(feature, row) + bias for row, bias in zip(rows, biases, strict=True)]
    return z, [z[space.other]] + [0.0] * max(space.group_of)


def columns(z: Vector, others: Vector, space: Space) -> list[float]:
    """z_O, and for any other label z_O plus its log-odds against its own Other."""
    return [
        z[c] if space.group_of[c] == 0 else z[space.other] + (z[c] - others[space.group_of[c]])
        for c in range(len(z))
    ]


# -- distributions and decisions -------------------------------------------------------------------------


def distribution(z: Vector, others: Vector, group: int, space: Space) -> dict[int, float]:
    """p_g by label; that of the group's Other under O's number."""
    labels = space.labels(group)
    shares = softmax([others[group], *(z[c] for c in labels)])
    return dict(zip([space.other, *labels], shares, strict=True))


def decided(z: Vector, others: Vector, space: Space) -> int:
    """The label with the largest log-odds of those that speak, or O."""
    best, most = space.other, 0.0
    for group in space.groups:
        labels = space.labels(group)
        winner = max(labels, key=lambda c: z[c])
        odds = z[winner] - others[group]
        if winner not in space.silent and odds > most:
            best, most = winner, odds
    return best


def score(z: Vector, others: Vector, label: int, space: Space) -> float:
    """Of a type: the sum over its prefixes in a group, the maximum over the groups of a merged one."""
    found = []
    for group in space.groups:
        labels = space.labels(group)
        loudest = max(labels, key=lambda c: z[c])
        p = distribution(z, others, group, space)
        mine = [c for c in labels if space.type_of[c] == space.type_of[label]]
        if mine and loudest not in space.silent:
            found.append(math.fsum(p[c] for c in mine))
    return max(found)


# -- what a word teaches ---------------------------------------------------------------------------------


@dataclass
class Word:
    """``annotated``: the types that are completely annotated where it stands; ``gold``: its label there."""

    gold: int
    annotated: set[str]
    z: Vector = ()
    others: Vector = ()
    old_z: Vector = ()  # of the labels that the old model has
    old_others: Vector = ()
    matched: list[tuple[Vector, Vector]] = field(default_factory=list)


def target(word: Word, group: int, space: Space, known_groups: Sequence[int]) -> Target:
    if word.gold != space.other and space.group_of[word.gold] == group:
        return word.gold
    trained = space.trained(group, word.annotated)
    if trained == space.labels(group):
        return space.other
    if trained:
        return REST
    return KEEP if group in known_groups else NOTHING


# -- losses ----------------------------------------------------------------------------------------------


def classify(
    words: list[Word],
    targets: list[dict[int, Target]],
    space: Space,
    current: set[str],
    matched: bool = False,
    share: float = 0.0,
) -> float:
    """Sum over groups of the mean cross-entropy of the words of which the label in the group is known.

    ``share``: words of the group's types that are fewer than this count more, up to 4 times.
    """
    total = 0.0
    for group in space.groups:
        losses = []
        for word, taught in zip(words, targets, strict=True):
            p = distribution(word.z, word.others, group, space)
            if matched and space.group_of[word.gold] == group and space.type_of[word.gold] in current:
                p = averaged_in(word, group, space)
            wanted = taught[group]
            if wanted == REST:
                losses.append(-math.log(math.fsum(p[c] for c in rest_of(group, space, current))))
            elif isinstance(wanted, int):
                weight = 1.0 if wanted == space.other else rarity(targets, group, space, share)
                losses.append(-weight * math.log(p[wanted]))
        total += mean(losses)
    return total


def rarity(targets: list[dict[int, Target]], group: int, space: Space, share: float) -> float:
    wanted = [taught[group] for taught in targets if isinstance(taught[group], int)]
    theirs = sum(label != space.other for label in wanted) / len(wanted)
    return min(4.0, max(1.0, math.sqrt(share / theirs)))


def rest_of(group: int, space: Space, current: set[str]) -> list[int]:
    """The group's Other and its labels that the step does not train."""
    trained = space.trained(group, current)
    return [space.other, *(c for c in space.labels(group) if c not in trained)]


def averaged_in(word: Word, group: int, space: Space) -> dict[int, float]:
    own = distribution(word.z, word.others, group, space)
    labels = list(own)
    matches = [distribution(z, others, group, space) for z, others in word.matched]
    mixed = averaged(
        [own[c] for c in labels],
        [[one[c] for c in labels] for one in matches],
        matched_weights(len(matches)),
    )
    return dict(zip(labels, mixed, strict=True))


def keep(
    words: list[Word],
    targets: list[dict[int, Target]],
    space: Space,
    current: set[str],
    averaged_words: Mapping[int, int] | None = None,
    power: float = 1.0,
) -> float:
    """Sum over old groups of the mean KL(q_g || p_g). ``averaged_words``: by word, the group in which its
    matches are read. ``power``: q_g of words that the old model gives a label of the group.
    """
    total = 0.0
    for group in space.groups:
        losses = []
        for number, (word, taught) in enumerate(zip(words, targets, strict=True)):
            if taught[group] not in (KEEP, REST):
                continue
            p = distribution(word.z, word.others, group, space)
            if (averaged_words or {}).get(number) == group:
                p = averaged_in(word, group, space)
            known = [c for c in space.labels(group) if c < len(word.old_z)]
            among = [space.other, *known]
            if taught[group] == REST:
                rest = rest_of(group, space, current)
                among = [c for c in among if c in rest]
                mass = math.fsum(p[c] for c in rest)
                p = {c: p[c] / mass for c in rest}
            own = word.old_others[group]
            q = softmax([own if c == space.other else word.old_z[c] for c in among])
            if any(share > q[0] for share in q[1:]):
                q = [share**power / math.fsum(one**power for one in q) for share in q]
            losses.append(
                math.fsum(a * (math.log(a) - math.log(p[c])) for a, c in zip(q, among, strict=True))
            )
        total += mean(losses)
    return total


# -- what the old model knows ----------------------------------------------------------------------------


def claims(word: Word, type_: str, space: Space) -> bool:
    """Whether the old model, asked about the type alone, would say yes: its label beats its own Other."""
    for group, z, labels in _old_groups(word, space):
        winner = max(labels, key=lambda c: z[c])
        if space.type_of[winner] == type_ and z[winner] > word.old_others[group]:
            return True
    return False


def sureness(word: Word, type_: str, space: Space) -> float:
    """The old model's probability of the type, the largest of those of its groups."""
    found = [0.0]
    for group, z, labels in _old_groups(word, space):
        p = softmax([word.old_others[group], *(z[c] for c in labels)])
        mine = [share for share, c in zip(p[1:], labels, strict=True) if space.type_of[c] == type_]
        found.append(math.fsum(mine))
    return max(found)


def _old_groups(word: Word, space: Space) -> list[tuple[int, Vector, list[int]]]:
    """(group, scores, labels) of the groups that the old model has."""
    known = {g: [c for c in space.labels(g) if c < len(word.old_z)] for g in space.groups}
    return [(group, word.old_z, labels) for group, labels in known.items() if labels]


def refined(words: list[Word], type_: str, group: int, space: Space, share: float) -> bool:
    """Whether an old type claims so large a share of the words that are labelled with the group's labels."""
    own = [word for word in words if word.gold != space.other and space.group_of[word.gold] == group]
    claimed = sum(claims(word, type_, space) for word in own)
    return claimed > 0 and claimed >= share * len(own)
