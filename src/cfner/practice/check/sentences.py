"""Findings about sentences: repeated, leaked, contradictory, very long, with damaged characters.

Each check reads the sentences once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from cfner.corpus.corpus import Corpus
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence
from cfner.corpus.split_files import SPLITS
from cfner.practice.check.findings import Finding, Severity, counted, note, some, warning

_LONG: Final = 200  # words; sentences of prose are rarely longer
_REPEATED_WORTH_A_NOTE: Final = 0.01
_REPEATED_A_LOT: Final = 0.1
_DAMAGED: Final = re.compile("\ufffd|[\ud800-\udfff]")
# UTF-8 that was read as Latin-1 or Windows-1252: é becomes Ã©, a curly quote becomes â€™
_MISREAD: Final = re.compile("[ÃÂ][\x80-\xbf€‚„†‡ˆ‰‹‘’“”•–—˜™›]|â€")
_LATIN: Final = re.compile("[A-Za-z]")
# Greek and Cyrillic letters that look like Latin ones
_LOOKS_LATIN: Final = re.compile("[\u0370-\u03ff\u0400-\u04ff]")
# severity, kind, verb, problem, remedy
_ODD: Final[dict[str, tuple[Severity, str, str, str, str]]] = {
    "damaged": (
        "warning",
        "encoding",
        "hold",
        "characters that were lost in a conversion",
        "Convert the file again.",
    ),
    "misread": ("warning", "encoding", "look", "like UTF-8 read as another encoding", "Convert to UTF-8."),
    "invisible": ("note", "invisible", "hold", "control or invisible characters", "Remove them if unwanted."),
    "mixed": (
        "note",
        "scripts",
        "hold",
        "Latin letters beside Greek or Cyrillic ones",
        "Check for letters that look alike.",
    ),
}


def reading_findings(report: ReadReport) -> Iterator[Finding]:
    """What had to be repaired or left out while reading."""
    if report.tokens_reported:
        yield warning(
            "tokens left out",
            f"{report.tokens_reported:,} of {report.tokens_read:,} tokens are not in any sentence.",
            remedy="See the repairs below for why.",
        )
    for kind, count in sorted(report.repairs.items()):
        yield note(
            "repaired",
            f"While reading: {kind} ({counted(count, 'time')}).",
            where=report.places[kind][0] if report.places.get(kind) else None,
            remedy="Correct the file if this is not what you meant.",
        )
    for what, named in (("formats", report.format), ("tag schemes", report.scheme)):
        if named and " + " in named:
            yield note("mixed files", f"The files have different {what}: {named}.")


def repetition_findings(corpus: Corpus) -> Iterator[Finding]:
    """Sentences that occur twice, occur twice with different labels, or occur in two splits."""
    first: dict[str, dict[str, Sentence]] = {split: {} for split in SPLITS}
    differently: list[tuple[Sentence, Sentence]] = []
    repeated = 0
    for split in SPLITS:
        for sentence in corpus.split_named(split):
            earlier = first[split].setdefault(sentence.key, sentence)
            if earlier is sentence:
                continue
            repeated += split == "train"
            if earlier.spans != sentence.spans:
                differently.append((earlier, sentence))
    for other, split in combinations(SPLITS, 2):
        sentences = corpus.split_named(split)
        shared = [sentence for sentence in sentences if sentence.key in first[other]]
        # once per pair of splits: repetitions inside a split were compared above
        for key, sentence in first[split].items():
            if key in first[other] and first[other][key].spans != sentence.spans:
                differently.append((first[other][key], sentence))
        if shared:
            share = _percent(len(shared) / len(sentences))
            yield warning(
                "leak",
                f"{split} shares {counted(len(shared), 'sentence')} ({share} of it) with {other}: "
                f"scores on {split} look better than they are.",
                where=shared[0].source,
                remedy=f"Remove them from {other}, or divide the data again with `Corpus.split`, "
                "which keeps equal sentences together.",
            )
    if differently:
        earlier, later = differently[0]
        only_once = sorted(set(earlier.spans) ^ set(later.spans))
        shown = [f"'{' '.join(later.words[s.start : s.end])}' as {s.type}" for s in only_once]
        yield warning(
            "labelled differently",
            f"{counted(len(differently), 'sentence', 'repeat')} an earlier one with other labels. The first "
            f"has {some(shown, 3)} in one of the two places only.",
            where=later.source,
            remedy=f"Compare with {earlier.source}, and choose one labelling: the model cannot learn both.",
        )
    again = repeated / len(corpus.train) if corpus.train else 0.0
    if again >= _REPEATED_WORTH_A_NOTE:
        yield Finding(
            "warning" if again > _REPEATED_A_LOT else "note",
            "repeated sentences",
            f"{counted(repeated, 'training sentence', 'repeat')} an earlier one word by word "
            f"({_percent(again)}), so these sentences weigh more in training.",
            remedy="Remove the repetitions, unless the text really is that repetitive.",
        )


def length_findings(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    longest = max(sentences, key=len, default=None)
    if longest is None or len(longest) <= _LONG:
        return
    count = sum(len(sentence) > _LONG for sentence in sentences)
    yield note(
        "long sentences",
        f"{counted(count, 'sentence', 'have')} more than {_LONG} words; the longest has {len(longest):,}. "
        "Long ones are read in overlapping windows, so nothing is lost, but blank lines may be missing.",
        where=longest.source,
        remedy="Check that sentences are separated as they should be.",
    )


def character_findings(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Words with control characters, with damaged or misread encoding, or with letters of two scripts."""
    found: dict[str, list[tuple[str, Sentence]]] = {name: [] for name in _ODD}
    for sentence in sentences:
        for word in sentence.words:
            if not (word.isascii() and word.isprintable()) and (odd := _oddity(word)):
                found[odd].append((word, sentence))
    for name, (severity, kind, verb, what, remedy) in _ODD.items():
        if found[name]:
            examples = some([repr(word) for word in dict.fromkeys(word for word, _ in found[name])], 3)
            message = f"{counted(len(found[name]), 'word', verb)} {what}: {examples}."
            yield Finding(severity, kind, message, found[name][0][1].source, remedy)


def _oddity(word: str) -> str | None:
    if _DAMAGED.search(word):
        return "damaged"
    if not word.isprintable():
        return "invisible"
    if _MISREAD.search(word):
        return "misread"
    return "mixed" if _LOOKS_LATIN.search(word) and _LATIN.search(word) else None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
