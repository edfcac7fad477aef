"""What to try when an old type was lost, or may have been, most helpful first.

The measurements are in docs/questions/refused.md. Unlabelled text and experts were measured; the other
remedies follow because they are not measured yet (benchmarks/after_a_refusal.py measures them). A higher
weight on the old types is not listed: measurements showed that it makes things worse.
"""

from __future__ import annotations

from cfner.methods.method import Method


def what_to_try(method: Method, *, unlabelled: bool, replay: bool) -> tuple[str, ...]:
    """Remedies that were not used yet, most helpful first. The last one is to accept the loss."""
    experts = "`method='experts'`: old types keep their scores, new ones are learned less well; with"
    remedies = (
        (method.name == "finetune", "`method='own-other'`: finetune does nothing to keep old types"),
        (
            method.reads_unlabelled and not unlabelled,
            "`unlabelled=TEXT`: text without labels that mentions the old types",
        ),
        (not method.keeps_predictions, f"{experts} `old_wins=True` old predictions cannot change at all"),
        (not replay, "`replay=FILE`: a few old sentences with their labels, if you have any"),
        (True, "`lr_encoder`: half the learning rate"),
        (True, "`accept_forgetting=TYPE`, if the loss is intended"),
    )
    return tuple(remedy for applies, remedy in remedies if applies)
