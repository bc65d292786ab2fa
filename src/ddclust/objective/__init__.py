"""What training minimises: kernels, divergences, the terms of the loss, pairs of items."""
