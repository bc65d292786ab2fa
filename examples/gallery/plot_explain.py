"""
What the network looks at
=========================

Guided backpropagation shows which pixels speak for an image's cluster.
"""

import numpy as np

from ddclust import DDC, load_data
from ddclust.show import plots

digits = load_data("digits")
images = digits.data[digits.target < 4]
model = DDC(4, n_init=1, max_iter=120, random_state=0, verbose=False).fit(images)
most_certain = [item for cluster in range(4) for item in np.argsort(-model.probabilities_[:, cluster])[:2]]
figure = plots.explanations(images[most_certain], model)
