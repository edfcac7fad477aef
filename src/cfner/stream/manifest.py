"""A stream's manifest: counts, hashes and overlaps. With it two people can check that they use the same
split.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from cfner.corpus.sentence import Sentence, mention_counts

if TYPE_CHECKING:
    from cfner.stream.step import Step
    from cfner.stream.stream import TaskStream


def sentences_hash(sentences: Iterable[Sentence]) -> str:
    """sha256 over the words and mentions in order; the sentences' source does not matter."""
    digest = hashlib.sha256()
    for sentence in sentences:
        mentions = [[span.start, span.end, span.type] for span in sentence.spans]
        digest.update(_canonical([list(sentence.words), mentions]))
    return digest.hexdigest()


def settings_hash(settings: Mapping[str, Any]) -> str:
    """sha256 over JSON-able settings, whatever the order of their keys."""
    return hashlib.sha256(_canonical(settings)).hexdigest()


def _canonical(value: object) -> bytes:
    # ASCII escapes: lone surrogates, which damaged text may contain, have no UTF-8 form. The line feed keeps
    # neighbouring values apart.
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return f"{text}\n".encode("ascii")


def manifest_of(stream: TaskStream) -> dict[str, Any]:
    """The content of ``TaskStream.manifest``."""
    # The hash covers everything that a result can depend on, and nothing that differs between machines.
    identity = {
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
        **({"unlabelled": _facts(stream.unlabelled)} if stream.unlabelled else {}),
    }
    return {
        "corpus": stream.corpus_name,
        **identity,
        "leftover": stream.leftover,
        "left_out_types": list(stream.left_out_types),
        "missing_in_last_step": stream.missing_in_last_step,
        "overlaps": _overlaps(stream),
        "warnings": _warnings(stream),
        "hash": settings_hash(identity),
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
    warnings = [*_overlap_warnings(stream), *left_out_of(stream)]
    if stream.missing_in_last_step:
        warnings.append(
            f"the last step has {stream.missing_in_last_step} type(s) fewer than {stream.setting} says"
        )
    for step in stream:
        labelled = mention_counts(step.train)
        warnings += [f"{step.name} has no mention of its type '{t}'" for t in step.types if not labelled[t]]
    return warnings


def left_out_of(stream: TaskStream) -> list[str]:
    """Which parts of the corpus no step learns from, as sentences."""
    said = []
    if stream.dropped_types:
        counts = ", ".join(f"{name} ({count})" for name, count in stream.dropped_types.items())
        said.append(
            f"types dropped, with fewer than {max(1, stream.min_mentions)} training mentions: {counts}"
        )
    if stream.left_out_types:
        said.append(f"types left out, which the order does not name: {', '.join(stream.left_out_types)}")
    if stream.leftover:
        said.append(f"{stream.leftover} training sentence(s) are in no slice, left over by rounding")
    return said


def _overlaps(stream: TaskStream) -> list[dict[str, Any]]:
    """Which slices, dev and test data share sentences (the same words, whatever their labels), and how many.

    Only numbers: a manifest is passed on with a model, and the text may be private. No index is in two
    slices, but a sentence that occurs twice in the corpus may be.
    """
    parts = {step.name: part for step, part in zip(stream, stream.slices, strict=True)}
    keys = {
        name: {sentence.key for sentence in part}
        for name, part in (*parts.items(), ("dev", stream.dev), ("test", stream.test))
    }
    return [
        {"first": first, "second": second, "sentences": len(shared)}
        for first, second in combinations(keys, 2)
        if (shared := keys[first] & keys[second])
    ]


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
