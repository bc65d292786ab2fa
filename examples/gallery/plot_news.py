"""
News
====

Each news story of AG's corpus has one of four topics. The stories are clustered by their words alone, without a pretrained encoder. Training does not
see the topics; they show what each cluster holds. A single short run such as this one mixes some of them. The data have to be provided
(``ddclust datasets agnews-texts`` says how); a site that is built without them shows the code alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from ddclust import DDC, clustering_accuracy, load_data

news = load_data("agnews-texts")
texts, topics = news.data[:2000], news.target[:2000]
model = DDC(4, n_init=1, max_iter=400, encoder=None, random_state=0, verbose=False).fit(texts)
print(f"ACC {clustering_accuracy(topics, model.labels_):.3f} of {len(texts):,} stories in 4 topics")

# %%
# How many stories of each topic are in each cluster:

counts = np.zeros((4, 4), dtype=int)
np.add.at(counts, (topics, model.labels_), 1)
figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
axis.imshow(counts, cmap="Blues")
for (topic, cluster), count in np.ndenumerate(counts):
    axis.text(
        cluster, topic, f"{count}", ha="center", va="center", color="w" if count > counts.max() / 2 else "k"
    )
axis.set(xticks=range(4), yticks=range(4), yticklabels=news.target_names, xlabel="cluster", ylabel="topic")
