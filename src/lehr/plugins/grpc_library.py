"""gRPC, after the settings that it reads once, when it is first imported.

Architecture invariant: no other module imports `grpc`.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would print to our standard error that processes end
# Its handlers crash one fork in ten of a process in which it is busy. No fork of ours uses it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio

__all__ = ["grpc"]
