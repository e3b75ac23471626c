"""Classes of the messages in descriptor sets, which `scripts/protocols.py` generates.

Code that protoc generates runs only with the protobuf library of its own release or later; a descriptor set
runs with any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def message_classes(path: Path) -> dict[str, Any]:
    """The classes of the messages in the descriptor set at `path`, and numbers of its enums' values, by name.

    They are in a pool of their own: names in the default one are shared with all other libraries.
    """
    found: dict[str, Any] = {}
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
        for message in file.message_type:
            name = f"{file.package}.{message.name}"
            found[message.name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for enum in file.enum_type:
            found |= {value.name: value.number for value in enum.value}
    return found
