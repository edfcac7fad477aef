"""What the methods cost: time of an epoch of each, as a ratio to plain fine-tuning.

    python tests/bench/speed.py [--sentences 320] [--repeat 3]

On generated text with the embedded encoder, so that it runs anywhere. Repetitions are interleaved and the
median is reported, because a machine's speed drifts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

from cfner import ContinualTagger, TaskStream
from cfner.benchmark.demo import demo_corpus
from cfner.methods import create, method_names
from cfner.training.config import TrainingConfig
from cfner.training.preparation import encode_slice


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    stream = TaskStream.split(demo_corpus(args.sentences * 2, 0), first=8, per_step=8, min_mentions=1)
    base = ContinualTagger.from_pretrained("minilm", "finetune", epochs=2, max_length=128)
    base.learn(replace(stream[0], dev=()))
    weights = {key: value.clone() for key, value in base.model.network.state_dict().items()}
    step = replace(stream[1], dev=())
    variants = [(name, {}) for name in method_names() if name != "joint"]
    variants.append(("cfner (exact matches)", {"matches": "exact"}))
    seconds: dict[str, list[float]] = {name: [] for name, _ in variants}
    for _ in range(args.repeat):
        for name, settings in variants:
            # delta = 0 from the start: every defined-other token reads its matches
            method = name.split(" ")[0]
            without = ("curriculum",) if "curriculum" in create(method).parts else ()
            config = TrainingConfig(
                encoder="minilm", method=method, without=without, epochs=1, max_length=128, **settings
            )
            tagger = ContinualTagger(base.model, config)
            tagger.model = replace(base.model, network=base.model.network.frozen_copy().requires_grad_(True))
            tagger.model.network.load_state_dict(weights)
            started = time.perf_counter()
            tagger.learn(step)
            seconds[name].append(time.perf_counter() - started)
    plain = statistics.median(seconds["finetune"])
    words = len(
        encode_slice(
            step.train,
            base.model.labels.grown(step.types),
            base.model.tokenizer,
            max_length=128,
            overlap=None,
        ).gold
    )
    print(
        f"one step of {len(step.train)} sentences, {words} words; whole step, teacher and matching included"
    )
    for name, times in seconds.items():
        middle = statistics.median(times)
        speed = len(step.train) / middle
        print(f"{name:24} {middle:6.2f} s  {middle / plain:5.2f} x finetune  {speed:6.1f} sentences/s")


if __name__ == "__main__":
    main()
