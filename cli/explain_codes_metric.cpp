// Pages of the codes of logged values.
#include "cli/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page metric_pages_table[] = {
    {"LS301", "an average of values that cannot be averaged",
     R"page(
What   A key is logged as the mean over batches and ranks of a metric that is no mean over samples:
       F1, an area under a curve, R2, a macro average, a root, a perplexity. All ranks show the
       same number, and it is not that of all samples.
Seen   A metric that changes with the number of ranks and with the batch size.
Fix    Log the metric object; it exchanges its states and computes once. Or gather scores and
       targets on all ranks, and compute from them.
Judged With verify.single_device: against one device that takes each loader in one batch.
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
    {"LS302", "a value of one rank is logged as if it were the whole",
     R"page(
What   A key is logged without sync_dist under a strategy with several processes, and the ranks
       have different values. Loggers write rank 0's: the other samples do not count.
Beware Checkpoints, early stopping and schedulers that monitor it see another number on each rank.
Fix    sync_dist: true for a loss; a metric object for what cannot be averaged (LS301).
Note   Of training batches it is a note: a sample of the loss is what most want to see.
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
       alike in all else, so they complete, and each rank gets a mixture. The same keys in another
       order are LS103, a key that some ranks lack LS101 or LS102.
Seen   No error and no hang; keys that exist on some ranks only, with values of nothing.
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
