"""Changes and assets made by policies: compiled once for each policy, applied to one asset at a time.

`policy_set` finds the policies of a snapshot, and refuses early what cannot fit any asset.
`mutation_rules` and `mutations` change assets, `mutation_problems` describes what prevents that, and
`derived_assets` makes assets.
"""
