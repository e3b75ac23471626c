"""From plain data to typed assets: conversion, defaults, and every problem with its place.

`asset_files` and `type_declarations` read what people wrote down, `conversion` checks it as a whole,
`problems` finds all that does not fit a type, and `messages` brings protobuf's ways of writing into one.
"""
