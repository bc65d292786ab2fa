"""Writes the good files of the corpus again: ``python -m torture.make_corpus``."""

from __future__ import annotations

import io
import json

import numpy as np
import scipy.sparse
from PIL import Image

from torture.targets import CORPUS


def main() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 3)).round(2)
    numbers = "\n".join(",".join(map(str, row)) for row in values)
    named = "\n".join(f"item {i},{i % 2},{','.join(map(str, row))}" for i, row in enumerate(values))
    texts = ["a seal on the ice", 'a "ship", at sea', "ice and\nmore ice", "été 🦭", "ship ship", "sea"]
    quoted = "\n".join('{},{},"{}"'.format(i, i % 2, text.replace('"', '""')) for i, text in enumerate(texts))
    put("csv/numbers", numbers)
    put("csv/named", "id,class,a,b,c\n" + named + "\n")
    put("csv/texts", "\ufeffid,class,text\n" + quoted + "\r\n")
    put("csv/semicolons", numbers.replace(",", ";"))
    put("csv/mixed", "\n".join(",".join(row) for row in mixed()) + "\n")
    put("tsv/mixed", "\n".join("\t".join(row) for row in mixed()).replace(".", ","))
    put("tsv/named", ("id,class,a,b,c\n" + named).replace(",", "\t"))
    put("tsv/numbers", numbers.replace(",", "\t"))
    put("txt/lines", "\n".join(text.replace("\n", " ") for text in texts) + "\n\n")
    lines = [{"id": i, "class": str(i % 2), "title": "t", "text": text} for i, text in enumerate(texts)]
    put("jsonl/texts", "\n".join(map(json.dumps, lines)))
    put("pairs.csv/named", "first,second\nitem 0,item 1\nitem 2,item 3\n")
    put("pairs.csv/numbers", "0,1\n2,3\n")
    put("labels.csv/table", "item,cluster\n" + "\n".join(f"{i},{i % 2}" for i in range(6)))
    put("labels.csv/words", "\n".join(["seal", "ship"] * 3))
    for name, array in {
        "float32": values.astype(np.float32),
        "images": rng.integers(0, 255, (4, 8, 8), dtype=np.uint8),
        "fortran": np.asfortranarray(values),
        "big-endian": values.astype(">f8"),
        "bool": values > 0,
    }.items():
        put(f"npy/{name}", saved(np.save, array))
    put("npz/dense", saved(np.savez, X=values, y=np.arange(6) % 2))
    put("npz/compressed", saved(np.savez_compressed, X=values))
    matrix = scipy.sparse.csr_array(np.where(values > 0, values, 0))
    parts = {
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape),
        "data": matrix.data,
    }
    put("npz/parts", saved(np.savez, **parts))
    for kind in ("csr", "coo", "dia"):
        put(f"npz/{kind}", saved(lambda file, m: scipy.sparse.save_npz(file, m), matrix.asformat(kind)))
    put("labels.npy/numbers", saved(np.save, np.arange(6) % 2))
    put("labels.npy/words", saved(np.save, np.array(["a", "b"] * 3)))
    put("labels.npy/bytes", saved(np.save, np.array([b"a", b"b"] * 3)))
    put("labels.npz/numbers", saved(np.savez, y=np.arange(6) % 2))
    make_parquet(values, texts)
    make_images(rng)


def mixed() -> list[tuple[str, ...]]:
    """A table of columns of every kind, with gaps."""
    header = ("id", "class", "mass", "sex", "wild", "day", "pay", "note")
    rows = [
        (
            f"item {i}",
            "ab"[i % 2],
            "NA" if i == 4 else f"{i / 3:.2f}",
            "mf"[i % 2],
            ("yes", "no")[i % 3 == 0],
            f"2024-0{1 + i % 9}-1{i % 10}",
            "" if i == 7 else f"1.{i}e{i}",
            f"a {('seal', 'ship')[i % 2]} on the {('ice', 'shore', 'sea')[i % 3]}, far out" if i % 5 else "",
        )
        for i in range(24)
    ]
    return [header, *([f'"{cell}"' if "," in cell else cell for cell in row] for row in rows)]


def put(name: str, content: str | bytes) -> None:
    kind, _, label = name.partition("/")
    suffix = kind.rpartition(".")[2]
    (CORPUS / kind).mkdir(parents=True, exist_ok=True)
    (CORPUS / kind / f"{label}.{suffix}").write_bytes(
        content.encode() if isinstance(content, str) else content
    )


def saved(save, *arguments, **named) -> bytes:
    file = io.BytesIO()
    save(file, *arguments, **named)
    return file.getvalue()


def make_parquet(values, texts) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(
        {"id": list(map(str, range(6))), "class": ["a", "b"] * 3, "text": texts, "a": values[:, 0]}
    )
    put(
        "parquet/table",
        saved(lambda file: parquet.write_table(table, file, compression="none", write_statistics=False)),
    )
    lists = pa.table({"embedding": pa.array(values.tolist()), "b": pa.array([1, 2, 3, 4, 5, 6])})
    put("parquet/lists", saved(lambda file: parquet.write_table(lists, file, compression="snappy")))


def make_images(rng) -> None:
    grey = rng.integers(0, 255, (8, 8), dtype=np.uint8)
    colour = rng.integers(0, 255, (9, 7, 3), dtype=np.uint8)

    def image(array, kind, **options) -> bytes:
        return saved(lambda file: Image.fromarray(array).save(file, format=kind, **options))

    put("png/grey", image(grey, "PNG"))
    put("png/colour", image(colour, "PNG"))
    put("png/deep", image(grey.astype(np.uint16) * 257, "PNG"))
    put("png/transparent", image(np.dstack([colour, colour[..., 0]]), "PNG"))
    put("jpg/colour", image(colour, "JPEG"))
    put("gif/grey", image(grey, "GIF"))
    put("bmp/colour", image(colour, "BMP"))
    put("tif/colour", image(colour, "TIFF"))
    put("tif/deflated", image(colour, "TIFF", compression="tiff_adobe_deflate"))
    put("webp/colour", image(colour, "WEBP"))
    put("ppm/colour", image(colour, "PPM"))


if __name__ == "__main__":
    main()
