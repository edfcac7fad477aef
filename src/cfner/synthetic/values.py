"""Values for the slots of the demo corpus: pools of names, places and numbers, disjoint between the splits.

A surface form belongs to one split but not to one type: the surnames also name hospitals, streets and firms,
and phone, record, identity and postal numbers come from the same pools of digit strings.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping

from cfner.corpus.split_files import SPLITS, Split
from cfner.errors import import_extra
from cfner.synthetic.lists import SHAPES, STATE_CODES, WORDS

Pools = Mapping[str, tuple[str, ...]]

# Out of every ten values six are for training, one for validation, three for the test.
_SPLIT_CYCLE: tuple[Split, ...] = (
    *("train", "test", "train", "train", "test"),
    *("train", "dev", "train", "test", "train"),
)


def _draw_distinct(draw: Callable[[], str], count: int) -> list[str]:
    """``count`` different values, in the order they were drawn; fewer if the source runs dry."""
    found: dict[str, None] = {}
    for _ in range(count * 8):
        if len(found) == count:
            break
        found[draw()] = None
    return list(found)


def _fill_shape(shape: str, rng: random.Random) -> str:
    letters = {"#": "0123456789", "@": "abcdefghjklmnprstvw"}
    text = "".join(rng.choice(letters[mark]) if mark in letters else mark for mark in shape)
    return f"{rng.randint(1, 9)}{text[1:]}" if shape[0] == "#" else text


def _all_values(seed: int) -> dict[str, list[str]]:
    faker = import_extra("faker", "demo", "The generated demo corpus")
    fake = faker.Faker("en_US", use_weighting=False)
    fake.seed_instance(seed)
    rng = random.Random(f"digits:{seed}")
    firsts = _draw_distinct(fake.first_name, 400) + WORDS["first_name"]
    lasts = _draw_distinct(fake.last_name, 600) + WORDS["surname"]
    countries = _draw_distinct(fake.country, 150)
    # "Moved here from Georgia" would be ambiguous, so no place is both a country and a state or city.
    countries = [name for name in countries if name not in STATE_CODES and name not in WORDS["city"]]
    jobs = _draw_distinct(lambda: fake.job().lower(), 300)
    values = {
        "state": list(STATE_CODES),
        "country": [name for name in countries if name.replace(" ", "").isalpha() and len(name) < 20],
        "profession": [job for job in jobs if re.fullmatch(r"\w+( \w+)?", job)][:100] + WORDS["profession"],
        "city": WORDS["city"],
        "street": WORDS["street"],
        "first": [name for name in firsts if name.isalpha()],
        "last": [name for name in lasts if name.isalpha()],
    }
    for shape, count in SHAPES["pool"].items():
        values[shape] = _draw_distinct(lambda shape=shape: _fill_shape(shape, rng), count)  # type: ignore[misc]
    return values


def pools_by_split(seed: int) -> dict[Split, Pools]:
    """Pools without a common value, not even under a different type ("Jordan" is in one split only)."""
    values = _all_values(seed)
    dealt: dict[str, Split] = {}
    for pool in values.values():
        fresh = sorted(
            {value.lower() for value in pool} - dealt.keys(),
            key=lambda value: hashlib.sha256(f"{seed}:{value}".encode()).digest(),
        )
        dealt |= {value: _SPLIT_CYCLE[index % len(_SPLIT_CYCLE)] for index, value in enumerate(fresh)}
    return {
        split: {
            name: tuple(value for value in dict.fromkeys(pool) if dealt[value.lower()] == split)
            for name, pool in values.items()
        }
        for split in SPLITS
    }
