"""A door to PostgreSQL's socket that can be slammed."""

import asyncio


class Proxy:
    """Passes bytes both ways; `slam` cuts every connection."""

    def __init__(self, socket, chance):
        self.socket, self.chance = socket, chance
        # In the order in which they came, so that the same chance cuts the same ones.
        self.pairs, self.cuts = {}, 0
        self.server = self.port = None

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.slam(1.0)

    def slam(self, share):
        """Cuts this share of the connections, in the middle of whatever they do."""
        for pair in list(self.pairs):
            if self.chance.random() < share:
                self.cuts += 1
                for writer in pair:
                    writer.transport.abort()

    async def _serve(self, reader, writer):
        try:
            there, back = await asyncio.open_unix_connection(self.socket)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, back)
        self.pairs[pair] = True
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer), return_exceptions=True)
        except asyncio.CancelledError:
            pass  # the end of the scenario
        self.pairs.pop(pair, None)
        for one in pair:
            one.close()

    @staticmethod
    async def _pump(reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()
