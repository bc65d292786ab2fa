"""Partners on scikit-learn's small digits: copies of images, nearest neighbours, and both.

python examples/partners.py
"""

from ddclust import DDC
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.datasets import load_digits

PARTNERS = {
    "none": {"augment": None},
    "copies": {"augment": "affine"},
    "neighbours": {"neighbors": 5},
    "both": {"augment": "affine", "neighbors": 5},
    "default": {},  # copies of the image and of two neighbours
}


def main():
    digits = load_digits()
    for name, options in PARTNERS.items():
        model = DDC(10, n_init=2, max_iter=500, patience=None, random_state=0, **options)
        labels = model.fit_predict(digits.data)
        accuracy, information = clustering_accuracy(digits.target, labels), nmi(digits.target, labels)
        print(f"partners: {name:10s}  ACC {accuracy:.3f}  NMI {information:.3f}")


if __name__ == "__main__":
    main()
