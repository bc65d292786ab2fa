"""What a column of a table is, what is known of it from the fit, and the features that it becomes.

Every description is frozen and made of plain values, so that it is saved as JSON; only texts also have arrays. ``done`` says
what is done with the column, ``features`` names the features that ``encode`` makes of its values, and ``traits`` are what can
set rows apart, in the words of the column. The features of a column together add as much to the squared
distance of two rows, on average, as a standardised number does; the flag of gaps comes on top.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ddclust.data.tables.cells import (
    DATE_FORMATS,
    ISO,
    TRUE_WORDS,
    dates_in,
    gaps_in,
    parsed_date,
    words_in,
)
from ddclust.data.tables.units import COMMA, POINT, NumberForm, mixed_units
from ddclust.data.text import StemVectorizer

# Levels that get a feature each. Of more, the frequent ones do, and the rest are hashed into a few buckets.
MOST_LEVELS = 20
FREQUENT_SHARE = 0.01
BUCKETS = 8
# Levels share a bucket by chance, so buckets part rows only half as far as levels do.
BUCKET_WEIGHT = 0.5
# What is the same nearly everywhere is not scaled up further than an even split into two: a rare level is as far from the
# others as a frequent one. Otherwise rows with rare levels have no neighbours among the others and become clusters of their own.
LEAST_VARIANCE, LEAST_OF_LEVELS = 0.25, 0.5
# The flag of a gap weighs less than a value: where several columns have gaps in the same rows, flags add up.
FLAG_DEVIATION = 0.5
# A column is heavy-tailed if its most extreme hundredth holds this share of the variance: 0.08 for normal values, 0.23
# for exponential ones, 0.48 for log-normal ones.
EXTREME, HEAVY_SHARE, FEWEST_FOR_TAILS = 0.01, 0.3, 20
QUANTILES = 100
TEXT_TOPICS = 10
TELLING_STEMS = 200
LONGEST_SHOWN = 20  # characters of a level
# Cycles of dates, in days. One is used if the dates span at least two of them.
CYCLES = {"hour": 1.0, "weekday": 7.0, "month": 365.2425}
DAY = 86_400.0
MOST_DAYS = 1e8  # from 1970, which dates in microseconds just reach


class Trait(NamedTuple):
    """Something that a row has more or less of, with words for much and, if there are any, for little.

    Of a measure, these are adjectives that go before the name of the column.
    """

    column: str
    high: str
    low: str | None
    values: NDArray[np.float64]
    is_measure: bool = False


@dataclass(frozen=True)
class LeftOutColumn:
    """A column that is not clustered."""

    kind: ClassVar[str] = "left out"
    name: str
    reason: str
    gaps: int = 0

    features: ClassVar[tuple[str, ...]] = ()

    @property
    def done(self) -> str:
        return f"left out: {self.reason}"

    def encode(self, values: NDArray) -> NDArray[np.float64]:
        return np.empty((len(values), 0))

    def traits(self, values: NDArray) -> list[Trait]:
        return []


@dataclass(frozen=True)
class NumberColumn:
    """Numbers: standardised, those with heavy tails after a map of their quantiles to those of the normal distribution."""

    kind: ClassVar[str] = "number"
    name: str
    median: float
    shift: float
    scale: float
    gaps: int = 0
    gap_share: float = 0.0
    quantiles: tuple[float, ...] = ()
    stray: str = ""  # one of the words that count as gaps
    unit: str = ""  # that is written with the numbers
    decimal: str = POINT

    def __post_init__(self) -> None:
        _check_finite(self.name, self.median, self.shift, self.scale, self.gap_share, *self.quantiles)
        is_ordered = list(self.quantiles) == sorted(self.quantiles)
        if (
            self.scale <= 0
            or not 0 <= self.gap_share < 1
            or not is_ordered
            or self.decimal not in (POINT, COMMA)
        ):
            raise ValueError(f"The description of the column {self.name!r} contradicts itself.")

    @classmethod
    def of(cls, name: str, values: NDArray, form: NumberForm | None = None) -> Self:
        """The description of a column with at least two different numbers."""
        form = form or NumberForm.of(values) or NumberForm()
        numbers = _finite_numbers(name, values, form)
        known = numbers[~np.isnan(numbers)]
        quantiles: tuple[float, ...] = ()
        if _has_heavy_tails(known):
            quantiles = tuple(np.quantile(known, np.linspace(0, 1, min(QUANTILES, len(known)))).tolist())
        gaps = int(np.isnan(numbers).sum())
        plain = cls(name, float(np.median(known)), 0.0, 1.0, gaps, gaps / len(numbers), quantiles)
        filled = plain._mapped(numbers)
        deviation = float(filled.std())
        shift, scale = float(filled.mean()), 1 / deviation if deviation > 0 else 1.0
        stray = _stray(values, np.isnan(numbers))
        return cls(name, plain.median, shift, scale, gaps, plain.gap_share, quantiles, stray, *form)

    @property
    def done(self) -> str:
        how = "ranked (heavy tails), standardised" if self.quantiles else "standardised"
        how = f"in {self.unit}, {how}" if self.unit else how
        gaps = f"gaps{_with(self.stray)} become"
        return how + (f"; {gaps} {self.median:.6g}, with a flag" if self.gaps else "")

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *([_missing(self.name)] if self.gaps else []))

    @property
    def heading(self) -> str:
        """The name with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def numbers(self, values: NDArray) -> NDArray[np.float64]:
        """The numbers without their unit, NaN for gaps; infinity is refused."""
        return _finite_numbers(self.name, values, NumberForm(self.unit, self.decimal))

    def encode(self, values: NDArray) -> NDArray[np.float64]:
        numbers = self.numbers(values)
        parts = [(self._mapped(numbers) - self.shift) * self.scale]
        if self.gaps:
            parts.append(_flag(np.isnan(numbers), self.gap_share))
        return np.column_stack(parts)

    def traits(self, values: NDArray) -> list[Trait]:
        numbers = self.numbers(values)
        own = Trait(self.name, "high", "low", self._mapped(numbers), is_measure=True)
        return [own, *_gap_traits(self.name, self.gaps, np.isnan(numbers))]

    def _mapped(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers with gaps filled and, of heavy tails, as normal quantiles; equal ones share their middle rank."""
        filled = np.where(np.isnan(numbers), self.median, numbers)
        if not self.quantiles:
            return filled
        places, ranks = np.array(self.quantiles), np.linspace(0, 1, len(self.quantiles))
        rising = np.interp(filled, places, ranks)
        falling = -np.interp(-filled, -places[::-1], -ranks[::-1])
        edge = 0.5 / len(ranks)
        return ndtri(np.clip((rising + falling) / 2, edge, 1 - edge))


@dataclass(frozen=True)
class BooleanColumn:
    """Two words for yes and no, as 1 and 0, standardised."""

    kind: ClassVar[str] = "boolean"
    name: str
    yes: str
    no: str
    share: float
    gaps: int = 0
    gap_share: float = 0.0

    def __post_init__(self) -> None:
        _check_finite(self.name, self.share, self.gap_share)
        if not 0 <= self.share <= 1 or not 0 <= self.gap_share < 1:
            raise ValueError(f"The description of the column {self.name!r} contradicts itself.")

    @classmethod
    def of(cls, name: str, values: NDArray) -> Self:
        """The description of a column of two words; the first of them in :data:`TRUE_WORDS`, or the later one, means yes."""
        words = words_in(values)
        found = sorted({word.strip() for word in words if word is not None})
        if len(found) != 2:
            raise ValueError(f"The column {name!r} has {len(found)} different values; a boolean has two.")
        yes = next((word for word in found if word.lower() in TRUE_WORDS), found[1])
        no = next(word for word in found if word != yes)
        gaps = int(gaps_in(words).sum())
        plain = cls(name, yes, no, 0.5, gaps, gaps / len(words))
        return cls(name, yes, no, float(np.nanmean(plain.numbers(words))), gaps, plain.gap_share)

    @property
    def done(self) -> str:
        how = "standardised" if self.yes == "1" else f"1 for {self.yes}, standardised"
        return how + ("; gaps in between, with a flag" if self.gaps else "")

    @property
    def features(self) -> tuple[str, ...]:
        return (f"{self.name} = {self.yes}", *([_missing(self.name)] if self.gaps else []))

    def numbers(self, values: NDArray) -> NDArray[np.float64]:
        """1, 0, and NaN for anything else."""
        codes = {self.yes.lower(): 1.0, self.no.lower(): 0.0}
        return np.array(
            [np.nan if w is None else codes.get(w.strip().lower(), np.nan) for w in words_in(values)]
        )

    def encode(self, values: NDArray) -> NDArray[np.float64]:
        numbers = self.numbers(values)
        filled = np.where(np.isnan(numbers), self.share, numbers)
        parts = [(filled - self.share) / math.sqrt(max(self.share * (1 - self.share), LEAST_VARIANCE))]
        if self.gaps:
            parts.append(_flag(np.isnan(numbers), self.gap_share))
        return np.column_stack(parts)

    def traits(self, values: NDArray) -> list[Trait]:
        numbers = self.numbers(values)
        filled = np.where(np.isnan(numbers), self.share, numbers)
        own = Trait(self.name, f"{self.name} = {self.yes}", f"{self.name} = {self.no}", filled)
        return [own, *_gap_traits(self.name, self.gaps, np.isnan(numbers))]


@dataclass(frozen=True)
class CategoryColumn:
    """Words that many rows share: a feature for each level, the rare ones of many hashed; all scaled by one factor."""

    kind: ClassVar[str] = "category"
    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]  # of the levels, the buckets and, if there are any, the gaps
    n_buckets: int = 0
    n_levels: int = 0
    gaps: int = 0
    units: tuple[str, ...] = ()  # if the words are numbers in several

    def __post_init__(self) -> None:
        _check_finite(self.name, *self.shares)
        n_features = len(self.levels) + self.n_buckets + bool(self.gaps)
        if (
            not 0 <= self.n_buckets <= BUCKETS
            or len(self.shares) != n_features
            or len(set(self.levels)) < len(self.levels)
        ):
            raise ValueError(f"The description of the column {self.name!r} contradicts itself.")
        if not all(0 <= share <= 1 for share in self.shares):
            raise ValueError(f"The description of the column {self.name!r} contradicts itself.")

    @classmethod
    def of(cls, name: str, values: NDArray) -> Self:
        """The description of a column of words."""
        words = words_in(values)
        counts = Counter(word.strip() for word in words if word is not None)
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        n_buckets = 0
        if len(ordered) > MOST_LEVELS:
            least = FREQUENT_SHARE * counts.total()
            ordered, n_buckets = [word for word in ordered[:MOST_LEVELS] if counts[word] >= least], BUCKETS
        gaps = int(gaps_in(words).sum())
        n_features = len(ordered) + n_buckets + bool(gaps)
        plain = cls(name, tuple(ordered), (0.0,) * n_features, n_buckets, len(counts), gaps)
        shares = plain._indicators(words).mean(axis=0)
        units = mixed_units(words)
        return cls(name, plain.levels, tuple(shares.tolist()), n_buckets, len(counts), gaps, units)

    @property
    def done(self) -> str:
        if self.n_buckets:
            frequent = f"{len(self.levels)} frequent ones, the rest" if self.levels else "all rare,"
            how = f"{self.n_levels:,} levels: {frequent} in {self.n_buckets} hashed groups"
        else:
            how = f"{len(self.levels)} levels: {_first(self.levels)}"
        how += "; gaps are a level" if self.gaps else ""
        return how + (f"; as numbers, convert {', '.join(self.units)} to one unit" if self.units else "")

    @property
    def features(self) -> tuple[str, ...]:
        buckets = (f"{self.name} = other ({bucket})" for bucket in range(1, self.n_buckets + 1))
        levels = (f"{self.name} = {level}" for level in self.levels)
        return (*levels, *buckets, *([_missing(self.name)] if self.gaps else []))

    def encode(self, values: NDArray) -> NDArray[np.float64]:
        shares = np.array(self.shares)
        spread = math.sqrt(max(1 - float(np.square(shares).sum()), LEAST_OF_LEVELS))
        encoded = (self._indicators(values) - shares) / spread
        encoded[:, len(self.levels) : len(self.levels) + self.n_buckets] *= BUCKET_WEIGHT
        return encoded

    def traits(self, values: NDArray) -> list[Trait]:
        indicators = self._indicators(values)
        own = [
            Trait(self.name, f"{self.name} = {level}", None, indicators[:, place])
            for place, level in enumerate(self.levels)
        ]
        return own + _gap_traits(self.name, self.gaps, gaps_in(values))

    def _indicators(self, values: NDArray) -> NDArray[np.float64]:
        """1 in the feature of each row's level, or of its bucket; new levels of few have none."""
        words = words_in(values)
        n_levels = len(self.levels)
        places = {level: place for place, level in enumerate(self.levels)}
        found = np.zeros((len(words), len(self.shares)))
        for row, word in enumerate(words):
            if word is None:
                place = len(self.shares) - 1 if self.gaps else None
            else:
                word = word.strip()
                place = places.get(word)
                if place is None and self.n_buckets:
                    place = places[word] = n_levels + _bucket(word, self.n_buckets)
            if place is not None:
                found[row, place] = 1.0
        return found


@dataclass(frozen=True)
class DateColumn:
    """Dates: as a number, standardised, and as places in the cycles that they span at least twice."""

    kind: ClassVar[str] = "date"
    name: str
    form: str
    median: float  # in days since 1970
    shift: float
    scale: float
    cycles: tuple[str, ...] = ()
    cycle_shifts: tuple[float, ...] = ()  # a cosine and a sine of each cycle
    cycle_scales: tuple[float, ...] = ()
    gaps: int = 0
    gap_share: float = 0.0
    stray: str = ""  # one of the words that count as gaps

    def __post_init__(self) -> None:
        numbers = (
            self.median,
            self.shift,
            self.scale,
            self.gap_share,
            *self.cycle_shifts,
            *self.cycle_scales,
        )
        _check_finite(self.name, *numbers)
        n_cycles = len(self.cycles)
        if (
            self.form not in DATE_FORMATS
            or not set(self.cycles) <= CYCLES.keys()
            or (len(self.cycle_shifts), len(self.cycle_scales)) != (2 * n_cycles, n_cycles)
            or self.scale <= 0
            or not 0 <= self.gap_share < 1
            or abs(self.median) > MOST_DAYS
        ):
            raise ValueError(f"The description of the column {self.name!r} contradicts itself.")

    @classmethod
    def of(cls, name: str, values: NDArray, form: str | None = None) -> Self:
        """The description of a column with at least two different dates."""
        form = form or date_format(words_in(values)) or ISO
        days = _days(dates_in(values, form))
        known = days[~np.isnan(days)]
        if not len(known):
            raise ValueError(f"The column {name!r} holds no dates that can be read.")
        gaps = int(np.isnan(days).sum())
        median = float(np.median(known))
        filled = np.where(np.isnan(days), median, days)
        deviation = float(filled.std())
        cycles = tuple(cycle for cycle, length in CYCLES.items() if _is_cyclic(known, cycle, length))
        places = [_on_circle(filled, CYCLES[cycle]) for cycle in cycles]
        shifts = [float(part) for place in places for part in place.mean(axis=0)]
        # Half of the weight is the number's, half that of the cycles.
        weights = [place.var(axis=0).sum() * 2 * len(cycles) for place in places]
        own_weight = math.sqrt(0.5) if cycles else 1.0
        return cls(
            name,
            form,
            median,
            float(filled.mean()),
            own_weight / deviation if deviation > 0 else 1.0,
            cycles,
            tuple(shifts),
            tuple(1 / math.sqrt(max(float(weight), LEAST_VARIANCE)) for weight in weights),
            gaps,
            gaps / len(days),
            _stray(values, np.isnan(days)),
        )

    @property
    def done(self) -> str:
        cycles = f", with the cycle of {' and '.join(self.cycles)}" if self.cycles else ""
        gaps = f"; gaps{_with(self.stray)} become {_as_date(self.median)}, with a flag" if self.gaps else ""
        return f"a number{cycles}{gaps}"

    @property
    def features(self) -> tuple[str, ...]:
        cycles = (f"{self.name} ({cycle}, {part})" for cycle in self.cycles for part in ("cosine", "sine"))
        return (self.name, *cycles, *([_missing(self.name)] if self.gaps else []))

    def days(self, values: NDArray) -> NDArray[np.float64]:
        """Days since 1970, NaN for gaps."""
        return _days(dates_in(values, self.form))

    def encode(self, values: NDArray) -> NDArray[np.float64]:
        days = self.days(values)
        filled = np.where(np.isnan(days), self.median, days)
        parts = [((filled - self.shift) * self.scale)[:, None]]
        for place, cycle in enumerate(self.cycles):
            around = _on_circle(filled, CYCLES[cycle]) - self.cycle_shifts[2 * place : 2 * place + 2]
            parts.append(around * self.cycle_scales[place])
        if self.gaps:
            parts.append(_flag(np.isnan(days), self.gap_share)[:, None])
        return np.hstack(parts)

    def traits(self, values: NDArray) -> list[Trait]:
        days = self.days(values)
        filled = np.where(np.isnan(days), self.median, days)
        own = Trait(self.name, "late", "early", filled, is_measure=True)
        return [own, *_gap_traits(self.name, self.gaps, np.isnan(days))]


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts: TF-IDF of word stems, reduced to a few topics; all topics are scaled by one factor."""

    kind: ClassVar[str] = "text"
    name: str
    language: str
    stems: tuple[str, ...]
    scale: float
    idf: Any  # (n_stems,)
    components: Any  # (n_topics, n_stems)
    shift: Any  # (n_topics,)
    gaps: int = 0

    ARRAYS: ClassVar[tuple[str, ...]] = ("idf", "components", "shift")

    def __post_init__(self) -> None:
        _check_finite(self.name, self.scale)
        self.vectorizer().build_analyzer()  # refuses an unknown language
        n_topics, n_stems = self.components.shape
        fits = self.idf.shape == (n_stems,) and self.shift.shape == (n_topics,)
        if not fits or not len(set(self.stems)) == len(self.stems) == n_stems or self.scale <= 0:
            raise ValueError(f"The description of the column {self.name!r} contradicts itself.")

    @classmethod
    def of(cls, name: str, values: NDArray, language: str) -> Self:
        """The description of a column of texts."""
        from sklearn.decomposition import TruncatedSVD

        texts = ["" if word is None else word for word in words_in(values)]
        vectorizer = StemVectorizer(language)
        try:
            vectors = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise ValueError(f"The column {name!r} cannot be read as texts. {error}") from error
        n_topics = max(min(TEXT_TOPICS, *(side - 1 for side in vectors.shape)), 1)
        topics = TruncatedSVD(n_topics, random_state=0).fit(vectors)
        reduced = vectors @ topics.components_.T
        total = float(np.var(reduced, axis=0).sum())
        return cls(
            name,
            vectorizer.language_,
            tuple(vectorizer.get_feature_names_out().tolist()),
            1 / math.sqrt(total) if total > 0 else 1.0,
            vectorizer.idf_.astype(np.float64),
            topics.components_.astype(np.float64),
            np.asarray(reduced.mean(axis=0), dtype=np.float64),
            sum(not text for text in texts),
        )

    @property
    def done(self) -> str:
        return f"{len(self.stems):,} word stems in {len(self.components)} topics"

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name} (topic {topic})" for topic in range(1, len(self.components) + 1))

    def vectorizer(self) -> StemVectorizer:
        """What counts the words."""
        return StemVectorizer.from_stems(self.language, list(self.stems), self.idf)

    def encode(self, values: NDArray) -> NDArray[np.float64]:
        texts = ["" if word is None else word for word in words_in(values)]
        reduced = self.vectorizer().transform(texts) @ self.components.T
        return (np.asarray(reduced, dtype=np.float64) - self.shift) * self.scale

    def traits(self, values: NDArray) -> list[Trait]:
        texts = ["" if word is None else word for word in words_in(values)]
        vectorizer = self.vectorizer()
        vectors, words = vectorizer.transform(texts), vectorizer.whole_words(texts)
        frequent = np.argsort(self.idf, kind="stable")[:TELLING_STEMS]
        held = (vectors[:, frequent] > 0).toarray().astype(np.float64)
        return [
            Trait(self.name, f"{self.name}: {words[stem]}", None, held[:, place])
            for place, stem in enumerate(frequent)
        ]


Column = NumberColumn | BooleanColumn | CategoryColumn | DateColumn | TextColumn | LeftOutColumn
COLUMN_KINDS = {kind.kind: kind for kind in get_args(Column)}


def _finite_numbers(name: str, values: NDArray, form: NumberForm) -> NDArray[np.float64]:
    """A column as numbers, NaN for gaps; infinity is refused."""
    numbers = form.numbers(values)
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise ValueError(
            f"X holds {numbers[row]} in row {row}, column {name!r}; remove such values, or leave them empty."
        )
    return numbers


def date_format(words: NDArray, share: float = 0.9, most: int = 500) -> str | None:
    """The format in which most of the words are dates; None if there is none."""
    some = list(dict.fromkeys(word for word in words if word is not None))[:most]
    # Most columns are no dates, and most formats do not fit: a few words tell.
    likely = [form for form in DATE_FORMATS if any(parsed_date(word, form) for word in some[:5])]
    shares = {form: np.mean([parsed_date(word, form) is not None for word in some]) for form in likely}
    best = max(shares, key=lambda form: shares[form], default=None)
    return best if best is not None and shares[best] >= share else None


def _has_heavy_tails(numbers: NDArray[np.float64]) -> bool:
    """Whether the most extreme hundredth of the numbers holds much of their variance."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(numbers.std()):
            return True
    if len(numbers) < FEWEST_FOR_TAILS:
        return False
    largest = np.abs(numbers).max()
    squares = np.sort(np.square(numbers / (largest or 1.0) - np.median(numbers / (largest or 1.0))))
    n_extreme = max(math.ceil(EXTREME * len(squares)), 1)
    return bool(squares[-n_extreme:].sum() > HEAVY_SHARE * squares.sum())


def _flag(is_gap: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """1 for a gap, 0 for none, scaled to its weight."""
    deviation = math.sqrt(max(share * (1 - share), LEAST_VARIANCE))
    return FLAG_DEVIATION * (is_gap.astype(np.float64) - share) / deviation


def _gap_traits(name: str, gaps: int, is_gap: NDArray[np.bool_]) -> list[Trait]:
    return [Trait(name, _missing(name), None, is_gap.astype(np.float64))] if gaps else []


def _stray(values: NDArray, is_gap: NDArray[np.bool_]) -> str:
    """The first word among what counts as gaps, if there is any."""
    return next((word for word in words_in(values[is_gap]) if word is not None), "")


def _with(stray: str) -> str:
    return f" and words such as {_first([stray])!r}" if stray else ""


def _missing(name: str) -> str:
    return f"{name} missing"


def _bucket(word: str, n_buckets: int) -> int:
    """The group of a rare level, the same on every machine."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") % n_buckets


def _days(dates: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Days since 1970, NaN for NaT."""
    microseconds = dates.astype("datetime64[us]").astype(np.int64)
    return np.where(np.isnat(dates), np.nan, microseconds / (DAY * 1e6))


def _is_cyclic(days: NDArray[np.float64], cycle: str, length: float) -> bool:
    """Whether dates span a cycle at least twice and lie at different places in it."""
    if days.max() - days.min() < 2 * length:
        return False
    if cycle == "hour":
        return bool((days != np.floor(days)).any())
    if cycle == "weekday":  # of dates by the month, the weekday says nothing
        return len(np.unique(np.floor(days).astype("datetime64[D]").astype("datetime64[M]"))) < len(
            np.unique(np.floor(days))
        )
    return len(np.unique(days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12)) > 1


def _on_circle(days: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Places in a cycle, as a cosine and a sine."""
    angle = 2 * np.pi * days / length
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _as_date(days: float) -> str:
    """Days since 1970 as a date."""
    return str(np.datetime64(round(days * DAY), "s").astype("datetime64[D]"))


def _first(words: Sequence[str], most: int = 3) -> str:
    """The first words, each on one line and not too long."""
    lines = [" ".join(word.split()) for word in words[:most]]
    shown = [
        line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 1].rstrip()}…" for line in lines
    ]
    return ", ".join(shown) + (", ..." if len(words) > most else "")


def _check_finite(name: str, *numbers: float) -> None:
    """Refuse numbers of a description that no fit writes."""
    if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers):
        raise ValueError(f"The description of the column {name!r} holds values that are not finite.")
