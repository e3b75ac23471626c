"""Tables of a store, as SQLite reads them. PostgreSQL has the same, with types of its own.

Each database adds indexes whose columns suit it.
"""

VERSION = 6
"""Raised by every change of the tables: a store of another version is refused."""

TABLES = """
CREATE TABLE partition (
    name TEXT PRIMARY KEY,
    newest INTEGER NOT NULL DEFAULT 0,
    governance TEXT NOT NULL DEFAULT '',
    controls INTEGER NOT NULL DEFAULT 0,
    releases INTEGER NOT NULL DEFAULT 0,
    checksum BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE lease (
    partition TEXT NOT NULL,
    share INTEGER NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    until REAL NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, share)
) WITHOUT ROWID;

-- The header of one that is pruned stays.
CREATE TABLE incarnation (
    partition TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    header BLOB NOT NULL,
    pruned INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    pruned_checksum BLOB NOT NULL,
    PRIMARY KEY (partition, sequence)
) WITHOUT ROWID;
CREATE INDEX incarnation_kept ON incarnation (partition, sequence) WHERE pruned = 0;
CREATE INDEX incarnation_pruned ON incarnation (partition, sequence) WHERE pruned = 1;

-- Append-only but for pruning. A version without a digest is a tombstone.
CREATE TABLE asset_version (
    number INTEGER PRIMARY KEY,
    partition TEXT NOT NULL,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    type TEXT,
    digest TEXT,
    body BLOB,
    origin BLOB,
    checksum BLOB NOT NULL
);
CREATE INDEX asset_version_sequence ON asset_version (partition, sequence);

-- The newest incarnation, derived from asset_version.
CREATE TABLE asset_current (
    partition TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    digest TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    version INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, id)
) WITHOUT ROWID;

CREATE TABLE bucket_current (
    partition TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    digest TEXT NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, bucket)
) WITHOUT ROWID;

-- References between assets, and the incarnation from which on each is gone (NULL: it is current).
CREATE TABLE mention (
    number INTEGER PRIMARY KEY,
    partition TEXT NOT NULL,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    target TEXT NOT NULL,
    until INTEGER,
    checksum BLOB NOT NULL,
    until_checksum BLOB
);
CREATE INDEX mention_source ON mention (partition, source) WHERE until IS NULL;
CREATE INDEX mention_target ON mention (partition, target, until);
CREATE INDEX mention_past ON mention (partition, source, until) WHERE until IS NOT NULL;

CREATE TABLE claim_current (
    partition TEXT NOT NULL,
    claim TEXT NOT NULL,
    asset TEXT NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, claim, asset)
) WITHOUT ROWID;
CREATE INDEX claim_current_asset ON claim_current (partition, asset);

CREATE TABLE attempt (
    partition TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE operation (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    open INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
);
-- Invariant: I5. At most one push in flight per asset.
CREATE UNIQUE INDEX operation_open ON operation (partition, asset) WHERE open = 1;
CREATE INDEX operation_asset ON operation (partition, asset, number);
CREATE INDEX operation_partition ON operation (partition, number);

CREATE TABLE reservation (
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    at REAL NOT NULL,
    until REAL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (key, operation)
) WITHOUT ROWID;
CREATE INDEX reservation_operation ON reservation (operation) WHERE until IS NULL;

CREATE TABLE ledger (
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    body BLOB NOT NULL,
    content INTEGER NOT NULL,
    goal TEXT NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, asset)
) WITHOUT ROWID;
-- For pruning: assets that were applied from an incarnation.
CREATE INDEX ledger_content ON ledger (partition, content, goal, asset);

CREATE TABLE handle (
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, asset)
) WITHOUT ROWID;

CREATE TABLE outputs (
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, asset)
) WITHOUT ROWID;

-- `inputs`: what it was decided from.
CREATE TABLE decision (
    number INTEGER PRIMARY KEY,
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    body BLOB NOT NULL,
    inputs BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE INDEX decision_asset ON decision (partition, asset, number);

CREATE TABLE standing (
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    key TEXT NOT NULL,
    since REAL NOT NULL,
    condition BLOB NOT NULL,
    checksum BLOB NOT NULL,
    condition_checksum BLOB NOT NULL,
    PRIMARY KEY (partition, asset)
) WITHOUT ROWID;

-- `changed`: the version of the partition's controls in which it was set, or else lifted.
CREATE TABLE control (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition TEXT NOT NULL,
    lifted_at REAL,
    expires_at REAL,
    changed INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE INDEX control_changed ON control (partition, changed);

-- `changed`: the version of the partition's releases in which it was written, or else withdrawn.
CREATE TABLE release (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    target INTEGER,
    withdrawn_at REAL,
    changed INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE INDEX release_asset ON release (partition, asset, number);
CREATE INDEX release_changed ON release (partition, changed);

CREATE TABLE evidence (
    number INTEGER PRIMARY KEY,
    partition TEXT NOT NULL,
    policy TEXT NOT NULL,
    rollout TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE INDEX evidence_partition ON evidence (partition, number);
CREATE INDEX evidence_policy ON evidence (partition, policy, rollout, number);

CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    partition TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
);

-- What each commit changed: references to the records. Append-only but for pruning from the beginning.
CREATE TABLE feed (
    partition TEXT NOT NULL,
    number INTEGER NOT NULL,
    at REAL NOT NULL,
    changes BLOB NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (partition, number)
) WITHOUT ROWID;

-- Incarnations of other states, to be read. They belong to no partition and are never enforced.
CREATE TABLE imported (
    name TEXT PRIMARY KEY,
    at REAL NOT NULL,
    header BLOB NOT NULL,
    checksum BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE imported_asset (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    digest TEXT NOT NULL,
    body BLOB NOT NULL,
    origin BLOB,
    checksum BLOB NOT NULL
);
CREATE UNIQUE INDEX imported_asset_key ON imported_asset (name, id);
"""
