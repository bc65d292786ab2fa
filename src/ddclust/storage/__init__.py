"""What is on disk: files written whole or not at all, folders that can be resumed, saved models."""
