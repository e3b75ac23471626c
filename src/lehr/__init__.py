"""Lehr: an intent-based production control plane.

People declare in git what production should be; Lehr turns that into immutable,
validated incarnations and moves production there, asset by asset, and can always
explain why it did or did not do something.
"""

__version__ = "0.1.0"
