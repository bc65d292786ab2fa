"""Settings of every test and doctest: one thread, so that the suite behaves the same on any machine."""

import torch

torch.set_num_threads(1)
