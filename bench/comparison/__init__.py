"""Selkie next to its peers: the parts of bench/compare.py."""
