"""The network alone, without a process: malformed messages are refused as such, right ones are matched."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.world import collectives
from kit.world.segments import SegmentTable
from kit.world.switchboard import Switchboard
from kit.world.wire import ProtocolError
from kit.world.world import MAX_WORLD_SIZE

REFUSED = (ProtocolError, KeyError, TypeError, ValueError, IndexError, OverflowError)


def switchboard(size=2):
    replies = []
    board = Switchboard(
        size, SegmentTable(1 << 20), lambda rank, header, blobs, fds: replies.append((rank, header, blobs))
    )
    return board, replies


def issue(name="all_reduce", seq=1, numel=2, **more):
    meta = [["float32", [numel]]]
    header = {"op": "issue", "seq": seq, "name": name, "group": "0:0,1", "in": meta, "out": meta, "async": True,
              "site": "a.py:1", "program": True, **more}  # fmt: skip
    return header, bytearray(4 * numel)


def bytes_of(tensor):
    return bytes(tensor.contiguous().view(torch.uint8).tolist())


def test_two_calls_that_fit_are_delivered_to_those_who_wait():
    board, replies = switchboard()
    for rank in (0, 1):
        board.handle(rank, *issue(reduce_op="SUM"))
    assert not replies
    board.handle(0, {"op": "wait", "id": 1, "seqs": [1], "site": "", "threads": 1}, bytearray())
    assert [(rank, header["seq"]) for rank, header, _ in replies] == [(0, 1)]
    assert not board.quiescence.reached


def test_a_wait_before_the_peer_comes_is_quiescent_only_when_all_wait():
    board, _ = switchboard()
    board.handle(0, *issue(reduce_op="SUM"))
    board.handle(0, {"op": "wait", "id": 1, "seqs": [1], "site": "", "threads": 1}, bytearray())
    assert not board.quiescence.reached
    board.handle(1, {**issue("recv", peer=0)[0], "in": []}, bytearray())
    board.handle(1, {"op": "wait", "id": 1, "seqs": [1], "site": "", "threads": 1}, bytearray())
    assert board.quiescence.reached
    assert not board.quiescence.resolve()


junk = st.none() | st.integers(-5, 5) | st.text(max_size=4) | st.lists(st.integers(-2, 9), max_size=3) | st.booleans()


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(["issue", "wait", "poll", "store", "segment", "note", "group", "other"]),
            st.dictionaries(
                st.sampled_from(
                    [
                        "name",
                        "seq",
                        "group",
                        "in",
                        "out",
                        "peer",
                        "root",
                        "reduce_op",
                        "tag",
                        "parts",
                        "out_parts",
                        "id",
                        "seqs",
                        "what",
                        "key",
                        "keys",
                        "amount",
                        "bytes",
                        "segment",
                        "kind",
                        "message",
                        "site",
                        "ranks",
                    ]
                ),
                junk
                | st.sampled_from(["all_reduce", "send", "recv", "0:0,1", "SUM", "add", "get", [["float32", [1]]]]),
                max_size=8,
            ),
            st.binary(max_size=8),
        ),
        max_size=8,
    )
)
def test_any_message_is_taken_or_refused_and_nothing_else(messages):
    board, _ = switchboard()
    for rank, op, fields, payload in messages:
        header = {**issue("all_reduce", reduce_op="SUM")[0], "id": 1, "threads": 1, **fields, "op": op}
        try:
            board.handle(rank, header, bytearray(payload))
        except REFUSED:
            return
        for _ in range(5):
            if not board.quiescence.reached or not board.quiescence.resolve():
                break


def test_the_largest_world_has_a_group_of_all_its_ranks():
    board, replies = switchboard(MAX_WORLD_SIZE)
    group = "0:" + ",".join(map(str, range(MAX_WORLD_SIZE)))
    for rank in range(MAX_WORLD_SIZE):
        board.handle(rank, *issue(reduce_op="SUM", group=group))
        board.handle(rank, {"op": "wait", "id": 1, "seqs": [1], "site": "", "threads": 1}, bytearray())
    assert len(replies) == MAX_WORLD_SIZE


def test_a_reduce_scatter_folded_whole_or_part_by_part_has_the_same_bits(monkeypatch):
    """bfloat16 rounds at each addition, so another order would show."""
    numbers = (torch.randn(3, 6, generator=torch.Generator().manual_seed(1)) * 100).to(torch.bfloat16)
    header = {"op": "issue", "seq": 1, "name": "reduce_scatter", "group": "0:0,1,2", "in": [["bfloat16", [6]]],
              "async": True, "site": "", "program": True, "reduce_op": "SUM", "parts": [1, 2, 3]}  # fmt: skip
    seen = []
    for limit in (1 << 20, 0):
        monkeypatch.setattr(collectives, "_FOLD_WHOLE_BYTES", limit)
        board, replies = switchboard(3)
        for rank in range(3):
            data = bytearray(bytes_of(numbers[rank]))
            board.handle(rank, {**header, "out": [["bfloat16", [rank + 1]]]}, data)
            board.handle(rank, {"op": "wait", "id": 1, "seqs": [1], "site": "", "threads": 1}, bytearray())
        seen.append({rank: bytes(blobs[0]) for rank, _, blobs in replies})
    folded = (numbers[0] + numbers[1]) + numbers[2]
    parts = folded.split([1, 2, 3])
    assert seen[0] == seen[1] == {rank: bytes_of(part) for rank, part in enumerate(parts)}
