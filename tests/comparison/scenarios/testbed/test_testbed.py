"""The parts of a run."""

from __future__ import annotations

from comparison.scenarios.testbed.testbed import BrokerChild
from kernel.runtime import REAL


def test_a_broker_behind_a_proxy_keeps_its_own_port_when_it_is_started_again() -> None:
    broker = BrokerChild(1, REAL)
    own = broker.own_port(is_proxied=True)
    advertised = own + 1

    broker.heard({"event": "ready", "port": advertised})

    assert (broker.port, broker.own_port(is_proxied=True)) == (advertised, own)
    broker.release()
