#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/core/units.hpp"
#include "model/expression/expression.hpp"
#include "model/scenario/placed.hpp"
#include "model/scenario/sample_table.hpp"
#include "model/scenario/tensor_values.hpp"

namespace lockstep {

/// `auto` is what Lightning inserts.
enum class SamplerKind : uint8_t { automatic, distributed, unrepeated, none };

/// One column of the per-sample values: a list with one entry per sample, or an expression in which
/// `sample` is the index.
struct Column {
  std::string name;
  Expression expression;
  SourcePlace place{};
};

struct ColumnValues {
  Given<std::string> csv;  ///< path, relative to the scenario file; not together with `columns`
  std::vector<Column> columns;
  std::shared_ptr<const SampleTable> table{};  ///< what the file holds
  SourcePlace place{};
};

/// One data loader; what is absent comes from `DataSpec::common`, then from `with_defaults`.
struct LoaderSpec {
  Given<int64_t> samples;     ///< in the whole data set
  Given<int64_t> tokens;      ///< in the whole data set; divided by `seq_len`
  Given<Expression> batches;  ///< of each rank; not together with `samples` or `tokens`
  Given<int64_t> batch_size;
  Given<Expression> batch_size_of_rank;  ///< excludes `batch_size`
  Given<bool> shuffle;
  Given<bool> drop_last;
  Given<bool> pin_memory;
  Given<bool> persistent_workers;
  Given<int64_t> num_workers;
  Given<int64_t> prefetch_factor;
  Given<bool> iterable;
  Given<SamplerKind> sampler;
  Given<bool> sampler_drop_last;
  Given<bool> set_epoch;
  Given<Time> sample_time;
  Given<Bytes> sample_size;
  std::optional<TensorValues> inputs;   ///< of the model, a row for each sample
  std::optional<TensorValues> targets;  ///< of the loss, a row for each sample
  std::optional<ColumnValues> values;
  SourcePlace place{};
};

struct DataSpec {
  LoaderSpec common;  ///< keys directly under `data`
  std::vector<LoaderSpec> train;
  std::vector<LoaderSpec> val;
  std::vector<LoaderSpec> test;
  std::vector<LoaderSpec> predict;
  SourcePlace place{};
};

}  // namespace lockstep
