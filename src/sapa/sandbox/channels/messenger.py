"""Simulates Messenger, at the Graph API's address."""

from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels.social import build_simulator

SIMULATORS = [build_simulator(Source.SOCIAL_NETWORK, "/sandbox/graph/v25.0")]
