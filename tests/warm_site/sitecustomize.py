"""In the Pythons of a test's project: has a Snakemake's job server there before its first job asks for it.

The product starts one with the third job, and imports what jobs import; here `tests.warm_processes` forks it.
"""

import os
import sys


def _ask_for_server(address: str) -> None:
    import socket
    import time

    from plumbline.operate.prefork import client

    place = client.socket_place()
    del sys.modules[client.__name__]  # it is run as a program next
    if place is None or place.exists():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.connect(f"\0{address}")
        request = {"place": str(place), "parent": os.getppid(), "cwd": os.getcwd(), "environment": dict(os.environ)}
        channel.send(client.json.dumps(request).encode())
        if channel.recv(10) == b"alike":
            until = time.monotonic() + 60
            while not place.exists():
                if time.monotonic() > until:
                    raise SystemExit(f"the job server does not come; see {place}.log")
                time.sleep(0.005)


if sys.orig_argv[1:3] == ["-m", "plumbline.operate.prefork.client"] and "WARM_JOBS" in os.environ:
    _ask_for_server(os.environ["WARM_JOBS"])
