"""What to try when an old type was lost, or may have been: in the order of what was measured to help.

The figures are in docs/questions/refused.md. Text without labels and experts were measured; the others come
after them because they were not yet (benchmarks/after_a_refusal.py measures them). A higher weight of keeping
is not among them: it was measured, and made it worse.
"""

from __future__ import annotations

from cfner.methods.registry import Method


def what_to_try(method: Method, *, unlabelled: bool, replay: bool) -> tuple[str, ...]:
    """Remedies that were not used yet, the most helpful first. The last one is to live with the loss."""
    experts = "`method='experts'`: old types keep their scores, new ones are learned less well; with"
    remedies = (
        (method.name == "finetune", "`method='own-other'`: finetune does nothing to keep old types"),
        (
            method.reads_unlabelled and not unlabelled,
            "`unlabelled=TEXT`: text without labels that mentions the old types",
        ),
        (not method.keeps_predictions, f"{experts} `old_wins=True` old predictions cannot change at all"),
        (not replay, "`replay=FILE`: a few old sentences with their labels, if you have any"),
        (True, "`lr_encoder`: half the rate"),
        (True, "`accept_forgetting=TYPE`, if the loss is meant"),
    )
    return tuple(remedy for applies, remedy in remedies if applies)
