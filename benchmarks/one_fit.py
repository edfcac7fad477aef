"""Seconds to learn a new type with the default settings: python benchmarks/one_fit.py ENCODER SENTENCES

A program of its own, so that the same lines can time an earlier version of cfner (PYTHONPATH).
"""

from __future__ import annotations

import sys
import time

from cfner import ContinualTagger, Step, TrainingConfig
from cfner.synthetic.generate import generate

encoder, count = sys.argv[1], int(sys.argv[2])
sentences = generate(train=count + 60, dev=0, test=0).train
types = sorted({span.type for sentence in sentences for span in sentence.spans})
old, new = (types[0],), (types[1],)
tagger = ContinualTagger.from_pretrained(encoder, epochs=1)
tagger.learn(Step(old, tuple(s.only(old) for s in sentences[count:]), name="before"), progress=False)
step = Step(new, tuple(s.only(new) for s in sentences[:count]), known=old, index=1, name="new")
tagger = tagger.fork(TrainingConfig.build({"encoder": encoder}))
began = time.perf_counter()
tagger.learn(step, progress=False)
print(time.perf_counter() - began)
