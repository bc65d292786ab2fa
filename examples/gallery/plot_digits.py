"""
Handwritten digits
==================

Images of 8x8 pixels are clustered as they are. Each image is paired with a slightly turned and shifted copy of itself or of one of its neighbours, and
both should get the same cluster. The figure shows the most certain images of each cluster; those of another class than most are boxed in red.
"""

from ddclust import DDC, clustering_accuracy, load_data, nmi
from ddclust.show import plots

digits = load_data("digits")
model = DDC(10, n_init=1, max_iter=250, random_state=0, verbose=False).fit(digits.data)
accuracy, information = clustering_accuracy(digits.target, model.labels_), nmi(digits.target, model.labels_)
print(f"ACC {accuracy:.3f}, NMI {information:.3f}")
figure = plots.gallery(digits.data, model, digits.target)
