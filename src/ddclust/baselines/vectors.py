"""The base class of reference methods that cluster vectors."""

from __future__ import annotations

from typing import Any

import scipy.sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags

from ddclust.data.items import SparseItems
from ddclust.data.validation import check_items_can_be_clustered, check_vectors


class VectorClusterer(ClusterMixin, BaseEstimator):
    """A clusterer of vectors, dense or sparse; images are flattened."""

    n_clusters: int

    def _vectors_to_cluster(self, X: Any) -> Any:
        """The data of a fit as a checked array or CSR matrix, in their own precision and unscaled."""
        X = check_vectors(self, X, reset=True)
        check_items_can_be_clustered(SparseItems(X) if scipy.sparse.issparse(X) else X, self.n_clusters)
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags
