"""Resources of AWS, each in the versions that it goes through: those that the stand-in for AWS has."""

from __future__ import annotations

import json
from typing import Any

_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)


def _policy(action: str) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _rule(port: int) -> dict[str, Any]:
    """Attributes that are written as blocks: `terraform` wants each of them in JSON."""
    return {
        "from_port": port,
        "to_port": port,
        "protocol": "tcp",
        "cidr_blocks": ["10.0.0.0/8"],
        "description": "",
        "ipv6_cidr_blocks": [],
        "prefix_list_ids": [],
        "security_groups": [],
        "self": False,
    }


_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3p0Tt2vVbJ0m6mM7Jv9lq0d5k0Q3mXb0sH6m2c1a8E test"
_TABLE = {"name": "lehr", "hash_key": "id", "billing_mode": "PAY_PER_REQUEST"}
_HASH, _RANGE = {"name": "id", "type": "S"}, {"name": "at", "type": "N"}

CASES: dict[str, list[dict[str, Any]]] = {
    "aws_ssm_parameter": [
        {"name": "/lehr/a", "type": "String", "value": "1"},
        {"name": "/lehr/a", "type": "String", "value": "2", "tags": {"a": "b"}},
        {"name": "/lehr/b", "type": "SecureString", "value": "2"},
    ],
    "aws_sns_topic": [
        {"name": "lehr"},
        {"name": "lehr", "display_name": "Lehr"},
        {"name_prefix": "lehr-"},
    ],
    "aws_s3_bucket": [
        {"bucket": "lehr-bucket"},
        {"bucket": "lehr-bucket", "force_destroy": True, "tags": {"a": "b"}},
        {"bucket": "lehr-other"},
    ],
    "aws_dynamodb_table": [
        {**_TABLE, "attribute": [_HASH]},
        {**_TABLE, "attribute": [_HASH], "ttl": {"attribute_name": "until", "enabled": True}},
        {**_TABLE, "attribute": [_HASH, _RANGE], "range_key": "at"},
    ],
    "aws_iam_role": [
        {"name": "lehr", "assume_role_policy": _TRUST},
        {"name": "lehr", "assume_role_policy": _TRUST, "max_session_duration": 7200},
        {"name": "lehr", "assume_role_policy": _TRUST, "path": "/lehr/"},
    ],
    "aws_iam_user": [
        {"name": "lehr"},
        {"name": "lehr", "tags": {"a": "b"}},
        {"name": "lehr", "tags": {"a": "b"}, "path": "/p/"},
    ],
    "aws_iam_group": [{"name": "lehr"}, {"name": "lehr-2"}, {"name": "lehr-3"}],
    "aws_iam_policy": [
        {"name": "lehr", "policy": _policy("s3:GetObject")},
        {"name": "lehr", "policy": _policy("s3:PutObject")},
        {"name": "lehr", "policy": _policy("s3:PutObject"), "description": "other"},
    ],
    "aws_iam_instance_profile": [{"name": "lehr"}, {"name": "lehr", "tags": {"a": "b"}}, {"name": "lehr-2"}],
    "aws_security_group": [
        {"name": "lehr", "description": "d", "ingress": [_rule(80)]},
        {"name": "lehr", "description": "d", "ingress": [_rule(443), _rule(80)], "tags": {"a": "b"}},
        {"name": "lehr", "description": "other", "ingress": []},
    ],
    "aws_vpc": [
        {"cidr_block": "10.1.0.0/16"},
        {"cidr_block": "10.1.0.0/16", "enable_dns_hostnames": True},
        {"cidr_block": "10.2.0.0/16"},
    ],
    "aws_internet_gateway": [{}, {"tags": {"a": "b"}}, {"tags": {"a": "c"}}],
    "aws_ebs_volume": [
        {"availability_zone": "us-east-1a", "size": 1},
        {"availability_zone": "us-east-1a", "size": 2, "type": "gp3"},
        {"availability_zone": "us-east-1b", "size": 2},
    ],
    "aws_key_pair": [
        {"key_name": "lehr", "public_key": _KEY},
        {"key_name": "lehr", "public_key": _KEY, "tags": {"a": "b"}},
        {"key_name": "lehr-2", "public_key": _KEY},
    ],
    "aws_launch_template": [
        {"name": "lehr", "instance_type": "t3.micro"},
        {"name": "lehr", "instance_type": "t3.small", "monitoring": {"enabled": True}},
        {
            "name": "lehr-2",
            "block_device_mappings": [{"device_name": "/dev/sda1", "ebs": {"volume_size": 20}}],
        },
    ],
    "aws_cloudwatch_log_group": [
        {"name": "lehr"},
        {"name": "lehr", "retention_in_days": 7},
        {"name": "lehr-2", "retention_in_days": 7},
    ],
    "aws_cloudwatch_metric_alarm": [
        {
            "alarm_name": "lehr",
            "comparison_operator": "GreaterThanThreshold",
            "evaluation_periods": 1,
            "metric_name": "m",
            "namespace": "n",
            "period": 60,
            "statistic": "Sum",
            "threshold": threshold,
        }
        for threshold in (1, 0.1, 2.5)
    ],
    "aws_cloudwatch_event_bus": [{"name": f"lehr-{n}"} for n in range(3)],  # moto sometimes loses its tags
    "aws_cloudwatch_event_rule": [
        {"name": "lehr", "schedule_expression": "rate(5 minutes)"},
        {"name": "lehr", "schedule_expression": "rate(7 minutes)", "state": "DISABLED"},
        {"name": "lehr-2", "event_pattern": json.dumps({"source": ["aws.ec2"]})},
    ],
    "aws_kms_key": [
        {"description": "lehr"},
        {"description": "other", "tags": {"a": "b"}},
        {"description": "other", "enable_key_rotation": True},
    ],
    "aws_secretsmanager_secret": [
        {"name": "lehr"},
        {"name": "lehr", "description": "d"},
        {"name": "lehr-2", "recovery_window_in_days": 0},
    ],
    "aws_ecr_repository": [
        {"name": "lehr"},
        {
            "name": "lehr",
            "image_tag_mutability": "IMMUTABLE",
            "image_scanning_configuration": {"scan_on_push": True},
        },
        {"name": "lehr-2"},
    ],
    "aws_ecs_cluster": [
        {"name": "lehr"},
        {"name": "lehr", "setting": [{"name": "containerInsights", "value": "enabled"}]},
        {"name": "lehr-2"},
    ],
    "aws_glue_catalog_database": [
        {"name": "lehr"},
        {"name": "lehr", "description": "d", "parameters": {"k": "v"}},
        {"name": "lehr2"},
    ],
    "aws_cognito_user_pool": [
        {"name": "lehr"},
        {"name": "lehr", "password_policy": {"minimum_length": 12}},
        {"name": "lehr-2"},
    ],
    "aws_iot_thing": [
        {"name": "lehr"},
        {"name": "lehr", "attributes": {"a": "b"}},
        {"name": "lehr-2"},
    ],
    "aws_efs_file_system": [
        {"creation_token": "lehr"},
        {"creation_token": "lehr", "tags": {"a": "b"}},
        {"creation_token": "lehr-2", "encrypted": True},
    ],
    "aws_lb_target_group": [
        {"name": "lehr", "target_type": "lambda"},
        {"name": "lehr", "target_type": "lambda", "tags": {"a": "b"}},
        {"name": "lehr-2", "target_type": "lambda"},
    ],
    "aws_db_parameter_group": [
        {"name": "lehr", "family": "postgres16"},
        {"name": "lehr", "family": "postgres16", "parameter": [{"name": "work_mem", "value": "8192"}]},
        {"name": "lehr-2", "family": "postgres16"},
    ],
    "aws_opensearchserverless_security_policy": [
        {"name": "lehr", "type": "encryption", "policy": json.dumps(policy), "description": description}
        for policy, description in (
            (
                {
                    "Rules": [{"Resource": ["collection/a"], "ResourceType": "collection"}],
                    "AWSOwnedKey": True,
                },
                "d",
            ),
            (
                {
                    "Rules": [{"Resource": ["collection/b"], "ResourceType": "collection"}],
                    "AWSOwnedKey": True,
                },
                "d",
            ),
            (
                {
                    "Rules": [{"Resource": ["collection/b"], "ResourceType": "collection"}],
                    "AWSOwnedKey": True,
                },
                "e",
            ),
        )
    ],
    "aws_dsql_cluster": [
        {"deletion_protection_enabled": False},
        {"deletion_protection_enabled": False, "tags": {"a": "b"}},
        {"deletion_protection_enabled": True},
    ],
}
