#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/expression/value.hpp"

namespace lockstep {

/// How the states of all ranks become one (TorchMetrics' `dist_reduce_fx`): over the stacked
/// tensors of the ranks, or by joining lists. `none` keeps the stack, or the list.
enum class StateReduction : uint8_t { sum, mean, max, min, cat, none };
std::string_view name_of(StateReduction reduction);

/// One state as TorchMetrics' `add_state` declares it.
struct MetricStateSpec {
  std::string name;
  StateReduction reduction = StateReduction::sum;
  bool is_list = false;  ///< starts empty; otherwise `initial`
  Tensor initial{};
};

/// One tensor, or the entries of a list.
using StateValue = std::vector<Tensor>;
/// In the order of the declarations.
using MetricState = std::vector<StateValue>;

/// Inputs of one update; null if the metric does not take one.
struct MetricInputs {
  const Tensor* predictions = nullptr;  ///< `preds`; of MeanMetric and the like the value
  const Tensor* target = nullptr;
  const Tensor* indexes = nullptr;  ///< the query of each prediction
  const Tensor* weight = nullptr;
};

/// Which inputs a metric takes: predictions and target, one value (and a weight), or predictions
/// and target of queries.
enum class MetricInputKind : uint8_t { predictions, value, queries };

/// The formulas of one metric with its arguments; holds no state, so ranks may share it. Counts are
/// int64, sums fp32. `update` and `compute` throw OperationError for what TorchMetrics raises on.
class Metric {
 public:
  virtual ~Metric() = default;

  const std::vector<MetricStateSpec>& states() const { return states_; }
  MetricState initial_state() const;

  virtual MetricInputKind input_kind() const { return MetricInputKind::predictions; }
  /// `forward` then updates twice instead of merging the state of the batch.
  virtual bool full_state_update() const { return false; }
  virtual void update(const MetricInputs& inputs, MetricState& state) const = 0;
  /// Computes the metric from a state after its exchange: of one rank, or as `merged` returned it.
  virtual Tensor compute(const MetricState& state) const = 0;
  /// Like compute; a list of tensors, or of lists of them, where TorchMetrics returns a tuple.
  virtual Value value(const MetricState& state) const { return Value(compute(state)); }

  /// What other ranks are sent and `compute` takes: the states themselves, or what the window of a
  /// wrapper adds up to.
  virtual const std::vector<MetricStateSpec>& exchanged_states() const { return states_; }
  virtual MetricState exchanged(MetricState own) const { return own; }
  /// A WrapperMetric: it caches no value and leaves none of a batch to loggers.
  virtual bool is_wrapper() const { return false; }

 protected:
  explicit Metric(std::vector<MetricStateSpec> states) : states_(std::move(states)) {}

 private:
  std::vector<MetricStateSpec> states_;
};

/// Placeholder that a rank sends for an empty list that is joined (TorchMetrics `_sync_dist`):
/// a placeholder of shape [0] and type fp32 from torch 2.1 on; before, nothing.
enum class EmptyList : uint8_t { placeholder, nothing };
/// A metric whose value is a list, so that it has no single tensor.
class MetricOfSeveral : public Metric {
 public:
  Tensor compute(const MetricState& state) const final;
  Value value(const MetricState& state) const override = 0;

 protected:
  using Metric::Metric;
};

/// What one state sends to the other ranks: a list that is to be joined goes as one tensor.
StateValue to_exchange(const MetricStateSpec& spec, const StateValue& state,
                       EmptyList empty = EmptyList::placeholder);
/// One state out of what each exchange gave: `gathered[k]` holds the k-th tensor of every rank.
StateValue merged(const MetricStateSpec& spec, const std::vector<std::vector<Tensor>>& gathered);
/// All states of all ranks become one. Lists without a reduction have equally many entries.
MetricState merged(const Metric& metric, const std::vector<MetricState>& ranks);

/// Merges the state before a batch with that of the batch, as `forward` does (`_reduce_states`);
/// `updates` counts the batch.
void merge_batch(const Metric& metric, MetricState before, int64_t updates, MetricState& batch);

/// Entries of a list state as one tensor; [0] of fp32 where there are none. An entry of shape []
/// counts as [1].
Tensor joined(const StateValue& list);
/// The same; throws OperationError where there is no entry, as TorchMetrics' dim_zero_cat.
Tensor joined_samples(const StateValue& list);

// Tensors as metrics use them.
Tensor zeros(DType dtype, std::vector<int64_t> shape);
Tensor scalar(double value, DType dtype = DType::fp32);
/// state += more, in the type of the state.
void add_to(Tensor& state, const Tensor& more);
/// fp32 of these numbers.
Tensor floats(std::vector<int64_t> shape, const std::vector<float>& numbers);
void check_equal_shapes(const Tensor& predictions, const Tensor& target);
/// An fp32 or int64 element of a state as fp32.
float single(const StateValue& state, int64_t index = 0);

}  // namespace lockstep
