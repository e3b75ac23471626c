"""The messages of `provider.proto`.

Built from its descriptor set: code that protoc generates runs with the protobuf library of its own release or
later only, and this with any. The set is in a pool of its own, since names of files in the default one are
shared with all other libraries.
"""

from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_SET = descriptor_pb2.FileDescriptorSet.FromString(Path(__file__).with_name("provider.binpb").read_bytes())
_POOL = descriptor_pool.DescriptorPool()
for _file in _SET.file:
    _POOL.AddSerializedFile(_file.SerializeToString())
    for _message in _file.message_type:
        globals()[_message.name] = message_factory.GetMessageClass(
            _POOL.FindMessageTypeByName(f"{_file.package}.{_message.name}")
        )
