"""A stream as facts: counts, hashes and overlaps. They tell two people whether they hold the same split."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from cfner.corpus.sentence import Sentence, mention_counts

if TYPE_CHECKING:
    from cfner.stream.stream import Step, TaskStream

EXAMPLES: Final = 3


def sentences_hash(sentences: Iterable[Sentence]) -> str:
    """sha256 over the words and mentions in order; where the sentences came from does not matter."""
    digest = hashlib.sha256()
    for sentence in sentences:
        mentions = [[span.start, span.end, span.type] for span in sentence.spans]
        digest.update(_canonical([list(sentence.words), mentions]))
    return digest.hexdigest()


def settings_hash(settings: Mapping[str, Any]) -> str:
    """sha256 over JSON-able settings, whatever the order of their keys."""
    return hashlib.sha256(_canonical(settings)).hexdigest()


def _canonical(value: object) -> bytes:
    # ASCII escapes: lone surrogates, which a damaged text may hold, have no UTF-8 form. The line feed keeps
    # neighbouring values apart.
    return (json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")) + "\n").encode(
        "ascii"
    )


@dataclass(frozen=True)
class Overlap:
    """Two parts of a stream share sentences (the same words, whatever their labels).

    ``sentences`` counts different sentences, however often each of them occurs.
    """

    first: str
    second: str
    sentences: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        example = self.examples[0]
        return f"{self.sentences} sentence(s) are both in {self.first} and in {self.second}, e.g. '{example}'"


def find_overlaps(parts: Mapping[str, Sequence[Sentence]]) -> tuple[Overlap, ...]:
    """All pairs of parts that share a sentence, in the order of ``parts``."""
    holders: dict[str, dict[str, None]] = {}
    for name, sentences in parts.items():
        for sentence in sentences:
            holders.setdefault(sentence.key, {})[name] = None
    shared = {key: tuple(names) for key, names in holders.items() if len(names) > 1}
    texts: dict[str, str] = {}
    for sentences in parts.values():
        texts |= {s.key: " ".join(s.words) for s in sentences if s.key in shared}
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = {}
    for key, names in shared.items():
        for pair in combinations(names, 2):
            counts[pair] += 1
            if counts[pair] <= EXAMPLES:
                examples.setdefault(pair, []).append(texts[key])
    return tuple(
        Overlap(first, second, counts[first, second], tuple(examples[first, second]))
        for first, second in combinations(parts, 2)
        if (first, second) in counts
    )


def manifest_of(stream: TaskStream) -> dict[str, Any]:
    """What ``TaskStream.manifest`` gives."""
    identity = _identity(stream)
    return {
        "corpus": stream.corpus_name,
        **identity,
        "leftover": stream.leftover,
        "left_out_types": list(stream.left_out_types),
        "missing_in_last_step": stream.missing_in_last_step,
        # Without the examples: a manifest is handed on with a model, the text may be private.
        "overlaps": [
            {"first": o.first, "second": o.second, "sentences": o.sentences} for o in stream.overlaps()
        ],
        "warnings": _warnings(stream),
        "hash": settings_hash(identity),
    }


def _identity(stream: TaskStream) -> dict[str, Any]:
    """What the hash covers: all that a result can depend on, and nothing that differs between machines."""
    return {
        "format": 1,
        "setting": stream.setting,
        "sampling": stream.sampling,
        "seed": stream.seed,
        "min_mentions": stream.min_mentions,
        "order": list(stream.types),
        "dropped_types": dict(stream.dropped_types),
        "steps": [_slice_facts(stream, step) for step in stream],
        "dev": _facts(stream.dev),
        "test": _facts(stream.test),
    }


def _slice_facts(stream: TaskStream, step: Step) -> dict[str, Any]:
    with_true_labels = stream.slices[step.index]
    counts = mention_counts(with_true_labels)
    return {
        "name": step.name,
        "types": list(step.types),
        "mentions": {type_: counts[type_] for type_ in step.types},
        "unlabelled_mentions": {type_: counts[type_] for type_ in stream.types if type_ not in step.types},
        **_facts(with_true_labels),
    }


def _facts(sentences: Sequence[Sentence]) -> dict[str, Any]:
    return {"sentences": len(sentences), "sha256": sentences_hash(sentences)}


def _warnings(stream: TaskStream) -> list[str]:
    warnings = _overlap_warnings(stream)
    if stream.leftover:
        warnings.append(f"{stream.leftover} training sentence(s) are in no slice, left over by rounding")
    if stream.missing_in_last_step:
        warnings.append(
            f"the last step has {stream.missing_in_last_step} type(s) fewer than {stream.setting} says"
        )
    for step in stream:
        labelled = mention_counts(step.train)
        warnings += [f"{step.name} has no mention of its type '{t}'" for t in step.types if not labelled[t]]
    return warnings


def _overlap_warnings(stream: TaskStream) -> list[str]:
    """At most four lines, however many slices there are."""
    holders = Counter(key for part in stream.slices for key in {sentence.key for sentence in part})
    train, dev, test = set(holders), {s.key for s in stream.dev}, {s.key for s in stream.test}
    shared = {
        "in more than one slice": sum(slices > 1 for slices in holders.values()),
        "both in training and dev data": len(train & dev),
        "both in training and test data": len(train & test),
        "both in dev and test data": len(dev & test),
    }
    return [f"{count} sentence(s) are {where}" for where, count in shared.items() if count]
