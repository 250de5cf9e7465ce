# SPDX-License-Identifier: BSD-2-Clause
"""
A relay between bloomgates and Redis, in a process of its own: the address that
follows the master. It has one door for each bloomgate, so that one of them can
be cut off alone. Usage: switch.py CONTROL TARGET DOOR... (all Unix sockets).

On CONTROL, one line a command, answered by "ok":

  target PATH   new connections lead there; the old ones are ended
  cut N         the connections of door N are ended
  hold N        its bytes wait, both ways, and new connections too
  go N          they go on
"""

import asyncio
import sys

BLOCK = 1 << 16


class Door:
    def __init__(self, switch):
        self.switch = switch
        self.open = asyncio.Event()
        self.open.set()
        self.writers = set()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(BLOCK):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    async def admit(self, near_reader, near):
        self.writers.add(near)
        far = None
        try:
            await self.open.wait()
            far_reader, far = await asyncio.open_unix_connection(self.switch.target)
            self.writers.add(far)
            ways = [
                asyncio.ensure_future(self.pump(near_reader, far)),
                asyncio.ensure_future(self.pump(far_reader, near)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        except OSError:
            pass
        finally:
            for writer in (near, far):
                if writer is not None:
                    self.writers.discard(writer)
                    writer.close()


class Switch:
    def __init__(self, target, doors):
        self.target = target
        self.doors = [Door(self) for _ in doors]

    def obey(self, word, value):
        if word == "target":
            self.target = value
            for door in self.doors:
                door.cut()
        elif word == "cut":
            self.doors[int(value)].cut()
        elif word == "hold":
            self.doors[int(value)].open.clear()
        elif word == "go":
            self.doors[int(value)].open.set()
        else:
            return "unknown"
        return "ok"

    async def control(self, reader, writer):
        while line := await reader.readline():
            word, _, value = line.decode().strip().partition(" ")
            writer.write(self.obey(word, value).encode() + b"\n")
            await writer.drain()
        writer.close()


async def main(control, target, *doors):
    switch = Switch(target, doors)
    for door, path in zip(switch.doors, doors):
        await asyncio.start_unix_server(door.admit, path, backlog=200)
    server = await asyncio.start_unix_server(switch.control, control)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
