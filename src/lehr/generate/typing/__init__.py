"""From plain data to typed assets: conversion, defaults, and every problem with its place.

`asset_files` and `type_declarations` read files, `conversion` checks a value as a whole, `problems` finds
everything that does not fit a type, and `messages` converts protobuf's spellings to a single one.
"""
