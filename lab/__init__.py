"""The laboratory: reproduction of the paper, studies of the defaults, and benchmarks. It is not part of the wheel."""
