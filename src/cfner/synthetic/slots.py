"""Fills the slots of a template: one function per entity type, one word list per distractor."""

from __future__ import annotations

import random
from collections.abc import Callable

from cfner.synthetic.lists import DISTRACTORS, SHAPES, STATE_CODES, WORDS
from cfner.synthetic.values import Pools


class SlotFiller:
    """Fills the slots of one sentence; remembers its surnames, because two people in it may share one."""

    def __init__(self, pools: Pools, rng: random.Random) -> None:
        self._pools = pools
        self.rng = rng
        self._surnames: list[str] = []

    def fill(self, kind: str, style: str) -> str:
        if kind in DISTRACTORS:
            return self.rng.choice(DISTRACTORS[kind])
        return self.shaped(kind) if kind in SHAPES else _MAKERS[kind](self, style)

    def pick(self, pool: str) -> str:
        return self.rng.choice(self._pools[pool])

    def number(self, low: int, high: int) -> str:
        return str(self.rng.randint(low, high))

    def shaped(self, kind: str) -> str:
        text = self.pick(self.rng.choices(list(SHAPES[kind]), list(SHAPES[kind].values()))[0])
        return text.upper() if kind == "code" or (kind != "USERNAME" and self.rng.random() < 0.8) else text

    def surname(self) -> str:
        if self._surnames and self.rng.random() < 0.15:
            return self.rng.choice(self._surnames)
        self._surnames.append(self.pick("last"))
        return self._surnames[-1]


def _ratio(slot: SlotFiller, _: str) -> str:
    # Looks like a date without a year: strength 4/5, pain 7/10, 3/12 nodes.
    top = slot.rng.randint(1, 12)
    return f"{top}/{slot.rng.choice([whole for whole in (5, 6, 10, 12, 12, 20, 28) if whole >= top])}"


def _dose(slot: SlotFiller, _: str) -> str:
    unit = slot.rng.choice(["mg", "mg", "mcg", "units", "ml"])
    return f"{slot.rng.choice([5, 10, 20, 25, 40, 50, 64, 75, 80, 81, 100, 325])} {unit}"


def _lab(slot: SlotFiller, _: str) -> str:
    name = slot.rng.choice(DISTRACTORS["analyte"])
    small = slot.rng.random() < 0.4
    value = f"{slot.number(1, 9)}.{slot.number(0, 9)}" if small else slot.number(18, 160)
    return f"{name} {slot.rng.choice(['', '', 'of ', 'was '])}{value}"


def _age(slot: SlotFiller, style: str) -> str:
    if style == "decade":
        return f"{slot.number(3, 9)}0s"
    return slot.number(9, 39) if style == "young" else slot.number(18, 97)


def _date(slot: SlotFiller, style: str) -> str:
    rng = slot.rng
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1960, 2029)
    if style == "year":
        return str(year)
    if style == "weekday":
        return rng.choice(WORDS["weekday"])
    named = WORDS["month"][month - 1]
    forms = [
        (5, f"{month}/{day}"),
        (4, f"{month}/{day}/{year % 100:02d}"),
        (3, f"{month:02d}/{day:02d}/{year}"),
        (2, f"{year}-{month:02d}-{day:02d}"),
        (2, f"{named} {day}"),
        (2, f"{named} {day}, {year}"),
        (1, f"{day} {named} {year}"),
        (1, f"{named} {year}"),
        (1, named),
        (1, f"{month}-{day}-{year % 100:02d}"),
        (1, f"{named[:3]} {day}"),
        (1, f"{month}/{year}"),
    ]
    return rng.choices([form for _, form in forms], [weight for weight, _ in forms])[0]


def _person(slot: SlotFiller, style: str) -> str:
    surname, first = slot.surname(), slot.pick("first")
    if style:
        forms = {
            "last": surname,
            "first": first,
            "initials": f"{first[0]}{surname[0]}",
            "reversed": f"{surname}, {first}",
        }
        return forms[style]
    middle = slot.rng.choice("ABCDEFGHJKLMPRSTW")
    full = [f"{first} {surname}", f"{first} {middle}. {surname}", f"{first[0]}. {surname}"]
    return slot.rng.choices(full, [6, 2, 1])[0]


def _institution(slot: SlotFiller, style: str, kind: str = "organization") -> str:
    # "Transferred from Baker": only where the sentence makes clear that this is not a person.
    text = "{last}" if style == "bare" and slot.rng.random() < 0.25 else slot.rng.choice(WORDS[kind])
    for pool in ("city", "last", "first", "state", "country"):
        while "{" + pool + "}" in text:
            text = text.replace("{" + pool + "}", slot.pick(pool), 1)
    return text


def _hospital(slot: SlotFiller, style: str) -> str:
    name = _institution(slot, style, "hospital")
    if style != "short" or slot.rng.random() < 0.4:
        return name
    letters = [word[0] for word in name.replace("St.", "S").split() if word[0].isupper()]
    return "".join(letters) if len(letters) > 2 else f"{name[0]}{slot.rng.choice('GMCR')}H"


def _street(slot: SlotFiller, _: str) -> str:
    name = slot.pick(slot.rng.choice(["last", "last", "city", "street"]))
    house = "" if slot.rng.random() < 0.25 else f"{slot.number(1, 999)} "
    kind = "" if house and slot.rng.random() < 0.1 else f" {slot.rng.choice(WORDS['street_kind'])}"
    return f"{house}{name}{kind}"


def _city(slot: SlotFiller, _: str) -> str:
    if slot.rng.random() < 0.65:
        return slot.pick("city")
    # Without endings that would make a city of a different split ("Green" + "ville").
    suffix = slot.rng.choice([*("haven", "stead", "borough"), " Falls", " Beach", " Hills", " Junction"])
    return f"{slot.rng.choice(['', '', '', 'East ', 'New '])}{slot.pick('last')}{suffix}"


def _state(slot: SlotFiller, style: str) -> str:
    name = slot.pick("state")
    return STATE_CODES[name] if style == "abbrev" else name


_MAKERS: dict[str, Callable[[SlotFiller, str], str]] = {
    "qty": lambda slot, _: slot.number(2, 99),
    "small": lambda slot, _: slot.number(2, 12),
    "temp": lambda slot, _: str(slot.rng.choice([38, 39, 100, 101, 102])),
    "vital": lambda slot, _: slot.number(60, 99),
    "volume": lambda slot, _: slot.number(1900, 2100),  # looks like a year
    "duration": lambda slot, _: f"{slot.number(2, 60)} {slot.rng.choice(WORDS['duration'])}",
    "bp": lambda slot, _: f"{slot.number(90, 190)}/{slot.number(50, 99)}",
    "occupation": lambda slot, _: slot.pick("profession"),
    "PROFESSION": lambda slot, _: slot.pick("profession"),
    "COUNTRY": lambda slot, _: slot.pick("country"),
    **{"ratio": _ratio, "dose": _dose, "lab": _lab, "AGE": _age, "DATE": _date},
    **{"PATIENT": _person, "DOCTOR": _person, "HOSPITAL": _hospital, "ORGANIZATION": _institution},
    **{"STREET": _street, "CITY": _city, "STATE": _state},
}
