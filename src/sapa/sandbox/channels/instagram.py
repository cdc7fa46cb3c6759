"""Simulates Instagram, whose Graph API has an address of its own."""

from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels.social import build_simulator

SIMULATORS = [build_simulator(Source.PHOTO_SOCIAL, "/sandbox/instagram/v22.0")]
