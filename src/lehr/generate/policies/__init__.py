"""Changes and assets made by policies: compiled once for each policy, applied to one asset at a time.

`policy_set` finds the policies of a snapshot, `mutation_rules` and `mutations` change assets,
`derived_assets` makes assets. `policy_type_check` refuses early what cannot fit any asset.
"""
