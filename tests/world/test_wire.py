"""Whatever bytes come over the wire, the parser takes frames or refuses; and values come back as they went."""

from __future__ import annotations

import contextlib
import json
import math
import socket

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.world import tree
from kit.world.tensors import DTYPES, from_bytes, to_bytes
from kit.world.wire import DeciderEnd, Parser, ProtocolError, RankEnd, frame

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
headers = st.dictionaries(st.text(max_size=8), json_values, max_size=5)


@given(st.lists(st.tuples(headers, st.binary(max_size=300)), max_size=5), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames, data):
    stream = b"".join(frame(header, len(payload)) + payload for header, payload in frames)
    parser, got = Parser(1 << 20), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        parser.feed(stream[:cut])
        got += parser.frames()
        stream = stream[cut:]
    assert got == [(header, bytearray(payload)) for header, payload in frames]


@given(st.binary(min_size=16, max_size=200))
def test_other_bytes_are_refused_or_awaited_never_anything_else(junk):
    parser = Parser(1 << 10)
    parser.feed(junk)
    try:
        frames = parser.frames()
    except ProtocolError:
        return
    assert junk.startswith(b"SHK1") or not frames


@given(headers, st.binary(max_size=60), st.integers(0, 300), st.integers(0, 255))
def test_a_damaged_frame_never_raises_anything_but_protocol_error(header, payload, place, value):
    stream = bytearray(frame(header, len(payload)) + payload)
    stream[place % len(stream)] = value
    parser = Parser(1 << 10)
    parser.feed(stream)
    try:
        for got, _ in parser.frames():
            assert isinstance(got, dict)
    except ProtocolError:
        pass


def test_a_frame_that_claims_too_much_is_refused_before_it_is_read():
    parser = Parser(1000)
    parser.feed(frame({}, 1001))
    with pytest.raises(ProtocolError, match="more than a rank may send"):
        parser.frames()


@pytest.mark.parametrize("header", [b"[]", b"1", b"{", b"\xff", b"[" * 100_000])
def test_a_header_that_is_no_object_is_refused(header):
    import struct

    parser = Parser(1000)
    parser.feed(struct.pack("<4sIQ", b"SHK1", len(header), 0) + header)
    with pytest.raises(ProtocolError):
        parser.frames()


def test_large_payloads_pass_in_both_directions_without_blocking():
    ours, theirs = socket.socketpair()
    decider, rank = DeciderEnd(ours, 1 << 30), RankEnd(theirs)
    blob = bytes(range(256)) * (1 << 13)
    decider.send({"n": 1}, [blob, b"tail"])
    assert decider.wants_write
    import threading

    got = []
    reader = threading.Thread(target=lambda: got.append(rank.receive()))
    reader.start()
    while decider.wants_write:
        decider.flush()
    reader.join()
    assert got[0][0] == {"n": 1}
    assert bytes(got[0][1]) == blob + b"tail"
    writer = threading.Thread(target=lambda: rank.send({"m": 2}, [blob]))
    writer.start()
    frames = []
    while not frames:
        frames, closed = decider.receive()
        assert not closed
    writer.join()
    assert frames == [({"m": 2}, bytearray(blob))]
    ours.close()
    theirs.close()


tensors = st.builds(
    lambda dtype, shape, seed: torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(seed)).to(dtype),
    st.sampled_from(
        [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool]
    ),
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.integers(0, 1000),
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**100), 2**100)
    | st.floats()
    | st.text(max_size=10)
    | st.binary(max_size=10)
    | st.sampled_from(list(DTYPES.values()))
    | tensors
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(-5, 5), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype is other.dtype and one.shape == other.shape and torch.equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other


@settings(deadline=None)
@given(values)
def test_a_tree_comes_back_as_it_went(value):
    skeleton, blobs = tree.encode(value)
    skeleton = json.loads(json.dumps(skeleton))
    back = [from_bytes(raw, DTYPES[d["dtype"]], d["shape"]) for d, raw in blobs]
    assert same(tree.decode(skeleton, back), value)


@given(json_values)
def test_any_json_is_a_tree_or_a_tree_error(skeleton):
    with contextlib.suppress(tree.TreeError):
        tree.decode(skeleton, [])


@pytest.mark.parametrize(
    "skeleton",
    [{"t": 0}, {"t": -1}, {"t": "0"}, {"t": True}, {"y": "float4"}, {"d": [[1]]}, {"d": [[{"l": []}, 1]]}, {"q": 1}],
)
def test_skeletons_that_lie_are_refused(skeleton):
    with pytest.raises(tree.TreeError):
        tree.decode(skeleton, [])


def test_depth_is_bounded_both_ways():
    deep = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(tree.TreeError, match="levels deep"):
        tree.encode(deep)
    skeleton = {"l": []}
    for _ in range(500):
        skeleton = {"l": [skeleton]}
    with pytest.raises(tree.TreeError, match="too deep"):
        tree.decode(skeleton, [])


def test_strides_are_lost_and_values_are_not():
    x = torch.arange(12.0).reshape(3, 4).t()
    assert from_bytes(to_bytes(x), x.dtype, x.shape).equal(x)
    y = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert from_bytes(to_bytes(y), y.dtype, y.shape).equal(y.resolve_conj())
