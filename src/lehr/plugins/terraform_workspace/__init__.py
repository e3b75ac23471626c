"""`lehr.TerraformWorkspace`: a root module of Terraform or OpenTofu, through their command.

In: payloads `TerraformWorkspace`. Out: what the module declares, or nothing of it.

    payload.py       what people write                  program.py   which command runs
    plan_changes.py  a plan as a diff: pure             folders.py   what lies on this machine
    messages.py      errors and progress: pure          commands.py  init, plan, show, apply
    agreement.py     what must hold of a plan: pure     adoption.py  drafts for modules that exist
    printed.py       documents and logs                 plugin.py    the asset plugin

Architecture invariants: only the plan that was compared is applied; an `apply` outlives Lehr, is found again
by its mark, and is never killed before it was interrupted; a plan is private and deleted after its run; a
lock of the state is never broken; a state that is gone or was replaced never counts as empty production.
"""
