"""The description that package indexes show: the README, with links that lead to the repository from anywhere."""

import re
from pathlib import Path

from setuptools import setup

REPOSITORY = "https://github.com/ddclust/ddclust"
LINK = re.compile(r"""(?P<before>\]\(|src=")(?P<path>(?![a-z]+:|#)[^)"\s]+)""")


def with_absolute_links(text: str) -> str:
    """Markdown whose links and pictures are addresses of the repository.

    Examples
    --------
    >>> with_absolute_links('[a](docs/a.md) <img src="docs/b.png">')  # doctest: +ELLIPSIS
    '[a](https://github.com/.../blob/main/docs/a.md) <img src="https://github.com/.../raw/main/docs/b.png">'
    """

    def absolute(match: re.Match[str]) -> str:
        kind = "raw" if match["path"].endswith((".png", ".svg")) else "blob"
        return f"{match['before']}{REPOSITORY}/{kind}/main/{match['path']}"

    return LINK.sub(absolute, text)


if __name__ == "__main__":
    readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    setup(long_description=with_absolute_links(readme), long_description_content_type="text/markdown")
