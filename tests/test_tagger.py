"""ContinualTagger: steps in order, scores that can be checked, predictions found in the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cfner.corpus.sentence import Sentence
from cfner.errors import ConfigError, StreamError
from cfner.evaluation.metrics import score
from cfner.stream.step import Step
from cfner.stream.stream import TaskStream
from cfner.tagger import ContinualTagger

relaxed = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
parts = st.one_of(
    st.sampled_from(["ada", "new york", "the", "grey seal", ",", "[SEP]", "\u200b", "e\u0301", "😀", "\n"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
texts = st.lists(parts, max_size=40).map(" ".join)


@pytest.fixture(scope="module")
def learned(two_steps: Path) -> ContinualTagger:
    return ContinualTagger.load(two_steps)


@pytest.fixture(scope="module")
def excited(two_steps: Path) -> ContinualTagger:
    """A tagger with a random head, which sees entities everywhere."""
    tagger = ContinualTagger.load(two_steps)
    with torch.no_grad():
        tagger.model.network.head.weight.normal_(generator=torch.Generator().manual_seed(3))
    return tagger


def weights(tagger: ContinualTagger) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in tagger.model.network.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def test_two_steps_are_learned(learned: ContinualTagger, tiny_stream: TaskStream) -> None:
    assert learned.types == tiny_stream.types
    scores = learned.evaluate(tiny_stream.test)
    assert scores.types == tiny_stream.types
    assert scores.micro_f1 > 20  # by chance it is about 0
    assert scores.confusions is not None and scores.confusions.old_words > 0


def test_evaluation_is_the_score_of_the_predictions(
    learned: ContinualTagger, tiny_stream: TaskStream
) -> None:
    predicted = [learned.predict(sentence).spans for sentence in tiny_stream.test]
    oracle = score([sentence.spans for sentence in tiny_stream.test], predicted, learned.types)
    assert learned.evaluate(tiny_stream.test).counts == oracle.counts


def test_sentences_without_words_do_not_change_a_score(
    learned: ContinualTagger, tiny_stream: TaskStream
) -> None:
    padded = [sentence for test in tiny_stream.test for sentence in (Sentence(()), test)]
    assert learned.evaluate(padded) == learned.evaluate(tiny_stream.test)
    assert learned.evaluate([]).micro_f1 == 0


def test_an_evaluation_says_what_was_found_in_each_sentence(
    learned: ContinualTagger, tiny_stream: TaskStream
) -> None:
    padded = (Sentence(()), *tiny_stream.test)
    found = learned.evaluate(padded).found
    assert found[0] == () and any(found)
    assert list(found) == [prediction.spans for prediction in learned.predict(padded)]


def test_only_the_scores_that_save_is_handed_are_written(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream, tmp_path: Path
) -> None:
    tagger = fresh(tiny_settings)
    record = tagger.learn(tiny_stream[0])
    assert record is tagger.record and len(record.history) == record.best_epoch == 1
    tagger.evaluate(tiny_stream.test_up_to(0))
    step = tagger.save(tmp_path / "model")
    assert not (step.folder / "scores.json").exists()


# -- prediction --------------------------------------------------------------------------------------------


@relaxed
@given(texts)
def test_characters_of_an_entity_are_its_text(excited: ContinualTagger, text: str) -> None:
    prediction = excited.predict(text)
    assert prediction.sentence.text == text
    end = 0
    for entity in prediction.entities:
        assert entity.start is not None and entity.end is not None
        assert text[entity.start : entity.end] == entity.text
        assert end <= entity.start < entity.end
        assert 0 < entity.score <= 1
        assert entity.type in excited.types
        end = entity.end


@relaxed
@given(st.lists(texts, max_size=5))
def test_a_list_of_texts_gets_what_each_gets_alone(excited: ContinualTagger, texts: list[str]) -> None:
    together = excited.predict(texts)
    alone = [excited.predict(text) for text in texts]
    assert [(p.text, p.sentence.offsets) for p in together] == [(p.text, p.sentence.offsets) for p in alone]
    assert [p.spans for p in together] == [p.spans for p in alone]


def test_a_text_longer_than_the_encoder_reads_is_tagged_to_its_end(excited: ContinualTagger) -> None:
    text = "ada saw the badger in oslo and " * 60
    prediction = excited.predict(text)
    assert len(prediction.sentence) == 420 > excited.model.max_length
    assert max(entity.last for entity in prediction.entities) > 400


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_text_has_no_entities(excited: ContinualTagger, text: str) -> None:
    assert excited.predict(text).entities == ()
    assert excited.predict([text, "ada"])[0].entities == ()


def test_no_texts_give_no_predictions(excited: ContinualTagger) -> None:
    assert excited.predict([]) == []


def test_sentences_without_their_text_count_characters_in_words_joined_by_blanks(
    excited: ContinualTagger,
) -> None:
    words = ("alan", "turing", "saw", "new", "york", "and", "the", "red", "fox")
    prediction = excited.predict(Sentence(words))
    assert prediction.entities
    for entity in prediction.entities:
        assert " ".join(words)[entity.start : entity.end] == entity.text
        assert " ".join(words[entity.first : entity.last]) == entity.text


# -- learning ----------------------------------------------------------------------------------------------


def fresh(tiny_settings: dict[str, Any], **changes: Any) -> ContinualTagger:
    return ContinualTagger.from_pretrained(**{**tiny_settings, "epochs": 1, **changes})


def test_steps_out_of_order_are_refused_and_change_nothing(
    tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    tagger = fresh(tiny_settings)
    before = weights(tagger)
    with pytest.raises(StreamError, match="animal, city"):
        tagger.learn(tiny_stream[1])
    assert tagger.types == ()
    assert same(weights(tagger), before)


def test_a_step_without_words_is_refused(tiny_settings: dict[str, Any]) -> None:
    with pytest.raises(StreamError, match="no training sentences"):
        fresh(tiny_settings).learn(Step(types=("x",), train=(Sentence(()),)))


@pytest.mark.parametrize("method", ["cfner", "joint"])
def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    method: str, tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    ends = []
    for seed in (0, 0, 1):
        tagger = fresh(tiny_settings, method=method, seed=seed)
        torch.rand(seed + len(ends))  # whatever was drawn before must not matter
        for step in tiny_stream:
            tagger.learn(step)
        ends.append(weights(tagger))
    assert same(ends[0], ends[1])
    assert not same(ends[0], ends[2])


def test_a_loaded_tagger_learns_on_as_if_it_had_never_been_saved(
    two_steps: Path, tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    tagger = ContinualTagger.load(two_steps, step=1)
    tagger.learn(tiny_stream[1])
    assert same(weights(tagger), weights(ContinualTagger.load(two_steps)))


def test_more_data_of_a_known_type_adds_no_label(two_steps: Path, tiny_stream: TaskStream) -> None:
    tagger = ContinualTagger.load(two_steps, epochs=1)
    labels = tagger.model.labels
    animals = tuple(sentence.only(["animal"]) for sentence in tiny_stream.slices[0])
    tagger.learn(Step(types=("animal",), train=animals, known=("city", "dish", "person"), index=2))
    assert tagger.model.labels == labels
    assert tagger.model.network.head.labels == len(labels)


def test_old_rows_stay_where_they_are_with_methods_that_freeze_them(
    two_steps: Path, tiny_stream: TaskStream
) -> None:
    first, second = ContinualTagger.load(two_steps, step=1), ContinualTagger.load(two_steps, step=2)
    old = list(first.model.labels.ids_of(tiny_stream[0].types))
    before, after = (tagger.model.network.head.weight for tagger in (first, second))
    assert torch.equal(before[old], after[old])
    other = first.model.labels.other_id
    assert not torch.equal(before[other], after[other])  # O's meaning changes; freeze_other forbids it


@pytest.mark.parametrize("trained", [False, True])
def test_subword_embeddings_move_only_if_they_are_to_be_trained(
    trained: bool, tiny_settings: dict[str, Any], tiny_stream: TaskStream
) -> None:
    tagger = fresh(tiny_settings, train_embeddings=trained)
    body: Any = tagger.model.network.body
    watched = (body.get_input_embeddings().weight, body.bert.encoder.layer[0].output.dense.weight)
    before = [weight.detach().clone() for weight in watched]
    tagger.learn(tiny_stream[0])
    moved = [not torch.equal(old, new) for old, new in zip(before, watched, strict=True)]
    assert moved == [trained, True]


def test_long_sentences_are_learned_from_to_their_end(tiny_settings: dict[str, Any]) -> None:
    """The only mention stands far behind the encoder's limit of 64 subwords."""
    from cfner.corpus.sentence import Span

    words = ("the",) * 90 + ("oslo",) + ("in",) * 30
    step = Step(types=("city",), train=(Sentence(words, (Span(90, 91, "city"),)),) * 8)
    tagger = fresh(tiny_settings, epochs=20, lr_encoder=5e-3)
    tagger.learn(step)
    assert tagger.predict(Sentence(words)).spans == (Span(90, 91, "city"),)


def test_a_shortened_word_is_noted(tiny_settings: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    fresh(tiny_settings).learn(Step(types=("city",), train=(Sentence(("x" * 80, "in")),)))
    warning, *_ = caplog.records
    assert warning.levelname == "WARNING" and "1 word(s)" in warning.getMessage()


def test_another_method_may_go_on_where_one_stopped(two_steps: Path, tiny_stream: TaskStream) -> None:
    tagger = ContinualTagger.load(two_steps, step=1, method="finetune", epochs=1)
    tagger.learn(tiny_stream[1])
    assert tagger.types == tiny_stream.types


def test_an_unknown_setting_names_the_nearest(tiny_settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'epochs'"):
        ContinualTagger.from_pretrained(str(tiny_settings["encoder"]), epoch=3)
