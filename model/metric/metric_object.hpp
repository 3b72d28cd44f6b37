#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/core/site.hpp"
#include "model/metric/definition.hpp"
#include "model/metric/gathered.hpp"
#include "model/program/task.hpp"

namespace lockstep {

/// How a rank's states reach the others: TorchMetrics' gather_all_tensors.
class StateExchange {
 public:
  virtual ~StateExchange() = default;
  /// A collective.
  virtual Task<Gathered> gather(Tensor own, SiteId site) = 0;
  /// A value that depends on what was gathered alone, so that it is the same on all ranks. `metric`
  /// tells it from others.
  virtual Value common_value(const Metric& metric, const std::vector<SharedValues>& gathered,
                             const std::function<Value()>& compute) = 0;
  virtual EmptyList empty_list() const = 0;
  /// Throws where a state in the host's memory cannot be sent.
  virtual void check_host_memory(SiteId site) = 0;
};

/// Places of the exchanges of one metric, by state. Outlives the call that gets it.
using StateSites = std::vector<SiteId>;

/// One metric object of one rank: TorchMetrics' life cycle (metric.py). Update and forward
/// accumulate; compute exchanges states, unless a value is cached, and leaves the rank its own.
/// Errors: OperationError.
class MetricObject {
 public:
  /// The definition outlives the object.
  explicit MetricObject(const MetricDefinition& definition);

  const MetricDefinition& definition() const { return *definition_; }
  void update(const MetricInputs& inputs);
  /// Update, and the value of this batch alone: without exchange unless `dist_sync_on_step`.
  /// `exchange` is null where the run is not distributed. The inputs outlive the call.
  Task<Value> forward(const MetricInputs* inputs, StateExchange* exchange, const StateSites* sites);
  Task<Value> compute(StateExchange* exchange, const StateSites* sites);
  void reset();
  /// The inputs of the next update are in host memory, and so are the list entries made of them.
  void note_host_inputs() { holds_host_entries_ = true; }

  /// What the last forward gave, for a logger; nothing before, and nothing of a wrapper.
  const std::optional<Value>& batch_value() const { return batch_value_; }
  int64_t updates() const { return leader_ == nullptr ? updates_ : leader_->updates_; }
  const MetricState& state() const { return leader_ == nullptr ? state_ : leader_->state_; }

  /// From here on this object has the states of another (compute groups). The other outlives it.
  void follow(const MetricObject& leader);
  bool follows() const { return leader_ != nullptr; }
  /// The states that it follows have changed.
  void forget_value() { computed_.reset(); }

 private:
  Task<Value> value_of(MetricState state, StateExchange* exchange, const StateSites* sites);
  using GatheredStates = std::vector<std::vector<Gathered>>;
  Task<GatheredStates> gathered(MetricState own, StateExchange* exchange, const StateSites* sites);

  const MetricDefinition* definition_;
  MetricState state_;
  int64_t updates_ = 0;
  bool holds_host_entries_ = false;
  std::optional<Value> computed_;
  std::optional<Value> batch_value_;
  const MetricObject* leader_ = nullptr;
};

/// A metric or a collection as one rank holds it. After the first update, members with equal states
/// share those of the first of them (compute groups); each still exchanges them on its own.
class MetricInstance {
 public:
  explicit MetricInstance(const MetricDefinition& definition);
  // Members refer to each other.
  MetricInstance(const MetricInstance&) = delete;
  MetricInstance& operator=(const MetricInstance&) = delete;

  const MetricDefinition& definition() const { return *definition_; }
  /// One object, or the members in their order.
  std::vector<MetricObject>& objects() { return objects_; }
  const std::vector<MetricObject>& objects() const { return objects_; }
  void update(const MetricInputs& inputs);
  void reset();

 private:
  void form_groups();

  const MetricDefinition* definition_;
  std::vector<MetricObject> objects_;
  bool groups_formed_ = false;
};

}  // namespace lockstep
