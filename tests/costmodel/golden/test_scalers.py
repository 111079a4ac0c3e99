"""Defaults of loss scalers as their sources set them."""

from __future__ import annotations

from kit.costmodel import scalers


def test_torch() -> None:
    """torch.amp.GradScaler."""
    rules = scalers.rules_of("torch")
    assert (rules.initial_scale, rules.growth_factor, rules.backoff_factor) == (65536.0, 2.0, 0.5)
    assert (rules.growth_interval, rules.hysteresis) == (2000, 1)


def test_deepspeed() -> None:
    """DeepSpeed's fp16 section: initial_scale_power 16, loss_scale_window 1000, hysteresis 2, min_loss_scale 1."""
    rules = scalers.rules_of("deepspeed")
    assert (rules.initial_scale, rules.growth_interval, rules.hysteresis) == (2.0**16, 1000, 2)
    assert (rules.min_scale, rules.growth_factor, rules.has_consecutive_hysteresis) == (1, 2.0, False)


def test_megatron() -> None:
    """Megatron-LM, arguments.py: initial 2^32, window 1000, hysteresis 2, at least 1."""
    rules = scalers.rules_of("megatron")
    assert (rules.initial_scale, rules.min_scale) == (4294967296, 1.0)
    assert (rules.growth_interval, rules.hysteresis) == (1000, 2)
    assert (rules.growth_factor, rules.backoff_factor) == (2.0, 0.5)


def test_deepspeed_halves_with_the_last_overflow_that_is_forgiven() -> None:
    assert scalers.after("deepspeed", "x").scale == 2**16
    assert scalers.after("deepspeed", "x x").scale == 2**15
    assert scalers.after("deepspeed", "x . x").scale == 2**15
    assert scalers.after("deepspeed", "x . x", consecutive_hysteresis=True).scale == 2**16


def test_deepspeed_without_zero_grows_a_step_later() -> None:
    """fused_optimizer.py: (iteration - last overflow - 1) a multiple of the window and above 0."""
    assert scalers.scale_after("deepspeed_fused", clean_before=1000) == 2**16
    assert scalers.scale_after("deepspeed_fused", clean_before=1001) == 2**17
    assert scalers.scale_after("deepspeed", clean_before=999) == 2**16
    assert scalers.scale_after("deepspeed", clean_before=1000) == 2**17


def test_megatron_s_hysteresis_comes_back_with_growth_only() -> None:
    """core/optimizer/grad_scaler.py: once used up, every further overflow halves."""
    assert scalers.after("megatron", "x").scale == 2**32
    assert scalers.after("megatron", "x 999*. x").scale == 2**31
    assert scalers.after("megatron", "x 999*. x x").scale == 2**30
    assert scalers.after("megatron", "x 1000*. x").scale == 2**33
    assert scalers.after("megatron", "x 1000*. x x").scale == 2**32
