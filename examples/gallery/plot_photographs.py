"""
Parts of photographs
====================

Two photographs, cut into tiles, are clustered by colour and texture. ``augment="photo"`` pairs each tile with a copy of itself that is flipped and has
another brightness and other colours. This example learns from the pixels; on real collections an encoder of photographs does better, if one is installed.
"""

from ddclust import DDC, load_data
from ddclust.show import plots

tiles = load_data("tiles")
small = tiles.data[:, ::2, ::2]  # every other pixel, so that this takes seconds
model = DDC(6, n_init=1, augment="photo", encoder=None, max_iter=200, random_state=0, verbose=False).fit(
    small
)
figure = plots.gallery(tiles.data, model.probabilities_, n_top=8)
