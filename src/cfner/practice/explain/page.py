"""An explanation as one self-contained HTML page: no script, no font, no external picture.

Every word and label is escaped by ``text``. The page's Content-Security-Policy forbids loading or running
anything.
"""

from __future__ import annotations

from cfner.files.html import text, word
from cfner.pages.page import figure, head, table, whole_page
from cfner.practice.explain.explanation import (
    Distribution,
    EpochSelection,
    Explanation,
    Match,
    SliceSummary,
    TokenExplanation,
    hidden_truth,
)

_CONTEXT = 9  # words shown on each side of a matched token
# lengths as classes, because the page's policy forbids style attributes
_LENGTHS = "".join(f".w{n}{{width:{n}%}}.h{n}{{height:{n}%}}" for n in range(101))


_LEGEND = (
    ("e", "Effect_E: a new entity, read together with its matches"),
    ("o", "Effect_O: an old entity the teacher is sure of, read together with its matches"),
    ("wait", "defined-other, below the threshold: plain distillation for now"),
    ("ce", "a labelled token, read alone"),
    ("plain", "the rest"),
)


def page(e: Explanation) -> str:
    """The complete page, to be encoded as UTF-8."""
    title = f"Step {e.step}, epoch {e.epoch}: what taught each token"
    parts = [_header(e), _sentence(e), _slice(e.slice, e.now), _anchors(e), _others(e), _objective(e)]
    return whole_page(title, "explain", parts, style=_LENGTHS)


def _header(e: Explanation) -> str:
    best = f" The student is the saved model (epoch {e.best_epoch})." if e.best_epoch else ""
    delta = f", threshold δ = {e.threshold:.2f}" if e.threshold is not None else ""
    return (
        f"<header><p class='over'>{text(e.method)} · step {e.step} · epoch {e.epoch} of {e.epochs}{delta}"
        "</p>"
        "<h1>What taught each token</h1>"
        f"<p class='lead'>This step's data is labelled with {_types(e.new_types)} only. "
        f"{_types(e.old_types)} came before: here their mentions are labelled O, and only the teacher, "
        f"the model of step {e.step - 1}, still knows them.{best}{_apart(e)}</p></header>"
    )


def _apart(e: Explanation) -> str:
    if not any(token.student.group for token in e.tokens):
        return ""
    return (
        " Types are decided independently, each against its own Other class: a probability is "
        "one among the labels of its group and that Other, and a word has a loss in every group that it "
        "teaches."
    )


def _types(types: tuple[str, ...]) -> str:
    return ", ".join(f"<b>{word(type_)}</b>" for type_ in types)


def _kind(token: TokenExplanation) -> str:
    """The colour of a token."""
    if token.selected:
        return "o" if token.pool == "defined-other" else "e"
    if token.waits:
        return "wait"
    return "ce" if token.pool == "entity" else "plain"


def _sentence(e: Explanation) -> str:
    chips = []
    for token in e.tokens:
        label = word(token.label) if token.label != "O" else ""
        if token.label == "O" and token.teacher_label != "O":
            label = f"{word(token.teacher_label)}?"
        target = f"{'t' if token.matches else 'r'}{token.position}"
        chips.append(
            f"<a class='tok {_kind(token)}' href='#{target}' title='{text(token.path)}'>"
            f"{word(token.word)}{label and f'<small>{label}</small>'}</a>"
        )
    shown = {_kind(token) for token in e.tokens}
    legend = "".join(
        f"<li><i class='dot {kind}'></i>{text(meaning)}</li>" for kind, meaning in _LEGEND if kind in shown
    )
    source = f" · {text(e.source)}" if e.source else ""
    return (
        f"<section><h2>The sentence <span>number {e.sentence} of the slice{source}</span></h2>"
        f"<p class='sentence box'>{' '.join(chips)}</p><ul class='legend'>{legend}</ul></section>"
    )


def _slice(s: SliceSummary, now: EpochSelection | None) -> str:
    boxes = [
        figure(s.entity_tokens, "new-entity tokens", "the E pool, labelled in this step"),
        figure(s.other_tokens, "tokens labelled O", f"of {s.tokens:,} in {s.sentences:,} sentences"),
    ]
    if s.hidden_old is not None:
        found = f"the teacher gives {_share(s.hidden_old_found, s.hidden_old)} their true type"
        boxes.append(figure(s.hidden_old, "of them are old entities", found))
    right = f"{_share(s.defined_other_right, s.defined_other)} with their true label"
    boxes.append(figure(s.defined_other, "defined-other", right if s.defined_other_right is not None else ""))
    if now is not None:
        right = f"{_share(now.right, now.selected)} with their true label" if now.right is not None else ""
        boxes.append(figure(now.selected, "selected in this epoch", right))
    shown = "".join(f"<div>{box}</div>" for box in boxes)
    return (
        f"<section><h2>The slice in numbers</h2><div class='figures'>{shown}</div>"
        f"{_curriculum(s, now)}</section>"
    )


def _share(part: int | None, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.0f} %)" if part is not None and whole else "none"


def _curriculum(s: SliceSummary, now: EpochSelection | None) -> str:
    """One bar per epoch: how many defined-other tokens are selected, and how many of them are right."""
    if not s.epochs or now is None or not s.defined_other:
        return ""
    bars = []
    for epoch in s.epochs:
        height, right = (100 * n / s.defined_other for n in (epoch.selected, epoch.right or 0))
        here = " here" if epoch.epoch == now.epoch else ""
        bars.append(
            f"<li class='epoch{here}'><span class='count'>{epoch.selected:,}</span>"
            f"<span class='column'><i class='all h{round(height)}'></i>"
            f"<i class='right h{round(right)}'></i></span>"
            f"<span>{epoch.epoch}</span><small>δ {epoch.threshold:.2f}</small></li>"
        )
    # unknown outside a stream
    known = "; the solid part has the teacher's label right" if s.epochs[0].right is not None else ""
    return (
        f"<figure><ol class='epochs'>{''.join(bars)}</ol>"
        f"<figcaption>Defined-other tokens selected in each epoch{known}. "
        f"The frame is all {s.defined_other:,} of them.</figcaption></figure>"
    )


def _anchors(e: Explanation) -> str:
    none = ""
    if not e.k:
        none = "This method has no causal effects: no token has matched tokens."
    elif not e.anchors:
        none = (
            "No token of this sentence is in a pool: none is a new entity, and the teacher takes none for an "
            "old one."
        )
    if none:
        return f"<section><h2>Anchors</h2><p class='lead'>{none}</p></section>"
    cards = "".join(_card(token) for token in e.anchors)
    return (
        "<section><h2>Anchors and their matched tokens</h2><p class='lead'>Matched tokens are the nearest of "
        "the same pool in the teacher's feature space (distance = 1 − cosine). The loss reads the weighted "
        f"average; only the anchor is trained through it.</p>{cards}</section>"
    )


def _card(token: TokenExplanation) -> str:
    hidden, when = hidden_truth(token), ""
    truth = f" · in truth <b>{word(hidden)}</b>" if hidden else ""
    if token.waits:
        when = f" · joins in epoch {token.joins}" if token.joins else " · never sure enough to join"
    third = (
        _bars("what the loss read", token.averaged, "mix")
        if token.averaged is not None
        else "<div class='dist none'><h4>what the loss read</h4><p>the student alone</p></div>"
    )
    anchor = (
        f"<tr class='anchor'><td>0</td><td>{token.anchor_weight:.2f}</td><td>the anchor itself</td>"
        f"<td class='label'>{word(token.label)}</td><td class='label'>{_best(token.student)}</td></tr>"
    )
    heads = head("distance", "weight", "matched token, in its sentence", "labelled", "student")
    matches = table(heads, anchor + "".join(_match(match) for match in token.matches))
    return (
        f"<article id='t{token.position}' class='card box {_kind(token)}'><h3>{word(token.word)}"
        f"<span class='badge'>{text(token.path)}</span></h3>"
        f"<p class='said'>labelled <b>{word(token.label)}</b>{truth} · teacher says "
        f"<b>{word(token.teacher_label)}</b> at {token.confidence:.2f}{when} · loss: {_losses(token)}</p>"
        f"<div class='dists'>{_bars('teacher', token.teacher, 'old')}"
        f"{_bars('student alone', token.student, 'own')}{third}</div>{matches}</article>"
    )


def _match(match: Match) -> str:
    start, end = max(0, match.position - _CONTEXT), match.position + _CONTEXT + 1
    before = " ".join(map(word, match.words[start : match.position]))
    after = " ".join(map(word, match.words[match.position + 1 : end]))
    left, right = "… " if start else "", " …" if end < len(match.words) else ""
    width = round(100 * min(match.distance, 1.0))
    return (
        f"<tr><td><span class='far'><i class='w{width}'></i></span>{match.distance:.3f}</td>"
        f"<td>{match.weight:.2f}</td>"
        f"<td class='context'>{left}{before} <mark>{word(match.word)}</mark> {after}{right}"
        f"<small>sentence {match.sentence}</small></td>"
        f"<td class='label'>{_labelled(match)}</td>"
        f"<td class='label'>{_best(match.student)}</td></tr>"
    )


def _labelled(token: Match | TokenExplanation) -> str:
    hidden = hidden_truth(token)
    return word(token.label) + (f"<small>in truth {word(hidden)}</small>" if hidden else "")


def _best(distribution: Distribution) -> str:
    best = distribution.top[0]
    return f"{word(best.label)} <span class='num'>{best.p:.2f}</span>"


def _bars(title: str, distribution: Distribution, kind: str) -> str:
    rows = "".join(_bar(share.label, share.p) for share in distribution.top)
    rest = _bar("all others", distribution.rest, "rest") if distribution.rest >= 0.0005 else ""
    among = f", among {word(distribution.group)}" if distribution.group else ""
    return f"<div class='dist {kind}'><h4>{text(title)}{among}</h4>{rows}{rest}</div>"


def _bar(label: str, p: float, kind: str = "") -> str:
    return (
        f"<div class='bar {kind}'><span>{word(label)}</span>"
        f"<span class='track'><i class='w{round(100 * min(p, 1.0))}'></i></span>"
        f"<span class='num'>{p:.2f}</span></div>"
    )


def _others(e: Explanation) -> str:
    rows = []
    for token in e.tokens:
        if token.matches:
            continue
        trained = "" if token.trained_on == token.label else f"<small>taught {word(token.trained_on)}</small>"
        rows.append(
            f"<tr id='r{token.position}'><td><b>{word(token.word)}</b></td>"
            f"<td>{_labelled(token)}{trained}</td><td>{_best(token.teacher)}</td>"
            f"<td>{_best(token.student)}</td><td>{_losses(token)}</td></tr>"
        )
    if not rows:
        return ""
    heads = head("token", "labelled", "teacher", "student", "losses (of this token alone)")
    return f"<section><h2>The other tokens</h2>{table(heads, ''.join(rows), 'box')}</section>"


def _losses(token: TokenExplanation) -> str:
    """Each loss with its value for this token alone."""
    shown = []
    for loss in token.losses:
        figure = "" if loss.value is None else f" <span class='num'>{loss.value:.3f}</span>"
        shown.append(f"{text(loss.title)}{figure}")
    return ", ".join(shown) or "none"


def _objective(e: Explanation) -> str:
    rows = "".join(
        f"<tr><td><b>{text(term.name)}</b></td><td>{text(term.role.replace('_', ' '))}</td>"
        f"<td class='num'>{term.weight:.2f}</td>"
        f"<td>{'averaged with its matches' if term.matched else 'of the token alone'}</td></tr>"
        for term in e.terms
    )
    heads = head("term", "role", "weight", "predictions it reads")
    return f"<section><h2>What the step minimised</h2>{table(heads, rows, 'box')}</section>"
