"""How fast msgen and what it writes are: ratios, measured side by side in one run."""
