"""A network between here and a server: passes bytes on after a delay, each way, also the first that
open a connection.

    python3 delay.py PORT HOST:PORT SECONDS
"""
import asyncio
import sys

port, target, delay = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
host, target_port = target.rsplit(":", 1)


async def forward(reader, writer):
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def send():
        while True:
            at, data = await queue.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    sender = asyncio.create_task(send())
    while data := await reader.read(1 << 16):
        queue.put_nowait((loop.time() + delay, data))
    queue.put_nowait((loop.time() + delay, b""))
    await sender


async def connected(reader, writer):
    await asyncio.sleep(2 * delay)
    try:
        there = await asyncio.open_connection(host, int(target_port))
        await asyncio.gather(forward(reader, there[1]), forward(there[0], writer))
    except OSError:
        writer.close()


async def main():
    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
