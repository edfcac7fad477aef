"""What fills the slots of the demo corpus: pools of names, places and numbers, disjoint between the splits.

A surface form belongs to one split but to no single type: the surnames also name hospitals, streets and
firms, and phone, record, identity and postal numbers come out of the same pools of digit strings.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from cfner.errors import MissingExtraError

Split = Literal["train", "dev", "test"]
Pools = Mapping[str, tuple[str, ...]]


def words(text: str) -> list[str]:
    return text.split()


def phrases(text: str) -> list[str]:
    return [phrase for line in text.splitlines() for phrase in line.split("|")]


# Out of every ten values six are for training, one for validation, three for the test.
_SPLIT_CYCLE: tuple[Split, ...] = (
    *("train", "test", "train", "train", "test"),
    *("train", "dev", "train", "test", "train"),
)

# Names that are also diseases, devices, months, trades, cities, states or countries.
_TELLING_SURNAMES = words("""Baker Murphy Graves Bell Parkinson Foley Allen Wilson Addison Crohn Hodgkin
Gleason Turner Cushing Raynaud Paget Doppler Swan Harrington Washington Lincoln Jackson Houston Dallas
Bradford Lancaster Carter Mason Fisher Butcher Potter Farmer Gardener Cook Taylor Shepherd Marsh Brook Hill
Woods Rivers Street Park Lane March May Friday Winter Stone Young Long Little Strong Small Day West North
England Ireland France Poland Holland Israel Jordan Chester Kent Lowell Newton Clinton Monroe Madison
Franklin Hudson Warren Quincy""")
_TELLING_FIRST_NAMES = words("""April May June Austin Madison Charlotte Virginia Georgia Carolina
Florence Jordan Chad Israel Sydney Paris Dakota Savannah Lincoln Jackson Houston Clinton Warren Chester Kent
Franklin Israel India China Kenya Mason Hunter Carter Cooper Taylor Parker Baker Grace Faith Mercy Angel
Rose Heather Summer Autumn Mark Bill Drew Will Art Gene Penny Sky Rusty Iris Daisy Ginger Basil""")
_CITIES = words("""Springfield Lowell Quincy Newton Franklin Madison Clinton Lincoln Jackson Houston
Dallas Austin Charlotte Savannah Monroe Warren Hudson Chester Lancaster Bradford Florence Paris
Sydney Salem Bristol Dover Fairview Greenville Riverside Georgetown Arlington Ashland Burlington Manchester
Oxford Milton Cleveland Auburn Dayton Lexington Milford Winchester Oakland Boston Portland Augusta Worcester
Hartford Providence Denver Phoenix Memphis Nashville Tampa Orlando Omaha Tulsa Fresno Buffalo Rochester
Albany Concord Plymouth Weymouth Braintree Medford Malden Everett Revere Chelsea Brookline Waltham Natick
Marlborough Leominster Gardner Athol Greenfield Kent Marion Athens Troy Vienna Lima Toledo Cairo Delhi
Naples Rome Berlin Moscow""")
_PROFESSIONS = phrases("""plumber|nurse|teacher|farmer|carpenter|electrician|lawyer|truck driver|bus driver
baker|butcher|cook|mason|fisherman|gardener|tailor|shepherd|secretary|accountant|engineer|bank teller
librarian|firefighter|police officer|painter|roofer|welder|machinist|janitor|waitress|bartender|musician
photographer|journalist|architect|pharmacist|dentist|social worker|interpreter|chaplain|dietitian|salesman
real estate agent|mechanic|postal worker|hairdresser|security guard|florist|software developer
flight attendant|pilot|professor|judge|sculptor|seamstress|stonecutter|steel worker|coal miner|sailor
soldier|veterinarian|school principal|cashier|warehouse clerk|paralegal|cab driver|childcare provider
upholsterer|glazier|beekeeper|bricklayer|longshoreman|stagehand|tutor|actuary|auctioneer|cobbler
crossing guard|dry cleaner|housekeeper|landscaper|locksmith|millwright|optician|piano tuner|plasterer
printer""")
_STREETS = words("""Elm Oak Maple Main High Church School Mill Center Pleasant Pine Cedar Walnut Chestnut
Spruce Willow Birch Summer Winter Spring Pond Bridge River Forest Prospect Highland Lakeview Sunset Orchard
Meadow""")
_STATE_CODES = words("""Alabama=AL Alaska=AK Arizona=AZ Arkansas=AR California=CA Colorado=CO
Connecticut=CT Delaware=DE Florida=FL Georgia=GA Hawaii=HI Idaho=ID Illinois=IL Indiana=IN Iowa=IA Kansas=KS
Kentucky=KY Louisiana=LA Maine=ME Maryland=MD Massachusetts=MA Michigan=MI Minnesota=MN Mississippi=MS
Missouri=MO Montana=MT Nebraska=NE Nevada=NV New_Hampshire=NH New_Jersey=NJ New_Mexico=NM New_York=NY
North_Carolina=NC North_Dakota=ND Ohio=OH Oklahoma=OK Oregon=OR Pennsylvania=PA Rhode_Island=RI
South_Carolina=SC South_Dakota=SD Tennessee=TN Texas=TX Utah=UT Vermont=VT Virginia=VA Washington=WA
West_Virginia=WV Wisconsin=WI Wyoming=WY""")
STATE_CODES: dict[str, str] = {
    name.replace("_", " "): code for name, code in (entry.split("=") for entry in _STATE_CODES)
}

_DIGIT_SHAPES: dict[str, int] = {
    "#######": 390,
    "###-####": 330,
    "######": 210,
    "#####": 330,
    "###-##-##": 180,
    "###-###-####": 270,
    "(###) ###-####": 150,
    "###-##-####": 180,
    "#####-####": 120,
    "@@#####": 150,
    "@@###": 360,
    "@@@##": 180,
}


def _new_faker(seed: int) -> Callable[[str], str]:
    """A function that gives one fresh value of a faker provider; the same sequence for the same seed."""
    try:
        from faker import Faker
    except ImportError as error:
        raise MissingExtraError("faker", "demo", "The generated demo corpus") from error
    faker = Faker("en_US", use_weighting=False)
    faker.seed_instance(seed)
    return lambda provider: str(getattr(faker, provider)())


def _draw_distinct(draw: Callable[[], str], count: int) -> list[str]:
    """``count`` different values, in the order they were drawn; fewer if the source runs dry."""
    found: dict[str, None] = {}
    for _ in range(count * 8):
        if len(found) == count:
            break
        found[draw()] = None
    return list(found)


def _fill_shape(shape: str, rng: random.Random) -> str:
    fill = {"#": lambda: rng.choice("0123456789"), "@": lambda: rng.choice("abcdefghjklmnprstvw")}
    text = "".join(fill[mark]() if mark in fill else mark for mark in shape)
    return f"{rng.randint(1, 9)}{text[1:]}" if shape[0] == "#" else text


def _all_values(seed: int) -> dict[str, list[str]]:
    fake = _new_faker(seed)
    rng = random.Random(f"digits:{seed}")
    firsts = _draw_distinct(lambda: fake("first_name"), 400) + _TELLING_FIRST_NAMES
    lasts = _draw_distinct(lambda: fake("last_name"), 600) + _TELLING_SURNAMES
    countries = _draw_distinct(lambda: fake("country"), 150)
    # "Moved here from Georgia" could not be told apart, so no place is both a country and a state or city.
    countries = [name for name in countries if name not in STATE_CODES and name not in _CITIES]
    jobs = _draw_distinct(lambda: fake("job").lower(), 300)
    values = {
        "state": list(STATE_CODES),
        "country": [name for name in countries if name.replace(" ", "").isalpha() and len(name) < 20],
        "profession": [job for job in jobs if re.fullmatch(r"\w+( \w+)?", job)][:100] + _PROFESSIONS,
        "city": _CITIES,
        "street": _STREETS,
        "first": [name for name in firsts if name.isalpha()],
        "last": [name for name in lasts if name.isalpha()],
    }
    for shape, count in _DIGIT_SHAPES.items():
        values[shape] = _draw_distinct(lambda shape=shape: _fill_shape(shape, rng), count)  # type: ignore[misc]
    return values


def _deal(values: Iterable[str], seed: int, dealt: dict[str, Split]) -> None:
    """Give every value that has no split yet one, in an order that depends on nothing but value and seed."""
    fresh = sorted({value.lower() for value in values} - dealt.keys(), key=lambda value: _digest(value, seed))
    for index, value in enumerate(fresh):
        dealt[value] = _SPLIT_CYCLE[index % len(_SPLIT_CYCLE)]


def _digest(value: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{value}".encode()).hexdigest()


@dataclass(frozen=True)
class ValueBook:
    """The pools of one split."""

    split: Split
    pools: Pools

    def pick(self, pool: str, rng: random.Random) -> str:
        return rng.choice(self.pools[pool])


def value_books(seed: int) -> dict[Split, ValueBook]:
    """Three books without a common value, not even as another type ("Jordan" is in one book only)."""
    values = _all_values(seed)
    dealt: dict[str, Split] = {}
    for pool in values.values():
        _deal(pool, seed, dealt)
    return {
        split: ValueBook(
            split,
            {
                name: tuple(value for value in dict.fromkeys(pool) if dealt[value.lower()] == split)
                for name, pool in values.items()
            },
        )
        for split in ("train", "dev", "test")
    }
