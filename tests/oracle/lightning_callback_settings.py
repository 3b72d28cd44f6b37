"""Callbacks and schedulers. What is monitored is a table over epochs."""

DATA = """
data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}
"""
PLAIN = "accelerator: cpu, strategy: ddp, devices: 2"


def monitored(values, sync=True):
    """`v` has the values of these expressions of rank, epoch by epoch."""
    arguments = f"name: v, value: 'self.table[epoch]', sync_dist: {'true' if sync else 'false'}"
    return f"""{DATA}program:
  on_validation_epoch_start:
    - let: {{self.table: "{values}"}}
  validation_step: [{{log: {{{arguments}}}}}]
"""


CALLBACKS = {
    "early-stopping": """
trainer:
  {$two, max_epochs: 6, num_sanity_val_steps: 0,
   callbacks: [{EarlyStopping: {monitor: v, patience: 2}}]}
""" + monitored("[4.0, 3.0, 3.0, 3.5, 1.0, 0.0]"),
    "early-stopping-of-a-maximum-with-min-delta": """
trainer:
  {$two, max_epochs: 6,
   callbacks: [{EarlyStopping: {monitor: v, patience: 1, min_delta: 0.5, mode: max}}]}
""" + monitored("[1.0, 2.0, 2.25, 4.0, 5.0, 6.0]"),
    "early-stopping-on-unsynchronised-values": """
trainer:
  {$two, max_epochs: 5, callbacks: [{EarlyStopping: {monitor: v, patience: 1}}]}
""" + monitored("[4.0, 3.0 + 2 * rank, 2.0, 1.0, 0.5]", sync=False),
    "early-stopping-in-training-epochs": """
trainer: {$two, max_epochs: 5, callbacks: [{EarlyStopping: {monitor: t, patience: 1}}]}
data: {train: {samples: 8, batch_size: 2}}
program:
  on_train_epoch_end: [{log: {name: t, value: 1.0 * epoch, sync_dist: true}}]
""",
    "early-stopping-with-a-key-that-never-comes": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 2, callbacks: [{EarlyStopping: {monitor: nothing}}]}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step: [{log: {name: v, value: 1.0}}]
""",
    "early-stopping-below-a-threshold": """
trainer:
  {$two, max_epochs: 5, callbacks: [{EarlyStopping: {monitor: v, stopping_threshold: 2.5}}]}
""" + monitored("[4.0, 3.0, 2.0, 1.0, 0.5]"),
    "default-checkpoint": f"""
trainer: {{{PLAIN}, max_epochs: 2}}
data: {{train: {{samples: 8, batch_size: 2}}}}
""",
    "checkpoint-of-the-best-two": f"""
trainer:
  {{{PLAIN}, max_epochs: 5, callbacks: [{{ModelCheckpoint: {{monitor: v, save_top_k: 2}}}}]}}
""" + monitored("[4.0, 2.0, 3.0, 5.0, 1.0]"),
    "checkpoint-of-unsynchronised-values": f"""
trainer:
  {{{PLAIN}, max_epochs: 3, callbacks: [{{ModelCheckpoint: {{monitor: v, save_top_k: 1}}}}]}}
""" + monitored("[2.0 + rank, 3.0 - 2 * rank, 4.0]", sync=False),
    "checkpoint-with-last": f"""
trainer:
  {{{PLAIN}, max_epochs: 3,
   callbacks: [{{ModelCheckpoint: {{monitor: v, save_last: true, save_top_k: 1, mode: max}}}}]}}
""" + monitored("[1.0, 3.0, 2.0]"),
    "checkpoint-every-second-epoch": f"""
trainer:
  {{{PLAIN}, max_epochs: 4,
   callbacks: [{{ModelCheckpoint: {{every_n_epochs: 2, save_top_k: -1}}}}]}}
data: {{train: {{samples: 8, batch_size: 2}}}}
""",
    "plateau": """
trainer: {$two, max_epochs: 5}
lr_scheduler: {ReduceLROnPlateau: {monitor: v, patience: 0, factor: 0.5}}
""" + monitored("[4.0, 3.0, 3.5, 2.0, 2.5]"),
    "plateau-of-unsynchronised-values": """
trainer: {$two, max_epochs: 4}
lr_scheduler: {ReduceLROnPlateau: {monitor: v, patience: 0, factor: 0.5}}
""" + monitored("[4.0, 3.0 + 2 * rank, 2.0, 1.0]", sync=False),
    "step-scheduler": """
trainer: {$two, max_epochs: 4}
lr_scheduler: {StepLR: {step_size: 2, gamma: 0.5}}
data: {train: {samples: 8, batch_size: 2}}
""",
    "scheduler-of-each-step": """
trainer: {$two, max_epochs: 2, callbacks: [LearningRateMonitor]}
lr_scheduler: {ExponentialLR: {gamma: 0.5, interval: step, frequency: 2}}
data: {train: {samples: 16, batch_size: 2}}
""",
    "checkpoint-saved-by-hand": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  on_train_epoch_end: [save_checkpoint]
""",
}
