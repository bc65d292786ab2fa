"""What comes in: items, batches, texts, links, neighbours, and their checks."""
