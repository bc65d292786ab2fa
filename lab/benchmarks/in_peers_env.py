"""One method of another library on an .npy file of images, in that library's own environment.

python in_peers_env.py METHOD IMAGES.npy LABELS.npy prints the seconds it took, without imports.
"""

import sys
import time

import numpy as np


def umap_and_gaussian_mixture(X, n_clusters):
    import umap
    from sklearn.mixture import GaussianMixture

    def run():
        embedded = umap.UMAP(n_neighbors=10, n_components=10, random_state=None).fit_transform(X)
        return GaussianMixture(n_clusters, random_state=0).fit_predict(embedded)

    return run


def clustpy_dec(X, n_clusters, epochs=5):
    import torch

    # torchvision's binary wants CUDA; ClustPy needs only its image transforms, which are Python.
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from clustpy.deep import DEC

    def run():
        model = DEC(
            n_clusters, batch_size=256, pretrain_epochs=epochs, clustering_epochs=epochs, random_state=0
        )
        return model.fit_predict(X)

    run.library = library  # it must outlive the import
    return run


METHODS = {"umap+gmm": umap_and_gaussian_mixture, "clustpy-dec": clustpy_dec}

if __name__ == "__main__":
    method, images, labels = sys.argv[1:]
    X = np.load(images)
    X = X.reshape(len(X), -1).astype(np.float32) / 255
    run = METHODS[method](X, 10)
    start = time.perf_counter()
    found = run()
    print(time.perf_counter() - start)
    np.save(labels, np.asarray(found))
