"""What is done with trained runs: metrics, selection, consensus, merging."""
