"""Shows of a script that it keeps the numerical contract, by running it."""
