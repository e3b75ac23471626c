"""`lehr.TerraformResource`: resources of Terraform providers, over the providers' own protocol.

In: payloads of `lehr.TerraformProvider` and `lehr.TerraformResource`. Out: resources as intended, or none.
No terraform binary, no HCL and no state file take part.

    provider.py   what a configured provider can be asked, as a protocol, and its values: pure
"""
