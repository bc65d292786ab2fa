"""Files in encodings other than UTF-8: they are read, or refused with a sentence that says what they may be."""

import pytest

from ddclust.data.readers.encodings import guessed_encoding, known_encoding
from ddclust.datasets import DataError, load

RUSSIAN = "город;число\nМосква;1\nСанкт-Петербург;2\nНижний Новгород;3\n"
JAPANESE = "都市;説明\n東京;日本の首都です\n大阪;カメラの町です\n"
CHINESE = "城市;说明\n北京;中国的首都是一个很大的城市\n上海;在东边\n"
TAIWANESE = "城市;說明\n臺北;台灣的首都是一個很大的城市\n"
KOREAN = "도시;설명\n서울;대한민국의 수도입니다\n부산;바다\n"
WESTERN = [
    "Genève;Málaga;Köln;São Paulo;Tromsø;Århus;Perpiñán;Þórður",
    "¿Qué pasó? ESPAÑA, señor – ÑANDÚ",
    "l’été, à côté, où, cœur, «déjà vu», “été”… AUX ÉTÉS",
    "„Äpfel“ – 5 €, 10 m², 5 °C, 7 µm, ±2, 1½, ©2020",
    "nº 5; 3ª; 1º",
    "Äänekoski; hääyöaie; yö",
]


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8_r", "KOI8-R"),
        (RUSSIAN, "cp866", "cp866"),
        (RUSSIAN.upper(), "cp1251", "windows-1251"),
        (JAPANESE, "cp932", "Shift-JIS"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        ("東京;大阪;名古屋", "cp932", "Shift-JIS"),
        ("カメラ", "cp932", "Shift-JIS"),
        (CHINESE, "gbk", "GBK"),
        ("张伟\n王芳\n李娜\n", "gbk", "GBK"),
        (TAIWANESE, "big5", "Big5"),
        (KOREAN, "euc_kr", "EUC-KR"),
        ("Αθήνα, πρωτεύουσα της Ελλάδας", "cp1253", "windows-1253"),
        ("ירושלים, עיר הבירה של ישראל", "cp1255", "windows-1255"),
        ("القاهرة عاصمة مصر", "cp1256", "windows-1256"),
        ("กรุงเทพมหานคร เมืองหลวง", "cp874", "windows-874"),
        ("Łódź i Wrocław są w Polsce", "cp1250", "windows-1250"),
        ("Třebíč, Plzeň, kůň a město", "cp1250", "windows-1250"),
        ("été, à côté, français", "mac_roman", "mac-roman"),
    ],
)
def test_other_letters_are_never_read_as_western_ones(tmp_path, text, encoding, said):
    file = tmp_path / "a.csv"
    file.write_bytes(text.encode(encoding))
    with pytest.raises(
        DataError, match=rf"not in UTF-8; as .*give its encoding \(encoding='{said}'\)"
    ) as caught:
        load(file)
    first = next(mark for mark in text if not mark.isascii())
    assert f"as {said} it reads '{first}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "encoding"), [("пол;М\n1;Ж\n", "cp1251"), ("性别;男\n1;女\n", "gbk")])
def test_single_letters_are_doubted(tmp_path, text, encoding):
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=f"as {known_encoding(encoding).replace('cp', 'windows-')}|as GBK"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("text", WESTERN)
def test_western_texts_are_read(tmp_path, text):
    (tmp_path / "a.txt").write_bytes(f"{text}\nplain\n".encode("cp1252"))
    bunch = load(tmp_path / "a.txt")
    assert bunch.data == [text, "plain"]
    assert bunch.notes == ["The texts are read with the encoding Windows-1252."]


@pytest.mark.parametrize(("name", "text"), [("koi8-r", RUSSIAN), ("Shift_JIS", JAPANESE), ("gbk", CHINESE)])
def test_the_encoding_can_be_given(tmp_path, name, text):
    file = tmp_path / "a.csv"
    file.write_bytes(text.encode(name))
    table = load(file, encoding=name).data
    assert table.names == tuple(text.split("\n")[0].split(";"))
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_bytes(text.encode(name))
    assert load(folder, encoding=name).data == [text]


def test_encodings_that_are_wrong_or_unknown(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes("Москва".encode("koi8_r"))
    with pytest.raises(DataError, match="not a text file in UTF-8"):
        load(file, encoding="utf8")
    with pytest.raises(DataError, match="not a text file in UTF-16"):
        load(file, encoding="utf-16")
    for name in ("nope", "base64", "rot13", "", "a\0b"):
        with pytest.raises(DataError, match="is not known; usual ones are utf-8"):
            load(file, encoding=name)
    with pytest.raises(DataError, match="does not apply"):
        load("digits", encoding="utf-8")
    assert known_encoding("UTF-8") == "utf-8-sig"


def test_a_broken_character_does_not_make_a_file_western(tmp_path):
    (tmp_path / "a.txt").write_bytes("été, Köln, Málaga, “so” – così, è, 5 €".encode() * 3 + b" \xe9t")
    with pytest.raises(DataError, match="is in UTF-8, but some of its characters are broken"):
        load(tmp_path / "a.txt")


def test_folders_may_be_in_several_encodings(tmp_path):
    for number, (text, encoding) in enumerate(
        [
            ("été", "cp1252"),
            ("Köln", "utf-16"),
            ("東京", "utf-8"),
            ("b", "ascii"),
            ("c", "ascii"),
            ("Москва", "cp1251"),
        ]
    ):
        (tmp_path / f"{number}.txt").write_bytes(text.encode(encoding))
    bunch = load(tmp_path)
    assert bunch.data == ["été", "Köln", "東京", "b", "c"]
    assert "as windows-1251 it reads 'Москва'" in bunch.skipped["5.txt"]
    assert "1 of 5 texts is read with the encoding UTF-16." in bunch.notes


def test_escapes_of_japanese_mail_are_noticed(tmp_path):
    (tmp_path / "a.txt").write_bytes("東京です".encode("iso2022_jp"))
    with pytest.raises(DataError, match="may be in iso-2022-jp"):
        load(tmp_path / "a.txt")
    assert load(tmp_path / "a.txt", encoding="iso2022_jp").data == ["東京です"]


def test_what_lies_behind_the_first_block_counts(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"plain words\n" * 100_000 + "Нижний Новгород\n".encode("cp1251"))
    with pytest.raises(DataError, match="windows-1251"), (tmp_path / "a.txt").open("rb") as file:
        guessed_encoding(file, "a.txt")
