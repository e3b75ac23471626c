"""What the other packages hand to each other: outputs, lists of problems, messages of the worker's pipe."""
