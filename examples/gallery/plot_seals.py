"""
Seals in aerial photographs
===========================

The paper clusters aerial photographs of seals on ice, which are not public. These are crops of other photographs: pups of elephant seals, harbour
seals, and ground without seals. The crops look alike, and their pixels alone do not separate the classes well. Images of another class than most of
their cluster are boxed in red; training does not see the classes. The data have to be provided (``ddclust datasets seals-3`` says how); a site that is
built without them shows the code alone.
"""

from ddclust import DDC, clustering_accuracy, load_data
from ddclust.show import plots

seals = load_data("seals-3")
crops, classes = seals.data[::4], seals.target[::4]
small = crops[:, ::2, ::2]  # every other pixel, so that this takes seconds
model = DDC(3, n_init=1, augment="photo", encoder=None, max_iter=150, random_state=0, verbose=False).fit(
    small
)
print(f"ACC {clustering_accuracy(classes, model.labels_):.3f} of {len(crops)} crops in 3 classes")
figure = plots.gallery(crops, model.probabilities_, classes, n_top=8)
