"""
Reference methods
=================

``ddclust.baselines`` has the methods that the paper compares with. All of them are scikit-learn clusterers, so they are used in the same way. The
wine data are easy for most methods.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from ddclust import DDC, clustering_accuracy, load_data
from ddclust.baselines import DEC, ITC, LDMGI, SEC

wine = load_data("wine")
X = StandardScaler().fit_transform(wine.data)
methods = {
    "k-means": KMeans(3, n_init=10, random_state=0),
    "ITC": ITC(3, n_init=1, random_state=0),
    "SEC": SEC(3, random_state=0),
    "LDMGI": LDMGI(3, random_state=0),
    "DEC": DEC(3, layers=(50, 5), layer_iter=150, finetune_iter=150, max_iter=150, random_state=0),
    "DDC": DDC(3, n_init=1, max_iter=200, random_state=0, verbose=False),
}
accuracy = {name: clustering_accuracy(wine.target, method.fit_predict(X)) for name, method in methods.items()}

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.bar(accuracy.keys(), accuracy.values(), color=["#bbbbbb"] * 5 + ["#4477aa"])
axis.bar_label(axis.containers[0], fmt="%.2f")
axis.set(ylim=(0, 1.08), ylabel="ACC")
