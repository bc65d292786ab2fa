"""Texts divided by their words: naive Bayes with the sizes of the clusters estimated.

The orthogonality term draws clusters to one size, and neighbours do not decide where a border runs. Words do: a multinomial
distribution of each cluster's words, and a cluster's share as its prior probability, give each text its most likely cluster.
Repeated with the new clusters, this is the classification EM algorithm (Celeux and Govaert 1992) for a mixture of multinomials.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

REPEATED = 50  # times at most; some thirty were enough for all clusters to stay as they are


def divided_by_words(rows: Any, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float32] | None:
    """Soft assignments by words, begun with ``labels``; None if a cluster is or becomes empty, or values are negative.

    Rows are brought to unit length. So a text of m different words counts about as much as sqrt(m) independent ones.

    Parameters
    ----------
    rows : sparse matrix of shape (n, d)
    labels : ndarray of shape (n,)
    n_clusters : int

    Returns
    -------
    ndarray of shape (n, n_clusters) or None

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> words = csr_array(np.array([[1.0, 1, 1, 0, 0, 0]] * 6 + [[0.0, 0, 0, 1, 1, 1]] * 2))
    >>> divided_by_words(words, np.array([0, 0, 0, 0, 1, 1, 1, 1]), 2).argmax(axis=1)
    array([0, 0, 0, 0, 0, 0, 1, 1])
    """
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.preprocessing import normalize

    if rows.nnz and rows.data.min() < 0:
        return None
    rows = normalize(rows)
    for _ in range(REPEATED):
        if len(np.unique(labels)) < n_clusters:
            return None
        model = MultinomialNB().fit(rows, labels)
        found = model.predict(rows)
        if np.array_equal(found, labels):
            break
        labels = found
    if len(np.unique(labels)) < n_clusters:
        return None
    return model.predict_proba(rows).astype(np.float32)
