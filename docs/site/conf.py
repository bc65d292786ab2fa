"""How Sphinx builds the site from the folder that stage.py has put together."""

import warnings
from importlib.metadata import version as version_of
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.sorting import FunctionSortKey

from ddclust.datasets import NAMED

project = "ddclust"
author = "the authors of ddclust"
copyright = author  # noqa: A001
release = version = version_of("ddclust")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["examples"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings name the types
autodoc_member_order = "bysource"
# Those of scikit-learn, whose documentation refers to pages of its own.
OTHERS = "get_metadata_routing set_fit_request set_partial_fit_request set_predict_request set_score_request set_output get_params set_params"
autodoc_default_options = {"exclude-members": ",".join(OTHERS.split())}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


def newest_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The figure that a block of an example has made, as a picture. Ours are not those of pyplot, so the usual way misses them."""
    figure = block_vars["example_globals"].get("figure")
    if not isinstance(figure, Figure) or getattr(figure, "is_on_page", False):
        return ""
    figure.is_on_page = True  # type: ignore[attr-defined]
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=110)
    return figure_rst([path], gallery_conf["src_dir"])


def place_in_gallery(file: str) -> int:
    """The simplest first; a new example comes last until it has a place."""
    order = [
        "ring_and_disc",
        "digits",
        "photographs",
        "seals",
        "texts",
        "news",
        "unequal_blobs",
        "links",
        "scan",
        "merge_tree",
        "confidence",
        "explain",
        "simplex",
        "loss",
    ]
    name = file.removeprefix("plot_").removesuffix(".py")
    return order.index(name) if name in order else len(order)


def without_data() -> list[str]:
    """The examples that cannot run, since their data are not at hand; only their code is shown."""
    needs = {"seals": "seals-3", "news": "agnews-texts"}
    return [example for example, name in needs.items() if NAMED[name].at_hand() != "yes"] or ["none"]


def in_one_line(message: Warning | str, category: type[Warning], *_: object) -> str:
    """A warning of an example as its page shows it: without the place on the machine that builds the site."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = in_one_line  # type: ignore[assignment]
suppress_warnings = ["config.cache"]  # of the functions above
sphinx_gallery_conf = {
    "image_scrapers": (newest_figure,),
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": FunctionSortKey(place_in_gallery),
    "filename_pattern": f"/plot_(?!({'|'.join(without_data())})\\.py)",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 30,
    "copyfile_regex": r".*\.rst",
    "remove_config_comments": True,
    "matplotlib_animations": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "ddclust"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "icon_links": [
        {"name": "Source", "url": "https://github.com/ddclust/ddclust", "icon": "fa-brands fa-github"}
    ],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": [], "gallery/index": [], "getting-started": [], "how-it-works": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def is_left_out(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Fields of named tuples, of which the reference would say no more than their number."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", is_left_out)
