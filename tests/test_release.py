"""What is released: one version everywhere, a description that can be read anywhere, archives that can be built again, and a site."""

import gzip
import io
import re
import runpy
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import ddclust

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, BUILD = SETTINGS["project"], SETTINGS["build-system"]


def test_version_is_the_same_everywhere():
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_description_has_no_relative_links():
    readme = (ROOT / "README.md").read_text()
    described = runpy.run_path(str(ROOT / "setup.py"))["with_absolute_links"](readme)
    assert 'src="https://github.com/ddclust/ddclust/raw/main/docs/' in described
    assert "](https://github.com/ddclust/ddclust/blob/main/docs/index.md)" in described
    for relative in ("](docs/", 'src="docs/', "](CHANGELOG.md)"):
        assert relative in readme or relative == "](CHANGELOG.md)"
        assert relative not in described


def archive(date, names, owner):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = len(name), date, owner
            tar.addfile(member, io.BytesIO(name.encode()))
    return content.getvalue()


def test_archives_of_the_same_files_are_the_same():
    repacked = runpy.run_path(str(ROOT / ".ci" / "repack.py"))["repacked"]
    one, other = archive(5, ["p/a", "p/b"], "me"), archive(7, ["p/b", "p/a"], "you")
    assert one != other
    assert repacked(one, 99) == repacked(other, 99)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(repacked(one, 99)))) as tar:
        assert tar.getnames() == ["p/a", "p/b"]
        assert tar.extractfile("p/b").read() == b"p/b"


def test_wheels_built_under_another_umask_are_the_same():
    repacked = runpy.run_path(str(ROOT / ".ci" / "repack.py"))["repacked_wheel"]

    def wheel(mode):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as packed:
            for name in ("p/a.py", "p/b.py"):
                member = zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6))
                member.external_attr = mode << 16
                packed.writestr(member, name)
        return content.getvalue()

    one, other = repacked(wheel(0o100644)), repacked(wheel(0o100600))
    assert one == other
    with zipfile.ZipFile(io.BytesIO(one)) as packed:
        assert packed.testzip() is None
        assert [(m.filename, m.date_time, m.external_attr >> 16) for m in packed.infolist()] == [
            (name, (2026, 1, 2, 3, 4, 6), 0o100644) for name in ("p/a.py", "p/b.py")
        ]
        assert packed.read("p/b.py") == b"p/b.py"


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    runpy.run_path(str(ROOT / "docs" / "site" / "stage.py"))["main"](folder)
    return folder


def test_site_has_every_page_and_every_public_name(staged):
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.name for path in staged.glob("*.md")}
    listed = (staged / "api.rst").read_text().split()
    assert {name for name in ddclust.__all__ if not name.startswith("_")} <= set(listed)
    in_contents = "".join((staged / name).read_text() for name in ("index.md", "guides.md", "background.md"))
    missing = [page for page in pages if page.removesuffix(".md") not in in_contents and page != "index.md"]
    assert not missing


def test_links_to_nowhere_are_noticed(tmp_path):
    broken_links = runpy.run_path(str(ROOT / "docs" / "site" / "links.py"))["broken_links"]
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">b</a><a href="https://x.org">x</a></p>'
    )
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#gone">a</a><img src="no.png"></p>')
    assert broken_links(tmp_path) == ["b.html: a.html#gone", "b.html: no.png"]


def test_conda_recipe_agrees_with_the_project():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == "ddclust = " + PROJECT["scripts"]["ddclust"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    names = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # that conda-forge has
    required = [re.match(r"([\w-]+)(.*)", requirement).groups() for requirement in PROJECT["dependencies"]]
    python = f"python {PROJECT['requires-python']}"
    run = recipe["requirements"]["run"]
    assert run == [python, *(f"{names.get(name, name)} {version}" for name, version in required)]
    assert {python, *BUILD["requires"]} <= {
        entry.replace("setuptools ", "setuptools") for entry in recipe["requirements"]["host"]
    }
