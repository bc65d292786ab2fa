"""Numbers that are written with a unit, a currency sign, separators of thousands or a decimal comma."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddclust.data.tables.cells import gaps_in, words_in

POINT, COMMA = ".", ","
# A column is of numbers in a unit if so many of its words are; those of another unit would be read wrongly.
MOSTLY = 0.9
LONGEST_WORD, LONGEST_UNIT = 60, 20
_SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"  # of thousands in Switzerland
_SIGNS = "$€£¥₹₽₩₺₪₫฿₦₱₴₸¢"
_CODES = "USD EUR GBP JPY CHF CNY RMB INR RUB SEK NOK DKK ISK PLN CZK HUF RON AUD CAD NZD HKD SGD KRW BRL MXN ZAR TRY ILS THB"
_BEFORE = f"(?:(?:US|CA|AU|NZ|HK|R|A|C|S)?\\$|[{_SIGNS}]|(?:{_CODES.replace(' ', '|')}|Rs\\.?|Fr\\.?|kr\\.?)(?![A-Za-z]))"
_AFTER = rf"[^\W\d_]|[%‰°µ\"'{_SIGNS}]"
_WORD = re.compile(
    rf"(?P<sign>[-+]?)[{_SPACES}]*(?P<before>{_BEFORE})?[{_SPACES}]*(?P<inner>[-+]?)"
    rf"(?P<digits>\d(?:[\d.,'{_APOSTROPHE}{_SPACES}]*\d)?|[.,]\d+)(?P<power>[eE][-+]?\d+)?"
    rf"[{_SPACES}]*(?P<after>(?:{_AFTER})(?:{_AFTER}|[{_SPACES}/.·^²³-])*[23]?)?"
)


def _grouped(mark: str) -> str:
    """Digits in groups of three, with this mark or a usual one between them."""
    return rf"[1-9]\d{{0,2}}(?:([{mark}'{_APOSTROPHE}{_SPACES}])\d{{3}})(?:\1\d{{3}})*"


_DIGITS = {
    POINT: re.compile(rf"{_grouped(',')}(?:\.\d+)?|[1-9]\d?(?:,\d\d)+,\d{{3}}(?:\.\d+)?|\d*\.?\d+"),
    COMMA: re.compile(rf"{_grouped('.')}(?:,\d+)?|\d*,?\d+"),
}
_THOUSANDS_BY_POINT = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")
# Units of which two in one column mean that the same is measured in both.
_MEASURES = (
    "kg g mg µg t lb lbs oz st stone km m cm mm mi mile miles ft feet in inch inches yd l L ml cl dl gal pt °C °F % ‰ h hr hrs"
    " hour hours min mins minute minutes s sec secs ms day days week weeks month months year years yrs km/h mph kmh m/s kW hp PS"
    " kB KB MB GB TB MiB GiB m2 m² km2 km² ha acres sqft ft² J kJ kcal cal bar psi Pa kPa mol Hz kHz MHz GHz"
    " US$ CA$ AU$ R$ A$ C$ Rs Rs. kr Fr."
)
_KNOWN = {*_MEASURES.split(), *_CODES.split(), *_SIGNS}


class Written(NamedTuple):
    """A word that is a number: its digits as they are written, and its unit, empty for none."""

    digits: str
    unit: str
    sign: int
    power: str

    def value(self, decimal: str) -> float:
        """The number if fractions begin with this mark; NaN if the digits cannot be read so.

        Examples
        --------
        >>> [written("1.200 €").value(mark) for mark in (POINT, COMMA)]
        [1.2, 1200.0]
        """
        if not _DIGITS[decimal].fullmatch(self.digits):
            return np.nan
        kept = "".join(mark for mark in self.digits if mark.isdigit() or mark == decimal)
        return self.sign * float(kept.replace(decimal, ".") + self.power)


class NumberForm(NamedTuple):
    """How the numbers of a column are written.

    Parameters
    ----------
    unit : str
        What stands before or after all of them, empty for nothing.
    decimal : str
        What fractions begin with, a point or a comma.
    """

    unit: str = ""
    decimal: str = POINT

    @classmethod
    def of(cls, column: NDArray, mostly: float = MOSTLY) -> NumberForm | None:
        """The form in which nearly all words of a column are numbers; None if there is none, as with several units.

        Examples
        --------
        >>> words = np.array(["12 kg", "7.5 kg", None, "1,200 kg"], dtype=object)
        >>> NumberForm.of(words), NumberForm.of(np.array(["12 kg", "3 lb"], dtype=object))
        (NumberForm(unit='kg', decimal='.'), None)
        """
        if column.dtype.kind != "O":
            return cls()
        counts = Counter(word for word in column if word is not None)
        numbers = {word: found for word in counts if (found := written(word)) is not None}
        units = _counted_units(numbers, counts)
        with_unit = units.total() - units[""]
        unit = max(units, key=lambda unit: (bool(unit), units[unit]), default="")
        if len(units.keys() - {""}) > 1 or (unit and with_unit < mostly * units.total()):
            return None
        read = {form: form._share(counts) for form in (cls(unit, POINT), cls(unit, COMMA))}
        by_point, by_comma = read
        form = by_comma if read[by_comma] > read[by_point] or _group_by_points(numbers) else by_point
        return form if read[form] > 0 and read[form] >= mostly else None

    def numbers(self, column: NDArray) -> NDArray[np.float64]:
        """A column as numbers, NaN where it has a gap, another unit, or something else.

        Examples
        --------
        >>> NumberForm("€", ",").numbers(np.array(["1.200,50 €", "3", "3 $"], dtype=object)).tolist()
        [1200.5, 3.0, nan]
        """
        if column.dtype.kind == "f":
            return column
        if column.dtype.kind == "M":
            return np.full(len(column), np.nan)
        values = {word: self._value(word) for word in set(column.tolist()) if word is not None}
        return np.array([values.get(word, np.nan) for word in column], dtype=np.float64)

    def _share(self, counts: Counter[str]) -> float:
        """The share of words that are numbers."""
        known = sum(n for word, n in counts.items() if not math.isnan(self._value(word)))
        return known / max(counts.total(), 1)

    def _value(self, word: str) -> float:
        if self.decimal == POINT:
            try:
                return float(word)  # NaN and infinity, too
            except ValueError:
                pass
        found = written(word)
        return np.nan if found is None or found.unit not in ("", self.unit) else found.value(self.decimal)


def mixed_units(column: NDArray) -> tuple[str, ...]:
    """The units of a column of numbers in more than one, the most frequent first; none if they may be something else.

    Examples
    --------
    >>> mixed_units(np.array(["12 kg", "3 lb", "4 kg"], dtype=object)), mixed_units(np.array(["1A", "2B"], dtype=object))
    (('kg', 'lb'), ())
    """
    words = words_in(column)
    counts = Counter(word for word in words[~gaps_in(words)])
    numbers = {word: found for word in counts if (found := written(word)) is not None}
    units = _counted_units(numbers, counts)
    named = sorted(units.keys() - {""}, key=lambda unit: (-units[unit], unit))
    are_numbers = bool(counts) and units.total() >= MOSTLY * counts.total()
    are_mixed = len(named) > 1 or (len(named) == 1 and units[""] > 0)
    if not are_numbers or not are_mixed or not _KNOWN.issuperset(named):
        return ()
    return (*named, *(["none"] if units[""] else []))


@lru_cache(2**16)
def written(word: str) -> Written | None:
    """A word as a number with its unit; None if it is something else.

    Examples
    --------
    >>> [written(word).unit for word in ("-$1,200", "3.4 %", "12 km/h", "7")], written("3rd of May 2011")
    (['$', '%', 'km/h', ''], None)
    """
    if len(word) > LONGEST_WORD:
        return None
    match = _WORD.fullmatch(word.strip().replace("\N{MINUS SIGN}", "-"))
    if match is None or (match["sign"] and match["inner"]) or (match["before"] and match["after"]):
        return None
    unit = " ".join((match["before"] or match["after"] or "").split())
    if len(unit) > LONGEST_UNIT:
        return None
    sign = -1 if "-" in (match["sign"], match["inner"]) else 1
    return Written(match["digits"], unit, sign, match["power"] or "")


def _counted_units(numbers: dict[str, Written], counts: Counter[str]) -> Counter[str]:
    units: Counter[str] = Counter()
    for word, found in numbers.items():
        units[found.unit] += counts[word]
    return units


def _group_by_points(numbers: dict[str, Written]) -> bool:
    """Whether all points in amounts such as 1.200 € have three digits behind them, so that they are no fractions."""
    pointed = [found for found in numbers.values() if "." in found.digits]
    return bool(pointed) and all(
        found.unit[-1:] in {*_SIGNS} and _THOUSANDS_BY_POINT.fullmatch(found.digits) for found in pointed
    )
