"""Exact objects: vectors, arithmetic, transformers with given weights, protocols and bounds."""
