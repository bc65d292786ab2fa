"""
Which results to trust
======================

The confidence of an item is calibrated without labels: by the agreement of the runs or, for vectors such as these, of fits to halves of the items. It
says beforehand how many errors to expect if only the most certain items are kept. The known classes show how many there are, and here there are more
than expected: fits that share an error confirm each other, which only classes can show. So compare with a few known items before you rely on it.
"""

from ddclust import DDC, expected_calibration_error, load_data
from ddclust.choosing.metrics import are_right
from ddclust.show import plots

digits = load_data("digits")
vectors = digits.data.reshape(len(digits.data), -1)  # vectors train faster than images
model = DDC(10, n_init=3, n_jobs=1, max_iter=300, random_state=0, verbose=False).fit(vectors)
confidence = model.probabilities_.max(axis=1)
print(model.calibration_)
error = expected_calibration_error(digits.target, model.labels_, confidence)
print(f"expected calibration error {error:.3f}")
figure = plots.risk_coverage(confidence, are_right(digits.target, model.labels_))
