#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/render/accuracy/accuracy_view.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view page_head =
    R"(# `lockstep accuracy`: how far predictions are from published throughputs

(Written by `lockstep accuracy data/throughput --write docs/accuracy.md`.)

```
lockstep accuracy data/throughput
lockstep accuracy data/throughput --plot accuracy.svg
lockstep accuracy data/throughput --scenario nanogpt_llmc-001
lockstep accuracy data/throughput --format csv
```

Every row of [data/throughput](../data/throughput) that a scenario can express is simulated, and
its throughput compared with the published one. `--scenario` prints the scenario that stands for a
row. Each file says its source in its first lines.

Kernels are priced by [versions.kernels](kernels.md), with the profile that stands for the framework
of a row, and constants fitted without any row of its file: what is judged took no part in the fit.
`--software none` judges data sheets alone.

An error is |predicted / measured throughput - 1|; the ratio is predicted / measured (geometric
mean), so more than 1 is too fast. The last column is measured / predicted time, from 5 to 95 % of
the rows.

What rows do not state is taken from the publication of the network or from the script that the
source names (the data file then says which), or makes them inexpressible. Differences between a row
and its scenario:

- BERT's head over the vocabulary, which computes masked positions alone, is a head over all
  positions with as many FLOPs. LAMB is AdamW. Limits of device memory are lifted.
- Tensor, pipeline and context parallelism of Megatron-LM and of what is built on it (NeMo,
  Megatron-Bridge) are a `MegatronStrategy`, with sequence parallelism where the row says so.
  Those of other frameworks are a `PipelineStrategy` with `parallelize_plan: auto`: 1F1B,
  interleaved where a rank has several stages, GPipe where there are fewer micro-batches than
  stages; parameters are stored in 16 bits, norms are divided by positions, and the loss gathers
  the logits. Replicas average gradients as ddp does, also where the source divides the optimizer
  among them.
- Where ranks compute layers together, GPT and BERT have attention in four projections with rotary
  positions and without biases and dropout, and a last layer with a weight of its own. The
  vocabulary is padded as in Megatron-LM.
- Transformer-XL's attention over a memory is attention over the segment with as many FLOPs and
  scores. Of an adaptive softmax, only the frequent words are computed. On several GPUs of Lambda's
  tables its processes train apart (the scripts do not ask for DDP), so one of them is predicted.
- Images are `channels_last` where the row or the script of its source says so.
- SSD300 has its detection heads in a row, with the loss over classes alone.
- FLOP/s of Megatron-LM's papers become a throughput by their formula.
- A row is left out where simulating it would take more than a few seconds, and where the notes of
  its file doubt the figure ("doubted:", with what contradicts it: the peak of the GPU, another
  figure of the same authors, another iteration of the same run). No such note follows from a
  prediction.
)";

constexpr std::string_view page_columns = R"(
## Measurements of your own

A CSV file with one row for each measurement. `row_id` and `gpu` are required. Text: `row_id
system gpu interconnect framework strategy model precision activation_checkpointing other_metric
other_value value_origin source_ref notes`. Whole numbers: `gpus nodes dp tp pp cp ep layers
hidden heads kv_heads ffn micro_batch grad_accum global_batch`. Numbers: `samples_per_s step_s
tokens_per_s tokens_per_s_per_gpu tflops_per_gpu peak_memory_GB mfu_pct hfu_pct`. Numbers or
words: `params seq_len vocab vpp`. Other columns, and cells that are not numbers, are errors with
file, line and column. Lines that begin with `#` are comments. A row needs a batch size
(`micro_batch`, or `global_batch`) and a throughput or step time.
)";

std::string table_row(const ErrorSummary& summary) {
  return fmt::format(
      "| {} | {} | {:.2f} | {:.0f} % | {:.0f} % | {:.0f} % | {:.0f} % | {} | {:.2f} to {:.2f} |\n",
      summary.name, summary.rows, summary.ratio, summary.mean * 100, summary.median * 100,
      summary.ninetieth * 100, summary.worst * 100, summary.worst_row, summary.low, summary.high);
}

std::string worst_rows(const AccuracyView& view) {
  std::vector<const PredictedRow*> rows;
  for (const PredictedRow& row : view.rows) {
    if (row.predicted) {
      rows.push_back(&row);
    }
  }
  std::ranges::stable_sort(rows, [](const PredictedRow* a, const PredictedRow* b) {
    return std::abs(std::log(*a->predicted / a->measured)) >
           std::abs(std::log(*b->predicted / b->measured));
  });
  constexpr size_t shown = 20;
  std::string text =
      "\n## Worst rows\n\n| row | what | measured | predicted | error "
      "|\n|---|---|---:|---:|---:|\n";
  for (size_t at = 0; at < std::min(shown, rows.size()); ++at) {
    const PredictedRow& row = *rows[at];
    text += fmt::format("| {} | {}, {} x {}, {}, {}, {} | {:.4g} | {:.4g} | {:+.0f} % |\n", row.id,
                        row.group.family, row.group.gpus, row.group.gpu, row.group.strategy,
                        row.group.software, row.group.precision, row.measured, *row.predicted,
                        row.error() * 100);
  }
  return text;
}

std::string scaling_text(const AccuracyView& view) {
  std::string text;
  for (const bool in_node : {true, false}) {
    const ScalingSummary scaling = scaling_summary(view, in_node);
    text += fmt::format("- {}: {:.1f} points off on average, {} pairs\n",
                        in_node ? "in a node" : "across nodes", scaling.points, scaling.pairs);
  }
  return text;
}

}  // namespace

std::string accuracy_page(const AccuracyView& view) {
  const ErrorSummary all = summary_of_all(view);
  const DataParallelCoverage coverage = data_parallel_coverage(view);
  std::string text(page_head);
  text += fmt::format(
      "\n{} of {} rows are predicted; on one GPU, under dp or ddp: {} of {} ({:.0f} %).\n",
      all.rows, view.rows.size(), coverage.predicted, coverage.rows,
      100.0 * static_cast<double>(coverage.predicted) /
          static_cast<double>(std::max<size_t>(1, coverage.rows)));
  const auto head = [](const std::string& title) {
    return fmt::format(
        "\n| {} | rows | ratio | mean | median | 90th percentile | worst | worst row | time |\n"
        "|---|---:|---:|---:|---:|---:|---:|---|---|\n",
        title);
  };
  text += "\n## Errors\n" + head("") + (all.rows > 0 ? table_row(all) : "");
  for (const AccuracyGrouping& grouping : accuracy_groupings()) {
    text += head(grouping.title);
    for (const ErrorSummary& summary : summaries_by(view.rows, grouping.name_of)) {
      text += table_row(summary);
    }
  }
  text +=
      "\n## Scaling efficiency\n\nThroughput per GPU of a row divided by that of the same training "
      "on one GPU:\n\n" +
      scaling_text(view);
  text += worst_rows(view);
  text +=
      "\n## Rows without a prediction\n\n| rows | of these one GPU, dp or ddp | why "
      "|\n|---:|---:|---|"
      "\n";
  for (const MissingRows& missing : missing_rows(view.rows)) {
    text += fmt::format("| {} | {} | {} |\n", missing.rows, missing.data_parallel, missing.why);
  }
  return text + std::string(page_columns);
}

}  // namespace lockstep::cli
