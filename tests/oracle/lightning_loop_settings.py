"""Loops, hooks, samplers and ends."""

LOOPS = {
    "fit": """
trainer: {$two, max_epochs: 2}
data: {train: {samples: 16, batch_size: 4}}
""",
    "fit-on-one-process": """
trainer: {$one, max_epochs: 2}
data: {train: {samples: 12, batch_size: 4, shuffle: false}, val: {samples: 4, batch_size: 2}}
program:
  validation_step: [{log: {name: val_loss, value: loss}}]
""",
    "sanity-check": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 24, batch_size: 4}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "no-sanity-check": """
trainer: {$two, max_epochs: 2, num_sanity_val_steps: 0}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 12, batch_size: 4}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "whole-sanity-check": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: -1}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 24, batch_size: 4}}
program:
  validation_step: [{log: {name: number, value: batch_idx}}]
""",
    "validation-every-second-epoch": """
trainer: {$two, max_epochs: 4, check_val_every_n_epoch: 2}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step: [{log: {name: epoch_seen, value: epoch, sync_dist: true}}]
""",
    "validation-every-second-epoch-without-sanity-check": """
trainer: {$two, max_epochs: 3, check_val_every_n_epoch: 2, num_sanity_val_steps: 0}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step: [{log: {name: epoch_seen, value: epoch, sync_dist: true}}]
""",
    "two-validation-loaders-in-the-sanity-check-alone": """
trainer: {$two, max_epochs: 1, check_val_every_n_epoch: 2}
data:
  train: {samples: 4, batch_size: 2}
  val: [{samples: 8, batch_size: 4}, {samples: 12, batch_size: 2}]
program:
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
  on_validation_epoch_end: [{barrier: world}, {log: {name: ended, value: 1.0, sync_dist: true}}]
""",
    "nothing-to-train": """
trainer: {$two, max_epochs: 1, limit_train_batches: 0}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
""",
    "no-epochs": """
trainer: {$two, max_epochs: 0}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
""",
    "validation-every-three-batches": """
trainer: {$two, max_epochs: 2, num_sanity_val_steps: 0, val_check_interval: 3}
data: {train: {samples: 32, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step: [{log: {name: step_seen, value: global_step, sync_dist: true}}]
""",
    "validation-at-a-quarter": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0, val_check_interval: 0.25}
data: {train: {samples: 32, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  training_step: [{log: {name: train_loss, value: loss, on_step: true, on_epoch: true}}]
  validation_step: [{log: {name: step_seen, value: global_step, sync_dist: true}}]
""",
    "limits-as-numbers": """
trainer: {$two, max_epochs: 2, limit_train_batches: 2, limit_val_batches: 1}
data: {train: {samples: 32, batch_size: 2}, val: {samples: 16, batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "limits-as-parts": """
trainer: {$two, max_epochs: 1, limit_train_batches: 0.5, limit_val_batches: 0.5}
data: {train: {samples: 24, batch_size: 2}, val: {samples: 24, batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "no-validation-batches": """
trainer: {$two, max_epochs: 1, limit_val_batches: 0}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 16, batch_size: 4}}
program:
  validation_step: [{log: {name: count, value: 1.0}}]
""",
    "max-steps": """
trainer: {$two, max_steps: 5}
data: {train: {samples: 24, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  training_step: [{log: {name: step_seen, value: global_step}}]
  validation_step: [{log: {name: validated_at, value: global_step}}]
""",
    "max-steps-in-the-second-epoch-with-validation-within": """
trainer: {$two, max_steps: 4, max_epochs: 3, val_check_interval: 2}
data: {train: {samples: 12, batch_size: 2}, val: {samples: 8, batch_size: 4}}
program:
  validation_step: [{log: {name: validated_at, value: global_step}}]
""",
    "should-stop-after-min-epochs": """
trainer: {$two, max_epochs: 4, min_epochs: 2}
data: {train: {samples: 12, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  on_train_batch_end:
    - if: batch_idx == 0
      then: [{should_stop: true}]
  validation_step: [{log: {name: validated_at, value: global_step}}]
""",
    "should-stop-after-min-steps": """
trainer: {$two, max_epochs: 4, min_steps: 5}
data: {train: {samples: 12, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  on_train_batch_end: [{should_stop: true}]
  validation_step: [{log: {name: validated_at, value: global_step}}]
""",
    "should-stop-at-once": """
trainer: {$two, max_epochs: 4}
data: {train: {samples: 24, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  on_train_batch_end:
    - if: global_step == 2
      then: [{should_stop: true}]
""",
    "fast-dev-run": """
trainer: {$two, max_epochs: 3, fast_dev_run: true}
data: {train: {samples: 16, batch_size: 2}, val: {samples: 16, batch_size: 2}}
program:
  training_step: [{log: {name: train_loss, value: loss}}]
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
""",
    "fast-dev-run-of-three": """
trainer: {$two, max_epochs: 3, fast_dev_run: 3}
data: {train: {samples: 16, batch_size: 2}, val: {samples: 16, batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum}}]
""",
    "test-alone": """
trainer: {$two}
data: {test: {samples: 10, batch_size: 2}}
program:
  main: [test]
  test_step: [{log: {name: test_loss, value: loss, sync_dist: true}}]
  on_test_epoch_end: [{log: {name: ended, value: 1.0}}]
""",
    "validate-alone": """
trainer: {$two}
data: {val: {samples: 10, batch_size: 2}}
program:
  main: [validate]
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
""",
    "predict-alone-of-unequal-parts": """
trainer: {$two}
data: {predict: {samples: 9, batch_size: 2}}
program:
  main: [predict]
  predict_step: []
""",
    "fit-then-validate-then-test": """
trainer: {$two, max_epochs: 1}
data:
  train: {samples: 8, batch_size: 4}
  val: {samples: 8, batch_size: 4}
  test: {samples: 12, batch_size: 4}
program:
  main: [fit, validate, test]
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
  test_step: [{log: {name: test_loss, value: loss, sync_dist: true}}]
""",
    "two-validation-loaders": """
trainer: {$two, max_epochs: 1}
data:
  train: {samples: 8, batch_size: 4}
  val: [{samples: 8, batch_size: 4}, {samples: 12, batch_size: 2}]
program:
  validation_step:
    - log: {name: val_loss, value: loss, sync_dist: true}
    - log: {name: number, value: dataloader_idx + 1.0}
  on_validation_epoch_end: [{barrier: world}, {log: {name: ended, value: 1.0, sync_dist: true}}]
""",
    "two-validation-loaders-of-one-key": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 8, batch_size: 4}
  val: [{samples: 8, batch_size: 4}, {samples: 12, batch_size: 2}]
program:
  validation_step:
    - if: dataloader_idx == 0
      then: [{log: {name: first, value: 1.0, sync_dist: true, add_dataloader_idx: false}}]
      else: [{log: {name: second, value: 2.0, sync_dist: true, add_dataloader_idx: false}}]
""",
    "padded-samples": """
trainer: {$three, max_epochs: 2}
data: {train: {samples: 10, batch_size: 2}, val: {samples: 7, batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "own-distributed-sampler": """
trainer: {$three, max_epochs: 2}
data:
  train: {samples: 10, batch_size: 2, sampler: distributed, shuffle: false, drop_last: true}
""",
    "no-sampler-injected": """
trainer: {$two, max_epochs: 1, use_distributed_sampler: false}
data: {train: {samples: 6, batch_size: 2, shuffle: false}, val: {samples: 5, batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "iterable-data": """
trainer: {$two, max_epochs: 2}
data:
  train: {samples: 12, batch_size: 2, iterable: true, sampler: unrepeated}
  val: {samples: 6, batch_size: 2, iterable: true}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "limited-iterable-data": """
trainer: {$two, max_epochs: 2, limit_train_batches: 2, val_check_interval: 1}
data:
  train: {samples: 20, batch_size: 2, iterable: true}
  val: {samples: 6, batch_size: 2}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "uneven-train-batches": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {batches: 2 + (rank == 0), batch_size: 2}}
""",
    "uneven-validation-batches": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 8, batch_size: 2}, val: {batches: 2 + (rank == 0), batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
""",
    "uneven-iterable-data": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {batches: 3 - (rank == 0), batch_size: 2, iterable: true}}
""",
    "signal-to-one-rank-within-a-batch": """
process_group: {timeout: 4 s}
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 24, batch_size: 2}}
faults: [{signal: {rank: 0, name: SIGTERM, at: step 2, hook: on_train_batch_start}}]
""",
    "signal-to-rank-zero-after-a-batch": """
process_group: {timeout: 4 s}
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 24, batch_size: 2}}
faults: [{signal: {rank: 0, name: SIGTERM, at: step 1, hook: on_train_batch_end}}]
""",
    "signal-to-the-last-rank-after-a-batch": """
process_group: {timeout: 4 s}
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 24, batch_size: 2}}
faults: [{signal: {rank: 1, name: SIGTERM, at: step 1, hook: on_train_batch_end}}]
""",
    "signal-to-all-within-a-batch": """
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 24, batch_size: 2}}
faults: [{signal: {ranks: all, name: SIGTERM, at: step 2, hook: on_train_batch_start}}]
""",
    "signal-to-all-within-validation": """
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 2}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 12, batch_size: 2}}
program:
  validation_step: [{log: {name: count, value: 1.0, reduce_fx: sum, sync_dist: true}}]
faults: [{signal: {ranks: all, name: SIGTERM, at: epoch 1, hook: on_validation_batch_start}}]
""",
    "signal-to-all-in-the-last-batch": """
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 2}
data: {train: {samples: 8, batch_size: 2}}
program:
  training_step: [forward, {log: {name: loss, value: loss, on_epoch: true, sync_dist: true}}]
faults: [{signal: {ranks: all, name: SIGTERM, at: step 1, hook: on_train_batch_start}}]
""",
    "signal-to-all-at-the-end-of-training": """
launcher: {torchrun: {nproc_per_node: 2}}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
faults: [{signal: {ranks: all, name: SIGTERM, at: epoch 0, hook: on_train_end}}]
""",
    "exception-on-one-rank": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  on_train_batch_start:
    - if: rank == 1 and batch_idx == 2
      then: [{raise: out of luck}]
""",
    "exception-on-all-ranks": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  training_step:
    - if: batch_idx == 1
      then: [{raise: out of luck}]
""",
    "prepare-data": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 4, batch_size: 2}}
program:
  prepare_data: [{let: {self.prepared: 1}}]
  setup: [{let: {self.ready: 1}}]
""",
    "buffers-of-batch-norm": """
model: {input: [4], layers: [{Linear: [4, 2]}, {BatchNorm1d: 2}, {Linear: [2, 2]}], loss: MSELoss}
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
""",
}
