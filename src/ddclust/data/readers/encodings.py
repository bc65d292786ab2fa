"""In which encoding the letters of a file are written. A doubtful file is refused, since it would be read as other letters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import groupby
from typing import IO, NamedTuple

from ddclust.data.readers.bunch import DataError

UTF_8, UTF_16, WINDOWS = "utf-8-sig", "utf-16", "cp1252"
SHOWN_AS = {UTF_8: "UTF-8", UTF_16: "UTF-16", WINDOWS: "Windows-1252"}
BLOCK_BYTES = 2**20
SAMPLE_BYTES = 2**16  # of lines with more than ASCII, by which an encoding is judged
# Share of letters and signs in their places from which on a text is believed to be in Windows-1252.
PLAUSIBLE = 0.8
NEARLY_UTF_8 = 0.1  # share of broken characters up to which a file is one in UTF-8 with errors
FEWEST_KANA, WITHOUT_KANA = 0.1, 0.5  # share of a text in Japanese, and how likely one without is
MOSTLY = 0.9  # of the letters that are in other places are of one language
LIKELY = 0.6  # of the best score, from which on another encoding is named, too
MOST_NAMED, SHOWN_LETTERS = 4, 12
ESCAPES = (b"\x1b$", b"\x1b(")  # of ISO-2022-JP
# What no text holds in any of the encodings, and what texts in Windows-1252 do not hold beside.
_CONTROL = bytes({*range(0x20), 0x7F} - set(b"\t\n\f\r\x1a\x1b"))
_UNDEFINED = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
_WORD = re.compile(r"[^\W\d_]+")
# Signs that stand inside words, those that stand beside any letter, and those that hardly any Western text holds.
_JOINING = "\u2019\u2013\u2014\xad\xb7\xa0"
_TYPOGRAPHIC = _JOINING + "\u2018\u201c\u201d\u201e\u2026«»¿¡"
_RARE = "\u201aƒ\u2020\u2021\u02c6\u2039\u203a\u02dc¤¨¬¯¶\xb8"
_ORDINALS = "ªº"
_WORDS_OF_ONE = "àèéêòóôùáíúâöåøæÀÈÉÁÍÓÖÅØÆªºµ"
# Of languages, the small letters that Windows-1252 and Windows-1250 have in different places.
_WESTERN = ("àâæèêëïœùûÿ", "àèìòù", "àãêõ", "ñ", "åæøè", "ðþæ", "àèòï", "èêëïåõ")
_CENTRAL = ("ěčřůňťďľĺŕ", "ąćęłńśźż", "őű", "ăşţ", "ćčđ")
# Where the letters of a script are.
_KANA, _HAN, _HANGUL = "\u3041-\u30ff", "\u4e00-\u9fff", "\uac00-\ud7a3"
_RUSSIAN = "оеаинтслрвкмд"


class Candidate(NamedTuple):
    """An encoding, how it is called, and the letters that texts in it mostly hold beyond ASCII."""

    name: str
    called: str
    frequent: str
    is_latin: bool = False


CANDIDATES = (
    Candidate("cp1251", "windows-1251", _RUSSIAN),
    Candidate("koi8_r", "KOI8-R", _RUSSIAN),
    Candidate("cp866", "cp866", _RUSSIAN),
    Candidate("iso8859_5", "iso-8859-5", _RUSSIAN),
    Candidate("cp932", "Shift-JIS", f"{_KANA}{_HAN}"),
    Candidate("euc_jp", "EUC-JP", f"{_KANA}{_HAN}"),
    Candidate("euc_kr", "EUC-KR", _HANGUL),
    Candidate("gbk", "GBK", _HAN),
    Candidate("big5", "Big5", _HAN),
    Candidate("cp1253", "windows-1253", "αοιετσνηυρπκμλςάέήίόύώ"),
    Candidate("cp1255", "windows-1255", "יוהלארתבמשנ"),
    Candidate("cp1256", "windows-1256", "اليمونرتبةعد"),
    Candidate("cp874", "windows-874", "านรอกเงมยลวทสต\u0e48\u0e49\u0e31\u0e35"),
    Candidate("cp1250", "windows-1250", "ąćęłńśźżčďěňřšťůžőűáéíóúýöüăâîşţ", is_latin=True),
    Candidate("mac_roman", "mac-roman", "àâäáçéèêëîïíôöóùûüúñß", is_latin=True),
    Candidate("cp850", "cp850", "àâäáçéèêëîïíôöóùûüúñß", is_latin=True),
)
# Lead bytes of the frequent characters; decoders also know thousands that are hardly ever written.
_FREQUENT_LEADS = {"gbk": range(0xB0, 0xD8), "big5": range(0xA4, 0xC7)}


def called(encoding: str) -> str:
    """The usual name of an encoding.

    Examples
    --------
    >>> called("utf-8-sig"), called("cp1252"), called("cp932")
    ('UTF-8', 'Windows-1252', 'Shift-JIS')
    """
    by_name = {candidate.name: candidate.called for candidate in CANDIDATES} | SHOWN_AS
    return by_name.get(encoding, encoding)


def note_of(encoding: str, what: str) -> list[str]:
    """A sentence that says in which encoding something is read, unless it is the usual one."""
    return [] if encoding == UTF_8 else [f"{what} read with the encoding {called(encoding)}."]


def known_encoding(name: str) -> str:
    """The encoding of a name that a user gives; a byte order mark in UTF-8 is not part of the text.

    Examples
    --------
    >>> known_encoding("Windows-1251"), known_encoding("utf8")
    ('cp1251', 'utf-8-sig')
    """
    try:
        found = codecs.lookup(name)
        found.incrementaldecoder().decode(b"")  # of texts, not of other bytes, and known to text files
        is_of_texts = getattr(found, "_is_text_encoding", True)
    except (LookupError, TypeError, UnicodeError, ValueError):
        is_of_texts = False
    if not is_of_texts:
        raise DataError(
            f"encoding={name!r} is not known; usual ones are utf-8, utf-16, windows-1252, windows-1251, koi8-r, shift-jis,"
            " gbk, big5 and euc-kr."
        )
    return {"utf-8": UTF_8, "shift_jis": "cp932", "koi8-r": "koi8_r"}.get(found.name, found.name)


def guessed_encoding(file: IO[bytes], name: str) -> str:
    """UTF-8, UTF-16 if the file begins so, or Windows-1252 if that makes sense; an error names what else it may be.

    Examples
    --------
    >>> import io
    >>> guessed_encoding(io.BytesIO("Málaga; Köln".encode("cp1252")), "a.csv")
    'cp1252'
    >>> guessed_encoding(io.BytesIO("Москва; Нижний Новгород".encode("cp1251")), "a.csv")
    Traceback (most recent call last):
    ddclust.data.readers.bunch.DataError: 'a.csv' is not in UTF-8; as windows-1251 it reads 'Москва; Нижн'. Convert it to UTF-8, or give its encoding (encoding='windows-1251').
    """
    first = file.read(BLOCK_BYTES)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF_16
    decoder, is_utf_8, sample = codecs.getincrementaldecoder("utf-8")(), True, b""
    has_undefined = has_escapes = False
    block = first
    while block:
        if block.translate(None, _CONTROL) != block:
            return UTF_8  # it is no text; reading it says so
        has_escapes |= any(escape in block for escape in ESCAPES)
        has_undefined |= block.translate(None, _UNDEFINED) != block
        if len(sample) < SAMPLE_BYTES and not block.isascii():
            sample += b"\n".join(_foreign_lines(block, is_first=block is first))
        try:
            if is_utf_8:
                decoder.decode(block)
        except UnicodeDecodeError:
            is_utf_8 = False
        block = file.read(BLOCK_BYTES)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        is_utf_8 = False
    if has_escapes and is_utf_8 and not sample:
        raise DataError(_refusal(name, [("iso-2022-jp", "")]))
    if is_utf_8:
        return UTF_8
    sample = sample[:SAMPLE_BYTES]
    if _share_of_broken(sample) <= NEARLY_UTF_8:
        raise DataError(
            f"{name!r} is in UTF-8, but some of its characters are broken; repair them, or give its encoding"
            " (encoding='windows-1252')."
        )
    text = "" if has_undefined else _read_as(WINDOWS, sample)
    if text and _in_their_places(text) >= PLAUSIBLE and not _is_central(sample):
        return WINDOWS
    raise DataError(_refusal(name, _likely(sample)))


def _foreign_lines(block: bytes, *, is_first: bool) -> Iterator[bytes]:
    """The whole lines with more than ASCII; the first line of a later block may have begun before it."""
    lines = block.split(b"\n")
    return (line for line in lines[0 if is_first else 1 : SAMPLE_BYTES] if not line.isascii())


def _share_of_broken(sample: bytes) -> float:
    """The share of the characters beyond ASCII that are broken, if the sample is read as UTF-8."""
    foreign = [mark for mark in sample.decode("utf-8", "replace") if not mark.isascii()]
    return foreign.count("\N{REPLACEMENT CHARACTER}") / max(len(foreign), 1)


def _read_as(encoding: str, sample: bytes) -> str:
    """The sample as a text, without a last character that is cut off; empty if it cannot be read so."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return ""


def _in_their_places(text: str) -> float:
    """The share of the characters beyond ASCII that stand where those of a Western language can stand.

    Words have letters of ASCII, too, and no capitals behind small letters. Signs are neither in words nor beside each other.

    Examples
    --------
    >>> _in_their_places("Málaga “été” 5 €"), _in_their_places("Ìîñêâà"), _in_their_places("Wroc³aw")
    (1.0, 0.0, 0.0)
    """
    n_foreign = sum(not mark.isascii() for mark in text)
    n_placed = 0
    for is_word, marks in groupby(text, str.isalpha):
        run = "".join(marks)
        n_placed += _placed_letters(run) if is_word else 0
    for place, mark in enumerate(text):
        if not mark.isascii() and not mark.isalpha():
            n_placed += _is_placed_sign(mark, text[max(place - 1, 0) : place], text[place + 1 : place + 2])
    return n_placed / max(n_foreign, 1)


def _placed_letters(word: str) -> int:
    """How many letters beyond ASCII stand where they can in a word: all or none."""
    n_foreign = sum(not letter.isascii() for letter in word)
    if len(word) == 1:
        return n_foreign * (word in _WORDS_OF_ONE)
    is_mixed = n_foreign < len(word) and n_foreign <= max(2, 2 * len(word) // 3)
    return n_foreign * (is_mixed and _is_in_case(word))


def _is_placed_sign(mark: str, before: str, after: str) -> bool:
    """Whether a sign beyond ASCII may stand between two characters."""
    if mark in _TYPOGRAPHIC:
        return mark in _JOINING or not (before.isalpha() and after.isalpha())
    beside = [one for one in (before, after) if one and not one.isascii() and one not in _TYPOGRAPHIC]
    return mark not in _RARE and not beside and not (before.isalpha() and after.isalpha())


def _is_in_case(word: str) -> bool:
    return word == word.upper() or word[1:] == word[1:].lower()


def _is_central(sample: bytes) -> bool:
    """Whether the letters that Windows-1250 has in other places make a language of Central Europe, and none of the West."""
    pairs = zip(_read_as(WINDOWS, sample), _read_as("cp1250", sample), strict=False)
    other = [
        (west.lower(), central.lower())
        for west, central in pairs
        if west != central and west.isalpha() and west not in _ORDINALS
    ]
    western, central = (
        max(sum(pair[place] in letters for pair in other) for letters in languages)
        for place, languages in enumerate((_WESTERN, _CENTRAL))
    )
    return central > MOSTLY * len(other) and central - western > (1 - MOSTLY) * len(other)


def _likely(sample: bytes) -> list[tuple[str, str]]:
    """What the sample may be in, the likeliest first, and how it begins then."""
    found = []
    for candidate in CANDIDATES:
        text = _read_as(candidate.name, sample)
        score = _score(candidate, text, sample)
        if score:
            found.append((score, candidate.called, _beginning(text)))
    best = max((score for score, _, _ in found), default=0.0)
    ordered = sorted(found, key=lambda one: -one[0])  # of equal ones the order of the candidates
    return [(called, text) for score, called, text in ordered if score >= LIKELY * best][:MOST_NAMED]


def _score(candidate: Candidate, text: str, sample: bytes) -> float:
    """How much a text looks like one in the letters of an encoding, from 0 to 1."""
    foreign = [mark for mark in text if not mark.isascii()]
    if not foreign or any("\x80" <= mark < "\xa0" for mark in foreign):
        return 0.0
    share = _share(foreign, candidate.frequent)
    if candidate.is_latin:
        return share * _in_their_places(text)
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    of_one_script = [word for word in words if _is_in_case(word) and not re.search("[A-Za-z]", word)]
    share *= len(of_one_script) / max(len(words), 1)
    if candidate.frequent.startswith(_KANA):
        return share if _share(foreign, _KANA) > FEWEST_KANA else WITHOUT_KANA * share
    leads = _FREQUENT_LEADS.get(candidate.name)
    if leads is not None:
        found = [mark.encode(candidate.name)[0] in leads for mark in foreign if "\u4e00" <= mark <= "\u9fff"]
        share *= sum(found) / max(len(found), 1)
    return share


def _share(marks: list[str], letters: str) -> float:
    """The share of characters that are among some letters, given as in a regular expression."""
    is_one = re.compile(f"[{letters}]", re.IGNORECASE).match
    return sum(is_one(mark) is not None for mark in marks) / len(marks)


def _beginning(text: str) -> str:
    """The first letters beyond ASCII, with what is around them, on one line."""
    line = next(line for line in text.split("\n") if not line.isascii())
    place = next(place for place, mark in enumerate(line) if not mark.isascii())
    return " ".join(line[place : place + SHOWN_LETTERS].split())


def _refusal(name: str, likely: list[tuple[str, str]]) -> str:
    if not likely:
        return f"{name!r} is not in UTF-8, and what else it may be in cannot be told; convert it to UTF-8, or give its encoding (encoding='...')."
    readings = ", ".join(
        f"as {called} it reads {text!r}" if text else f"it may be in {called}" for called, text in likely
    )
    return f"{name!r} is not in UTF-8; {readings}. Convert it to UTF-8, or give its encoding (encoding={likely[0][0]!r})."
