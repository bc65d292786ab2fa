"""What pairs are worth on scikit-learn's small digits: augmented copies, nearest neighbours, and both.

python examples/pairs.py
"""

from ddclust import DDC, clustering_accuracy, nmi
from ddclust.datasets import load_digits

PAIRS = {
    "none": {"augment": None},
    "copies": {"augment": "affine"},
    "neighbours": {"neighbors": 5},
    "both": {"augment": "affine", "neighbors": 5},
    "default": {},  # an affine copy of the image or of one of its two nearest neighbours
}


def main():
    digits = load_digits()
    for name, parameters in PAIRS.items():
        model = DDC(10, n_init=2, max_iter=500, early_stopping=None, random_state=0, **parameters)
        labels = model.fit_predict(digits.data)
        accuracy, information = clustering_accuracy(digits.target, labels), nmi(digits.target, labels)
        print(f"pairs: {name:10s}  ACC {accuracy:.3f}  NMI {information:.3f}")


if __name__ == "__main__":
    main()
