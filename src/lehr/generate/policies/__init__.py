"""What policies change and make: compiled once for each policy, applied to one asset at a time.

`policy_set` finds the policies of a snapshot, `mutation_rules` and `mutations` are what they put on assets,
`derived_assets` what they make. `policy_type_check` refuses early what no asset could take.
"""
