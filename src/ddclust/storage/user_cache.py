"""The user's cache."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The user's cache folder for data sets and features."""
    return platformdirs.user_cache_path("ddclust")
