"""A diff of two models as one self-contained HTML page: no script, no font, no picture.

Every word, label and name is escaped by ``text``. The page's Content-Security-Policy forbids loading or
running anything.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple

from cfner.corpus.sentence import Span
from cfner.files.html import text, word
from cfner.network.prediction import Prediction
from cfner.pages.page import figure, head, table, whole_page
from cfner.practice.diff.diff import TYPE_COLUMNS, ModelDiff, SentenceDiff, around, blank_before
from cfner.practice.diff.pairs import KINDS, Change, Kind, Verdict

_CONTEXT = 14  # words shown on each side of a change

KIND_TITLES: dict[Kind, tuple[str, str]] = {
    "lost": ("Lost", "the new model no longer finds these mentions"),
    "gained": ("Gained", "only the new model finds these mentions"),
    "retyped": ("Retyped", "the same words, another type"),
    "moved": ("Moved boundary", "the same type, other words"),
    "moved+retyped": ("Moved and retyped", "other words and another type"),
}
VERDICT_WORDS: dict[Verdict, str] = {
    "right": "became right",
    "wrong": "became wrong",
    "still wrong": "still wrong",
}


def page(diff: ModelDiff) -> str:
    """The complete page, to be encoded as UTF-8."""
    title = f"{diff.old_name} and {diff.new_name}: what changed"
    parts = [
        _header(diff),
        _types(diff),
        *(_section(diff, kind) for kind in KINDS if diff.counts[kind]),
    ]
    return whole_page(title, "diff", parts)


def _header(diff: ModelDiff) -> str:
    before = diff.unchanged + sum(counts.before - counts.unchanged for counts in diff.per_type.values())
    judged = ""
    if diff.judged_types:
        judged = (
            f" The text is labelled with {', '.join(f'<b>{word(t)}</b>' for t in diff.judged_types)}: "
            "changes of these types are marked as right or wrong."
        )
    boxes = "".join(_box(diff, kind) for kind in KINDS)
    return (
        f"<header><p class='over'>{word(diff.old_name)} → {word(diff.new_name)}</p>"
        "<h1>What changed in the new model</h1>"
        f"<p class='lead'>{diff.sentences:,} sentences, {diff.changed_sentences:,} with a change. Of "
        f"{before:,} mentions that the old model finds, <b>{diff.unchanged:,}</b> are unchanged.{judged}</p>"
        f"<div class='figures'>{boxes}</div></header>"
    )


def _box(diff: ModelDiff, kind: Kind) -> str:
    title, meaning = KIND_TITLES[kind]
    note = verdict_line(diff, kind) or meaning
    inner = figure(diff.counts[kind], title, note)
    if not diff.counts[kind]:
        return f"<div>{inner}</div>"
    return f"<a class='{_colour(kind)}' href='#{_anchor(kind)}'>{inner}</a>"


def verdict_line(diff: ModelDiff, kind: Kind) -> str:
    """'3 became right, 1 became wrong'; empty without labels."""
    counts = diff.verdicts.get(kind, Counter())
    return ", ".join(f"{counts[v]:,} {meaning}" for v, meaning in VERDICT_WORDS.items() if counts[v])


def _types(diff: ModelDiff) -> str:
    rows = []
    for type_, c in sorted(diff.per_type.items()):
        cells = "".join(f"<td>{n:,}</td>" if n else "<td class='zero'>0</td>" for n in astuple(c))
        rows.append(f"<tr><td>{word(type_)}</td>{cells}</tr>")
    if not rows:
        return "<section><p class='lead'>Neither model finds a mention in this text.</p></section>"
    shown = table(head(*TYPE_COLUMNS), "".join(rows), "types")
    return f"<section><h2>Per type <span>mentions</span></h2><div class='scroll'>{shown}</div></section>"


def _section(diff: ModelDiff, kind: Kind) -> str:
    title, meaning = KIND_TITLES[kind]
    cards = [_card(sentence, change) for sentence, change in diff.of_kind(kind)]
    missing = diff.counts[kind] - len(cards)
    left_out = f"<p class='lead'>{missing:,} more are counted but not shown.</p>" if missing else ""
    return (
        f"<section id='{_anchor(kind)}' class='{_colour(kind)}'>"
        f"<h2>{text(title)} <span>{diff.counts[kind]:,}: {text(meaning)}</span></h2>"
        f"<div class='heads'><span>{word(diff.old_name)}</span><span>{word(diff.new_name)}</span></div>"
        f"{''.join(cards)}{left_out}</section>"
    )


def _anchor(kind: Kind) -> str:
    return kind.replace("+", "-and-")


def _colour(kind: Kind) -> str:
    return "retyped" if kind == "moved+retyped" else kind


def _card(sentence: SentenceDiff, change: Change) -> str:
    about = []
    if change.verdict is not None:
        word = VERDICT_WORDS[change.verdict]
        about.append(f"<span class='verdict {change.verdict.split()[0]}'>{text(word)}</span>")
    if change.piece == "split":
        about.append("<span>cut from a longer mention</span>")
    if change.piece == "joined":
        about.append("<span>merged into a neighbouring mention</span>")
    if sentence.sentence.source:
        about.append(f"<span>{text(sentence.sentence.source)}</span>")
    foot = f"<div class='about'>{''.join(about)}</div>" if about else ""
    sides = (
        f"<div>{_side(sentence.old, change, change.old)}</div>"
        f"<div>{_side(sentence.new, change, change.new)}</div>"
    )
    return f"<article class='sides box'>{sides}{foot}</article>"


def _side(prediction: Prediction, change: Change, hit: Span | None) -> str:
    """The words around a change as one model tags them; a missing mention's words are underlined."""
    sentence, words = prediction.sentence, around(prediction.sentence, change, _CONTEXT)
    near = [
        entity for entity in prediction.entities if entity.first < words.stop and entity.last > words.start
    ]
    entity_at = {at: entity for entity in near for at in range(entity.first, entity.last)}
    places = {*words, *entity_at}  # mentions at the edges are shown completely
    start, end = min(places), max(places) + 1
    missing = range(0) if hit is not None else range(*change.words)
    shown = "… " if start else ""
    for at in range(start, end):
        entity, written = entity_at.get(at), word(sentence.words[at])
        shown += blank_before(sentence, at) if at > start else ""
        if entity is not None and at == entity.first:
            shown += "<mark class='hit'>" if hit is not None and hit.start == at else "<mark>"
        shown += f"<span class='gone'>{written}</span>" if entity is None and at in missing else written
        if entity is not None and at == entity.last - 1:
            shown += f"<small>{word(entity.type)} {entity.score:.2f}</small></mark>"
    return shown + (" …" if end < len(sentence) else "")
