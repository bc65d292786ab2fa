"""
Assignments in the course of training
=====================================

With three clusters, a soft assignment is a point in a triangle. At the start all items are undecided, in the middle. Training moves them to the
corners. The colours are the classes, which training does not see.
"""

from ddclust import DDC, Snapshots, load_data
from ddclust.show import plots

digits = load_data("digits")
some = digits.target < 3
images, classes = digits.data[some], digits.target[some]
model = DDC(
    3,
    n_init=1,
    n_final=None,
    max_iter=120,
    callbacks=[Snapshots([0, 2, 6, 20])],
    random_state=0,
    verbose=False,
).fit(images)
figure = plots.simplex(model, classes)
