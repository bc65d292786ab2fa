"""
Which results to trust
======================

The confidence of an item is calibrated by the agreement of the runs, without labels. It says beforehand how many errors to expect if only the most
certain items are kept, and the known classes show how many there are. Here there are more than expected: runs that share errors confirm each other,
and nothing but classes can show that. So compare with a few known items before you rely on it.
"""

from ddclust import DDC, expected_calibration_error, load_data
from ddclust.choosing.metrics import are_right
from ddclust.show import plots

digits = load_data("digits")
vectors = digits.data.reshape(
    len(digits.data), -1
)  # of 64 pixels: a smaller network, so that this takes seconds
model = DDC(10, n_init=3, n_jobs=1, max_iter=300, random_state=0, verbose=False).fit(vectors)
confidence = model.probabilities_.max(axis=1)
print(model.calibration_)
print(
    f"expected calibration error {expected_calibration_error(digits.target, model.labels_, confidence):.3f}"
)
figure = plots.risk_coverage(confidence, are_right(digits.target, model.labels_))
