"""The messages of `provider.proto`."""

from pathlib import Path

from lehr.plugins.descriptors import message_classes

globals().update(message_classes(Path(__file__).with_name("provider.binpb")))
