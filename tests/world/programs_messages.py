"""Rounds of point-to-point messages; every rank gets the whole script and plays its own part."""

from __future__ import annotations

import math

import torch
import torch.distributed as dist


def run_rounds(inputs):
    """What this rank received in each round."""
    groups = [dist.group.WORLD, *(dist.new_group(ranks) for ranks in inputs["groups"])]
    seen = []
    for number, script in enumerate(inputs["cases"]):
        print(number, flush=True)
        group = groups[script["group"]]
        if dist.get_rank(group) < 0:
            seen.append(None)
        else:
            seen.append(_ROUNDS[script["name"]](script, group))
    return seen


def content(message):
    """Any bytes at all: nothing is computed with them."""
    generator = torch.Generator().manual_seed(message["seed"])
    numel = math.prod(message["shape"])
    if message["dtype"] is torch.bool:
        return torch.randint(0, 2, message["shape"], generator=generator).bool()
    raw = torch.randint(0, 256, (numel * message["dtype"].itemsize,), dtype=torch.uint8, generator=generator)
    return raw.view(message["dtype"]).view(message["shape"])


def room(message):
    return torch.zeros(message["shape"], dtype=message["dtype"])


def peer_of(message, side, group):
    """The other end as a global rank or as a rank of the group."""
    if message["peer_in_group"]:
        return {f"group_{side}": message[side]}
    return {side: dist.get_global_rank(group, message[side])}


def start(message, me, group, buffers, number):
    """Post this rank's half of a message."""
    if message["src"] == me:
        return dist.isend(content(message), group=group, tag=message["tag"], **peer_of(message, "dst", group))
    buffers[number] = room(message)
    return dist.irecv(buffers[number], group=group, tag=message["tag"], **peer_of(message, "src", group))


def exchange(script, group):
    """All at once: posted in one order, waited for in another; tags come out of order."""
    me, messages = dist.get_rank(group), script["messages"]
    mine = [i for i in script["post_order"] if me in (messages[i]["src"], messages[i]["dst"])]
    buffers = {}
    works = {i: start(messages[i], me, group, buffers, i) for i in mine}
    for i in script["wait_order"]:
        if i in works:
            works[i].wait()
    return buffers


def blocking(script, group):
    """One after the other, in an order that all ranks share."""
    me, buffers = dist.get_rank(group), {}
    for number, message in enumerate(script["messages"]):
        if message["src"] == me:
            dist.send(content(message), group=group, tag=message["tag"], **peer_of(message, "dst", group))
        elif message["dst"] == me:
            buffers[number] = room(message)
            source = dist.recv(buffers[number], group=group, tag=message["tag"], **peer_of(message, "src", group))
            buffers[number, "source"] = source
    return buffers


def from_any(script, group):
    """Everyone sends to one rank, which takes what comes; who comes first is open, so it is sorted by source."""
    me, messages = dist.get_rank(group), script["messages"]
    if me != script["receiver"]:
        for message in messages:
            if message["src"] == me:
                dist.send(content(message), group=group, tag=message["tag"], **peer_of(message, "dst", group))
        return None
    got = []
    for message in messages:
        x = room(message)
        if script["blocking"]:
            source = dist.recv(x, group=group, tag=message["tag"])
        else:
            work = dist.irecv(x, group=group, tag=message["tag"])
            work.wait()
            source = work._source_rank()
        got.append((source, x))
    return sorted(got, key=lambda pair: pair[0])


def batch(script, group):
    """batch_isend_irecv: a ring, and whatever else the script holds."""
    me, messages = dist.get_rank(group), script["messages"]
    buffers, ops = {}, []
    for i in script["post_order"]:
        message = messages[i]
        if message["src"] == me:
            peer = dist.get_global_rank(group, message["dst"])
            ops.append(dist.P2POp(dist.isend, content(message), peer, group, message["tag"]))
        elif message["dst"] == me:
            buffers[i] = room(message)
            peer = dist.get_global_rank(group, message["src"])
            ops.append(dist.P2POp(dist.irecv, buffers[i], peer, group, message["tag"]))
    for work in dist.batch_isend_irecv(ops) if ops else ():
        work.wait()
    return buffers


_ROUNDS = {function.__name__: function for function in (exchange, blocking, from_any, batch)}
