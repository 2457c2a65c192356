"""Stands in for CANN's Python package of collective communication."""
