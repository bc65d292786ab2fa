"""The methods that DDC is compared with, as scikit-learn clusterers. k-means is scikit-learn's own."""
