"""Accumulation, clipping and manual optimization."""

GAN = """
model:
  modules:
    generator: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}
    discriminator: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}
optimizer:
  - SGD: {name: g, module: generator, lr: 0.125}
  - SGD: {name: d, module: discriminator, lr: 0.25}
"""

OPTIMIZATION = {
    "accumulation-of-two-batches": """
trainer: {$two, max_epochs: 1, accumulate_grad_batches: 2}
data: {train: {samples: 24, batch_size: 2}}
program:
  training_step: [{log: {name: step_seen, value: global_step, on_step: true, on_epoch: true}}]
""",
    "accumulation-with-a-short-last-window": """
trainer: {$two, max_epochs: 2, accumulate_grad_batches: 3}
data: {train: {samples: 16, batch_size: 2}}
""",
    "accumulation-with-validation-within": """
trainer: {$two, max_epochs: 1, accumulate_grad_batches: 4, val_check_interval: 2}
data: {train: {samples: 24, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step: [{log: {name: validated_at, value: global_step}}]
""",
    "accumulation-up-to-max-steps": """
trainer: {$two, max_steps: 2, accumulate_grad_batches: 2}
data: {train: {samples: 32, batch_size: 2}}
""",
    "batch-skipped-by-all": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  training_step:
    - if: batch_idx == 1
      then: [return]
""",
    "batch-skipped-by-one-rank": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  training_step:
    - if: batch_idx == 1 and rank == 1
      then: [return]
""",
    "optimizer-step-replaced": """
trainer: {$two, max_epochs: 1, accumulate_grad_batches: 2}
data: {train: {samples: 24, batch_size: 2}}
program:
  training_step: [forward, {log: {name: train_loss, value: loss}}]
  optimizer_step:
    - {let: {before: global_step}}
    - optimizer_step
    - {assert: global_step == before}
    - {log: {name: stepped, value: 1.0 * batch_idx}}
""",
    "optimizer-step-on-every-second-batch": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  optimizer_step:
    - if: batch_idx % 2 == 0
      then: [optimizer_step]
      else: [optimizer_closure]
  configure_gradient_clipping: [{log: {name: clipped_at, value: 1.0 * batch_idx}}]
""",
    "optimizer-step-that-runs-no-closure": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  optimizer_step:
    - if: batch_idx == 0
      then: [optimizer_step]
""",
    "optimizer-step-on-one-rank-alone": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  optimizer_step:
    - if: rank == 0 or batch_idx == 0
      then: [optimizer_step]
""",
    "gradients-zeroed-every-second-batch": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  optimizer_zero_grad:
    - if: batch_idx % 2 == 0
      then: [zero_grad]
""",
    "clipping-replaced": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  configure_gradient_clipping:
    - if: batch_idx % 2 == 1
      then: [{clip_gradients: 0.25}]
""",
    "clipping-replaced-by-value": """
trainer: {$two, max_epochs: 1, gradient_clip_val: 0.125, gradient_clip_algorithm: value}
data: {train: {samples: 16, batch_size: 2}}
program:
  configure_gradient_clipping:
    - if: batch_idx > 0
      then: [{clip_gradients: {gradient_clip_algorithm: value}}]
""",
    "clipping-that-contradicts-the-trainer": """
trainer: {$two, max_epochs: 1, gradient_clip_val: 0.125}
data: {train: {samples: 16, batch_size: 2}}
program:
  configure_gradient_clipping: [{clip_gradients: 0.5}]
""",
    "clipped-by-hand": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  automatic_optimization: false
  training_step: [zero_grad, forward, {backward: loss}, {clip_gradients: 0.25}, optimizer_step]
""",
    "scheduler-stepped-by-hand": """
optimizer: {SGD: {lr: 0.5}}
lr_scheduler: {StepLR: {step_size: 1, gamma: 0.5}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - zero_grad
    - forward
    - backward: loss
    - optimizer_step
    - if: batch_idx == 1
      then: [lr_scheduler_step]
""",
    "scheduler-step-replaced": """
optimizer: {SGD: {lr: 0.5}}
lr_scheduler: {StepLR: {step_size: 1, gamma: 0.5}}
trainer: {$two, max_epochs: 4}
data: {train: {samples: 4, batch_size: 2}}
program:
  lr_scheduler_step:
    - if: epoch % 2 == 0
      then: [lr_scheduler_step]
""",
    "plateau-step-replaced": """
optimizer: {SGD: {lr: 0.5}}
lr_scheduler: {ReduceLROnPlateau: {monitor: train_loss, patience: 0, factor: 0.5}}
trainer: {$two, max_epochs: 4}
data: {train: {samples: 4, batch_size: 2}}
program:
  training_step: [{log: {name: train_loss, value: 1.0 + epoch, on_step: false, on_epoch: true, sync_dist: true}}]
  lr_scheduler_step: [{lr_scheduler_step: {metric: 0 - metric}}]
""",
    "one-process-skips-a-batch": """
trainer: {$one, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2, shuffle: false}}
program:
  training_step:
    - if: batch_idx == 1
      then: [return]
""",
    "validation-between-backward-and-step": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0, val_check_interval: 1}
data: {train: {samples: 16, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - backward: loss
    - if: batch_idx % 2 == 1
      then: [optimizer_step, zero_grad]
  validation_step: [{log: {name: val_loss, value: loss}}]
""",
    "validation-that-leaves-gradients": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0, val_check_interval: 1}
data: {train: {samples: 16, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - backward: loss
    - if: batch_idx % 2 == 1
      then: [optimizer_step, zero_grad]
  validation_step: [{log: {name: val_loss, value: loss}}]
  on_validation_model_zero_grad: [{let: {kept: 1}}]
""",
    "momentum-of-the-optimizer": """
optimizer: {SGD: {lr: 0.125, momentum: 0.5}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
""",
    "clipped-by-norm": """
trainer: {$two, max_epochs: 1, gradient_clip_val: 0.5}
data: {train: {samples: 8, batch_size: 2}}
""",
    "clipped-by-value": """
trainer: {$two, max_epochs: 1, gradient_clip_val: 0.125, gradient_clip_algorithm: value}
data: {train: {samples: 8, batch_size: 2}}
""",
    "clipped-in-windows": """
trainer: {$two, max_epochs: 1, gradient_clip_val: 0.5, accumulate_grad_batches: 2}
data: {train: {samples: 12, batch_size: 2}}
""",
    "manual-optimization": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - zero_grad
    - backward: loss
    - optimizer_step
    - log: {name: step_seen, value: global_step}
""",
    "manual-with-buffers": """
model: {input: [4], layers: [{Linear: [4, 2]}, {BatchNorm1d: 2}, {Linear: [2, 2]}], loss: MSELoss}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 24, batch_size: 4}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - zero_grad
    - backward: loss
    - optimizer_step
""",
    "manual-accumulation": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 24, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - backward: loss / 2
    - if: batch_idx % 2 == 1
      then: [optimizer_step, zero_grad]
""",
    "manual-without-sync": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - toggle_model:
        sync_grad: batch_idx % 2 == 1
        do: [forward, {backward: loss}]
    - if: batch_idx % 2 == 1
      then: [optimizer_step, zero_grad]
""",
    "manual-max-steps": """
trainer: {$two, max_steps: 3}
data: {train: {samples: 16, batch_size: 2}}
program:
  automatic_optimization: false
  training_step: [forward, zero_grad, {backward: loss}, optimizer_step]
""",
    "two-optimizers": GAN + """
trainer:
  accelerator: cpu
  strategy: ddp_find_unused_parameters_true
  devices: 2
  enable_checkpointing: false
  max_epochs: 1
data: {train: {samples: 8, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward: {module: generator}
    - zero_grad: g
    - backward: loss
    - optimizer_step: g
    - forward: {module: discriminator}
    - zero_grad: d
    - backward: loss
    - optimizer_step: d
""",
    "rates-of-two-optimizers": GAN + """
lr_scheduler: {ExponentialLR: {gamma: 0.5, optimizer: d}}
trainer:
  accelerator: cpu
  strategy: ddp_find_unused_parameters_true
  devices: 2
  enable_checkpointing: false
  max_epochs: 2
  callbacks: [{LearningRateMonitor: {log_momentum: true}}]
data: {train: {samples: 8, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward: {module: generator}
    - zero_grad: g
    - backward: loss
    - optimizer_step: g
    - forward: {module: discriminator}
    - zero_grad: d
    - backward: loss
    - optimizer_step: d
""",
    "two-optimizers-toggled": GAN + """
trainer:
  accelerator: cpu
  strategy: ddp_find_unused_parameters_true
  devices: 2
  enable_checkpointing: false
  max_epochs: 1
data: {train: {samples: 8, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - toggle_model:
        optimizer: g
        do:
          - forward: {module: generator}
          - backward: loss
          - optimizer_step: g
          - zero_grad: g
    - toggle_model:
        optimizer: d
        do:
          - forward: {module: discriminator}
          - backward: loss
          - optimizer_step: d
          - zero_grad: d
""",
    "two-optimizers-without-looking-for-unused": GAN + """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward: {module: generator}
    - backward: loss
    - optimizer_step: g
    - forward: {module: discriminator}
    - backward: loss
    - optimizer_step: d
""",
    "no-sync-that-ends-a-reduction": GAN + """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward: {module: generator}
    - backward: loss
    - no_sync:
        - forward: {module: discriminator}
        - backward: loss
    - optimizer_step: g
    - optimizer_step: d
    - zero_grad: g
    - zero_grad: d
""",
    "no-sync-after-a-reduction": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward
    - backward: loss
    - no_sync: [forward, {backward: loss}]
    - optimizer_step
    - zero_grad
""",
    "no-sync-that-reduces-again": GAN + """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward: {module: generator}
    - backward: loss
    - no_sync:
        - forward: {module: generator}
        - backward: loss
    - optimizer_step: g
    - zero_grad: g
""",
    "no-sync-in-parts": GAN + """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - no_sync:
        - forward: {module: generator}
        - backward: loss
    - forward: {module: discriminator}
    - backward: loss
    - no_sync:
        - forward: {module: generator}
        - backward: loss
    - no_sync:
        - forward: {module: discriminator}
        - backward: loss
    - optimizer_step: g
    - optimizer_step: d
    - zero_grad: g
    - zero_grad: d
""",
    "manual-static-graph": """
trainer:
  accelerator: cpu
  strategy: {DDPStrategy: {static_graph: true}}
  devices: 2
  enable_checkpointing: false
  max_epochs: 1
data: {train: {samples: 16, batch_size: 2}}
program:
  automatic_optimization: false
  training_step: [forward, zero_grad, {backward: loss}, optimizer_step]
""",
    "manual-static-graph-twice-a-step": GAN + """
process_group: {timeout: 4 s}
trainer:
  accelerator: cpu
  strategy: {DDPStrategy: {static_graph: true}}
  devices: 2
  enable_checkpointing: false
  max_epochs: 1
data: {train: {samples: 16, batch_size: 2}}
program:
  automatic_optimization: false
  training_step:
    - forward: {module: generator}
    - backward: loss
    - optimizer_step: g
    - forward: {module: discriminator}
    - backward: loss
    - optimizer_step: d
""",
    "plateau-through-two-fits": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
lr_scheduler: {ReduceLROnPlateau: {monitor: v, patience: 0, factor: 0.5}}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  main: [fit, fit]
  validation_step: [{log: {name: v, value: 4.0 + epoch, sync_dist: true}}]
""",
}


def batch_norm_in(precision):
    return f"""
model:
  input: [4]
  layers: [{{Linear: [4, 3]}}, {{BatchNorm1d: 3}}, {{Linear: [3, 2]}}]
  loss: MSELoss
trainer: {{$two, max_epochs: 1, num_sanity_val_steps: 0, precision: {precision}}}
data: {{train: {{samples: 16, batch_size: 4}}, val: {{samples: 8, batch_size: 4}}}}
program:
  training_step: [forward]
  validation_step: [forward]
"""


OPTIMIZATION.update({
    "batch-norm-in-double": batch_norm_in("64-true"),
    "batch-norm-in-half": batch_norm_in("16-true"),
    "batch-norm-in-bfloat": batch_norm_in("bf16-true"),
    "batch-norm-in-mixed": batch_norm_in("bf16-mixed"),
})
