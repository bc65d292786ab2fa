"""Settings of every test and doctest: one thread, so that the suite behaves the same on any machine."""

import torch
from threadpoolctl import threadpool_limits

torch.set_num_threads(1)
threadpool_limits(1)  # of NumPy and scikit-learn
