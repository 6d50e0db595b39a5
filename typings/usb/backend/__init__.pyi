# Only the name of the package matters.
