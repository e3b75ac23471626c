"""The asset plugins that Lehr ships: one package for each asset type.

In: targets and readers (`lehr.sdk.plugin`). Out: diffs, and production moved to the intent.

Architecture invariants: a plugin imports neither another plugin nor a stage; generation needs only the module
`payload` of each package, which imports nothing of its plugin.
"""
