#!/usr/bin/env python3
"""Soaks the server: mixed requests at twice its capacity for half an hour. Standard library only.

    experiments/soak.py [--minutes 30] [--binary target/release/wherefore] [--out DIR]

Asks (some streamed), SPARQL (some of it heavy), writes and bad requests come at random moments,
twice as many a second as the server completed when each client waited for its reply. Who is turned
away (429, 503) counts as shed. Sampled every five seconds: the server's memory, its workers' for
SPARQL, open files, threads, connections, requests that wait. Afterwards the load ends, and what is
left of it a quarter of a minute later is sampled once more.

Writes soak.json and soak.svg into DIR and prints a table for docs/results.md.
"""
import argparse
import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEY = "soak-key"
SAMPLE_SECONDS = 5
# connections at a time; the server's limit is 1024
MOST_OPEN = 900
# all of 127.0.0.0/8 is this machine: the callers have addresses of their own
ADDRESSES = [f"127.0.0.{i}" for i in range(2, 18)]
MIX = {"ask": 50, "stream": 15, "sparql": 15, "write": 10, "bad": 7, "heavy": 3}
HEAVY = [
    "SELECT (MAX(STR(?a)) AS ?n) { ?a ?p ?b . ?c ?q ?d }",
    "SELECT (GROUP_CONCAT(STR(?a)) AS ?n) { ?a ?p ?b . ?c ?q ?d }",
    "SELECT ?a { ?a ?p ?b . ?c ?q ?d MINUS { ?a ?q ?e } } ORDER BY ?d",
]
LIGHT = [
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n) LIMIT 5",
    "SELECT ?s ?l { ?s rdfs:label ?l } LIMIT 50",
    "ASK { ?s ?p ?o }",
]


def request(method, path, body=b"", kind="application/json", key=KEY):
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: {kind}\r\n"
    if key:
        head += f"authorization: Bearer {key}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def as_json(path, value):
    return request("POST", path, json.dumps(value).encode())


class Requests:
    """Makes requests of each kind."""

    def __init__(self, questions, seed):
        self.questions = questions
        self.random = random.Random(seed)
        self.written = 0

    def make(self, kind):
        pick = self.random.choice
        if kind in ("ask", "stream"):
            body = {"question": pick(self.questions)}
            return as_json("/v1/ask" + ("?stream=true" if kind == "stream" else ""), body)
        if kind in ("sparql", "heavy"):
            query = pick(LIGHT if kind == "sparql" else HEAVY)
            return request("POST", "/v1/sparql", query.encode(), "application/sparql-query")
        if kind == "write":
            # every second one takes back what the one before it gave, so that the graph stays as it is
            number, is_add = divmod(self.written, 2)
            self.written += 1
            text = f"<http://soak/{number}> <http://soak/p> \"{number}\" .\n"
            return as_json("/v1/triples", {"remove" if is_add else "add": text})
        return pick([
            lambda: request("POST", "/v1/ask", b'{"question": '),
            lambda: as_json("/v1/ask", {"question": "x" * 5000}),
            lambda: as_json("/v1/ask", {"question": "who?", "graph": "none"}),
            lambda: as_json("/v1/ask", {"question": "who?"})[:-4],
            lambda: request("POST", "/v1/sparql", b"SELECT {", "application/sparql-query"),
            lambda: request("POST", "/v1/sparql", b"DROP ALL", "application/sparql-query"),
            lambda: as_json("/v1/triples", {"add": "no triple"}),
            lambda: request("GET", "/v1/none"),
            lambda: request("PUT", "/v1/ask"),
            lambda: request("POST", "/v1/ask", b"{}", key="wrong" + str(self.random.random())),
            lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        ])()


class Tally:
    """What became of the requests, by kind."""

    def __init__(self):
        self.kinds = {kind: {"sent": 0, "done": [], "shed": [], "status": {}} for kind in MIX}
        self.minutes = {}

    def add(self, kind, status, seconds, minute):
        of = self.kinds[kind]
        of["status"][status] = of["status"].get(status, 0) + 1
        (of["shed"] if status in ("429", "503") else of["done"]).append(seconds)
        kept = self.minutes.setdefault(minute, {}).setdefault(kind, {"done": [], "shed": 0})
        if status in ("429", "503"):
            kept["shed"] += 1
        else:
            kept["done"].append(seconds)


def percentile(values, share):
    if not values:
        return None
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


async def call(port, message, limit=60):
    """The status, or what went wrong."""
    writer = None
    try:
        async with asyncio.timeout(limit):
            source = (random.choice(ADDRESSES), 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source)
            writer.write(message)
            await writer.drain()
            head = await reader.read(65536)
            while await reader.read(65536):
                pass
            return head[9:12].decode("latin-1") or "closed"
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return f"broken: {type(error).__name__}"
    finally:
        if writer:
            writer.close()


async def capacity(port, requests, seconds, clients):
    """Requests a second that are completed when each client waits for its reply."""
    end = time.monotonic() + seconds
    done = 0

    async def client():
        nonlocal done
        while time.monotonic() < end:
            # the heavy ones take what they are given, and the bad ones cost nothing
            kind = requests.random.choices(["ask", "stream", "sparql", "write"], [50, 15, 15, 10])[0]
            status = await call(port, requests.make(kind))
            done += status == "200"

    start = time.monotonic()
    await asyncio.gather(*(client() for _ in range(clients)))
    return done / (time.monotonic() - start)


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"])


def sample(pid, metrics):
    memory, threads = resident(pid)
    workers = 0.0
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children += file.read().split()
        except OSError:
            continue
    for child in set(children):
        try:
            workers += resident(child)[0]
        except (OSError, KeyError):
            continue
    gauges = {}
    for line in metrics.splitlines():
        name, _, value = line.rpartition(" ")
        if name in ("wherefore_queue_waiting", "wherefore_workers_busy", "wherefore_workers_stuck", "wherefore_connections"):
            gauges[name.removeprefix("wherefore_")] = int(float(value))
    return {
        "memory_mb": round(memory, 1),
        "workers_mb": round(workers, 1),
        "workers": len(set(children)),
        "threads": threads,
        "open_files": len(os.listdir(f"/proc/{pid}/fd")),
        **gauges,
    }


async def get_metrics(port):
    try:
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("GET", "/metrics"))
            text = (await reader.read()).decode()
            writer.close()
            return text
    except (OSError, TimeoutError):
        return ""


async def soak(port, pid, questions, minutes, clients):
    requests = Requests(questions, 1)
    await capacity(port, requests, 10, clients)
    rate = await capacity(port, requests, 20, clients)
    print(f"capacity: {rate:.1f} requests a second", file=sys.stderr)
    tally, samples, running = Tally(), [], set()
    skipped = 0
    start = time.monotonic()
    before = sample(pid, await get_metrics(port))

    async def one(kind):
        begun = time.monotonic()
        status = await call(port, requests.make(kind))
        tally.add(kind, status, time.monotonic() - begun, int((begun - start) / 60))

    async def watch():
        while True:
            samples.append({"second": round(time.monotonic() - start), **sample(pid, await get_metrics(port))})
            print(json.dumps(samples[-1]), file=sys.stderr)
            await asyncio.sleep(SAMPLE_SECONDS)

    watching = asyncio.create_task(watch())
    kinds, weights = list(MIX), list(MIX.values())
    at = start
    while at < start + minutes * 60:
        at += requests.random.expovariate(2 * rate)
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        kind = requests.random.choices(kinds, weights)[0]
        tally.kinds[kind]["sent"] += 1
        if len(running) >= MOST_OPEN:
            skipped += 1
            continue
        task = asyncio.create_task(one(kind))
        running.add(task)
        task.add_done_callback(running.discard)
    took = time.monotonic() - start
    watching.cancel()
    if running:
        await asyncio.wait(running)
    await asyncio.sleep(15)
    after = sample(pid, await get_metrics(port))
    return {
        "minutes": round(took / 60, 1),
        "capacity": round(rate, 1),
        "rate": round(sum(k["sent"] for k in tally.kinds.values()) / took, 1),
        "not_sent": skipped,
        "before": before,
        "after": after,
        "kinds": {kind: summary(of) for kind, of in tally.kinds.items()},
        "by_minute": [
            {
                "minute": minute,
                **{
                    kind: {
                        "done": len(of["done"]),
                        "shed": of["shed"],
                        "p50_ms": ms(percentile(of["done"], 0.5)),
                        "p99_ms": ms(percentile(of["done"], 0.99)),
                    }
                    for kind, of in kinds.items()
                },
            }
            for minute, kinds in sorted(tally.minutes.items())
        ],
        "samples": samples,
    }


def ms(seconds):
    return None if seconds is None else round(seconds * 1000, 1)


def summary(of):
    return {
        "sent": of["sent"],
        "done": len(of["done"]),
        "shed": len(of["shed"]),
        "status": dict(sorted(of["status"].items())),
        "p50_ms": ms(percentile(of["done"], 0.5)),
        "p95_ms": ms(percentile(of["done"], 0.95)),
        "p99_ms": ms(percentile(of["done"], 0.99)),
        "max_ms": ms(max(of["done"], default=None)),
        "shed_p99_ms": ms(percentile(of["shed"], 0.99)),
    }


def chart(report):
    """Memory over time above, the 99th percentile of each kind below."""
    width, left, right = 640, 60, 90
    panel, gap, top = 150, 50, 30
    end = max(report["samples"][-1]["second"], 60) / 60
    x = lambda minute: left + minute / end * (width - left - right)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {2 * panel + gap + top + 50}" font-family="sans-serif" font-size="12" fill="#555">',
        f'<rect width="{width}" height="{2 * panel + gap + top + 50}" fill="#fff"/>',
    ]

    def plot(base, title, series):
        highest = max((v for _, _, points in series for _, v in points if v is not None), default=1) * 1.1 or 1
        y = lambda value: base - value / highest * panel
        out.append(f'<text x="{left}" y="{base - panel - 10}" fill="#222">{title}</text>')
        for share in (0, 0.5, 1):
            at = y(highest * share)
            out.append(f'<path d="M{left} {at:.1f}H{width - right}" stroke="#ddd"/>')
            out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{highest * share:,.0f}</text>')
        placed = []
        for name, colour, points in series:
            points = [(m, v) for m, v in points if v is not None]
            if not points:
                continue
            line = " ".join(f"{x(m):.1f},{y(v):.1f}" for m, v in points)
            out.append(f'<polyline points="{line}" stroke="{colour}" stroke-width="1.6" fill="none"/>')
            at = y(points[-1][1]) + 4
            while any(abs(at - other) < 12 for other in placed):
                at -= 12
            placed.append(at)
            out.append(f'<text x="{x(points[-1][0]) + 6:.1f}" y="{at:.1f}" fill="{colour}">{name}</text>')

    minutes = lambda key: [(s["second"] / 60, s.get(key)) for s in report["samples"]]
    plot(top + panel, "memory in MB", [("server", "#1f78b4", minutes("memory_mb")), ("SPARQL", "#b15928", minutes("workers_mb"))])
    colours = {"ask": "#1f78b4", "stream": "#6a3d9a", "sparql": "#b15928", "write": "#33a02c", "bad": "#888"}
    # the last minute is seldom a whole one
    whole = report["by_minute"][:-1] or report["by_minute"]
    plot(
        top + 2 * panel + gap,
        "99th percentile in ms, minute by minute, of what was not turned away",
        [(kind, colour, [(m["minute"] + 0.5, m.get(kind, {}).get("p99_ms")) for m in whole]) for kind, colour in colours.items()],
    )
    bottom = top + 2 * panel + gap + 20
    for share in range(5):
        out.append(f'<text x="{x(end * share / 4):.1f}" y="{bottom}" text-anchor="middle">{end * share / 4:.3g}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{bottom + 18}" text-anchor="middle">minutes</text></svg>')
    return "\n".join(out) + "\n"


def table(report):
    print(f"{report['minutes']} minutes, {report['rate']} requests a second at a capacity of {report['capacity']}")
    print("| kind | sent | answered | shed | p50 | p95 | p99 | longest | shed after (p99) |")
    print("|---|---|---|---|---|---|---|---|---|")
    say = lambda value: "" if value is None else f"{value:,.0f} ms"
    for kind, of in report["kinds"].items():
        cells = [kind, f"{of['sent']:,}", f"{of['done']:,}", f"{of['shed']:,}"]
        cells += [say(of[key]) for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms", "shed_p99_ms")]
        print("| " + " | ".join(cells) + " |")
    for name in ("before", "after"):
        print(f"{name}: {json.dumps(report[name])}")
    for kind, of in report["kinds"].items():
        print(f"{kind}: {json.dumps(of['status'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/release/wherefore"))
    parser.add_argument("--out", default=".")
    parser.add_argument("--clients", type=int, default=16, help="clients at a time while the capacity is measured")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        graph = os.path.join(work, "world")
        sample_file = os.path.join(ROOT, "data/sample/world.ttl.xz")
        subprocess.run([args.binary, "load", "--quiet", "--out", graph, sample_file], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(ROOT, "data/sample/test.jsonl")) as file:
            questions = [json.loads(line)["question"] for line in file]
        config = os.path.join(work, "serve.toml")
        with open(config, "w") as file:
            file.write(
                'listen = "127.0.0.1:0"\n'
                "[limits]\nseconds = 10.0\nsparql_seconds = 2.0\nqueue = 64\n"
                f'[[keys]]\nname = "soak"\nsha256 = "{hashlib.sha256(KEY.encode()).hexdigest()}"\n'
                'scopes = ["ask", "sparql", "write", "feedback", "metrics"]\n'
                f'[graphs.world]\npath = "{graph}"\n'
            )
        log = open(os.path.join(work, "log"), "w+")
        server = subprocess.Popen(
            [args.binary, "serve", "--json", "--config", config], stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            address = json.loads(server.stdout.readline())["address"]
            port = int(address.rsplit(":", 1)[1])
            for _ in range(600):
                if asyncio.run(call(port, request("GET", "/ready"))) == "200":
                    break
                time.sleep(0.1)
            report = asyncio.run(soak(port, server.pid, questions, args.minutes, args.clients))
        finally:
            server.terminate()
            try:
                report_status = server.wait(40)
            except subprocess.TimeoutExpired:
                server.kill()
                report_status = "killed"
        report["exit_status"] = report_status
        log.seek(0)
        lines = log.read().splitlines()
        report["log"] = [line for line in lines if "panic" in line or "stuck" in line or "did not come back" in line][:20]
        os.makedirs(args.out, exist_ok=True)
        with open(os.path.join(args.out, "soak.json"), "w") as file:
            json.dump(report, file, indent=1)
        with open(os.path.join(args.out, "soak.svg"), "w") as file:
            file.write(chart(report))
        table(report)


if __name__ == "__main__":
    main()
