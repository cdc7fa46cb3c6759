"""A class that uses a private part of its base, for the test of the rule."""

import aiohttp


class Planted(aiohttp.TCPConnector):
    def factory(self) -> object:
        return self._factory
