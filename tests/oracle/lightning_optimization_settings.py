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
}
