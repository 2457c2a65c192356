"""Stands in for the part of CANN's package that MindSpore asks for ranks."""
