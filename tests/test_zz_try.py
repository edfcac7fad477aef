import time
def test_x(tiny_encoder, tiny_corpus):
    from cfner.tagger import ContinualTagger
    from cfner.stream.stream import TaskStream
    stream = TaskStream.split(tiny_corpus, first=2, per_step=1, min_mentions=1)
    for name in ["cfner","podnet","joint"]:
        t=time.time()
        tagger = ContinualTagger.from_pretrained(str(tiny_encoder), method=name, epochs=6, batch_size=8, lr_encoder=2e-3, lr_head=1e-2)
        for step in list(stream)[:2]:
            s=tagger.learn(step)
            print(name, step.types, len(step.train), s.history[0], s.history[-1], time.time()-t)
            print(tagger.evaluate(stream.test_up_to(step)).micro)
