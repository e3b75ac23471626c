"""Data exchanged between the other packages: outputs, lists of problems, messages of the worker's pipe."""
