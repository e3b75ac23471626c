"""Hosts of URLs. Pure."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether requests to `host` stay on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
