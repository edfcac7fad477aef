"""The label space: which label has which number. It only ever grows at its end; a label never moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, Self

from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tags import (
    PREFIXES,
    Scheme,
    TagError,
    detect_scheme,
    labels_of,
    parse_tag,
    spans_from_tags,
    tags_from_spans,
)
from cfner.errors import StreamError, nearest

OTHER: Final = "O"

# Labels in some published checkpoints for positions that are not words. They name no type, and a word
# predicted as one of them counts as O.
NOT_FOR_WORDS: Final = frozenset({"X", "[PAD]", "[CLS]", "[SEP]", "<pad>", "<s>", "</s>", "<unk>"})

FORGOTTEN: Final = "X"  # the name of the labels of a removed type

# which new labels share an Other class: those of one type, or those of all types of a step
Grouping = Literal["type", "step"]


@dataclass(frozen=True)
class LabelSpace:
    """Labels by number. Made by ``start`` (new model), ``of`` (a checkpoint's labels) and ``grown``.

    With ``bare`` labels a type's only label is its name without a prefix (``PER``); the scheme is then IO.
    A ``merged`` type keeps the labels of the types that were merged: several numbers mean the same type. A
    removed type leaves its numbers behind, called ``X``: a word that gets one has no type.

    ``groups`` says which labels share one softmax, by number (empty: all do). Group 0 shares the Other class
    that is the label O; each later group has its own Other class, which is not a label.

    ``free``: the first so many labels may follow any label; the others must follow the scheme. Those of a
    checkpoint are free: its predictions are not changed, and its labels may be in BIO or IOB1 (same names).
    """

    labels: tuple[str, ...]
    scheme: Scheme = "BIO"
    bare: bool = False
    merged: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    free: int = 0

    def __post_init__(self) -> None:
        self._refuse_bad_groups()
        if not 0 <= self.free <= len(self.labels):
            raise StreamError(f"{self.free} of {len(self.labels)} labels cannot be free.")
        if not any(self.groups):
            object.__setattr__(self, "groups", ())  # a single group is always written as ()
        if OTHER not in self.labels:
            raise StreamError(
                f"None of these labels is '{OTHER}', for words outside mentions: {', '.join(self.labels)}.",
                remedy=f"Rename the label that means 'no entity' to '{OTHER}'.",
            )
        if self.scheme not in PREFIXES:
            raise StreamError(
                f"There is no tag scheme '{self.scheme}'.", remedy=nearest(self.scheme, PREFIXES)
            )
        if self.bare and self.scheme != "IO":
            raise StreamError(
                f"Labels without a prefix cannot follow the scheme {self.scheme}: {', '.join(self.labels)}.",
                remedy="Use the scheme IO.",
            )
        meanings = Counter(label for label in self.labels if label not in NOT_FOR_WORDS)
        meanings |= Counter(tag for tag in self.tags if tag != OTHER)
        several = {
            label for label, type_ in zip(self.labels, self._type_by_id, strict=True) if type_ in self.merged
        }
        several |= {f"{prefix}-{type_}" for type_ in self.merged for prefix in PREFIXES[self.scheme]}
        for label, times in meanings.items():
            if times > 1 and label not in several:
                raise StreamError(f"The label '{label}' has {times} numbers.", remedy="Name each label once.")

    def _refuse_bad_groups(self) -> None:
        if not self.groups:
            return
        numbers = sorted(set(self.groups) | {0})
        if len(self.groups) != len(self.labels) or numbers != list(range(len(numbers))):
            raise StreamError(f"The groups {list(self.groups)} do not fit {len(self.labels)} labels.")
        if self.groups[self.labels.index(OTHER) if OTHER in self.labels else 0]:
            raise StreamError(f"The label '{OTHER}' must be in group 0.")

    @classmethod
    def start(cls) -> Self:
        """The space of a new model: O alone, to be grown in BIO."""
        return cls((OTHER,))

    @classmethod
    def of(cls, labels: Iterable[str], scheme: Scheme | None = None) -> Self:
        """The labels of a Hugging Face checkpoint, in its order, all of them free. Without ``scheme``, it is
        inferred from them.

        A name that occurs several times (as in an export of merged types) means the same type each time.
        Labels alone do not distinguish BIO from IOB1 unless a ``B-`` label is missing; otherwise it is BIO.
        """
        labels = tuple(labels)
        names = [label for label in labels if label != OTHER and label not in NOT_FOR_WORDS]
        try:
            scheme = scheme or detect_scheme([name] for name in names)
            bare = scheme == "IO" and any(not parse_tag(name).prefix for name in names)
        except TagError as error:
            raise StreamError(
                f"The labels {', '.join(labels)} are of no known scheme: {error.what}", remedy=error.remedy
            ) from None
        repeated = {name for name, times in Counter(names).items() if times > 1}
        merged = dict.fromkeys(name if bare else parse_tag(name).type for name in names if name in repeated)
        return cls(labels, scheme, bare, tuple(merged), free=len(labels))

    @property
    def other_id(self) -> int:
        """The number of O."""
        return self.labels.index(OTHER)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The entity types in order of their first label."""
        return tuple(dict.fromkeys(type_ for type_ in self._type_by_id if type_ is not None))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_own_others(self) -> bool:
        """Whether some types have their own Other class."""
        return bool(self.groups)

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """The group of each label, by number."""
        return self.groups or (0,) * len(self.labels)

    def group_of_type(self, type_: str) -> int:
        """The group in which a type is learned. The types merged into it may be in different groups."""
        return self.group_of[self.ids_of([type_])[0]]

    @cached_property
    def types_of_groups(self) -> dict[int, frozenset[str]]:
        """The types that are learned in each group, by the group's number; only groups with types."""
        found: dict[int, set[str]] = {}
        for type_ in self.types:
            found.setdefault(self.group_of_type(type_), set()).add(type_)
        return {group: frozenset(types) for group, types in found.items()}

    @cached_property
    def silent(self) -> tuple[int, ...]:
        """Numbers, besides O's, whose label names no type: the type was removed, or there never was one."""
        return tuple(
            number
            for number, type_ in enumerate(self._type_by_id)
            if type_ is None and number != self.other_id
        )

    @cached_property
    def unheard(self) -> tuple[int, ...]:
        """Numbers of groups in which no type is left: their predictions are never used."""
        heard = {self.group_of[number] for number in self.ids_of(self.types)}
        return tuple(number for number in self.silent if self.group_of[number] not in heard)

    def grown(self, new_types: Iterable[str], own: Grouping | None = None) -> Self:
        """This space with the labels of ``new_types`` at the end, in the scheme of this space.

        Known types change nothing, except that missing labels are added (published checkpoints in IOB1 often
        have no ``B-`` label for a type whose mentions never touched). ``own``: new types get their own group,
        one per type or one for all of them; otherwise they join group 0.
        """
        if isinstance(new_types, str):
            raise TypeError(f"new_types must be a collection of types, not the string '{new_types}'")
        missing = [
            tag for tag in dict.fromkeys(labels_of(new_types, self.scheme)) if tag not in self._id_of_tag
        ]
        labels = tuple(tag[2:] for tag in missing) if self.bare else tuple(missing)
        for label in labels:
            if label == OTHER or label in NOT_FOR_WORDS:  # possible with bare labels only
                raise StreamError(
                    f"A type cannot be called '{label}' here.", remedy="Choose a different name."
                )
        groups = self.group_of + self._groups_of_new([tag[2:] for tag in missing], own)
        return replace(self, labels=self.labels + labels, groups=groups)

    def _groups_of_new(self, types: Sequence[str], own: Grouping | None) -> tuple[int, ...]:
        """The group of each label to be added, by its type. Known types keep their group."""
        last = max(self.group_of)
        new = list(dict.fromkeys(type_ for type_ in types if type_ not in self.types))
        numbers = {
            type_: 0 if own is None else last + (1 + at if own == "type" else 1)
            for at, type_ in enumerate(new)
        }
        return tuple(numbers[type_] if type_ in numbers else self.group_of_type(type_) for type_ in types)

    def without(self, types: Sequence[str]) -> Self:
        """The same labels, with those of ``types`` renamed to X. Numbers and groups stay: the model may still
        predict such a number, which then means that its group found nothing.
        """
        gone = set(self.ids_of(types))
        labels = tuple(FORGOTTEN if number in gone else label for number, label in enumerate(self.labels))
        merged = tuple(type_ for type_ in self.merged if type_ not in types)
        return replace(self, labels=labels, merged=merged)

    def renamed(self, types: Sequence[str], into: str) -> Self:
        """The same labels with ``types`` called ``into``: one of them to rename it, several to merge them.

        Only names change, never a number. ``into`` may be one of ``types``, but not another known type.
        """
        chosen = list(dict.fromkeys(types))
        for type_ in chosen:
            if type_ not in self.types:
                raise self._unknown(type_)
        if into in self.types and into not in chosen:
            raise StreamError(
                f"There is a type '{into}' already.",
                remedy=f"To make them one type, merge '{into}' with them.",
            )
        if chosen == [into] or not chosen:
            raise StreamError(f"The type is already called '{into}'.", remedy="Choose a different name.")
        reserved = self.bare and (into == OTHER or into in NOT_FOR_WORDS)
        if not into or reserved or not into.isprintable() or any(sign.isspace() for sign in into):
            raise StreamError(
                f"A type cannot be called {into!r} here.",
                remedy="Choose a name of visible characters without whitespace.",
            )
        labels = tuple(
            label[: len(label) - len(type_)] + into if type_ is not None and type_ in chosen else label
            for label, type_ in zip(self.labels, self._type_by_id, strict=True)
        )
        merged = [type_ for type_ in self.merged if type_ not in chosen]
        if len(chosen) > 1 or set(chosen) & set(self.merged):
            merged.append(into)
        return replace(self, labels=labels, merged=tuple(merged))

    def ids_of(self, types: Collection[str]) -> tuple[int, ...]:
        """The numbers of all labels of ``types``, ascending."""
        wanted = set(types)
        for type_ in sorted(wanted.difference(self.types)):
            raise self._unknown(type_)
        return tuple(number for number, type_ in enumerate(self._type_by_id) if type_ in wanted)

    def type_of(self, label_id: int) -> str | None:
        """The type of a label; None for O."""
        self._refuse_outside([label_id])
        return self._type_by_id[label_id]

    def encode(self, sentence: Sentence) -> list[int]:
        """One label number per word.

        In IO, touching mentions of one type look like one; ``decode`` cannot separate them again.
        """
        for type_ in sorted(sentence.types.difference(self.types)):
            raise self._unknown(type_, where=sentence.source)
        tags = _tags_of(sentence, self.scheme)
        for tag in tags:
            if tag not in self._id_of_tag:
                raise StreamError(
                    f"There is no label '{tag}', although its type has other labels.",
                    where=sentence.source,
                    remedy="Complete the label space with labels.grown(types) first.",
                )
        return [self._id_of_tag[tag] for tag in tags]

    def decode(self, ids: Sequence[int]) -> tuple[Span, ...]:
        """The mentions in a sequence of label numbers; invalid ones are repaired as in ``corpus.tags``."""
        self._refuse_outside(ids)
        spans, _ = spans_from_tags([self.tags[number] for number in ids], self.scheme)
        return tuple(spans)

    def to_json(self) -> dict[str, Any]:
        return {
            "labels": list(self.labels),
            "scheme": self.scheme,
            "bare": self.bare,
            "merged": list(self.merged),
            **({"groups": list(self.groups)} if self.groups else {}),
            "free": self.free,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The space that ``to_json`` wrote; any other shape raises a KeyError or a TypeError.

        Earlier versions decoded every label word by word, and wrote nothing about it.
        """
        for key, value in (("labels", data["labels"]), ("merged", data.get("merged", []))):
            if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
                raise TypeError(f"'{key}' is not a list of strings")
        if not isinstance(data["bare"], bool):
            raise TypeError("'bare' is not a boolean")
        groups = data.get("groups", [])
        if not isinstance(groups, list) or any(type(group) is not int for group in groups):
            raise TypeError("'groups' is not a list of numbers")
        free = data.get("free", len(data["labels"]))
        if type(free) is not int:
            raise TypeError("'free' is not a number")
        merged = tuple(data.get("merged", ()))
        return cls(tuple(data["labels"]), data["scheme"], data["bare"], merged, tuple(groups), free)

    @property
    def ordered(self) -> bool:
        """Whether some labels may only follow certain others. In IO and IOB1 every order is valid."""
        return self.free < len(self.labels) and self.scheme not in ("IO", "IOB1")

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Each label as a tag of the scheme: with its prefix, or O if it names no type."""
        return tuple(self._tag(label) for label in self.labels)

    @cached_property
    def _id_of_tag(self) -> dict[str, int]:
        # where several numbers mean the same, words are labelled with the first
        by_tag = {tag: number for number, tag in reversed(tuple(enumerate(self.tags)))}
        return by_tag | {OTHER: self.other_id}

    @cached_property
    def _type_by_id(self) -> tuple[str | None, ...]:
        return tuple(None if tag == OTHER else tag[2:] for tag in self.tags)

    def _tag(self, label: str) -> str:
        if label == OTHER or label in NOT_FOR_WORDS:
            return OTHER
        try:
            prefix, type_, _ = parse_tag(f"I-{label}" if self.bare else label)
        except TagError as error:
            raise StreamError(f"In the labels, {error.what}", remedy=error.remedy) from None
        if prefix not in tuple(PREFIXES[self.scheme]):
            expected = ", ".join(f"{p}-TYPE" for p in PREFIXES[self.scheme])
            raise StreamError(
                f"'{label}' is not a label of the scheme {self.scheme} ({OTHER}, {expected}).",
                remedy="Name the scheme that the labels follow, or rename the label.",
            )
        return f"{prefix}-{type_}"

    def _unknown(self, type_: str, where: str | None = None) -> StreamError:
        return StreamError(
            f"The label space has no type '{type_}'.", where=where, remedy=nearest(type_, self.types)
        )

    def _refuse_outside(self, ids: Sequence[int]) -> None:
        # A negative number (such as the -100 of ignored positions) would silently count from the end.
        for number in ids:
            if not 0 <= number < len(self.labels):
                raise IndexError(f"label number {number} is outside 0..{len(self.labels) - 1}")


def _tags_of(sentence: Sentence, scheme: Scheme) -> list[str]:
    if scheme != "IO":
        return tags_from_spans(sentence.spans, len(sentence), scheme)
    # For IO tags_from_spans refuses touching mentions, so that files lose nothing. Here each word still gets
    # its right label, and a checkpoint in IO must be able to learn from any data.
    tags = [OTHER] * len(sentence)
    for span in sentence.spans:
        tags[span.start : span.end] = [f"I-{span.type}"] * (span.end - span.start)
    return tags
