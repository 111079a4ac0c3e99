"""Many ranks: a 3D training step on 64 of them, what each of them costs, and that costs grow in proportion."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from kit.world import World, run_loop
from kit.world.quiescence import Quiescence
from tests.world import programs_mesh as programs
from tests.world import transformer
from tests.world.transformer import H

PP, DP, TP = 4, 4, 4
MICROBATCHES = 5
# Sharding changes the order in which at most a few hundred terms are added, some 50 operations deep: far under 1e4
# roundings. The mildest fault tried, one microbatch's gradient left out of one layer's norm, shows at 1e-3.
TOLERANCE = 1e4 * torch.finfo(torch.float64).eps


def place(rank):
    """(stage, replica, shard) of a rank of the mesh."""
    return rank // (DP * TP), rank // TP % DP, rank % TP


def shard(tensors, rank):
    """What a rank holds of the whole model's tensors."""
    stage, _, part = place(rank)
    return {
        name: transformer.cut(name, tensor, part, TP)
        for name, tensor in tensors.items()
        if transformer.stage_of(name, PP) == stage
    }


def problem():
    """((the whole model's parameters, batches[replica][microbatch]), what each rank is given)."""
    params = transformer.initial_params(seed=3)
    batches = transformer.make_batches(DP, MICROBATCHES, seed=4)
    num_tokens = sum(words.numel() for replica in batches for words, _ in replica)
    inputs = [
        {
            "mesh": [PP, DP, TP],
            "params": shard(params, rank),
            "batches": batches[place(rank)[1]],
            "num_tokens": num_tokens,
        }
        for rank in range(PP * DP * TP)
    ]
    return (params, batches), inputs


@pytest.fixture(scope="module")
def step(zygote):
    """(what the unsharded model does, its batches, what 64 ranks did)."""
    (params, batches), inputs = problem()
    # The deadline is for a busy machine; an idle one needs a few seconds.
    result = World(PP * DP * TP, zygote=zygote, deadline_s=120).run(programs.training_step, inputs)
    return transformer.whole_step(params, batches), batches, result


def close(seen, expected):
    return (seen - expected).abs().max().item() <= TOLERANCE * max(1.0, expected.abs().max().item())


def test_a_3d_step_on_64_ranks_is_the_unsharded_step(step):
    (losses, grads, after), _, result = step
    for rank, returned in enumerate(result.ranks):
        stage, replica, _ = place(rank)
        assert tuple(returned["at"]) == place(rank)
        expected_loss = losses[replica] if stage == PP - 1 else 0.0
        assert returned["loss"] == pytest.approx(expected_loss, rel=TOLERANCE)
        for what, whole in (("grads", grads), ("params", after)):
            expected = shard(whole, rank)
            assert returned[what].keys() == expected.keys()
            for name, tensor in expected.items():
                assert returned[what][name].shape == tensor.shape, (rank, name)
                assert close(returned[what][name], tensor), (rank, what, name)


def test_the_unsharded_step_leaves_nothing_out(step):
    """Every parameter has a gradient that is far above the tolerance, so that its loss would show."""
    (_, grads, _), batches, _ = step
    for name, grad in grads.items():
        assert grad.abs().max() > 1e6 * TOLERANCE, name
    words = torch.stack([words[0] for replica in batches for words, _ in replica])
    assert len(torch.unique(words, dim=0)) == DP * MICROBATCHES


def test_a_3d_step_makes_no_noise(step):
    """Buffers were watched, and nothing was found: no race, nothing unwaited, nothing that gloo would refuse."""
    assert step[2].findings == ()


def test_traffic_of_each_axis_is_its_closed_form(step):
    _, batches, result = step
    for rank in range(PP * DP * TP):
        stage, replica, part = place(rank)
        at = lambda s, r, p: (s * DP + r) * TP + p  # noqa: E731
        axes = {
            "tp": tuple(at(stage, replica, p) for p in range(TP)),
            "dp": tuple(at(stage, r, part) for r in range(DP)),
            "pp": tuple(at(s, replica, part) for s in range(PP)),
        }
        operations = result.trace.operations(rank)
        seen = {axis: [op for op in operations if op.group == group] for axis, group in axes.items()}
        assert sum(map(len, seen.values())) == len(operations), "an operation outside of the three axes"
        num_layers = len(transformer.layers_of(stage, PP))
        is_last = stage == PP - 1
        tokens = [words.numel() for words, _ in batches[replica]]

        # Two sums a layer in each direction of the activations; the last stage adds the loss's (a maximum, two sums)
        # and one for the gradient of the head's input. A ring of 4 sends 2 x 3/4 of each.
        assert {op.name for op in seen["tp"]} == {"all_reduce"}
        assert len(seen["tp"]) == len(tokens) * (4 * num_layers + 3 * is_last)
        numbers = sum(count * (4 * num_layers * H + is_last * (1 + 2 + H)) for count in tokens)
        assert sum(op.sent_bytes for op in seen["tp"]) == 2 * (TP - 1) * 8 * numbers / TP

        # Activations to the right and their gradients to the left, once for each microbatch.
        sends = [op for op in seen["pp"] if op.name == "send"]
        to = Counter(op.peer for op in sends)
        assert to == Counter(
            {
                peer: len(tokens)
                for peer in ([at(stage + 1, replica, part)] if not is_last else [])
                + ([at(stage - 1, replica, part)] if stage else [])
            }
        )
        assert sum(op.sent_bytes for op in sends) == (bool(stage) + (not is_last)) * 8 * H * sum(tokens)
        assert len(seen["pp"]) == 2 * len(sends)

        # The gradients, once: not again for each microbatch.
        numel = sum(grad.numel() for grad in result.ranks[rank]["grads"].values())
        assert len(seen["dp"]) == num_layers + (stage == 0 or is_last)
        assert sum(op.sent_bytes for op in seen["dp"]) == 2 * (DP - 1) * 8 * numel / DP


def test_1f1b_holds_at_most_as_many_microbatches_as_stages_that_follow(step):
    """Sends forward minus receives of gradients, in the order of issue, is what a stage holds."""
    result = step[2]
    for rank in range(PP * DP * TP):
        stage, _, _ = place(rank)
        if stage == PP - 1:
            continue
        right, held, most = rank + DP * TP, 0, 0
        for op in result.trace.operations(rank):
            held += (op.name == "send" and op.peer == right) - (op.name == "recv" and op.peer == right)
            most = max(most, held)
        assert (held, most) == (0, PP - stage)


def test_64_ranks_and_ten_all_reduces(zygote):
    """What a rank adds to the memory of the process it was forked from: at most 30 MB.

    Not a matter of timing: the pages that a rank writes follow from what it executes.
    """
    size = 64
    result = World(size, zygote=zygote, deadline_s=120).run(programs.ten_all_reduces)
    for returned in result.ranks:
        assert torch.equal(returned["x"], torch.full((1024,), (size - 1) / 2))
        assert 0 < returned["own_bytes"] <= 30e6
    for rank in range(size):
        # Ten sums of 4096 bytes around a ring; each rank sends 2 x 63/64 of them.
        assert result.trace.sent_bytes(rank) == 10 * 2 * (size - 1) * 4096 // size


@pytest.fixture
def counts(zygote, monkeypatch):
    """counts(size, rounds): what the deciding process does in a run of `each_operation`, by kind of work."""

    def of(size, rounds):
        seen = Counter()
        with monkeypatch.context() as patch:

            def counting(where, name, what):
                plain = getattr(where, name)

                def counted(self, *arguments, **named):
                    answer = plain(self, *arguments, **named)
                    for key, count in what(self, answer, arguments).items():
                        seen[key] += count
                    return answer

                patch.setattr(where, name, counted)

            counting(run_loop.Switchboard, "handle", lambda *_: {"messages": 1})
            counting(Quiescence, "decide", lambda self, answer, _: {"decisions": int(answer)})
            counting(run_loop.RunLoop, "reply", lambda self, answer, arguments: {"replies": 1})
            counting(
                run_loop.DeciderEnd,
                "receive",
                lambda self, answer, _: {"data bytes": sum(len(p) for _, p in answer[0])},
            )
            World(size, zygote=zygote, deadline_s=120).run(programs.each_operation, [rounds] * size)
        return seen

    return of


def test_work_grows_in_proportion_to_operations(counts):
    """Ten more rounds cost ten times what one more costs: no message, reply or decision comes to depend on history."""
    few, more, many = counts(4, 1), counts(4, 2), counts(4, 12)
    for kind in few:
        assert many[kind] - more[kind] == 10 * (more[kind] - few[kind]), kind
    assert more["decisions"] - few["decisions"] == 4


def test_work_grows_in_proportion_to_ranks(counts):
    """A rank's messages, replies and decisions are as many among 32 ranks as among 4.

    Its data is not: the operations on whole buffers (4 float32 for each rank) carry more of it, and no more than that.
    """
    few, many = counts(4, 3), counts(32, 3)
    for kind in ("messages", "replies", "decisions"):
        assert many[kind] / 32 == few[kind] / 4, kind
    # all_reduce, all_gather and the message carry a rank's own 16 bytes; reduce_scatter and all_to_all the whole.
    for size, seen in ((4, few), (32, many)):
        assert seen["data bytes"] == size * 3 * (3 * 16 + 2 * 16 * size)
