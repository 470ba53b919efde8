"""How property tests run. Used by tests with hypothesis, whose own limits judge the machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a busy machine the time that an example takes says nothing."""
