"""All resources that are read from a store, in the order in which they are described."""

from __future__ import annotations

from lehr.http.dry_runs import DRY_RUNS
from lehr.http.explanations import EXPLANATIONS
from lehr.http.operations import OPERATIONS
from lehr.http.questions import Resource
from lehr.http.records import RECORDS
from lehr.http.resources import RESOURCES
from lehr.http.rollouts import ROLLOUTS

CATALOGUE: tuple[Resource, ...] = (*RESOURCES, *EXPLANATIONS, *ROLLOUTS, *DRY_RUNS, *OPERATIONS, *RECORDS)
