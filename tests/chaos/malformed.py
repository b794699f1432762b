"""Requests that are wrong in every way we can think of."""

import functools
import json
import zlib

from client import BASE

REFUSED = range(400, 500)
SOME_ID = "0190a6f0-1c2b-7def-8123-456789abcdef"
GOOD = {"kind": "Cluster", "name": "abc", "spec": {}}


class Kind:
    """A kind of requests, and the answers that are right for them. Without `is_whole` they promise more than they
    send: then the client ends its half of the connection, which counts as its end, and an answer is not owed."""

    def __init__(self, make, answers=REFUSED, is_whole=True):
        self.make, self.answers, self.is_whole = make, answers, is_whole


class Maker:
    """Writes heads and bodies, with noise from one source and perhaps a token."""

    def __init__(self, chance, token=None):
        self.chance = chance
        self.bearer = f"Authorization: Bearer {token}\r\n" if token else ""

    def letters(self, count):
        return "".join(self.chance.choices("abcdefghijklmnopqrstuvwxyz", k=count))

    def noise(self, count):
        return self.chance.randbytes(count)

    def one_of(self, *choices):
        return self.chance.choice(choices)

    def raw(self, line, headers="", body=b""):
        return f"{line}\r\nHost: x\r\n{self.bearer}{headers}\r\n".encode("latin-1") + body

    def request(self, method, path, body=b"", headers=""):
        body = body.encode() if isinstance(body, str) else body
        return self.raw(f"{method} {path} HTTP/1.1", f"{headers}Content-Length: {len(body)}\r\n", body)

    def get(self, rest, headers=""):
        return self.request("GET", BASE + rest, headers=headers)

    def post(self, body, headers=""):
        return self.request("POST", f"{BASE}/clusters", body, f"Content-Type: application/json\r\n{headers}")

    def post_headed(self, headers, body=b""):
        return self.raw(f"POST {BASE}/clusters HTTP/1.1", headers, body)


@functools.cache
def bomb():
    """Just below 1 MiB, which is as large as a body may be, and a GiB of zeros once it is unpacked."""
    block = bytes(16 << 20)
    packer = zlib.compressobj(9, wbits=-15)
    # After a full flush the same block is packed the same way again.
    first = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(64):
        checksum = zlib.crc32(block, checksum)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
    data = head + first + again * 63 + b"\x03\x00" + checksum.to_bytes(4, "little") + (1 << 30).to_bytes(4, "little")
    assert len(data) <= 1 << 20, len(data)
    return data


def bombs(make):
    """Bodies that are a thousand times as large once they are unpacked."""
    return Kind(lambda: make.post(bomb(), "Content-Encoding: gzip\r\n"), {413})


def connections(make):
    """What is no HTTP, or not quite."""
    return {
        "noise instead of HTTP": Kind(lambda: make.noise(make.chance.randrange(1, 300)), is_whole=False),
        "half a head": Kind(
            lambda: f"GET {BASE}/clusters HTTP/1.1\r\nHost: {make.letters(9)}".encode(), is_whole=False),
        "a head of 200 KiB": Kind(lambda: make.get("/clusters", f"X-Big: {make.letters(200_000)}\r\n")),
        "a thousand headers": Kind(lambda: make.get("/clusters", "".join(f"X-{i}: {i}\r\n" for i in range(1000)))),
        "another protocol version": Kind(
            lambda: make.raw(f"GET {BASE}/clusters HTTP/{make.chance.randrange(3, 99)}.7")),
        "TLS": Kind(lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + make.noise(200)),
        "lengths that disagree": Kind(
            lambda: make.post_headed("Content-Length: 5\r\nContent-Length: 50\r\n", b"abcde")),
        "a length and chunks": Kind(lambda: make.post_headed(
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n")),
        "a length below nothing": Kind(lambda: make.post_headed("Content-Length: -1\r\n")),
        "a length beyond all bounds": Kind(lambda: make.post_headed("Content-Length: 99999999999999999999\r\n")),
        "chunks that are none": Kind(
            lambda: make.post_headed("Transfer-Encoding: chunked\r\n", b"ZZ\r\n" + make.noise(20))),
        "less body than promised": Kind(lambda: make.post(json.dumps(GOOD))[:-7], is_whole=False),
        "unknown methods": Kind(lambda: make.request(make.letters(8).upper(), f"{BASE}/clusters")),
        "twenty at once": Kind(lambda: make.get("/clusters?size=0") * 20),
        # Not taken up, and answered as if it were not there.
        "upgrades": Kind(lambda: make.get(
            "/clusters", "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), {200}),
    }


def bodies(make):
    """Bodies that are too large, no JSON, or not what is asked for."""
    wrong = lambda: make.one_of(None, 7, [], {}, True, "\u0000", -1e308, "x" * 300)
    members = ("kind", "name", "spec", "labels", "references")
    return {
        "no JSON": Kind(lambda: make.post(make.noise(make.chance.randrange(1, 2000)))),
        "JSON cut off": Kind(lambda: make.post(json.dumps(GOOD)[:make.chance.randrange(1, 40)])),
        "JSON a thousand levels deep": Kind(lambda: make.post('{"spec":' * 1000 + "1" + "}" * 1000)),
        "a body of 2 MiB": Kind(lambda: make.post(json.dumps({**GOOD, "spec": {"x": "y" * (2 << 20)}})), {413}),
        "gzip bombs": bombs(make),
        "gzip that is none": Kind(lambda: make.post(make.noise(500), "Content-Encoding: gzip\r\n")),
        "a body of the wrong type": Kind(lambda: make.post(make.one_of("null", "[]", "7", '"x"', "true", ""))),
        "members of wrong types": Kind(lambda: make.post(json.dumps(
            {**{member: wrong() for member in members}, make.letters(5): wrong()}))),
        "numbers without bounds": Kind(lambda: make.post(
            '{"kind":"Cluster","name":"abc","spec":{"x":' + "9" * 400 + "e999}}")),
        "names that are none": Kind(lambda: make.post(json.dumps({**GOOD, "name": make.one_of(
            "", "-", "A", "a" * 500, "é", "\u202e", "../../etc", "a\nb", "' OR 1=1 --")}))),
        "text that is no UTF-8": Kind(lambda: make.post(b'{"kind":"Cluster","name":"\xff\xfe","spec":{}}')),
        "lone surrogates": Kind(lambda: make.post('{"kind":"Cluster","name":"\\ud800","spec":{}}')),
        "patches without sense": Kind(lambda: make.request(
            "PATCH", f"{BASE}/clusters/{SOME_ID}", make.one_of("{}", '{"name":"x"}', '{"labels":7}', "[{}]"))),
        "reports without sense": Kind(lambda: make.request(
            "PUT", f"{BASE}/clusters/{SOME_ID}/statuses", json.dumps({
                "adapter": make.one_of("", "x" * 400, 7, None), "observed_generation": make.one_of(-1, 2**63, "1", 1.5),
                "observed_time": make.letters(5), "conditions": make.one_of([], {}, [7], None)}))),
        "force without reason": Kind(lambda: make.request(
            "POST", f"{BASE}/clusters/{SOME_ID}/force-delete", '{"reason": ""}')),
    }


def addresses(make):
    """Paths and parameters that lead nowhere."""
    return {
        "paths with noise": Kind(lambda: make.get(f"/%{make.letters(2)}/" + "%00" * make.chance.randrange(9))),
        "paths upwards": Kind(lambda: make.get("/../../" + make.letters(5))),
        "ids that are none": Kind(lambda: make.get(f"/clusters/{make.letters(40)}'--")),
        "a path of 60 KiB": Kind(lambda: make.get(f"/clusters/{make.letters(60_000)}")),
        "searches that are none": Kind(lambda: make.get("/clusters?search=" + make.one_of(
            "%27", "name%20%3D", "((((", "labels.%27%3B--%3D1", "a" * 5000, "name%20in%20(", "spec.%00=1"))),
        "parameters without sense": Kind(lambda: make.get("/clusters?" + make.one_of(
            "size=-1", "page=99999999999999999999", "order=;drop", "continue=" + make.letters(200),
            "includeDeleted=perhaps", "ref_type=x", "page=%FF"))),
        # Of two equal names one counts, and members that are not there are left out.
        "parameters beyond need": Kind(lambda: make.get("/clusters?" + make.one_of(
            "fields=" + "a," * 3000, "size=1&size=2", "=&&==&", "search=name%20in%20()", make.letters(2000))),
            range(200, 500)),
    }


def malformed(make):
    """Every kind by its name; `make` makes them, with a good token where tokens are asked for."""
    return {**connections(make), **bodies(make), **addresses(make)}


def tokens(chance, token):
    """Requests whose token is none, though some of each is good: 401 each."""
    plain = Maker(chance)
    head, payload, signature = token.split(".")
    bearer = lambda value: plain.get("/clusters", f"Authorization: Bearer {value}\r\n")

    def changed(part):
        at = chance.randrange(len(part) - 1)
        return part[:at] + ("A" if part[at] != "A" else "B") + part[at + 1:]

    kinds = {
        "tokens of noise": lambda: bearer(f"{plain.letters(30)}.{plain.letters(90)}.{plain.letters(40)}"),
        "no token": lambda: plain.get("/clusters"),
        "a token of 60 KiB": lambda: bearer(plain.letters(60_000)),
        "a changed signature": lambda: bearer(f"{head}.{payload}.{changed(signature)}"),
        "a changed payload": lambda: bearer(f"{head}.{changed(payload)}.{signature}"),
        "no algorithm": lambda: bearer(f"eyJhbGciOiJub25lIn0.{payload}."),
        "two tokens": lambda: plain.get("/clusters", f"Authorization: Bearer {token}\r\n" * 2),
        "a token as a password": lambda: plain.get("/clusters", f"Authorization: Basic {token}\r\n"),
        "a token in the query": lambda: plain.get(f"/clusters?access_token={token}"),
    }
    return {name: Kind(make, {401}) for name, make in kinds.items()}
