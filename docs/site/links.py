"""Check that every link from one page of the built site to another, or into one, leads somewhere.

python docs/site/links.py FOLDER
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page that can be linked to, and what it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif value and (
                (tag, name) in (("a", "href"), ("link", "href"), ("img", "src"), ("script", "src"))
            ):
                self.links.append(value)


def broken_links(folder: Path) -> list[str]:
    """Every link within the site that leads nowhere, as "page: link"."""
    pages = {
        path.resolve(): Page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts
    }
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            missing_place = target in pages and place and place not in pages[target].places
            if not target.exists() or missing_place:
                broken.append(f"{path.relative_to(folder.resolve())}: {link}")
    return broken


def main(folder: str) -> None:
    pages = len([path for path in Path(folder).rglob("*.html") if "_static" not in path.parts])
    broken = broken_links(Path(folder))
    if broken or not pages:
        sys.exit(
            "\n".join(["Links that lead nowhere:", *broken]) if pages else f"There are no pages in {folder}."
        )
    print(f"{pages} pages, every link between them leads somewhere: {folder}/index.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
