"""A network of its own behind a delay, without `tc`: packets between this machine and a network
namespace wait on their way, in each direction.

    ip netns add far
    python3 delay.py far 0.03      # 10.99.7.1 here, 10.99.7.2 there, 30 ms each way, until it is ended

It needs root, iproute2 and /dev/net/tun. TCP is the kernel's own on both sides, so that connections
are opened and windows grow as over any far network.
"""
import fcntl
import os
import queue
import struct
import subprocess
import sys
import threading
import time

HERE, THERE = "10.99.7.1", "10.99.7.2"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def forward(source, target, delay):
    """Passes packets on, each `delay` seconds after it came."""
    waiting = queue.SimpleQueue()

    def send():
        while True:
            due, packet = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            os.write(target, packet)

    threading.Thread(target=send, daemon=True).start()
    while True:
        packet = os.read(source, 65536)
        waiting.put((time.monotonic() + delay, packet))


def main(namespace, delay):
    near, far = tun("near0"), tun("far0")
    there = f"ip netns exec {namespace} "
    for command in [
        f"ip link set far0 netns {namespace}",
        f"ip addr add {HERE} peer {THERE} dev near0",
        "ip link set near0 up",
        f"{there}ip addr add {THERE} peer {HERE} dev far0",
        f"{there}ip link set far0 up",
        f"{there}ip link set lo up",
    ]:
        subprocess.run(command.split(), check=True)
    print("ready", flush=True)
    threading.Thread(target=forward, args=(far, near, delay), daemon=True).start()
    forward(near, far, delay)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
