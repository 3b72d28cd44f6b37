// Pages of the codes of logged values.
#include "explain/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page metric_pages_table[] = {
    {"LS301", "an average that is not the value of all samples",
     R"page(
What   The logged value is a mean over batches and ranks, but the metric is not a mean over
       samples: F1, area under a curve, R2, a macro average, a root, a perplexity. All ranks show
       the same number, and it is not the value of all samples.
Seen   A metric that changes with the number of ranks and with the batch size.
Fix    Log the metric object, which exchanges its states and computes once. Or gather scores and
       targets on all ranks, and compute from them.
Judged With verify.single_device: compared with one device that takes each loader in one batch.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 16}
  val: {samples: 4, batch_size: 2, values: {score: [0.9, 0.1, 0.2, 0.8], target: [1, 1, 0, 1]}}
program:
  validation_step:
    - log: {name: val_f1, value: "binary_f1_score(score, target)", sync_dist: true}
)page"},
    {"LS302", "a value of one rank is logged as the global value",
     R"page(
What   A key is logged without sync_dist under a strategy with several processes, and the ranks
       have different values. Loggers write only rank 0's; the other samples do not count.
Beware Checkpoints, early stopping and schedulers that monitor it see a different value per rank.
Fix    sync_dist: true for a loss; a metric object for metrics that cannot be averaged (LS301).
Note   For training batches this is only a note: one rank's loss is usually enough to see.
Also   Ranks of a pipeline without a loss (loss_on_all_stages: false) log a placeholder: an error.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 16}, val: {samples: 16, values: {score: sample}}}
program:
  validation_step:
    - log: {name: val_score, value: mean(score)}
)page"},
    {"LS303", "reductions pair values of different keys",
     R"page(
What   At one place ranks reduce the values of different keys of `log` with sync_dist: the calls are
       otherwise equal, so they complete, and each rank gets a mixture. The same keys in a
       different order are LS103, a key that some ranks lack LS101 or LS102.
Seen   No error and no hang; keys that exist only on some ranks, with meaningless values.
Fix    Log the same keys in the same order on every rank; choose the value by the condition.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 16}, val: {samples: 16}}
program:
  validation_step:
    - if: rank == 0
      then: [{log: {name: precision, value: "full(1, 1.0)", sync_dist: true}}]
      else: [{log: {name: recall, value: "full(1, 0.5)", sync_dist: true}}]
)page"},
    {"LS307", "an average of integers loses its fraction",
     R"page(
What   From Lightning 2.0 on the epoch mean with sync_dist is (sum of values) / (mean over ranks of
       the number of samples), and that mean is an int64: its fraction is cut (issue 21838).
Seen   A value that is too large, by (samples / ranks) / floor(samples / ranks).
Fix    Let the ranks divide the samples, or log a MeanMetric object.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data: {train: {samples: 16}, val: {batches: 1}}
program:
  validation_step:
    - log: {name: one, value: 1.0, sync_dist: true, batch_size: 9 + is_global_zero}
)page"},
};

std::span<const Page> metric_pages() { return metric_pages_table; }

}  // namespace lockstep::cli
