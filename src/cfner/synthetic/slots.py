"""How the slots of a template are filled: one function per entity type, one word list per distractor."""

from __future__ import annotations

import random
from collections.abc import Callable

from cfner.synthetic.lists import DISTRACTORS, STATE_CODES, WORDS
from cfner.synthetic.values import ValueBook

_NUMBER_SHAPES: dict[str, list[tuple[str, int]]] = {
    "PHONE": [("#######", 4), ("###-####", 6), ("###-###-####", 5), ("(###) ###-####", 3), ("#####", 2)],
    "IDNUM": [
        *(("#######", 4), ("###-####", 2), ("###-###-####", 2), ("#####", 2), ("######", 2)),
        *(("###-##-####", 2), ("@@#####", 3), ("#####-####", 1), ("@@###", 1)),
    ],
    "MEDICALRECORD": [
        *(("#######", 5), ("###-####", 2), ("######", 2), ("###-##-##", 3), ("#####", 2)),
        *(("###-##-####", 1), ("@@#####", 1)),
    ],
    "ZIP": [("#####", 5), ("#####-####", 1)],
    "USERNAME": [("@@###", 4), ("@@@##", 3)],
    "code": [("@@###", 4), ("@@@##", 2)],
    "longnum": [("#####", 3), ("######", 1)],
    "lot": [("#######", 3), ("#####", 1), ("@@#####", 1)],
    "cpt": [("#####", 1)],
}


def _quantity(rng: random.Random, _: ValueBook) -> str:
    return str(rng.randint(2, 99))


def _ratio(rng: random.Random, _: ValueBook) -> str:
    # The shape of a date without a year: strength 4/5, pain 7/10, 3/12 nodes.
    top = rng.randint(1, 12)
    return f"{top}/{rng.choice([whole for whole in (5, 6, 10, 12, 12, 20, 28) if whole >= top])}"


def _dose(rng: random.Random, _: ValueBook) -> str:
    unit = rng.choice(["mg", "mg", "mcg", "units", "ml"])
    return f"{rng.choice([5, 10, 20, 25, 40, 50, 64, 75, 80, 81, 100, 325])} {unit}"


def _lab(rng: random.Random, _: ValueBook) -> str:
    name = rng.choice(DISTRACTORS["analyte"])
    value = f"{rng.randint(1, 9)}.{rng.randint(0, 9)}" if rng.random() < 0.4 else str(rng.randint(18, 160))
    return f"{name} {rng.choice(['', '', 'of ', 'was '])}{value}"


def _duration(rng: random.Random, _: ValueBook) -> str:
    return f"{rng.randint(2, 60)} {rng.choice(['days', 'weeks', 'months', 'years', 'hours'])}"


def _pressure(rng: random.Random, _: ValueBook) -> str:
    return f"{rng.randint(90, 190)}/{rng.randint(50, 99)}"


_COMPUTED: dict[str, Callable[[random.Random, ValueBook], str]] = {
    "qty": _quantity,
    "small": lambda rng, _: str(rng.randint(2, 12)),
    "temp": lambda rng, _: str(rng.choice([38, 39, 100, 101, 102])),
    "vital": lambda rng, _: str(rng.randint(60, 99)),
    "volume": lambda rng, _: str(rng.randint(1900, 2100)),  # as a year might be
    "ratio": _ratio,
    "dose": _dose,
    "lab": _lab,
    "duration": _duration,
    "bp": _pressure,
    "occupation": lambda rng, book: book.pick("profession", rng),
}


def _number(kind: str, rng: random.Random, book: ValueBook) -> str:
    shapes = _NUMBER_SHAPES[kind]
    shape = rng.choices([shape for shape, _ in shapes], [weight for _, weight in shapes])[0]
    text = book.pick(shape, rng)
    return text.upper() if kind == "code" or (kind != "USERNAME" and rng.random() < 0.8) else text


def _age(style: str, rng: random.Random) -> str:
    if style == "decade":
        return f"{rng.randint(3, 9)}0s"
    return str(rng.randint(9, 39) if style == "young" else rng.randint(18, 97))


def _date(style: str, rng: random.Random) -> str:
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


def _person(style: str, rng: random.Random, book: ValueBook, surname: str) -> str:
    first = book.pick("first", rng)
    forms = {
        "last": surname,
        "first": first,
        "initials": f"{first[0]}{surname[0]}",
        "reversed": f"{surname}, {first}",
    }
    if style:
        return forms[style]
    middle = rng.choice("ABCDEFGHJKLMPRSTW")
    full = [f"{first} {surname}", f"{first} {middle}. {surname}", f"{first[0]}. {surname}"]
    return rng.choices(full, [6, 2, 1])[0]


def _institution(style: str, forms: list[str], rng: random.Random, book: ValueBook) -> str:
    # "Transferred from Baker": only where the sentence leaves no doubt that this is no person.
    text = "{last}" if style == "bare" and rng.random() < 0.25 else rng.choice(forms)
    for pool in ("city", "last", "first", "state", "country"):
        while "{" + pool + "}" in text:
            text = text.replace("{" + pool + "}", book.pick(pool, rng), 1)
    return text


def _hospital(style: str, rng: random.Random, book: ValueBook) -> str:
    name = _institution(style, WORDS["hospital"], rng, book)
    if style != "short" or rng.random() < 0.4:
        return name
    letters = [word[0] for word in name.replace("St.", "S").split() if word[0].isupper()]
    return "".join(letters) if len(letters) > 2 else f"{name[0]}{rng.choice('GMCR')}H"


def _street(rng: random.Random, book: ValueBook) -> str:
    name = book.pick(rng.choice(["last", "last", "city", "street"]), rng)
    house = "" if rng.random() < 0.25 else f"{rng.randint(1, 999)} "
    kind = "" if house and rng.random() < 0.1 else f" {rng.choice(WORDS['street_kind'])}"
    return f"{house}{name}{kind}"


def _city(rng: random.Random, book: ValueBook) -> str:
    if rng.random() < 0.65:
        return book.pick("city", rng)
    # No ending that would make a city of another split's list ("Green" + "ville").
    suffix = rng.choice([*("haven", "stead", "borough"), " Falls", " Beach", " Hills", " Junction"])
    return f"{rng.choice(['', '', '', 'East ', 'New '])}{book.pick('last', rng)}{suffix}"


class SlotFiller:
    """Fills the slots of one sentence; remembers its surnames, for two people in it may be namesakes."""

    def __init__(self, book: ValueBook, rng: random.Random) -> None:
        self._book = book
        self._rng = rng
        self._surnames: list[str] = []

    def fill(self, kind: str, style: str) -> str:
        rng, book = self._rng, self._book
        if kind in DISTRACTORS:
            return rng.choice(DISTRACTORS[kind])
        if kind in _COMPUTED:
            return _COMPUTED[kind](rng, book)
        if kind in _NUMBER_SHAPES:
            return _number(kind, rng, book)
        if kind in ("PATIENT", "DOCTOR"):
            return _person(style, rng, book, self._surname())
        return self._place_or_time(kind, style)

    def _place_or_time(self, kind: str, style: str) -> str:
        rng, book = self._rng, self._book
        makers: dict[str, Callable[[], str]] = {
            "AGE": lambda: _age(style, rng),
            "DATE": lambda: _date(style, rng),
            "HOSPITAL": lambda: _hospital(style, rng, book),
            "ORGANIZATION": lambda: _institution(style, WORDS["organization"], rng, book),
            "STREET": lambda: _street(rng, book),
            "CITY": lambda: _city(rng, book),
            "COUNTRY": lambda: book.pick("country", rng),
            "PROFESSION": lambda: book.pick("profession", rng),
            "STATE": lambda: self._state(style),
        }
        return makers[kind]()

    def _state(self, style: str) -> str:
        name = self._book.pick("state", self._rng)
        return STATE_CODES[name] if style == "abbrev" else name

    def _surname(self) -> str:
        if self._surnames and self._rng.random() < 0.15:
            return self._rng.choice(self._surnames)
        self._surnames.append(self._book.pick("last", self._rng))
        return self._surnames[-1]
