"""``explain``: see how a method learned from one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cfner.api.arguments import PathLike, several
from cfner.corpus.in_memory import Data, Texts

if TYPE_CHECKING:
    from cfner.practice.explain.explanation import Explanation


def explain(
    model: PathLike,
    data: Data,
    *,
    step: int | None = None,
    sentence: int | None = None,
    epoch: int | None = None,
    top: int = 3,
    html: PathLike | None = None,
    overwrite: bool = False,
    device: str = "auto",
    every: int = 1,
    format: str | None = None,
    tag_column: str | int | None = None,
    dev_share: float = 0.15,
    replay: Data | None = None,
    unlabelled: Texts | None = None,
    guard: Data | None = None,
) -> Explanation:
    """Show each anchor of a sentence with its matched tokens, and which loss each token went to.

    Args:
        model: A model folder, written by ``train`` or ``learn``.
        data: What it learned from: the corpus of ``train``, or the new data of ``learn``.
        step: Which step; it needs a teacher, so not the first. Default: the last.
        sentence: Which sentence of the step's slice, from 0. Default: the one with most anchors.
        epoch: Epoch of the curriculum. Default: the one whose weights were saved.
        top: Labels shown of each distribution.
        html: Write a self-contained page to this file.
        overwrite: Replace an existing ``html`` file.
        device: "auto" (a GPU if there is one), "cpu", "cuda", "cuda:N" or "mps".
        every: ``every`` as in training.
        format: Format of the data's files. Default: detected.
        tag_column: Column or field of the tags: a name, or a number from 0.
        dev_share: ``dev_share`` as for ``learn``.
        replay: ``replay`` as for ``learn``.
        unlabelled: ``unlabelled`` as for ``learn``.
        guard: ``guard`` as for ``learn``, if ``unlabelled`` was given too.

    Returns:
        The sentence's tokens, each with its loss, its distributions and its matched tokens.
    """
    from cfner.corpus.corpus import Corpus
    from cfner.corpus.writers import refuse_existing
    from cfner.pages.page import write_page
    from cfner.practice.explain.explain import explain_run
    from cfner.practice.explain.learned import GivenToLearn
    from cfner.practice.explain.page import page

    if html is not None:
        refuse_existing(Path(html), overwrite)  # now, and again when the page is written
    corpus = Corpus.read(data, format=format, tag_column=tag_column, every=every)
    given = GivenToLearn(dev_share, replay, several(unlabelled), guard)
    found = explain_run(
        model, corpus, step, given=given, sentence=sentence, epoch=epoch, top=top, device=device
    )
    if html is not None:
        write_page(Path(html), page(found), overwrite=overwrite)
    return found
