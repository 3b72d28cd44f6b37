#include "model/metric/metric_object.hpp"
#include "model/metric/functional.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

namespace {

// torch.allclose with its defaults.
bool nearly_equal(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) {
    return false;
  }
  for (int64_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values.number(i);
    const double y = b.values.number(i);
    if (x != y && !(std::abs(x - y) <= 1e-8 + 1e-5 * std::abs(y))) {
      return false;
    }
  }
  return true;
}

// Lists are compared as far as the shorter goes, as TorchMetrics does.
bool have_equal_states(const MetricObject& a, const MetricObject& b) {
  const std::vector<MetricStateSpec>& of_a = a.definition().metric->states();
  const std::vector<MetricStateSpec>& of_b = b.definition().metric->states();
  if (of_a.size() != of_b.size()) {
    return false;
  }
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i].name != of_b[i].name || of_a[i].is_list != of_b[i].is_list) {
      return false;
    }
    const size_t entries = std::min(a.state()[i].size(), b.state()[i].size());
    for (size_t k = 0; k < entries; ++k) {
      if (!nearly_equal(a.state()[i][k], b.state()[i][k])) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

MetricObject::MetricObject(const MetricDefinition& definition)
    : definition_(&definition), state_(definition.metric->initial_state()) {}

void MetricObject::follow(const MetricObject& leader) {
  leader_ = &leader;
  state_ = definition_->metric->initial_state();
}

void MetricObject::update(const MetricInputs& inputs) {
  computed_.reset();
  ++updates_;
  definition_->metric->update(inputs, state_);
}

void MetricObject::reset() {
  state_ = definition_->metric->initial_state();
  updates_ = 0;
  holds_host_entries_ = false;
  computed_.reset();
  batch_value_.reset();
}

Task<MetricObject::GatheredStates> MetricObject::gathered(MetricState own, StateExchange* exchange,
                                                          const StateSites* sites) {
  GatheredStates result(own.size());
  const std::vector<MetricStateSpec>& specs = definition_->metric->exchanged_states();
  for (size_t i = 0; i < own.size(); ++i) {
    const SiteId site = sites->at(i);
    const bool on_host = definition_->compute_on_cpu || holds_host_entries_;
    if (on_host && specs[i].is_list && !own[i].empty()) {
      exchange->check_host_memory(site);
    }
    const StateValue parts = to_exchange(specs[i], own[i], exchange->empty_list());
    for (const Tensor& part : parts) {
      Gathered of_ranks = co_await exchange->gather(part, site);
      result[i].push_back(std::move(of_ranks));
    }
  }
  co_return result;
}

namespace {

Value value_of_gathered(const Metric& metric, const std::vector<std::vector<Gathered>>& gathered) {
  MetricState state;
  for (size_t i = 0; i < gathered.size(); ++i) {
    std::vector<std::vector<Tensor>> parts;
    for (const Gathered& each : gathered[i]) {
      parts.push_back(each.parts());
    }
    state.push_back(merged(metric.exchanged_states()[i], parts));
  }
  return squeezed(metric.value(state));
}

}  // namespace

Task<Value> MetricObject::value_of(MetricState state, StateExchange* exchange,
                                   const StateSites* sites) {
  const Metric& metric = *definition_->metric;
  state = metric.exchanged(std::move(state));
  if (exchange == nullptr) {
    co_return squeezed(metric.value(state));
  }
  const GatheredStates states = co_await gathered(std::move(state), exchange, sites);
  std::vector<SharedValues> values;
  for (const std::vector<Gathered>& of_state : states) {
    for (const Gathered& each : of_state) {
      values.push_back(each.shapes);
      values.push_back(each.values);
    }
  }
  const std::function<Value()> compute = [&] { return value_of_gathered(metric, states); };
  co_return exchange->common_value(metric, values, compute);
}

Task<Value> MetricObject::compute(StateExchange* exchange, const StateSites* sites) {
  if (computed_) {
    co_return *computed_;
  }
  StateExchange* const used = definition_->sync_on_compute ? exchange : nullptr;
  Value value = co_await value_of(state(), used, sites);
  if (definition_->compute_with_cache) {
    computed_ = value;
  }
  co_return value;
}

// With the full state, or to exchange the batch's, forward updates twice; else it updates the state
// of the batch and merges. An object that follows another leaves the accumulation to that one.
Task<Value> MetricObject::forward(const MetricInputs* inputs, StateExchange* exchange,
                                  const StateSites* sites) {
  const Metric& metric = *definition_->metric;
  StateExchange* const used = definition_->dist_sync_on_step ? exchange : nullptr;
  MetricState batch = metric.initial_state();
  metric.update(*inputs, batch);
  Value value = co_await value_of(batch, used, sites);
  if (leader_ == nullptr) {
    ++updates_;
    if (metric.full_state_update() || definition_->dist_sync_on_step) {
      metric.update(*inputs, state_);
    } else {
      merge_batch(metric, std::move(state_), updates_, batch);
      state_ = std::move(batch);
    }
  }
  computed_.reset();
  if (!metric.is_wrapper()) {
    batch_value_ = value;
  }
  co_return value;
}

MetricInstance::MetricInstance(const MetricDefinition& definition) : definition_(&definition) {
  if (!definition.is_collection()) {
    objects_.emplace_back(definition);
  }
  for (const MetricDefinition& member : definition.members) {
    objects_.emplace_back(member);
  }
}

// Groups merge in the order of their members until no two are equal, so each object follows the
// first before it that has its states.
void MetricInstance::form_groups() {
  for (size_t i = 1; i < objects_.size(); ++i) {
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (!objects_[earlier].follows() && have_equal_states(objects_[earlier], objects_[i])) {
        objects_[i].follow(objects_[earlier]);
        break;
      }
    }
  }
  groups_formed_ = true;
}

void MetricInstance::update(const MetricInputs& inputs) {
  for (MetricObject& object : objects_) {
    object.forget_value();
    if (!object.follows()) {
      object.update(inputs);
    }
  }
  if (definition_->compute_groups && objects_.size() > 1 && !groups_formed_) {
    form_groups();
  }
}

void MetricInstance::reset() {
  for (MetricObject& object : objects_) {
    object.reset();
  }
}

}  // namespace lockstep
