"""The user's data: reading, checking, scaling and batching it; texts, views, links and neighbours."""
