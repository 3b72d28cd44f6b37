"""What is logged, gathered and decided."""

LOGS = {
    "log-defaults": """
trainer: {$two, max_epochs: 2}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 12, batch_size: 4}}
program:
  training_step: [{log: {name: train_loss, value: loss}}]
  on_train_batch_end: [{log: {name: after, value: batch_idx + rank}}]
  on_train_epoch_start: [{log: {name: began, value: epoch + 10 * rank}}]
  on_train_epoch_end: [{log: {name: ended, value: epoch + 10 * rank}}]
  validation_step: [{log: {name: val_loss, value: loss}}]
  on_validation_epoch_end: [{log: {name: validated, value: epoch + rank}}]
""",
    "progress-bar": """
trainer: {$two, max_epochs: 2, log_every_n_steps: 2}
data: {train: {samples: 24, batch_size: 4}, val: {samples: 16, batch_size: 4}}
program:
  training_step:
    - log: {name: a, value: batch_idx + rank, on_step: true, on_epoch: true, prog_bar: true}
    - log: {name: only_shown, value: batch_idx * 2.0, prog_bar: true, logger: false}
    - log: {name: only_written, value: batch_idx * 3.0}
    - log: {name: step, value: 100.0 + global_step}
  validation_step:
    - log: {name: b, value: batch_idx + rank, on_step: true, on_epoch: true, prog_bar: true}
    - log: {name: c, value: batch_idx + 1.0, prog_bar: true, sync_dist: true}
""",
    "forked-keys": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 16, batch_size: 4}}
program:
  training_step: [{log: {name: a, value: batch_idx + rank, on_step: true, on_epoch: true}}]
  validation_step: [{log: {name: b, value: batch_idx + rank, on_step: true, on_epoch: true}}]
""",
    "step-values-synchronised": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 4}}
program:
  training_step:
    - log: {name: mean, value: 2.0 * rank + batch_idx, on_step: true, sync_dist: true}
    - log: {name: most, value: 2.0 * rank, on_step: true, sync_dist: true, reduce_fx: max}
    - log: {name: both, value: 2.0 * rank, on_step: true, on_epoch: true, sync_dist: true}
""",
    "each-reduction": """
trainer: {$three, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 6, batch_size: 2}
  val: {samples: 18, batch_size: 3}
program:
  validation_step:
    - log: {name: mean, value: 4.0 * rank + batch_idx, sync_dist: true}
    - log: {name: sum, value: 4.0 * rank + batch_idx, sync_dist: true, reduce_fx: sum}
    - log: {name: min, value: 4.0 * rank + batch_idx, sync_dist: true, reduce_fx: min}
    - log: {name: max, value: 4.0 * rank + batch_idx, sync_dist: true, reduce_fx: max}
""",
    "reductions-of-each-rank-alone": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 12, batch_size: 2}}
program:
  validation_step:
    - log: {name: mean, value: 4.0 * rank + batch_idx}
    - log: {name: sum, value: 4.0 * rank + batch_idx, reduce_fx: sum}
    - log: {name: min, value: 4.0 * rank + batch_idx, reduce_fx: min}
    - log: {name: max, value: 4.0 * rank + batch_idx, reduce_fx: max}
""",
    "integer-floor": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {batches: 1, batch_size: 2}}
program:
  validation_step: [{log: {name: one, value: 1.0, sync_dist: true, batch_size: 9 + (rank == 0)}}]
""",
    "last-batch-weighted-by-its-size": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 4, batch_size: 2}
  val: {samples: 14, batch_size: 4, values: {score: sample}}
program:
  validation_step: [{log: {name: score, value: mean(score), sync_dist: true}}]
""",
    "rank-zero-only": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step:
    - if: is_global_zero
      then: [{log: {name: mine, value: 3.0, rank_zero_only: true}}]
    - log: {name: all, value: 1.0 + rank, sync_dist: true}
""",
    "rank-zero-only-overrides-sync": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step:
    - if: is_global_zero
      then: [{log: {name: mine, value: 3.0, rank_zero_only: true, sync_dist: true}}]
""",
    "keys-in-another-order": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 8, batch_size: 2}}
program:
  validation_step:
    - if: rank == 0
      then:
        - log: {name: a, value: 1.0, sync_dist: true, reduce_fx: sum}
        - log: {name: b, value: 10.0, sync_dist: true, reduce_fx: sum}
      else:
        - log: {name: b, value: 10.0, sync_dist: true, reduce_fx: sum}
        - log: {name: a, value: 1.0, sync_dist: true, reduce_fx: sum}
""",
    "key-of-one-rank-synchronised": """
process_group: {timeout: 4 s}
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step:
    - if: rank == 0
      then: [{log: {name: mine, value: 1.0, sync_dist: true, reduce_fx: sum}}]
""",
    "log-dict": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  training_step:
    - log_dict: {dictionary: {t1: loss, t2: 2.0 * rank}, on_step: true, on_epoch: true}
  validation_step:
    - log_dict: {dictionary: {v1: 1.0, v2: 3.0 * rank}, sync_dist: true}
""",
    "one-key-in-two-hooks": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  validation_step: [{log: {name: key, value: 1.0, sync_dist: true}}]
  on_validation_epoch_end: [{log: {name: key, value: 5.0, sync_dist: true}}]
""",
    "reduced-before-the-epoch-end-hook": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  training_step:
    - log: {name: t, value: 1.0 + rank, on_epoch: true, on_step: false, sync_dist: true}
  on_train_epoch_end:
    - all_gather: {tensor: "full(3, 1.0)", as: gathered}
    - log: {name: u, value: mean(gathered), sync_dist: true}
  validation_step: [{log: {name: a, value: 1.0 + rank, sync_dist: true}}]
  on_validation_epoch_end:
    - all_gather: {tensor: "full(2, 1.0 * rank)", as: gathered}
    - log: {name: b, value: mean(gathered)}
""",
    "callback-metrics-read-in-a-hook": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  training_step:
    - log: {name: t, value: 1.0 + rank, on_epoch: true, on_step: false, sync_dist: true}
  on_train_epoch_end:
    - let: {seen: "callback_metrics['t']"}
    - all_gather: {tensor: "full(3, 1.0)", as: gathered}
    - log: {name: again, value: seen + 1}
  validation_step: [{log: {name: a, value: 1.0 + rank, sync_dist: true}}]
  on_validation_epoch_end:
    - let: {seen: "callback_metrics['a']"}
    - log: {name: b, value: seen + 1}
""",
    "keys-in-another-order-in-the-second-epoch": """
trainer: {$two, max_epochs: 2, num_sanity_val_steps: 0}
data: {train: {samples: 4, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step:
    - if: epoch == 0 or rank == 1
      then: [{log: {name: a, value: 1.0, sync_dist: true, reduce_fx: sum}}]
    - log: {name: b, value: 10.0, sync_dist: true, reduce_fx: sum}
    - if: epoch == 1 and rank == 0
      then: [{log: {name: a, value: 1.0, sync_dist: true, reduce_fx: sum}}]
""",
    "step-values-read-in-a-hook": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  training_step: [{log: {name: t, value: 1.0 + batch_idx, on_step: true, on_epoch: true}}]
  on_train_batch_end:
    - let: {seen: "callback_metrics['t']"}
    - log: {name: doubled, value: 2 * seen}
""",
    "curve-logged": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 4, batch_size: 2}
  val: {samples: 8, batch_size: 2, values: {score: sample / 8, target: sample % 2}}
metrics: {curve: BinaryROC}
program:
  validation_step: [{update: curve}, {log: {name: roc, value: curve}}]
""",
    "accuracy-object": """
metrics: {accuracy: BinaryAccuracy}
trainer: {$two, max_epochs: 2}
data:
  train: {samples: 8, batch_size: 4}
  val:
    samples: 10
    batch_size: 2
    values:
      score: [0.9, 0.8, 0.2, 0.3, 0.6, 0.1, 0.7, 0.9, 0.4, 0.8]
      target: [1, 0, 0, 1, 1, 0, 1, 1, 0, 0]
program:
  validation_step:
    - update: accuracy
    - log: {name: val_accuracy, value: accuracy}
""",
    "metric-computed-by-hand": """
metrics: {accuracy: BinaryAccuracy}
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 8, batch_size: 4}
  val:
    samples: 8
    batch_size: 2
    values: {score: "0.25 + 0.5 * (sample % 3 == 0)", target: sample % 2}
program:
  validation_step: [{update: accuracy}]
  on_validation_epoch_end:
    - compute: {metric: accuracy, as: value}
    - log: {name: val_accuracy, value: value}
    - reset: accuracy
""",
    "gather-of-tensor-and-list": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 8, batch_size: 2}}
program:
  validation_step:
    - append: {self.kept: "full(2, 1.0 * rank + batch_idx)"}
  on_validation_epoch_end:
    - all_gather: {tensor: self.kept, as: gathered}
    - log: {name: mean, value: "mean(gathered[1])"}
    - all_gather: {tensor: concat(self.kept), as: whole}
    - log: {name: sum, value: sum(whole)}
""",
    "gather-with-gradients": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  training_step:
    - forward
    - all_gather: {tensor: loss, sync_grads: true, as: losses}
    - let: {loss: mean(losses)}
    - log: {name: common, value: loss, on_epoch: true}
""",
    "gather-with-gradients-of-unequal-parts": """
trainer: {$three, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  training_step:
    - forward
    - let: {scaled: (1 + rank) * loss}
    - all_gather: {tensor: scaled, sync_grads: true, as: losses}
    - let: {loss: "losses[rank] * losses[rank] / 2 + 3 * losses[0]"}
    - log: {name: common, value: loss, on_epoch: true}
""",
    "gather-with-gradients-of-a-list": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  training_step:
    - forward
    - all_gather: {tensor: "[loss, 0.5 * loss]", sync_grads: true, as: losses}
    - let: {loss: "mean(losses[0]) + sum(losses[1])"}
""",
    "loss-of-another-value": """
trainer: {$two, max_epochs: 1, accumulate_grad_batches: 2}
data: {train: {samples: 16, batch_size: 2}}
program:
  training_step:
    - forward
    - let: {loss: (3 + rank) * loss + abs(loss)}
""",
    "loss-without-gradients": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  training_step:
    - forward
    - all_gather: {tensor: loss, as: losses}
    - let: {loss: mean(losses)}
""",
    "loss-reduced-in-place": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 2}}
program:
  training_step:
    - forward
    - let: {shown: loss * 1.0}
    - all_reduce: {tensor: shown, op: sum}
    - let: {loss: shown * shown}
""",
    "decisions": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 16, batch_size: 2}}
program:
  on_train_batch_end:
    - reduce_boolean_decision: {value: rank == 0, all: true, as: everybody}
    - reduce_boolean_decision: {value: rank == 0, all: false, as: somebody}
    - if: somebody and not everybody and batch_idx == 1
      then: [{should_stop: true}]
""",
    "broadcast-and-reduce-by-hand": """
trainer: {$three, max_epochs: 1}
data: {train: {samples: 12, batch_size: 2}}
program:
  on_train_epoch_end:
    - let: {mine: "full(3, 1.0 * rank)", sum: "full(2, 1.0 + rank)"}
    - broadcast: {tensor: mine, src: 2}
    - all_reduce: {tensor: sum, op: sum}
    - log: {name: told, value: mean(mine)}
    - log: {name: total, value: mean(sum)}
    - barrier: world
""",
    "outputs-kept-by-hand": """
trainer: {$two, max_epochs: 2, num_sanity_val_steps: 0}
data:
  train: {samples: 8, batch_size: 4}
  val: {samples: 12, batch_size: 2, values: {score: sample}}
program:
  on_validation_epoch_start: [{let: {self.kept: "[]"}}]
  validation_step: [{append: {self.kept: mean(score)}}]
  on_validation_epoch_end:
    - let: {total: "full(1, 0.0)"}
    - repeat: len(self.kept)
      as: i
      do: [{let: {total: "total + self.kept[i]"}}]
    - all_reduce: {tensor: total, op: sum}
    - log: {name: total, value: sum(total)}
""",
    "no-values-on-one-loader": """
trainer: {$two, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 16, batch_size: 4}, val: {samples: 8, batch_size: 4}}
program:
  training_step:
    - if: batch_idx % 2 == 0
      then: [{log: {name: even, value: 1.0 + batch_idx, on_step: true, on_epoch: true}}]
""",
    "forked-key-read-at-the-end-of-an-epoch": """
trainer:
  {$two, max_epochs: 3, log_every_n_steps: 1,
   callbacks: [{EarlyStopping: {monitor: t, patience: 1}}]}
data: {train: {samples: 12, batch_size: 2}}
program:
  training_step:
    - log: {name: t, value: (2.0 - epoch) * batch_idx + epoch, on_step: true, on_epoch: true,
            sync_dist: true}
  on_train_epoch_end:
    - let: {seen: "callback_metrics['t']", of_step: "callback_metrics['t_step']"}
    - log: {name: again, value: seen + 10 * of_step}
""",
    "metrics-of-a-collection": """
metrics:
  both:
    MetricCollection: {metrics: [BinaryAccuracy, {BinaryFBetaScore: {beta: 2.0}}], prefix: val_}
trainer: {$two, max_epochs: 2}
data:
  train: {samples: 8, batch_size: 4}
  val:
    samples: 10
    batch_size: 2
    values:
      score: [0.9, 0.8, 0.2, 0.3, 0.6, 0.1, 0.7, 0.9, 0.4, 0.8]
      target: [1, 0, 0, 1, 1, 0, 1, 1, 0, 0]
program:
  validation_step:
    - update: both
    - log_dict: {dictionary: both}
""",
    "collection-of-batches-and-computed": """
metrics:
  both:
    MetricCollection: {metrics: [BinaryAccuracy, {BinaryFBetaScore: {beta: 2.0}}], prefix: val_}
trainer: {$two, max_epochs: 2}
data:
  train: {samples: 8, batch_size: 4}
  val:
    samples: 10
    batch_size: 2
    values:
      score: [0.9, 0.8, 0.2, 0.3, 0.6, 0.1, 0.7, 0.9, 0.4, 0.8]
      target: [1, 0, 0, 1, 1, 0, 1, 1, 0, 0]
program:
  validation_step:
    - update: {metric: both, as: of_batch}
    - if: batch_idx == 0
      then: [{log_dict: {dictionary: of_batch, on_step: true, on_epoch: false}}]
  on_validation_epoch_end:
    - compute: {metric: both, as: values}
    - log_dict: {dictionary: values, sync_dist: true}
    - reset: both
""",
    "metric-never-reset": """
metrics: {seen: SumMetric, error: MeanSquaredError}
trainer: {$two, max_epochs: 2}
data:
  train: {samples: 8, batch_size: 4}
  val: {samples: 12, batch_size: 2, values: {score: sample % 3 * 0.5, target: sample % 2 * 1.0}}
program:
  validation_step: [{update: seen}, {update: error}]
  on_validation_epoch_end:
    - compute: {metric: seen, as: seen_so_far}
    - compute: {metric: error, as: error_so_far}
    - log_dict: {dictionary: {seen: seen_so_far, error: error_so_far}}
""",
    "metrics-read-in-the-sanity-check": """
trainer: {$two, max_epochs: 2}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 12, batch_size: 2}}
program:
  validation_step: [{log: {name: v, value: 1.0 + batch_idx + rank, sync_dist: true}}]
  on_validation_epoch_end: [{let: {seen: "callback_metrics['v']"}}]
""",
    "average-over-gloo": """
trainer: {$two, max_epochs: 1}
data: {train: {samples: 8, batch_size: 4}, val: {samples: 12, batch_size: 2}}
program:
  validation_step:
    - let: {x: "full(2, 1.0 + rank)"}
    - all_reduce: {tensor: x, op: avg, as: y}
    - log: {name: v, value: mean(y)}
""",
    "plateau-by-hand": """
trainer: {$two, max_epochs: 3, num_sanity_val_steps: 0}
lr_scheduler: {ReduceLROnPlateau: {patience: 0, factor: 0.5}}
data: {train: {samples: 8, batch_size: 4}}
program:
  automatic_optimization: false
  training_step: [forward, {backward: loss}, optimizer_step, zero_grad, {log: {name: t, value: 4.0 + epoch, on_epoch: true}}]
  on_train_epoch_end: [{lr_scheduler_step: {metric: "callback_metrics['t_epoch']"}}]
""",
    "weighted-and-bare-means": """
metrics: {bare: MeanMetric, weighted: MeanMetric, most: MaxMetric}
trainer: {$two, max_epochs: 1}
data:
  train: {samples: 8, batch_size: 4}
  val:
    samples: 10
    batch_size: 4
    values: {x: [5.0, 1.0, 4.0, 2.0, 8.0, 6.0, 7.0, 3.0, 9.0, 0.5]}
program:
  validation_step:
    - update: {metric: bare, preds: mean(x)}
    - update: {metric: weighted, preds: mean(x), weight: batch_size}
    - update: {metric: most, preds: x, as: of_batch}
    - log: {name: bare, value: bare}
    - log: {name: weighted, value: weighted}
    - log: {name: most, value: most}
    - log: {name: of_batch, value: of_batch}
""",
}
